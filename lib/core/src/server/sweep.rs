//! Tracks a peer that asks for the ranks of its job in order.

use phalanx_spec::Rank;
use phalanx_wire::ProcId;

use super::limits::MAX_RANKS_AHEAD;

/// Whether a peer asks for one rank after the other.
#[derive(Debug, Default)]
pub(super) struct Sweep {
    /// The rank it asks for next if it continues.
    next: u32,
    /// The intended number of ranks in its last answer.
    width: u32,
}

impl Sweep {
    /// How many ranks an answer about this one should hold: twice as many as the last if the asker continues in order.
    pub(super) fn width_from(&self, target: Rank) -> u32 {
        let goes_on = self.width > 0 && target.0 == self.next;
        if goes_on { (self.width * 2).min(MAX_RANKS_AHEAD) } else { 1 }
    }

    /// An answer of that width was sent; a process that continues asks for `next`.
    pub(super) fn answered(&mut self, width: u32, next: u32) {
        *self = Sweep { next, width };
    }
}

/// The rank that a process of the same job asks for next: processes skip their own.
pub(super) fn after(rank: u32, asker: &ProcId) -> u32 {
    if rank.saturating_add(1) == asker.rank.0 { rank + 2 } else { rank.saturating_add(1) }
}
