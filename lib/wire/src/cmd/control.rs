//! JOB_CONTROL: directives for running processes (RFC0015).

use crate::info::Info;
use crate::name::ProcId;

/// `targets` empty means every process of the asker's job.
#[derive(Clone, Debug, PartialEq)]
pub struct JobControl {
    pub targets: Vec<ProcId>,
    pub directives: Vec<Info>,
}
