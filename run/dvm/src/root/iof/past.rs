//! Output of ended jobs, kept for spawners that have not read it yet.
//!
//! A short job may end before its spawner knows its name. Its cache stays until the spawner has pulled it, or has ended, or too
//! much is kept. The bound is not that of the journals: this output will be read, however few ended jobs the user wants
//! remembered. The weight of a journal kept for this counts here.

use std::collections::VecDeque;
use std::sync::Arc;

use phalanx_spec::{IofChannel, Rank};
use phalanx_wire::{Info, Nspace, ProcId};

use crate::msg::JobDesc;
use crate::root::iof::cache::{Backlog, Cache};
use crate::root::journal::Journal;

/// The oldest first.
#[derive(Debug, Default)]
pub(super) struct Unread {
    jobs: VecDeque<Remains>,
}

#[derive(Debug)]
pub(super) struct Remains {
    journal: Arc<Journal>,
    parent: ProcId,
    style: Vec<Info>,
    cache: Cache,
}

impl Unread {
    pub(super) fn is_for(&self, nspace: &Nspace) -> bool {
        self.jobs.iter().any(|job| job.parent.nspace == *nspace)
    }

    fn find(&self, nspace: &Nspace, reader: &ProcId) -> Option<&Remains> {
        self.jobs.iter().find(|job| job.journal.desc().nspace == *nspace && job.parent == *reader)
    }

    /// How the output of a job is to be formatted, if this reader may have it.
    pub(super) fn style(&self, nspace: &Nspace, reader: &ProcId) -> Option<&[Info]> {
        Some(&self.find(nspace, reader)?.style)
    }

    pub(super) fn desc(&self, nspace: &Nspace, reader: &ProcId) -> Option<&JobDesc> {
        Some(self.find(nspace, reader)?.journal.desc())
    }

    /// Collects all kept output that the spawner wants.
    pub(super) fn replay(
        &self,
        reader: &ProcId,
        sources: &[ProcId],
        channels: IofChannel,
        into: &mut Backlog,
    ) {
        for job in self.jobs.iter().filter(|job| job.parent == *reader) {
            let wanted = |proc: &ProcId| sources.iter().any(|source| source.covers(proc));
            let pid = |proc: &ProcId| job.journal.pid(proc.rank);
            job.cache.replay(&job.journal.desc().nspace, channels, wanted, pid, into);
        }
    }

    /// Keeps the output of an ended job, and drops the oldest beyond the bound. Returns the cost of what was dropped.
    pub(super) fn keep(
        &mut self,
        journal: Arc<Journal>,
        parent: ProcId,
        style: Vec<Info>,
        cache: Cache,
    ) -> usize {
        self.jobs.push_back(Remains { journal, parent, style, cache });
        let mut dropped = 0;
        loop {
            let bytes: usize = self.jobs.iter().map(|job| job.cache.cost() + job.journal.weight()).sum();
            if self.jobs.len() <= MOST_JOBS && (bytes <= MOST_BYTES || self.jobs.len() == 1) {
                return dropped;
            }
            dropped += self.jobs.pop_front().map_or(0, |job| job.cache.cost());
        }
    }

    /// The spawner has read it. Returns the cost of what was dropped.
    pub(super) fn forget_read(&mut self, reader: &ProcId, sources: &[ProcId], channels: IofChannel) -> usize {
        let whole = |nspace: &Nspace| {
            sources.iter().any(|source| source.nspace == *nspace && source.rank == Rank::WILDCARD)
        };
        self.forget(|job| {
            if job.parent == *reader && whole(&job.journal.desc().nspace) {
                job.cache.forget(channels);
            }
            job.cache.is_empty()
        })
    }

    /// Returns the cost of what was dropped.
    pub(super) fn forget(&mut self, is_done: impl Fn(&mut Remains) -> bool) -> usize {
        let cost = |unread: &Unread| -> usize { unread.jobs.iter().map(|job| job.cache.cost()).sum() };
        let before = cost(self);
        self.jobs.retain_mut(|job| !is_done(job));
        before - cost(self)
    }
}

impl Remains {
    /// The spawner of the job.
    pub(super) fn parent(&self) -> &ProcId {
        &self.parent
    }
}

const MOST_JOBS: usize = 64;
/// Of all of them together, apart from one.
const MOST_BYTES: usize = 4 << 20;
