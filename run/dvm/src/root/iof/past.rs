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
use crate::root::Root;
use crate::root::iof::cache::{Backlog, Cache};
use crate::root::journal::Journal;

/// The oldest first.
#[derive(Debug, Default)]
pub(super) struct Unread {
    jobs: VecDeque<Remains>,
}

#[derive(Debug)]
struct Remains {
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
}

impl Root {
    /// The job is over: drops its cached output, unless its spawner may still ask for it.
    pub(in crate::root) fn keep_unread(&mut self, journal: Arc<Journal>, cache: Cache, style: Vec<Info>) {
        let is_there = |parent: &ProcId| !cache.is_empty() && self.node_of(parent).is_some();
        let Some(parent) = journal.desc().parent.clone().filter(is_there) else {
            return self.readers.cached -= cache.cost();
        };
        self.readers.unread.jobs.push_back(Remains { journal, parent, style, cache });
        loop {
            let jobs = &self.readers.unread.jobs;
            let bytes: usize = jobs.iter().map(|job| job.cache.cost() + job.journal.weight()).sum();
            if jobs.len() <= MOST_JOBS && (bytes <= MOST_BYTES || jobs.len() == 1) {
                return;
            }
            let oldest = self.readers.unread.jobs.pop_front();
            self.readers.cached -= oldest.map_or(0, |job| job.cache.cost());
        }
    }

    /// The spawner has read it.
    pub(super) fn forget_read(&mut self, reader: &ProcId, sources: &[ProcId], channels: IofChannel) {
        let whole = |nspace: &Nspace| {
            sources.iter().any(|source| source.nspace == *nspace && source.rank == Rank::WILDCARD)
        };
        self.forget_unread(|job| {
            if job.parent == *reader && whole(&job.journal.desc().nspace) {
                job.cache.forget(channels);
            }
            job.cache.is_empty()
        });
    }

    /// Drops the output of jobs that this process has spawned; with a wildcard, of those that its whole job has.
    pub(in crate::root) fn forget_unread_of(&mut self, spawner: &ProcId) {
        self.forget_unread(|job| spawner.covers(&job.parent));
    }

    fn forget_unread(&mut self, is_done: impl Fn(&mut Remains) -> bool) {
        let readers = &mut self.readers;
        let cost = |unread: &Unread| -> usize { unread.jobs.iter().map(|job| job.cache.cost()).sum() };
        let before = cost(&readers.unread);
        readers.unread.jobs.retain_mut(|job| !is_done(job));
        readers.cached -= before - cost(&readers.unread);
    }
}

const MOST_JOBS: usize = 64;
/// Of all of them together, apart from one.
const MOST_BYTES: usize = 4 << 20;
