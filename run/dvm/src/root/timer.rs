//! The root's timers. A timer that has become irrelevant is ignored when it fires.

use phalanx_wire::Nspace;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    /// Boot has taken too long.
    Boot,
    /// Stop waiting for readers of a job that is being ended, unless they have taken something.
    Readers(Nspace),
    /// The job's own limit.
    Limit(Nspace),
}

impl Timer {
    pub(super) fn concerns(&self, nspace: &Nspace) -> bool {
        match self {
            Timer::Readers(job) | Timer::Limit(job) => job == nspace,
            Timer::Boot => false,
        }
    }
}
