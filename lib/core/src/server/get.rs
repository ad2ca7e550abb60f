//! Gets: values of a rank or a job, at once if they are here, else when they come.
//!
//! A get waits for one of three things: that a local rank commits, that it commits one key more, or that the host asks the
//! server of a remote rank. Whatever changes one of them ([`Server::retry_gets_of`] and its kin) looks again. Every
//! waiter ends: by a value, its timeout, the end of who it waits for, or the host's answer. A rank's values are answered
//! all together, since clients keep what they were told; what a connection was told already is left out (`told`). `ahead`
//! adds those of the ranks that will be asked for next, and `levels` finds the values that belong to no rank.

mod ahead;
mod levels;
mod told;

use std::collections::{BTreeMap, BTreeSet};

use phalanx_spec::{Rank, Scope, Status, keys};
use phalanx_wire::cmd::Body;
use phalanx_wire::cmd::get::{Get, OwnerData, RefreshCache, RefreshReply, Reply};
use phalanx_wire::codec::DecodeError;
use phalanx_wire::{Blob, Info, InfoList, Key, Kval, Nspace, ProcId, Value};
use tracing::warn;

use super::commit::Values;
use super::directive::{refuse_unknown, timeout};
use super::host::{Then, as_failure};
use super::limits::KEY_WAIT;
use super::modex::{Contribution, ModexForm, openpmix};
use super::peer::{Asker, Peer};
use super::registry::{Client, Job, Stage, index};
use super::timers::{Timer, TimerId};
use super::{Cx, OWN, Server, ServerReturn};
use crate::explain::Waiting;
use crate::host::{HostOp, HostReply};
use crate::machine::{CallId, ConnId, Output, Time};
use crate::qualified::{Name, name_of, qualifiers};

pub(super) use ahead::Sweep;
use told::take_partial;

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
    /// Processes whose values the host is looking for.
    asked: BTreeSet<ProcId>,
    /// Those that could be answered if their askers read faster.
    postponed: BTreeMap<ConnId, BTreeMap<u64, bool>>,
    last: u64,
}

#[derive(Debug)]
struct Pending {
    who: Who,
    target: ProcId,
    key: Option<Key>,
    info: Vec<Info>,
    /// Anything new of the target will do.
    partial: bool,
    waits: Waits,
    since: Time,
    timer: Option<TimerId>,
    /// What it is told when its time is over.
    overdue: Status,
}

/// Who wants the values, and in which form.
#[derive(Clone, Debug)]
enum Who {
    Get(Asker),
    Refresh(Asker),
    /// The owner, for another server.
    Owner(CallId),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    Commit,
    Key,
    /// `named`: the host was told of this get's own key.
    Host {
        named: bool,
    },
}

/// What a look at the tables gives.
enum Look {
    Found(Vec<OwnerData>),
    Never(Status),
    Wait(Waits),
}

impl Gets {
    pub(super) fn concern(&self, nspace: &Nspace) -> bool {
        let is_of = |proc: &ProcId| proc.nspace == *nspace;
        let is_asked = self.by_target.keys().chain(&self.asked).any(is_of);
        let askers = self.pending.values().filter_map(|pending| pending.who.asker());
        is_asked || askers.into_iter().any(|asker| asker.conn != OWN && is_of(&asker.proc))
    }
}

impl Server {
    pub(super) fn on_get(&mut self, cx: &mut Cx<'_>, from: Asker, mut get: Get) {
        if let Err(status) = refuse_unknown("get", &from.proc, &get.info, ATTRIBUTES) {
            return self.answer(cx, &from, status);
        }
        let nspace = if get.nspace.is_none() { from.proc.nspace.clone() } else { get.nspace };
        let target = ProcId { nspace, rank: get.rank };
        if get.key.as_ref().is_some_and(|key| *key == keys::PSET_NAMES) {
            return self.answer_pset_names(cx, &from, &target);
        }
        let told_before = take_partial(&mut get.info);
        let refresh = get.info.is_set(keys::GET_REFRESH_CACHE);
        let at_once = get.info.is_set(keys::IMMEDIATE) || get.info.is_set(keys::OPTIONAL);
        let look = self.look(&target, get.key.as_ref(), &get.info, Some(&from), refresh);
        let who = Who::Get(from.clone());
        match look {
            Look::Found(mut data) => {
                if get.info.find(keys::DATA_SCOPE).is_none()
                    && !get.key.as_ref().is_some_and(Key::is_reserved)
                {
                    data.extend(self.read_ahead(&from, &target));
                }
                self.note_told(&from, &target, &get.info);
                self.deliver(cx, who, &target, Ok(data));
            }
            Look::Never(status) => self.deliver(cx, who, &target, Err(status)),
            // Processes may have put it elsewhere; whether they have, their server can say at once.
            Look::Wait(waits @ Waits::Host { .. }) if at_once && is_reserved(get.key.as_ref(), &get.info) => {
                self.pend(cx, who, target, (get.key, get.info, false), waits);
            }
            // Nobody but the asker could put it.
            Look::Wait(_) if at_once || target == from.proc => {
                self.deliver(cx, who, &target, Err(Status::ERR_NOT_FOUND));
            }
            Look::Wait(Waits::Key)
                if told_before.is_some_and(|before| self.has_news(&from, &target, before.is_none())) =>
            {
                self.deliver_news(cx, &from, &target, Status::ERR_PARTIAL_SUCCESS);
            }
            Look::Wait(waits) => {
                let id = self.pend(cx, who, target, (get.key, get.info, told_before.is_some()), waits);
                if let Some(Some(before)) = told_before {
                    self.has_waited(cx, id, before);
                }
            }
        }
    }

    pub(super) fn on_refresh_cache(&mut self, cx: &mut Cx<'_>, from: &Asker, request: &RefreshCache) {
        let target = ProcId::new(&request.nspace, request.rank);
        let look = self.look(&target, None, &[], None, true);
        let who = Who::Refresh(from.clone());
        match look {
            Look::Found(data) => self.deliver(cx, who, &target, Ok(data)),
            // Nothing was committed yet: there is nothing to refresh.
            Look::Wait(Waits::Commit | Waits::Key) => self.deliver(cx, who, &target, Ok(Vec::new())),
            Look::Never(status) => self.deliver(cx, who, &target, Err(status)),
            Look::Wait(waits) => drop(self.pend(cx, who, target, (None, Vec::new(), false), waits)),
        }
    }

    /// The owner wants what a local process has committed, for another server.
    pub(super) fn on_direct_modex(&mut self, cx: &mut Cx<'_>, id: CallId, target: ProcId, key: Option<Key>) {
        let who = Who::Owner(id);
        match self.look_for_others(&target, key.as_ref()) {
            Look::Found(_) => self.deliver(cx, who, &target, Ok(Vec::new())),
            Look::Never(status) => self.deliver(cx, who, &target, Err(status)),
            Look::Wait(waits) => drop(self.pend(cx, who, target, (key, Vec::new(), false), waits)),
        }
    }

    /// Looks for values on behalf of a local process. `refresh`: what is stored here of remote ranks is not good enough.
    fn look(
        &self,
        target: &ProcId,
        key: Option<&Key>,
        info: &[Info],
        asker: Option<&Asker>,
        refresh: bool,
    ) -> Look {
        let name = key.and_then(|key| Name::asked(key, info));
        let name = name.as_ref();
        let Some(job) = self.jobs.get(&target.nspace) else {
            return match self.modex.get(target) {
                Some(values) if !refresh && has(&values, key, name) => {
                    Look::Found(vec![owned(target, values)])
                }
                _ => Look::Wait(Waits::Host { named: false }),
            };
        };
        if let Some(found) = self.look_at_levels(job, target, key, info, asker) {
            return found;
        }
        if target.rank == Rank::UNDEF {
            return self.look_everywhere(job, key);
        }
        if index(target.rank).is_none_or(|i| i >= job.size()) {
            return Look::Never(Status::ERR_NOT_FOUND);
        }
        let foreign = asker.is_some_and(|asker| asker.proc.nspace != target.nspace);
        // Where the rank is, and the like: nobody asks for it by other keys than reserved ones.
        let asked = foreign || key.is_none_or(Key::is_reserved);
        let placed = if asked { self.proc_values(job, target.rank) } else { Vec::new() };
        let is_placed = name.is_none() && key.is_some_and(|key| has(&placed, Some(key), None));
        let found = |values: Vec<Kval>| {
            // What every rank starts with is known to those of the same job.
            let with_place = is_placed || foreign || key.is_none();
            let values = if with_place { placed.iter().cloned().chain(values).collect() } else { values };
            let job_data = asker.filter(|asker| foreign && !self.was_told(asker, &target.nspace));
            Look::Found(
                job_data.map(|_| self.job_as_owner(job)).into_iter().chain([owned(target, values)]).collect(),
            )
        };
        let Some(stage) = job.stage(target.rank) else {
            return match self.modex.get(target) {
                Some(values) if !refresh && (is_placed || has(&values, key, name)) => found(values),
                _ if is_placed => found(Vec::new()),
                _ => Look::Wait(Waits::Host { named: false }),
            };
        };
        let client = job.clients.get(&target.rank);
        // A neighbour gets what is for neighbours, unless it says that it wants what others get.
        let as_remote = info.find(keys::DATA_SCOPE) == Some(&Value::Scope(Scope::REMOTE));
        let told = asker.filter(|_| !refresh).and_then(|asker| self.told_values(asker, target, info));
        let values = || match (client, told, key) {
            (Some(client), Some(told), Some(key)) => client.committed.local.since(told, key),
            (Some(client), ..) => to_kvals(client.committed.sides(as_remote).0),
            (None, ..) => Vec::new(),
        };
        if is_placed {
            return found(values());
        }
        match look_at_client(client, stage, key, name, as_remote) {
            None => found(values()),
            Some(look) => look,
        }
    }

    fn look_for_others(&self, target: &ProcId, key: Option<&Key>) -> Look {
        let Some(job) = self.jobs.get(&target.nspace) else { return Look::Never(Status::ERR_NOT_FOUND) };
        let Some(stage) = job.stage(target.rank) else { return Look::Never(Status::ERR_NOT_FOUND) };
        let client = job.clients.get(&target.rank);
        // With which qualifiers it is wanted, nobody says.
        if key.is_some_and(|key| client.is_some_and(|client| client.committed.remote.has_qualified(key))) {
            return Look::Found(Vec::new());
        }
        match look_at_client(client, stage, key, None, true) {
            None => Look::Found(Vec::new()),
            Some(look) => look,
        }
    }

    /// A key that is unique in its job, of whichever rank.
    fn look_everywhere(&self, job: &Job, key: Option<&Key>) -> Look {
        let Some(key) = key else { return Look::Never(Status::ERR_BAD_PARAM) };
        let nspace = &job.info.nspace;
        for (rank, client) in &job.clients {
            if client.committed.local.has(key, None) {
                let values = to_kvals(&client.committed.local);
                return Look::Found(vec![owned(&ProcId::new(nspace, *rank), values)]);
            }
        }
        match self.modex.find(nspace, key) {
            Some((rank, values)) => Look::Found(vec![owned(&ProcId::new(nspace, rank), values)]),
            None => Look::Wait(Waits::Key),
        }
    }

    fn was_told(&self, asker: &Asker, nspace: &Nspace) -> bool {
        // Our own process keeps nothing that it is told.
        asker.conn != OWN && self.conns.peer(asker.conn).is_some_and(|peer| peer.told.contains(nspace))
    }

    fn pend(
        &mut self,
        cx: &mut Cx<'_>,
        who: Who,
        target: ProcId,
        (key, info, partial): (Option<Key>, Vec<Info>, bool),
        waits: Waits,
    ) -> u64 {
        self.gets.last += 1;
        let id = self.gets.last;
        let limit = timeout(&info);
        let timer = limit.map(|limit| self.timers.set(cx.now.after(limit), Timer::Get(id)));
        let overdue = Status::ERR_TIMEOUT;
        self.gets.by_target.entry(target.clone()).or_default().insert(id);
        self.gets
            .pending
            .insert(id, Pending { who, target, key, info, partial, waits, since: cx.now, timer, overdue });
        self.wait_for(cx, id, waits);
        id
    }

    /// Does what has to be done for the wait to end.
    fn wait_for(&mut self, cx: &mut Cx<'_>, id: u64, waits: Waits) {
        let Some(pending) = self.gets.pending.get_mut(&id) else { return };
        pending.waits = waits;
        match waits {
            Waits::Commit => {}
            Waits::Key => {
                if pending.timer.is_none() {
                    pending.overdue = Status::ERR_NOT_FOUND;
                    pending.timer = Some(self.timers.set(cx.now.after(KEY_WAIT), Timer::Get(id)));
                }
            }
            Waits::Host { .. } => {
                if self.gets.asked.insert(pending.target.clone()) {
                    pending.waits = Waits::Host { named: true };
                    let mut info = pending.info.clone();
                    if let Some(key) = &pending.key {
                        let waits_for_any = !qualifiers(&info).is_empty() && !key.is_reserved();
                        let key = if waits_for_any { keys::QUALIFIED_VALUE } else { key.as_str() };
                        info.push(Info::new(keys::REQUIRED_KEY, key));
                    }
                    let proc = pending.target.clone();
                    let asked_by = pending.who.asker().map(|asker| asker.proc.clone());
                    let op = HostOp::DirectModex { proc: proc.clone(), info };
                    self.call_host(cx, asked_by.as_ref(), op, Then::DirectModex(proc));
                }
            }
        }
    }

    pub(super) fn on_direct_modex_answered(&mut self, cx: &mut Cx<'_>, target: &ProcId, reply: HostReply) {
        if !self.gets.asked.remove(target) {
            // Its job has ended meanwhile.
            return;
        }
        let outcome = match reply {
            HostReply::Modex(Ok(blob)) => match self.store_direct_modex(target, &blob) {
                Ok(()) => Ok(()),
                Err(error) => {
                    warn!(%target, %error, "the answer of another server cannot be read");
                    Err(Status::ERR_UNPACK_FAILURE)
                }
            },
            other => Err(as_failure(other.status())),
        };
        for id in self.waiting_for(target) {
            let waits_for_host =
                self.gets.pending.get(&id).is_some_and(|pending| matches!(pending.waits, Waits::Host { .. }));
            match outcome {
                Err(status) if waits_for_host => self.end(cx, id, Err(status)),
                _ => self.retry(cx, id, waits_for_host),
            }
        }
    }

    fn store_direct_modex(&mut self, target: &ProcId, blob: &Blob) -> Result<(), DecodeError> {
        self.collections.outdate(&target.nspace);
        match self.config.modex {
            ModexForm::Compact => self.modex.store(blob).map(|_| ()),
            // The host has registered the job instead.
            ModexForm::OpenPmix if blob.is_empty() => Ok(()),
            ModexForm::OpenPmix => {
                let values = openpmix::decode_one(blob)?;
                self.modex.insert(target, values);
                Ok(())
            }
        }
    }

    /// A process has committed, or ended: whoever waits for it looks again.
    pub(super) fn retry_gets_of(&mut self, cx: &mut Cx<'_>, proc: &ProcId) {
        for id in self.waiting_for(proc) {
            self.retry(cx, id, false);
        }
        for id in self.waiting_for(&ProcId::new(&proc.nspace, Rank::UNDEF)) {
            self.retry(cx, id, false);
        }
    }

    /// A job has become known.
    pub(super) fn retry_gets_of_nspace(&mut self, cx: &mut Cx<'_>, nspace: &Nspace) {
        for id in self.waiting_in(nspace) {
            self.retry(cx, id, false);
        }
    }

    pub(super) fn end_gets_of_nspace(&mut self, cx: &mut Cx<'_>, nspace: &Nspace) {
        for id in self.waiting_in(nspace) {
            self.end(cx, id, Err(Status::ERR_NOT_FOUND));
        }
        self.gets.asked.retain(|target| target.nspace != *nspace);
    }

    /// `answered`: the host has said all it knows.
    fn retry(&mut self, cx: &mut Cx<'_>, id: u64, answered: bool) {
        let Some(pending) = self.gets.pending.get(&id) else { return };
        if let Some(conn) = pending.who.asker().map(|asker| asker.conn)
            && self.conns.peer(conn).is_some_and(Peer::is_full)
        {
            let before = self.gets.postponed.entry(conn).or_default().entry(id).or_default();
            *before |= answered;
            return;
        }
        let before = pending.waits;
        let look = match &pending.who {
            Who::Owner(_) => self.look_for_others(&pending.target, pending.key.as_ref()),
            who => self.look(&pending.target, pending.key.as_ref(), &pending.info, who.asker(), false),
        };
        match (look, before) {
            (Look::Found(data), _) => {
                self.note_told_of(id);
                self.end(cx, id, Ok(data));
            }
            (Look::Never(status), _) => self.end_without_key(cx, id, status),
            (Look::Wait(Waits::Key), _) if self.is_served_by_news(id) => {
                self.end_without_key(cx, id, Status::ERR_PARTIAL_SUCCESS);
            }
            (Look::Wait(Waits::Host { .. }), Waits::Host { named: true }) if answered => {
                self.end(cx, id, Err(Status::ERR_NOT_FOUND));
            }
            (Look::Wait(Waits::Host { .. }), Waits::Host { .. }) if !answered => {}
            (Look::Wait(waits), _) => self.wait_for(cx, id, waits),
        }
    }

    pub(super) fn on_get_overdue(&mut self, cx: &mut Cx<'_>, id: u64) {
        if let Some(pending) = self.gets.pending.get(&id) {
            let status = pending.overdue;
            match status {
                Status::ERR_NOT_FOUND => self.end_without_key(cx, id, status),
                _ => self.end(cx, id, Err(status)),
            }
        }
    }

    fn end(&mut self, cx: &mut Cx<'_>, id: u64, outcome: Result<Vec<OwnerData>, Status>) {
        if let Some(pending) = self.take(id) {
            self.deliver(cx, pending.who, &pending.target, outcome);
        }
    }

    /// Forgets the gets of a peer that has gone.
    pub(super) fn forget_gets_by(&mut self, conn: ConnId) {
        let of_peer = |p: &Pending| p.who.asker().is_some_and(|asker| asker.conn == conn);
        let gone: Vec<u64> =
            self.gets.pending.iter().filter(|(_, p)| of_peer(p)).map(|(id, _)| *id).collect();
        for id in gone {
            self.take(id);
        }
        self.gets.postponed.remove(&conn);
    }

    fn take(&mut self, id: u64) -> Option<Pending> {
        let pending = self.gets.pending.remove(&id)?;
        self.timers.cancel(pending.timer);
        if let Some(ids) = self.gets.by_target.get_mut(&pending.target) {
            ids.remove(&id);
            if ids.is_empty() {
                self.gets.by_target.remove(&pending.target);
            }
        }
        Some(pending)
    }

    fn waiting_for(&self, target: &ProcId) -> Vec<u64> {
        self.gets.by_target.get(target).into_iter().flatten().copied().collect()
    }

    fn waiting_in(&self, nspace: &Nspace) -> Vec<u64> {
        let from = ProcId::new(nspace, Rank(0));
        let in_nspace = self.gets.by_target.range(from..).take_while(|(target, _)| target.nspace == *nspace);
        in_nspace.flat_map(|(_, ids)| ids.iter().copied()).collect()
    }

    fn deliver(
        &mut self,
        cx: &mut Cx<'_>,
        who: Who,
        target: &ProcId,
        outcome: Result<Vec<OwnerData>, Status>,
    ) {
        match who {
            Who::Get(to) => {
                let (status, data) = match outcome {
                    Ok(data) => (Status::SUCCESS, data),
                    Err(status) => (status, Vec::new()),
                };
                if let Some(peer) = self.conns.peer_mut(to.conn) {
                    let jobs = data.iter().filter(|d| d.owner.rank == Rank::WILDCARD && d.values.len() > 1);
                    peer.told.extend(jobs.map(|d| d.owner.nspace.clone()));
                }
                self.reply(cx, &to, |dialect| Reply { status, data }.encode(dialect));
            }
            Who::Refresh(to) => {
                let (status, data) = match outcome {
                    Ok(data) => (Status::SUCCESS, data),
                    Err(status) => (status, Vec::new()),
                };
                let values = data.into_iter().flat_map(|owner| owner.values).collect();
                self.reply(cx, &to, |dialect| RefreshReply { status, values }.encode(dialect));
            }
            Who::Owner(id) => {
                let result = ServerReturn::Modex(outcome.map(|_| self.contribution_of(target)));
                cx.out.push(Output::Return { id, result });
            }
        }
    }

    fn contribution_of(&self, proc: &ProcId) -> Blob {
        let Some(client) = self.client(proc) else { return Blob::default() };
        match self.config.modex {
            ModexForm::OpenPmix => openpmix::encode_one(&client.committed.remote),
            ModexForm::Compact => {
                let mut contribution = Contribution::new();
                contribution.add(proc, &client.committed.remote);
                contribution.into_blob()
            }
        }
    }

    pub(super) fn explain_gets(&self, waiting: &mut Vec<Waiting>) {
        for pending in self.gets.pending.values() {
            let what = pending.key.as_ref().map_or("everything", |key| key.as_str());
            waiting.push(Waiting {
                operation: if pending.who.asker().is_some() { "get" } else { "direct modex" },
                subject: format!("{what} of {}", pending.target),
                asked_by: pending.who.asker().map(|asker| asker.proc.clone()).into_iter().collect(),
                missing: vec![pending.target.clone()],
                since: pending.since,
                deadline: pending.timer.map(TimerId::at),
                unblocked_by: match pending.waits {
                    Waits::Commit => "a commit",
                    Waits::Key => "a commit that holds the key",
                    Waits::Host { .. } => "the host's answer",
                },
            });
        }
    }
}

impl Who {
    fn asker(&self) -> Option<&Asker> {
        match self {
            Who::Get(asker) | Who::Refresh(asker) => Some(asker),
            Who::Owner(_) => None,
        }
    }
}

/// Looks at what a local rank has committed; `None` if what is wanted is there. `remote`: for processes of other nodes. A
/// key that is there only for the other side is not for the asker, and will not be.
fn look_at_client(
    client: Option<&Client>,
    stage: Stage,
    key: Option<&Key>,
    name: Option<&Name>,
    remote: bool,
) -> Option<Look> {
    let happened = client.is_some_and(|client| client.committed.happened);
    let (is_here, is_elsewhere) = client.map_or((false, false), |client| {
        let (here, elsewhere) = client.committed.sides(remote);
        let has = |values: &Values| key.is_some_and(|key| values.has(key, name));
        (has(here), has(elsewhere))
    });
    if is_here || (key.is_none() && (happened || stage == Stage::Finalized)) {
        return None;
    }
    Some(match stage {
        _ if is_elsewhere => Look::Never(Status::ERR_NOT_FOUND),
        Stage::Finalized | Stage::Lost | Stage::Gone => Look::Never(Status::ERR_NOT_FOUND),
        _ if key.is_some_and(|key| key.is_reserved() && *key != keys::QUALIFIED_VALUE) => {
            Look::Never(Status::ERR_NOT_FOUND)
        }
        _ if happened => Look::Wait(Waits::Key),
        _ => Look::Wait(Waits::Commit),
    })
}

/// Whether it is a key of the standard's that is wanted with qualifiers: hosts give those without.
fn is_reserved(key: Option<&Key>, info: &[Info]) -> bool {
    key.is_some_and(Key::is_reserved) && !qualifiers(info).is_empty() && !info.is_set(keys::OPTIONAL)
}

fn has(values: &[Kval], key: Option<&Key>, name: Option<&Name>) -> bool {
    let is_named = |kval: &Kval| kval.key == keys::QUALIFIED_VALUE && name_of(&kval.value).as_ref() == name;
    match name {
        Some(_) => values.iter().any(is_named),
        None => key.is_none_or(|key| values.iter().any(|kval| kval.key == *key)),
    }
}

fn to_kvals(values: &Values) -> Vec<Kval> {
    values.kvals().collect()
}

fn owned(owner: &ProcId, values: Vec<Kval>) -> OwnerData {
    OwnerData { owner: owner.clone(), values }
}
