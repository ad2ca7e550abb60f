//! The entries of a journal: what happened, and when to which ranks.

use std::time::Duration;

use phalanx_core::Time;

use super::what::What;
use crate::ranges::Ranges;

#[derive(Debug)]
pub(in crate::root) struct Entry {
    pub(super) number: u64,
    pub(super) at: Time,
    pub(super) what: What,
    /// Later occurrences for other ranks, which are among the ranks of `what`.
    pub(super) later: Vec<Moment>,
}

/// When an event happened to some of the ranks of an entry, and its sequence number. `ranks` is empty for events of the whole
/// job.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::root) struct Moment {
    pub(in crate::root) number: u64,
    pub(in crate::root) at: Time,
    pub(in crate::root) ranks: Ranges,
}

impl Entry {
    pub(in crate::root) fn at(&self) -> Time {
        self.at
    }

    pub(in crate::root) fn what(&self) -> &What {
        &self.what
    }

    /// When it happened to which ranks, in order. Sequence numbers are shared by all jobs.
    pub(in crate::root) fn moments(&self) -> impl Iterator<Item = Moment> + '_ {
        let mut ranks = self.what.ranks().cloned().unwrap_or_default();
        self.later.iter().flat_map(|later| later.ranks.iter()).for_each(|rank| ranks.remove(rank));
        let first = Moment { number: self.number, at: self.at, ranks };
        std::iter::once(first).chain(self.later.iter().cloned())
    }

    /// Adds ranks to which the same has happened; returns the number of that moment.
    pub(super) fn join(&mut self, moment: Moment, has_room: bool) -> u64 {
        if let Some(ranks) = self.what.ranks_mut() {
            ranks.add(&moment.ranks);
        }
        let (number, at) = self.later.last().map_or((self.number, self.at), |last| (last.number, last.at));
        if has_room && moment.at.since(at) >= SAME_TIME {
            let number = moment.number;
            self.later.push(moment);
            return number;
        }
        self.later.last_mut().into_iter().for_each(|last| last.ranks.add(&moment.ranks));
        number
    }
}

/// Equal events no further apart than this get the same time.
const SAME_TIME: Duration = Duration::from_millis(10);
