//! MONITOR: watch processes and raise an event when they fall silent (RFC0015).

use phalanx_spec::Status;

use crate::info::Info;

#[derive(Clone, Debug, PartialEq)]
pub struct Monitor {
    pub what: Info,
    /// The event to raise.
    pub error: Status,
    pub directives: Vec<Info>,
}
