//! The state of a host's daemon during the start.

use std::fmt;

use phalanx_core::Time;

/// The phase of one host, and since when.
#[derive(Debug)]
pub(super) struct HostState {
    pub(super) phase: Phase,
    pub(super) since: Time,
}

impl HostState {
    /// Neither up nor lost.
    pub(super) fn is_open(&self) -> bool {
        !matches!(self.phase, Phase::Up | Phase::Lost(_))
    }

    pub(super) fn is_lost(&self) -> bool {
        matches!(self.phase, Phase::Lost(_))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Others are started first.
    Waiting,
    /// Its agent runs, and its daemon has not sent its greeting.
    Starting,
    /// It has been sent, or is yet to be sent, its configuration.
    Settling,
    /// It has reported its addresses.
    Joining,
    Up,
    /// With the reason.
    Lost(String),
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Phase::Waiting => "waiting for its turn",
            Phase::Starting => "starting the daemon",
            Phase::Settling => "telling the daemon who it is",
            Phase::Joining => "linking the daemon to the others",
            Phase::Up => "up",
            Phase::Lost(_) => "lost",
        })
    }
}
