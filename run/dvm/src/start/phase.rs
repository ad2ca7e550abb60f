//! How far the daemon of a host has come.

use std::fmt;

use phalanx_core::Time;

/// How far one host has come, and since when.
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
    /// Its agent runs, and its daemon has not said who it is.
    Starting,
    /// It is told, or has still to be told, what it is to be.
    Settling,
    /// It has said where it can be reached.
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
