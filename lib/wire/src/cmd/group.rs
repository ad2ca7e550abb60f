//! GROUP_CONSTRUCT, GROUP_DESTRUCT, GROUP_LEAVE. Join and invite are events.
//!
//! Their layout changed with each family; the peer's release decides.

use phalanx_spec::Status;

use crate::info::Info;
use crate::name::ProcId;
use crate::text::Text;

#[derive(Clone, Debug, PartialEq)]
pub struct Construct {
    pub id: Text,
    pub procs: Vec<ProcId>,
    pub info: Vec<Info>,
}

/// 4.2 clients do not send the members.
#[derive(Clone, Debug, PartialEq)]
pub struct Destruct {
    pub id: Text,
    pub procs: Vec<ProcId>,
    pub info: Vec<Info>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Leave {
    pub id: Text,
    pub info: Vec<Info>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ConstructReply {
    pub status: Status,
    pub members: Vec<ProcId>,
    /// `None` when no context id was asked for.
    pub context_id: Option<u64>,
    pub info: Vec<Info>,
}
