//! ABORT: end processes, now.

use phalanx_spec::Status;

use crate::name::ProcId;
use crate::text::Text;

/// `procs` empty means the whole job of the asker.
#[derive(Clone, Debug, PartialEq)]
pub struct Abort {
    /// The exit status that the caller wants reported.
    pub status: Status,
    pub message: Option<Text>,
    pub procs: Vec<ProcId>,
}
