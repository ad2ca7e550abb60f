//! LOG: hand data to a log channel of the host.

use crate::info::Info;

/// `timestamp` is 0 unless the caller asked for one (seconds since the epoch).
#[derive(Clone, Debug, PartialEq)]
pub struct Log {
    pub timestamp: u64,
    pub data: Vec<Info>,
    pub directives: Vec<Info>,
}
