//! What the root waits for by the clock. An entry that has lost its meaning is ignored when it fires.

use phalanx_wire::Nspace;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    /// Boot has taken too long.
    Boot,
    /// Readers of a job that is being ended are waited for no longer if they take nothing.
    Readers(Nspace),
    /// The job's own limit.
    Limit(Nspace),
    /// An operation should have ended by now.
    Operation(u64),
}

impl Timer {
    pub(super) fn concerns(&self, nspace: &Nspace) -> bool {
        match self {
            Timer::Readers(job) | Timer::Limit(job) => job == nspace,
            Timer::Boot | Timer::Operation(_) => false,
        }
    }
}
