//! Recent events, kept for later registrations: bounded in number, size and age.

use std::collections::{BTreeSet, VecDeque};

use phalanx_spec::{Range, keys};
use phalanx_wire::{InfoList, Nspace, ProcId};

use crate::host::Event;
use crate::machine::{ConnId, Time};
use crate::server::limits::{EVENT_AGE, MAX_CACHED_EVENT_BYTES, MAX_CACHED_EVENTS};
use crate::server::values::weight_of_infos;

/// The peers that an event is for.
#[derive(Clone, Debug)]
pub(super) enum Audience {
    /// Processes in its range.
    Range,
    /// An announcement of the host about a job: for tools, processes of these jobs or of all, and processes that named what it
    /// affects. The number orders announcements by when they happened.
    OfJob { concerned: Option<Vec<Nspace>>, number: u64 },
}

/// In the order in which they happened.
#[derive(Debug, Default)]
pub(super) struct Kept {
    all: VecDeque<Cached>,
    bytes: usize,
}

/// The connections that do not get an event because they raised it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) enum Raiser {
    /// All connections of the process that is the event's source.
    Source,
    /// This connection of the process, while it is open.
    Connection(ConnId),
    /// None: the server noticed it.
    Server,
}

#[derive(Debug)]
pub(super) struct Cached {
    pub(super) event: Event,
    pub(super) audience: Audience,
    pub(super) raised_by: Raiser,
    pub(super) since: Time,
    bytes: usize,
    pub(super) told: BTreeSet<ConnId>,
    /// Processes that got it and have no connection any more: one that reconnects does not get it again.
    pub(super) told_before: BTreeSet<ProcId>,
}

impl Cached {
    pub(super) fn new(now: Time, event: Event, raised_by: Raiser, audience: Audience) -> Cached {
        let named = match &audience {
            Audience::OfJob { concerned: Some(jobs), .. } => jobs.iter().map(|job| job.as_str().len()).sum(),
            _ => 0,
        };
        let bytes = weight_of_infos(&event.info) + named;
        Cached {
            event,
            audience,
            raised_by,
            since: now,
            bytes,
            told: BTreeSet::new(),
            told_before: BTreeSet::new(),
        }
    }

    /// Whether it is small enough to be kept.
    fn fits(&self) -> bool {
        self.bytes <= MAX_CACHED_EVENT_BYTES / 16
    }

    /// Whether later registrations get it.
    pub(super) fn is_for_latecomers(&self) -> bool {
        let is_of_the_moment = self.event.info.is_set(keys::EVENT_DO_NOT_CACHE)
            || matches!(self.event.range, Range::RM | Range::PROC_LOCAL);
        self.fits() && !is_of_the_moment
    }

    /// Whether the event is for all processes in its range, of which the job registered at this time had none.
    pub(super) fn is_before(&self, job: Time) -> bool {
        let is_named = matches!(self.event.range, Range::NAMESPACE | Range::CUSTOM);
        matches!(self.audience, Audience::Range) && !is_named && self.since < job
    }

    /// 0: it has no number.
    pub(super) fn number(&self) -> u64 {
        match self.audience {
            Audience::Range => 0,
            Audience::OfJob { number, .. } => number,
        }
    }
}

impl Kept {
    pub(super) fn keep(&mut self, now: Time, cached: Cached) {
        let bytes = cached.bytes;
        self.drop_old(now);
        while self.all.len() >= MAX_CACHED_EVENTS || self.bytes.saturating_add(bytes) > MAX_CACHED_EVENT_BYTES
        {
            let Some(oldest) = self.all.pop_front() else { return };
            self.bytes -= oldest.bytes;
        }
        self.bytes += bytes;
        let at = self.all.partition_point(|other| other.number() <= cached.number());
        self.all.insert(at, cached);
    }

    pub(super) fn recent(&mut self, now: Time) -> impl Iterator<Item = &mut Cached> {
        self.drop_old(now);
        self.all.iter_mut()
    }

    pub(super) fn forget_connection(&mut self, conn: ConnId, proc: &ProcId, is_last: bool) {
        for cached in &mut self.all {
            if cached.raised_by == Raiser::Connection(conn) {
                cached.raised_by = Raiser::Source;
            }
            if cached.told.remove(&conn) && is_last {
                cached.told_before.insert(proc.clone());
            }
        }
    }

    /// Whether a process of this job has raised one, or got one.
    pub(super) fn knows(&self, nspace: &Nspace) -> bool {
        self.all.iter().any(|cached| cached.event.source.nspace == *nspace) || self.told_any_of(nspace)
    }

    pub(super) fn told_any_of(&self, nspace: &Nspace) -> bool {
        self.all.iter().flat_map(|cached| &cached.told_before).any(|proc| proc.nspace == *nspace)
    }

    pub(super) fn forget_events_of(&mut self, nspace: &Nspace) {
        self.all.retain(|cached| cached.event.source.nspace != *nspace);
        self.bytes = self.all.iter().map(|cached| cached.bytes).sum();
    }

    pub(super) fn forget_told_in(&mut self, nspace: &Nspace) {
        for cached in &mut self.all {
            cached.told_before.retain(|proc| proc.nspace != *nspace);
        }
    }

    fn drop_old(&mut self, now: Time) {
        while let Some(oldest) = self.all.pop_front_if(|cached| now.since(cached.since) > EVENT_AGE) {
            self.bytes -= oldest.bytes;
        }
    }
}
