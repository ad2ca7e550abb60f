//! CONNECT and DISCONNECT: bind processes of several jobs together (RFC0003).

use phalanx_spec::Status;

use crate::cmd::job_data::JobData;
use crate::info::Info;
use crate::name::ProcId;

/// `endpoints` are what a 6.1 client adds: its put values per scope, as `pmix.pdata` infos.
#[derive(Clone, Debug, PartialEq)]
pub struct Connect {
    pub procs: Vec<ProcId>,
    pub info: Vec<Info>,
    pub endpoints: Vec<Info>,
}

/// `jobs`: the job data of each participating namespace but the receiver's.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    pub status: Status,
    pub jobs: Vec<JobData>,
}
