//! Takes job data and peers' values into the store.

use phalanx_spec::Rank;
use phalanx_wire::cmd::get::OwnerData;
use phalanx_wire::cmd::job_data::JobData;

use super::{Store, write};

impl Store {
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

    /// The values of one rank; those of rank UNDEF are this process's own.
    pub fn load_owner(&self, data: OwnerData) {
        let rank = if data.owner.rank == Rank::UNDEF { self.me.rank } else { data.owner.rank };
        self.insert_rank(&data.owner.nspace, rank, data.values);
    }
}
