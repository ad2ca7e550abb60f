//! The timers of this node's processes. A timer that has become irrelevant is ignored when it fires.

use phalanx_wire::{Nspace, ProcId};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    /// Delays the report of how many processes have called init.
    Connected(Nspace),
    /// Delays the report of which processes have ended.
    Freed(Nspace),
    /// An exited process's connection should be gone by now.
    Settle(Nspace),
    /// What waits for this process is released.
    Over(ProcId),
    /// Inspect ranks that have not connected for loaded MPI libraries.
    Inspect(Nspace),
    /// The grace period after the polite signal is over.
    Kill(Nspace),
    /// Processes that survive SIGKILL are given up.
    Reap(Nspace),
    /// All processes here have ended, and the job has not: a reader may be slow.
    Exited(Nspace),
    /// Stop waiting for output of a job without living processes.
    Drain(Nspace),
    /// The time limit of a command.
    Command(ProcId),
    /// Ask again for remote data.
    Retry,
    /// Collectives have waited for a while.
    Waits,
}

impl Timer {
    pub(super) fn concerns(&self, nspace: &Nspace) -> bool {
        match self {
            Timer::Connected(job)
            | Timer::Freed(job)
            | Timer::Settle(job)
            | Timer::Inspect(job)
            | Timer::Kill(job)
            | Timer::Reap(job)
            | Timer::Exited(job)
            | Timer::Drain(job) => job == nspace,
            Timer::Over(proc) => proc.nspace == *nspace,
            _ => false,
        }
    }
}
