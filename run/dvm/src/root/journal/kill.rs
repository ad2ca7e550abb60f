//! An order by job control that ended processes.

use phalanx_wire::ProcId;

use crate::ranges::Ranges;

#[derive(Debug)]
pub(super) struct Kill<'a> {
    /// The ranks that were not started again since.
    pub(super) ranks: Ranges,
    /// Those that were.
    pub(super) earlier: Ranges,
    pub(super) by: &'a ProcId,
    pub(super) signal: i32,
}

impl<'a> Kill<'a> {
    pub(super) fn new(ranks: &Ranges, by: &'a ProcId, signal: i32) -> Kill<'a> {
        Kill { ranks: ranks.clone(), earlier: Ranges::new(), by, signal }
    }

    /// It came too late for these.
    pub(super) fn spare(&mut self, ranks: &Ranges) {
        for rank in ranks.iter() {
            self.ranks.remove(rank);
            self.earlier.remove(rank);
        }
    }

    pub(super) fn restarted(&mut self, ranks: &Ranges) {
        let again = self.ranks.and(ranks);
        again.iter().for_each(|rank| self.ranks.remove(rank));
        self.earlier.add(&again);
    }
}
