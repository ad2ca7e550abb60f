//! Takes job data and peers' values into the store.

use phalanx_spec::{Rank, keys};
use phalanx_wire::cmd::get::OwnerData;
use phalanx_wire::cmd::job_data::JobData;
use phalanx_wire::{Kval, Nspace, Value};

use super::space::values_of;
use super::{Store, write};

impl Store {
    /// The answer to REQ, or the job data that comes with spawn and connect.
    pub fn load_job(&self, data: JobData) {
        self.take_job_values(&data.nspace, data.values);
        for (rank, values) in data.procs {
            self.insert_rank(&data.nspace, rank, values);
        }
    }

    /// Values that came with a get: those of a rank, of a job (rank WILDCARD), or of this process (rank UNDEF).
    pub fn load_owner(&self, data: OwnerData) {
        let nspace = &data.owner.nspace;
        match data.owner.rank {
            Rank::WILDCARD => self.take_job_values(nspace, data.values),
            Rank::UNDEF => self.insert_rank(nspace, self.me.rank, data.values),
            rank => self.insert_rank(nspace, rank, data.values),
        }
    }

    fn take_job_values(&self, nspace: &Nspace, values: Vec<Kval>) {
        let (of_ranks, of_job): (Vec<_>, Vec<_>) =
            values.into_iter().partition(|kval| kval.key == keys::PROC_INFO_ARRAY);
        let space = self.space_or_new(nspace);
        {
            let mut realms = write(&space.job);
            for (key, value) in self.pooled(of_job) {
                realms.take(key, value);
            }
        }
        for kval in of_ranks {
            self.take_rank_array(nspace, &kval.value);
        }
    }

    // An array whose rank is one of its own infos: an older form of a rank's data.
    fn take_rank_array(&self, nspace: &Nspace, value: &Value) {
        let Some(values) = value.as_array().map(values_of) else { return };
        let Some(rank) = values.get(keys::RANK).and_then(Value::as_rank) else { return };
        self.insert_rank(nspace, rank, values.into_iter().map(|(key, value)| Kval { key, value }));
    }
}
