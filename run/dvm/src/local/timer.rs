//! What the processes of this node wait for by the clock. An entry that has lost its meaning is ignored when it fires.

use phalanx_wire::{Nspace, ProcId};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    /// How many processes have called init is told a moment later.
    Connected(Nspace),
    /// An exited process's connection should be gone by now.
    Settle(Nspace),
    /// Whoever waits for this process has waited enough.
    Over(ProcId),
    /// Look whether ranks that have not connected have loaded MPI.
    Inspect(Nspace),
    /// Politeness is over.
    Kill(Nspace),
    /// Processes that survive SIGKILL are given up.
    Reap(Nspace),
    /// All processes here have ended, and the job has not, so somebody may be slow to read.
    Exited(Nspace),
    /// Output of a job without living processes is waited for no longer.
    Drain(Nspace),
    /// A command has had its time.
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
