//! The journal of a job: what happened to it, in order, each thing once.
//!
//! Every decision about a job is appended here, and every report on its past is read from here: how it ended, its processes,
//! its phases, events for late registrations. There is no other history. The journals of ended jobs are kept within one bound;
//! beyond it the oldest go first.
//!
//! Equal events of many ranks, with nothing else in between, are one entry with ranges of ranks and the time of each. A second
//! occurrence for the same rank is an entry of its own. No clock is read here.

mod end;
mod entry;
mod history;
mod kill;
mod what;

use std::collections::VecDeque;
use std::sync::Arc;

use phalanx_core::Time;
use phalanx_wire::{Nspace, ProcId};

use crate::config::Limits;
use crate::msg::JobDesc;
use crate::root::premises::Premises;

pub(super) use end::{end_of, failure_of};
pub(super) use entry::{Entry, Moment};
pub(super) use history::{Journal, MOST_LOGGED, MOST_LOGGED_BYTES};
pub(super) use what::What;

/// Hands out sequence numbers, and keeps the journals of ended jobs, the oldest first.
#[derive(Debug)]
pub(super) struct Journals {
    last: u64,
    ended: VecDeque<Arc<Journal>>,
    bytes: usize,
    most_jobs: usize,
    most_bytes: usize,
}

impl Journals {
    pub(super) fn new(limits: &Limits) -> Journals {
        let (most_jobs, most_bytes) = (limits.ended_jobs as usize, limits.journals);
        Journals { last: 0, ended: VecDeque::new(), bytes: 0, most_jobs, most_bytes }
    }

    /// Begins the journal of a job that has just been placed.
    pub(super) fn begin(
        &mut self,
        now: Time,
        submitted: Time,
        (desc, premises): (Arc<JobDesc>, Premises),
        run_by: Option<ProcId>,
    ) -> Journal {
        let mut journal = Journal::new(desc, run_by);
        self.append(&mut journal, submitted, What::Submitted);
        self.append(&mut journal, now, What::Placed(Box::new(premises)));
        journal
    }

    /// Appends an event. Returns its number, which is that of an equal event at the same time if it was merged with one.
    pub(super) fn append(&mut self, journal: &mut Journal, now: Time, what: What) -> u64 {
        self.last += 1;
        journal.append(self.last, now, what)
    }

    /// Appends a text that was logged. False: there is no room for it.
    pub(super) fn log(&mut self, journal: &mut Journal, now: Time, what: What) -> bool {
        self.last += 1;
        journal.log(self.last, now, what)
    }

    /// The last number handed out.
    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// Keeps the journal of a job that has ended, within the bounds.
    pub(super) fn keep(&mut self, journal: Journal) -> Arc<Journal> {
        let journal = Arc::new(journal);
        self.bytes += journal.weight();
        self.ended.push_back(journal.clone());
        while self.ended.len() > self.most_jobs || self.bytes > self.most_bytes {
            let Some(oldest) = self.ended.pop_front() else { break };
            self.bytes -= oldest.weight();
        }
        journal
    }

    /// The journal of an ended job.
    pub(super) fn get(&self, nspace: &Nspace) -> Option<&Journal> {
        self.ended.iter().rev().find(|journal| journal.desc().nspace == *nspace).map(|journal| &**journal)
    }

    /// The journals of the ended jobs, the oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Journal> {
        self.ended.iter().map(|journal| &**journal)
    }
}

#[cfg(test)]
mod tests;
