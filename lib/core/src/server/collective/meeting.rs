//! One collective: its expected and arrived participants, and their directives.
//!
//! Each call of a rank with several connections is a participation: if a second connection calls while the first waits, it
//! joins the next collective of the set. With `pmix.clone.part` it joins the first one, which waits for all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use phalanx_spec::{Status, keys};
use phalanx_wire::{Info, InfoList, ProcId};

use crate::host::CollectiveKind as Kind;
use crate::machine::{ConnId, Time};
use crate::server::peer::Asker;
use crate::server::peers::Peers;
use crate::server::registry::Jobs;
use crate::server::timers::{Timer, TimerId, Timers};

/// Identifies the collectives of one set.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::server) struct Signature {
    pub(in crate::server) kind: Kind,
    /// The group's id; empty for other kinds.
    pub(in crate::server) id: String,
    /// Sorted, without duplicates.
    pub(in crate::server) procs: Arc<[ProcId]>,
}

#[derive(Debug)]
pub(in crate::server) struct Collective {
    pub(super) id: u64,
    pub(in crate::server) signature: Signature,
    /// Local participants.
    pub(in crate::server) expected: BTreeSet<ProcId>,
    /// Participants that have ended, and that the collective continues without.
    pub(in crate::server) lost: BTreeSet<ProcId>,
    pub(super) arrived: BTreeMap<ProcId, Arrival>,
    /// Requests to be answered at the end, the latest last.
    pub(super) askers: Vec<Asker>,
    /// A group with members that want to be notified when one of them ends.
    pub(in crate::server) is_watched: bool,
    /// Later collectives of the same set wait for it.
    pub(in crate::server) is_followed: bool,
    /// The participants' directives, each info once.
    pub(in crate::server) info: Vec<Info>,
    pub(in crate::server) state: CollectiveState,
    pub(super) since: Time,
    pub(super) timer: Option<TimerId>,
}

/// How a participant has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    Whole,
    /// It has arrived once all its connections have.
    ByAllClones,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) enum CollectiveState {
    Gathering,
    WithHost,
    /// It has failed; late participants are answered with this status.
    Failed(Status),
}

impl Signature {
    pub(in crate::server) fn new(kind: Kind, id: String, mut procs: Vec<ProcId>) -> Signature {
        procs.sort();
        procs.dedup();
        Signature { kind, id, procs: procs.into() }
    }
}

impl Collective {
    /// Local participants that have not arrived.
    pub(super) fn missing(&self) -> impl Iterator<Item = &ProcId> {
        self.expected.iter().filter(|proc| !self.arrived.contains_key(*proc))
    }

    /// Sets its deadline to this time, or keeps an earlier one.
    pub(super) fn end_by(&mut self, timers: &mut Timers, id: u64, at: Time) {
        if self.timer.is_none_or(|timer| at < timer.at()) {
            timers.cancel(self.timer);
            self.timer = Some(timers.set(at, Timer::Collective(id)));
        }
    }

    pub(super) fn add_info(&mut self, info: Vec<Info>) {
        for one in info {
            if !self.info.contains(&one) {
                self.info.push(one);
            }
        }
    }

    pub(in crate::server) fn askers(&self) -> &[Asker] {
        &self.askers
    }

    /// Takes the requests, to be answered; the latest first: that process's data is still in its processor's caches; the
    /// processes that came first have long been asleep.
    pub(in crate::server) fn take_askers(&mut self) -> impl Iterator<Item = Asker> + use<> {
        std::mem::take(&mut self.askers).into_iter().rev()
    }

    /// The participants, without the lost ones of this node.
    pub(in crate::server) fn survivors(&self, jobs: &Jobs) -> Vec<ProcId> {
        let procs = &self.signature.procs;
        match self.lost.is_empty() {
            true => procs.to_vec(),
            false => jobs.each_of(procs).difference(&self.lost).cloned().collect(),
        }
    }

    /// Whether it continues without a member that has ended.
    pub(in crate::server) fn goes_on_without_the_dead(&self) -> bool {
        match self.signature.kind {
            Kind::GroupConstruct => self.info.is_set(keys::GROUP_FT_COLLECTIVE),
            Kind::GroupDestruct => self.info.is_set(keys::GROUP_FT_COLLECTIVE) || self.is_watched,
            Kind::Fence | Kind::Connect | Kind::Disconnect => false,
        }
    }

    /// Whether every participant has arrived, with all its connections where it asked for that.
    pub(super) fn is_complete(&self, peers: &Peers) -> bool {
        self.arrived.len() >= self.expected.len() && self.without_all_clones(peers).next().is_none()
    }

    /// Participants that have arrived, but that wait for more of their connections.
    pub(super) fn without_all_clones(&self, peers: &Peers) -> impl Iterator<Item = &ProcId> {
        let by_all = self.arrived.iter().filter(|(_, arrival)| **arrival == Arrival::ByAllClones);
        by_all.map(|(proc, _)| proc).filter(|proc| {
            let waits = |conn: &ConnId| self.askers.iter().any(|asker| asker.conn == *conn);
            !peers.live_connections(proc).all(|conn| waits(&conn))
        })
    }

    /// Whether a call of this connection belongs here.
    pub(super) fn has_place_for(&self, from: &Asker) -> bool {
        match self.arrived.get(&from.proc) {
            None => true,
            Some(Arrival::Whole) => false,
            Some(Arrival::ByAllClones) => {
                self.state == CollectiveState::Gathering
                    && !self.askers.iter().any(|asker| asker.conn == from.conn)
            }
        }
    }
}
