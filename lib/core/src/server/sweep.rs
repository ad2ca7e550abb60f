//! How far a peer has come on its way through the ranks of its job.

use phalanx_spec::Rank;
use phalanx_wire::ProcId;

use super::limits::MAX_RANKS_AHEAD;

/// Whether a peer asks for one rank after the other.
#[derive(Debug, Default)]
pub(super) struct Sweep {
    /// The rank that it asks for next if it goes on.
    next: u32,
    /// How many ranks its last answer was meant to hold.
    width: u32,
}

impl Sweep {
    /// Over how many ranks an answer about this one is to go: twice as many as the last if the asker goes on in order.
    pub(super) fn width_from(&self, target: Rank) -> u32 {
        let goes_on = self.width > 0 && target.0 == self.next;
        if goes_on { (self.width * 2).min(MAX_RANKS_AHEAD) } else { 1 }
    }

    /// An answer of that width was given; a process that goes on asks for `next`.
    pub(super) fn answered(&mut self, width: u32, next: u32) {
        *self = Sweep { next, width };
    }
}

/// The rank that a process in the same job asks for next: nobody asks for its own values.
pub(super) fn after(rank: u32, asker: &ProcId) -> u32 {
    if rank.saturating_add(1) == asker.rank.0 { rank + 2 } else { rank.saturating_add(1) }
}
