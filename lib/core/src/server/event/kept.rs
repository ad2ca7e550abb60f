//! Recent events, kept for those who register later: bounded in number, size and age.

use std::collections::{BTreeSet, VecDeque};

use phalanx_wire::{Nspace, ProcId};

use crate::host::Event;
use crate::machine::{ConnId, Time};
use crate::server::limits::{EVENT_AGE, MAX_CACHED_EVENT_BYTES, MAX_CACHED_EVENTS};
use crate::server::values::weight_of_infos;

/// Whom an event is for.
#[derive(Clone, Debug)]
pub(super) enum Audience {
    /// Processes in its range.
    Range,
    /// The host's announcement about a job: for tools, processes of these jobs or of all, and those that named what it affects.
    OfJob { concerned: Option<Vec<Nspace>> },
}

/// The oldest first.
#[derive(Debug, Default)]
pub(super) struct Kept {
    all: VecDeque<Cached>,
    bytes: usize,
}

#[derive(Debug)]
pub(super) struct Cached {
    pub(super) event: Event,
    pub(super) audience: Audience,
    /// The connection that raised it, while that is open.
    pub(super) raised_by: Option<ConnId>,
    pub(super) since: Time,
    bytes: usize,
    pub(super) told: BTreeSet<ConnId>,
    /// Processes that were told and whose last connection has ended: one that comes back is not told again.
    pub(super) told_before: BTreeSet<ProcId>,
}

impl Cached {
    pub(super) fn new(
        now: Time,
        event: Event,
        raised_by: Option<ConnId>,
        audience: Audience,
        told: BTreeSet<ConnId>,
    ) -> Cached {
        let named = match &audience {
            Audience::OfJob { concerned: Some(jobs) } => jobs.iter().map(|job| job.as_str().len()).sum(),
            _ => 0,
        };
        let bytes = weight_of_infos(&event.info) + named;
        Cached { event, audience, raised_by, since: now, bytes, told, told_before: BTreeSet::new() }
    }
}

impl Kept {
    pub(super) fn keep(&mut self, now: Time, cached: Cached) {
        let bytes = cached.bytes;
        if bytes > MAX_CACHED_EVENT_BYTES / 16 {
            return;
        }
        self.drop_old(now);
        while self.all.len() >= MAX_CACHED_EVENTS || self.bytes.saturating_add(bytes) > MAX_CACHED_EVENT_BYTES
        {
            let Some(oldest) = self.all.pop_front() else { return };
            self.bytes -= oldest.bytes;
        }
        self.bytes += bytes;
        let at = self.all.partition_point(|other| other.since <= cached.since);
        self.all.insert(at, cached);
    }

    pub(super) fn recent(&mut self, now: Time) -> impl Iterator<Item = &mut Cached> {
        self.drop_old(now);
        self.all.iter_mut()
    }

    pub(super) fn forget_connection(&mut self, conn: ConnId, proc: &ProcId, is_last: bool) {
        for cached in &mut self.all {
            cached.raised_by.take_if(|raised_by| *raised_by == conn);
            if cached.told.remove(&conn) && is_last {
                cached.told_before.insert(proc.clone());
            }
        }
    }

    /// Whether a process of this job has raised one, or was told of one.
    pub(super) fn knows(&self, nspace: &Nspace) -> bool {
        let is_of = |proc: &ProcId| proc.nspace == *nspace;
        self.all.iter().any(|cached| is_of(&cached.event.source) || cached.told_before.iter().any(is_of))
    }

    pub(super) fn forget_events_of(&mut self, nspace: &Nspace) {
        self.all.retain(|cached| cached.event.source.nspace != *nspace);
        for cached in &mut self.all {
            cached.told_before.retain(|proc| proc.nspace != *nspace);
        }
        self.bytes = self.all.iter().map(|cached| cached.bytes).sum();
    }

    fn drop_old(&mut self, now: Time) {
        while let Some(oldest) = self.all.pop_front_if(|cached| now.since(cached.since) > EVENT_AGE) {
            self.bytes -= oldest.bytes;
        }
    }
}
