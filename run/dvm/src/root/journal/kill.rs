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
        self.ranks.take(ranks);
        self.earlier.take(ranks);
    }

    pub(super) fn restarted(&mut self, ranks: &Ranges) {
        let again = self.ranks.take(ranks);
        self.earlier.add(&again);
    }
}
