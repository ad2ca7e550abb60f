//! FENCE: meet, with or without data. Answered by a status alone; collected data is fetched with GET.

use crate::info::Info;
use crate::name::ProcId;

#[derive(Clone, Debug, PartialEq)]
pub struct Fence {
    pub procs: Vec<ProcId>,
    pub info: Vec<Info>,
}
