//! Loads job data and peers' values into the store. A server's data of each process of a job are loaded one by one: there may
//! be thousands, and all of it decoded at once would be many times what is kept.

use phalanx_spec::Rank;
use phalanx_wire::cmd::get::OwnerData;
use phalanx_wire::cmd::job_data::{JobData, JobItem, JobItems};
use phalanx_wire::codec::DecodeError;
use phalanx_wire::{Kval, Nspace, ProcId};

use super::{Store, lock, write};

impl Store {
    /// The answer to REQ, loaded while it is decoded.
    pub fn load_items(&self, nspace: &Nspace, items: JobItems<'_>) -> Result<(), DecodeError> {
        for item in items {
            match item? {
                JobItem::OfJob(kval) => {
                    let space = self.space_or_new(nspace);
                    let mut realms = write(&space.job);
                    self.pooled([kval]).into_iter().for_each(|(key, value)| realms.take(key, value));
                }
                JobItem::OfProc(rank, values) => {
                    let mut pool = lock(&self.pool);
                    let values =
                        values.into_iter().map(|kval| Kval { value: pool.shared_text(kval.value), ..kval });
                    let values: Vec<Kval> = values.collect();
                    drop(pool);
                    self.insert_rank(nspace, rank, values);
                }
            }
        }
        Ok(())
    }

    /// The answer to REQ, or the job data that comes with a get, a spawn or a connect.
    pub fn load_job(&self, data: JobData) {
        let values = self.pooled(data.values);
        {
            let space = self.space_or_new(&data.nspace);
            let mut realms = write(&space.job);
            for (key, value) in values {
                realms.take(key, value);
            }
        }
        for (rank, values) in data.procs {
            self.insert_rank(&data.nspace, rank, values);
        }
    }

    /// The values of one rank, as the server has just sent them; those of rank UNDEF are this process's own.
    pub fn load_owner(&self, data: OwnerData) {
        let rank = if data.owner.rank == Rank::UNDEF { self.me.rank } else { data.owner.rank };
        let values = self.pooled(data.values);
        let space = self.space_or_new(&data.owner.nspace);
        let values = space.without_qualified(rank, values);
        // No file named so far is newer.
        write(&space.ranks).entry(rank.0).or_default().take(values, space.shelf.good());
    }

    /// These are restarted: forgets the values they put, including those in the files named so far. Values from hosts stay.
    pub fn forget_values(&self, procs: &[ProcId]) {
        for proc in procs.iter().filter(|proc| **proc != self.me) {
            let Some(space) = self.space(proc.nspace.as_str()) else { continue };
            write(&space.qualified).forget(proc.rank);
            let good = space.shelf.good();
            let mut ranks = write(&space.ranks);
            let known = ranks.entry(proc.rank.0).or_default();
            known.values =
                std::mem::take(&mut known.values).into_iter().filter(|(key, _)| key.is_reserved()).collect();
            known.upto = known.upto.max(good);
        }
    }

    /// Stores a value of any process for this process alone.
    pub fn keep(&self, owner: &ProcId, kval: Kval) {
        let rank = if owner.rank == Rank::UNDEF { self.me.rank } else { owner.rank };
        self.insert_rank(&owner.nspace, rank, [kval]);
    }
}
