//! Gets: values of a rank or a job, answered at once if they are here, otherwise when they arrive.
//!
//! A get waits for one of three things: a local rank's commit, a commit with a certain key, or the host's answer from a
//! remote rank's server. Every change to one of them ([`Gets::retry_of`] and its kin) retries the get. Every wait ends: by a
//! value, a timeout, the end of the process it waits for, or the host's answer. An answer holds all values of a rank, since
//! clients keep what they receive; values that the connection has already are left out (`told`). `look` finds values of
//! ranks, `levels` those of jobs, nodes and apps, and `ahead` adds those of the ranks that will be asked for next.

mod ahead;
mod deliver;
mod known;
mod levels;
mod look;
mod pending;
mod room;
mod told;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use phalanx_spec::{Rank, Status, keys};
use phalanx_wire::cmd::get::{Get, OwnerData, RefreshCache};
use phalanx_wire::{Info, InfoList, Key, Nspace, ProcId};

use super::directive::{refuse_unknown, timeout};
use super::host::Then;
use super::limits::KEY_WAIT;
use super::own::OWN;
use super::peer::{Asker, Peer};
use super::timers::{Timer, TimerId};
use super::turn::Cx;
use crate::explain::Waiting;
use crate::host::{DirectModexRequest, HostOp};
use crate::machine::{CallId, ConnId};
use crate::qualified::qualifiers;
use ahead::read_ahead;
use deliver::{Recipient, deliver, deliver_news};
pub(super) use known::Known;
use known::{Look, Waits};
use look::{look, look_for_others};
use pending::Pending;
use room::cut_to_room;
use told::{has_news, note_told, take_partial};

pub(super) const ATTRIBUTES: &[&str] = &[
    keys::IMMEDIATE,
    keys::OPTIONAL,
    keys::TIMEOUT,
    keys::DATA_SCOPE,
    keys::GET_REFRESH_CACHE,
    keys::GET_STATIC_VALUES,
    keys::GET_POINTER_VALUES,
    keys::SESSION_INFO,
    keys::SESSION_ID,
    keys::JOB_INFO,
    keys::APP_INFO,
    keys::APPNUM,
    keys::NODE_INFO,
    keys::HOSTNAME,
    keys::NODEID,
];

#[derive(Debug, Default)]
pub(super) struct Gets {
    pending: BTreeMap<u64, Pending>,
    by_target: BTreeMap<ProcId, BTreeSet<u64>>,
    /// What the host is looking for: a process, and the key required of it.
    asked: BTreeSet<(ProcId, Option<Key>)>,
    /// Gets that could be answered if their connections read faster.
    postponed: BTreeMap<ConnId, BTreeMap<u64, bool>>,
    last: u64,
}

impl Gets {
    pub(super) fn concern(&self, nspace: &Nspace) -> bool {
        let is_of = |proc: &ProcId| proc.nspace == *nspace;
        let asked = self.asked.iter().map(|(proc, _)| proc);
        let is_asked = self.by_target.keys().chain(asked).any(is_of);
        let askers = self.pending.values().filter_map(|pending| pending.to.asker());
        is_asked || askers.into_iter().any(|asker| asker.conn != OWN && is_of(&asker.proc))
    }

    pub(super) fn on_get(&mut self, cx: &mut Cx<'_>, known: &Known, from: Asker, mut get: Get) {
        if let Err(status) = refuse_unknown("get", &from.proc, &get.info, ATTRIBUTES) {
            return cx.answer(from, status);
        }
        let nspace = if get.nspace.is_none() { from.proc.nspace.clone() } else { get.nspace };
        let target = ProcId { nspace, rank: get.rank };
        let told_before = take_partial(&mut get.info);
        let refresh = get.info.is_set(keys::GET_REFRESH_CACHE);
        let at_once = get.info.is_set(keys::IMMEDIATE) || get.info.is_set(keys::OPTIONAL);
        let look = look(known, cx.peers, &target, get.key.as_ref(), &get.info, Some(&from), refresh);
        match look {
            Look::Found(mut data) => {
                if get.info.find(keys::DATA_SCOPE).is_none()
                    && !get.key.as_ref().is_some_and(Key::is_reserved)
                {
                    data.extend(read_ahead(cx.peers, &known.modex, &from, &target));
                }
                note_told(cx.peers, &from, &target, &get.info);
                let data = cut_to_room(cx.peers, Some(&from), &target, get.key.as_ref(), data);
                deliver(cx, known, Recipient::Get(from), &target, Ok(data));
            }
            Look::Never(status) => deliver(cx, known, Recipient::Get(from), &target, Err(status)),
            // The value may have been put on another node, and that node's server can answer at once.
            Look::Wait(waits @ Waits::Host { .. }) if at_once && is_reserved(get.key.as_ref(), &get.info) => {
                self.pend(cx, Recipient::Get(from), target, (get.key, get.info, false), waits);
            }
            // Only the asker itself could put it.
            Look::Wait(_) if at_once || target == from.proc => {
                deliver(cx, known, Recipient::Get(from), &target, Err(Status::ERR_NOT_FOUND));
            }
            Look::Wait(Waits::Key)
                if told_before.is_some_and(|before| has_news(cx.peers, &from, &target, before.is_none())) =>
            {
                deliver_news(cx, from, &target, Status::ERR_PARTIAL_SUCCESS);
            }
            Look::Wait(waits) => {
                let rest = (get.key, get.info, told_before.is_some());
                let id = self.pend(cx, Recipient::Get(from), target, rest, waits);
                if let Some(Some(before)) = told_before {
                    self.has_waited(cx, id, before);
                }
            }
        }
    }

    pub(super) fn on_refresh_cache(
        &mut self,
        cx: &mut Cx<'_>,
        known: &Known,
        from: Asker,
        request: &RefreshCache,
    ) {
        let target = ProcId::new(&request.nspace, request.rank);
        let look = look(known, cx.peers, &target, None, &[], None, true);
        let to = Recipient::Refresh(from);
        match look {
            Look::Found(data) => deliver(cx, known, to, &target, Ok(data)),
            // Nothing was committed yet: there is nothing to refresh.
            Look::Wait(Waits::Commit | Waits::Key) => deliver(cx, known, to, &target, Ok(Vec::new())),
            Look::Never(status) => deliver(cx, known, to, &target, Err(status)),
            Look::Wait(waits) => drop(self.pend(cx, to, target, (None, Vec::new(), false), waits)),
        }
    }

    /// The owner wants the committed values of a local process, for another server.
    pub(super) fn on_direct_modex(
        &mut self,
        cx: &mut Cx<'_>,
        known: &Known,
        id: CallId,
        (target, key): (ProcId, Option<Key>),
    ) {
        let to = Recipient::Owner(id);
        match look_for_others(cx.peers, &target, key.as_ref()) {
            Look::Found(_) => deliver(cx, known, to, &target, Ok(Vec::new())),
            Look::Never(status) => deliver(cx, known, to, &target, Err(status)),
            Look::Wait(waits) => drop(self.pend(cx, to, target, (key, Vec::new(), false), waits)),
        }
    }

    fn pend(
        &mut self,
        cx: &mut Cx<'_>,
        to: Recipient,
        target: ProcId,
        (key, info, partial): (Option<Key>, Vec<Info>, bool),
        waits: Waits,
    ) -> u64 {
        self.last += 1;
        let id = self.last;
        let limit = timeout(&info);
        let timer = limit.map(|limit| cx.timers.set(cx.now.after(limit), Timer::Get(id)));
        let overdue = Status::ERR_TIMEOUT;
        self.by_target.entry(target.clone()).or_default().insert(id);
        self.pending
            .insert(id, Pending { to, target, key, info, partial, waits, since: cx.now, timer, overdue });
        self.wait_for(cx, id, waits);
        id
    }

    /// Starts what is needed for the wait to end.
    fn wait_for(&mut self, cx: &mut Cx<'_>, id: u64, waits: Waits) {
        let Some(pending) = self.pending.get_mut(&id) else { return };
        pending.waits = waits;
        match waits {
            Waits::Commit => {}
            Waits::Key => {
                if pending.timer.is_none() {
                    // A client of another server may have a longer limit.
                    pending.overdue = match pending.to {
                        Recipient::Owner(_) => Status::ERR_PARTIAL_SUCCESS,
                        Recipient::Get(_) | Recipient::Refresh(_) => Status::ERR_NOT_FOUND,
                    };
                    pending.timer = Some(cx.timers.set(cx.now.after(KEY_WAIT), Timer::Get(id)));
                }
            }
            Waits::Host { .. } => {
                let (proc, key) = (pending.target.clone(), pending.required());
                if self.asked.insert((proc.clone(), key.clone())) {
                    pending.waits = Waits::Host { named: true };
                    let mut info = pending.info.clone();
                    info.extend(key.as_ref().map(|key| Info::new(keys::REQUIRED_KEY, key.as_str())));
                    let asked_by = pending.to.asker().map(|asker| asker.proc.clone());
                    let op = HostOp::DirectModex(DirectModexRequest { proc: proc.clone(), info });
                    cx.ask(asked_by.as_ref(), op, Then::DirectModex(proc, key));
                }
            }
        }
    }

    /// Whether the host was looking for this. The job may have ended meanwhile.
    pub(super) fn end_search(&mut self, sought: &(ProcId, Option<Key>)) -> bool {
        self.asked.remove(sought)
    }

    /// The host has answered about a process: its values are stored already, or it has none.
    pub(super) fn on_searched(
        &mut self,
        cx: &mut Cx<'_>,
        known: &Known,
        (target, key): &(ProcId, Option<Key>),
        outcome: Result<(), Status>,
    ) {
        for id in self.waiting_for(target) {
            let Some(pending) = self.pending.get(&id) else { continue };
            let waits_for_host = matches!(pending.waits, Waits::Host { .. });
            let is_answered = waits_for_host && pending.required() == *key;
            match outcome {
                Err(status) if is_answered => self.on_not_found(cx, known, id, status),
                // The host is still looking for this get's key.
                Err(_) if waits_for_host => {}
                _ => self.retry(cx, known, id, is_answered),
            }
        }
    }

    /// The host found nothing within the limit of the first get that wanted this, or the other server is waiting for one more key. Each waiting get
    /// has its own limit.
    fn on_not_found(&mut self, cx: &mut Cx<'_>, known: &Known, id: u64, status: Status) {
        let Some(pending) = self.pending.get(&id) else { return };
        let is_named = pending.waits == Waits::Host { named: true };
        match status {
            Status::ERR_TIMEOUT if !is_named => self.wait_for(cx, id, Waits::Host { named: false }),
            Status::ERR_PARTIAL_SUCCESS if pending.timer.is_some() => {
                self.wait_for(cx, id, Waits::Host { named: false });
            }
            Status::ERR_PARTIAL_SUCCESS => self.end(cx, known, id, Err(Status::ERR_NOT_FOUND)),
            status => self.end(cx, known, id, Err(status)),
        }
    }

    /// A process has committed, or ended: retries the gets that wait for it.
    pub(super) fn retry_of(&mut self, cx: &mut Cx<'_>, known: &Known, proc: &ProcId) {
        for id in self.waiting_for(proc) {
            self.retry(cx, known, id, false);
        }
        for id in self.waiting_for(&ProcId::new(&proc.nspace, Rank::UNDEF)) {
            self.retry(cx, known, id, false);
        }
    }

    /// A job was registered.
    pub(super) fn retry_of_nspace(&mut self, cx: &mut Cx<'_>, known: &Known, nspace: &Nspace) {
        for id in self.waiting_in(nspace) {
            self.retry(cx, known, id, false);
        }
    }

    pub(super) fn end_of_nspace(&mut self, cx: &mut Cx<'_>, known: &Known, nspace: &Nspace) {
        for id in self.waiting_in(nspace) {
            self.end(cx, known, id, Err(Status::ERR_NOT_FOUND));
        }
        self.asked.retain(|(target, _)| target.nspace != *nspace);
    }

    /// `answered`: the host has sent all it knows.
    fn retry(&mut self, cx: &mut Cx<'_>, known: &Known, id: u64, answered: bool) {
        let Some(pending) = self.pending.get(&id) else { return };
        if let Some(conn) = pending.to.asker().map(|asker| asker.conn)
            && cx.peers.conns.peer(conn).is_some_and(Peer::is_full)
        {
            let before = self.postponed.entry(conn).or_default().entry(id).or_default();
            *before |= answered;
            return;
        }
        let before = pending.waits;
        let look = match &pending.to {
            Recipient::Owner(_) => look_for_others(cx.peers, &pending.target, pending.key.as_ref()),
            to => {
                look(known, cx.peers, &pending.target, pending.key.as_ref(), &pending.info, to.asker(), false)
            }
        };
        match (look, before) {
            (Look::Found(data), _) => {
                self.note_told_of(cx, id);
                let Some(pending) = self.pending.get(&id) else { return };
                let (asker, key) = (pending.to.asker(), pending.key.as_ref());
                let data = cut_to_room(cx.peers, asker, &pending.target, key, data);
                self.end(cx, known, id, Ok(data));
            }
            (Look::Never(status), _) => self.end_without_key(cx, known, id, status),
            (Look::Wait(Waits::Key), _) if self.is_served_by_news(cx, id) => {
                self.end_without_key(cx, known, id, Status::ERR_PARTIAL_SUCCESS);
            }
            (Look::Wait(Waits::Host { .. }), Waits::Host { named: true }) if answered => {
                self.end(cx, known, id, Err(Status::ERR_NOT_FOUND));
            }
            (Look::Wait(Waits::Host { .. }), Waits::Host { .. }) if !answered => {}
            (Look::Wait(waits), _) => self.wait_for(cx, id, waits),
        }
    }

    pub(super) fn on_overdue(&mut self, cx: &mut Cx<'_>, known: &Known, id: u64) {
        if let Some(pending) = self.pending.get(&id) {
            let status = pending.overdue;
            match status {
                Status::ERR_NOT_FOUND => self.end_without_key(cx, known, id, status),
                _ => self.end(cx, known, id, Err(status)),
            }
        }
    }

    fn end(&mut self, cx: &mut Cx<'_>, known: &Known, id: u64, outcome: Result<Vec<OwnerData>, Status>) {
        if let Some(pending) = self.take(cx, id) {
            deliver(cx, known, pending.to, &pending.target, outcome);
        }
    }

    /// Drops the gets of a closed connection.
    pub(super) fn forget_by(&mut self, cx: &mut Cx<'_>, conn: ConnId) {
        let of_peer = |p: &Pending| p.to.asker().is_some_and(|asker| asker.conn == conn);
        let gone: Vec<u64> = self.pending.iter().filter(|(_, p)| of_peer(p)).map(|(id, _)| *id).collect();
        for pending in gone.into_iter().filter_map(|id| self.take(cx, id)) {
            match pending.to {
                Recipient::Get(asker) | Recipient::Refresh(asker) => asker.forget(),
                Recipient::Owner(_) => {}
            }
        }
        self.postponed.remove(&conn);
    }

    fn take(&mut self, cx: &mut Cx<'_>, id: u64) -> Option<Pending> {
        let pending = self.pending.remove(&id)?;
        cx.timers.cancel(pending.timer);
        if let Some(ids) = self.by_target.get_mut(&pending.target) {
            ids.remove(&id);
            if ids.is_empty() {
                self.by_target.remove(&pending.target);
            }
        }
        Some(pending)
    }

    fn waiting_for(&self, target: &ProcId) -> Vec<u64> {
        self.by_target.get(target).into_iter().flatten().copied().collect()
    }

    fn waiting_in(&self, nspace: &Nspace) -> Vec<u64> {
        let from = ProcId::new(nspace, Rank(0));
        let in_nspace = self.by_target.range(from..).take_while(|(target, _)| target.nspace == *nspace);
        in_nspace.flat_map(|(_, ids)| ids.iter().copied()).collect()
    }

    fn note_told_of(&self, cx: &mut Cx<'_>, id: u64) {
        if let Some(Pending { to: Recipient::Get(asker), target, info, .. }) = self.pending.get(&id) {
            note_told(cx.peers, asker, target, info);
        }
    }

    fn is_served_by_news(&self, cx: &Cx<'_>, id: u64) -> bool {
        match self.pending.get(&id) {
            Some(Pending { partial: true, to: Recipient::Get(asker), target, .. }) => {
                has_news(cx.peers, asker, target, true)
            }
            _ => false,
        }
    }

    /// The client has waited this long already: an earlier, partial answer lacked the key.
    fn has_waited(&mut self, cx: &mut Cx<'_>, id: u64, before: Duration) {
        let Some(pending) = self.pending.get_mut(&id) else { return };
        if pending.waits == Waits::Key && pending.overdue == Status::ERR_NOT_FOUND {
            cx.timers.cancel(pending.timer);
            let left = KEY_WAIT.saturating_sub(before);
            pending.timer = Some(cx.timers.set(cx.now.after(left), Timer::Get(id)));
        }
    }

    /// Ends a get whose key is missing, with the other new values of the process, since gets inside the client may wait for
    /// those.
    fn end_without_key(&mut self, cx: &mut Cx<'_>, known: &Known, id: u64, status: Status) {
        let is_for_others = self.pending.get(&id).is_some_and(|pending| {
            pending.is_plain() && pending.key.as_ref().is_some_and(|key| !key.is_reserved())
        });
        match self.take(cx, id) {
            Some(Pending { to: Recipient::Get(asker), target, partial, .. })
                if is_for_others && has_news(cx.peers, &asker, &target, true) =>
            {
                let status = match (status, partial) {
                    // Only then do the client's other gets look for their values.
                    (Status::ERR_NOT_FOUND, false) => Status::SUCCESS,
                    _ => status,
                };
                deliver_news(cx, asker, &target, status);
            }
            Some(pending) => deliver(cx, known, pending.to, &pending.target, Err(status)),
            None => {}
        }
    }

    /// The peer has read some of its queued bytes: answers postponed gets.
    pub(super) fn go_on_with(&mut self, cx: &mut Cx<'_>, known: &Known, conn: ConnId) {
        while cx.peers.conns.peer(conn).is_some_and(|peer| !Peer::is_full(peer))
            && let Some(postponed) = self.postponed.get_mut(&conn)
        {
            match postponed.pop_first() {
                Some((id, answered)) => self.retry(cx, known, id, answered),
                None => drop(self.postponed.remove(&conn)),
            }
        }
    }

    pub(super) fn explain(&self, waiting: &mut Vec<Waiting>) {
        for pending in self.pending.values() {
            let what = pending.key.as_ref().map_or("everything", |key| key.as_str());
            waiting.push(Waiting {
                operation: if pending.to.asker().is_some() { "get" } else { "direct modex" }.into(),
                subject: format!("{what} of {}", pending.target),
                asked_by: pending.to.asker().map(|asker| asker.proc.clone()).into_iter().collect(),
                missing: vec![pending.target.clone()],
                since: pending.since,
                deadline: pending.timer.map(TimerId::at),
                unblocked_by: match pending.waits {
                    Waits::Commit => "a commit",
                    Waits::Key => "a commit that holds the key",
                    Waits::Host { .. } => "the host's answer",
                }
                .into(),
            });
        }
    }
}

/// Whether the key is one of the standard's that is wanted with qualifiers: hosts provide those without.
fn is_reserved(key: Option<&Key>, info: &[Info]) -> bool {
    key.is_some_and(Key::is_reserved) && !qualifiers(info).is_empty() && !info.is_set(keys::OPTIONAL)
}
