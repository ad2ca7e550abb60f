//! SPAWN: start another job. The reply holds its job data, so that the parent can speak of it without asking again.

use phalanx_spec::Status;

use crate::cmd::job_data::JobData;
use crate::info::Info;
use crate::value::App;

#[derive(Clone, Debug, PartialEq)]
pub struct Spawn {
    pub job: Vec<Info>,
    pub apps: Vec<App>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    pub status: Status,
    /// The new job; absent on failure.
    pub job: Option<JobData>,
}
