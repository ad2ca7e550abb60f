//! A process without a launcher: a job of one, without a server.
//!
//! It makes the job data that a server would send. Calls that need other processes are refused with `PMIX_ERR_UNREACH`.

use phalanx_spec::{Rank, keys};
use phalanx_wire::cmd::job_data::JobData;
use phalanx_wire::{DataArray, Info, Kval, Value};

use super::link::Link;
use super::phase::Phase;

pub(super) fn begin_alone(link: &mut Link) {
    let host = link.config.hostname.as_str();
    let node = [
        Info::new(keys::HOSTNAME, host),
        Info::new(keys::NODEID, 0_u32),
        Info::new(keys::LOCAL_SIZE, 1_u32),
        Info::new(keys::NODE_SIZE, 1_u32),
        Info::new(keys::LOCAL_PEERS, "0"),
        Info::new(keys::LOCALLDR, Rank(0)),
    ];
    let node = Value::DataArray(Box::new(DataArray::of_infos(node)));
    link.store.load_job(JobData {
        nspace: link.config.proc.nspace.clone(),
        values: vec![
            Kval::new(keys::JOB_SIZE, 1_u32),
            Kval::new(keys::UNIV_SIZE, 1_u32),
            Kval::new(keys::MAX_PROCS, 1_u32),
            Kval::new(keys::JOB_NUM_APPS, 1_u32),
            Kval::new(keys::NUM_NODES, 1_u32),
            Kval::new(keys::NODE_INFO_ARRAY, node),
        ],
        procs: vec![(
            link.config.proc.rank,
            vec![
                Kval::new(keys::HOSTNAME, host),
                Kval::new(keys::NODEID, 0_u32),
                Kval::new(keys::LOCAL_RANK, 0_u16),
                Kval::new(keys::NODE_RANK, 0_u16),
                Kval::new(keys::GLOBAL_RANK, Rank(0)),
                Kval::new(keys::APP_RANK, Rank(0)),
                Kval::new(keys::APPNUM, 0_u32),
            ],
        )],
    });
    link.phase = Phase::Alone;
}
