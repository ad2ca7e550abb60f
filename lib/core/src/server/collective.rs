//! What fence, connect, disconnect and groups have in common: processes arrive, and all are answered together.
//!
//! Local participants arrive here; after the last one the host is asked once for the whole node, and its answer goes to all. A
//! collective is identified by its kind, its id and its set of participants, in any order. A participant that arrives again
//! before the collective has ended opens the next one of the same set: collectives of one set form a queue. All connections of
//! a rank act in its name (see `peers`). If a connection ends while its rank goes on, its arrival is withdrawn, and a later
//! call of the rank takes its place: a child that dies in a fence does not fence for its parent. If a participant ends before
//! it arrived, or time runs out, the collective fails for all, including later arrivals, and the host is notified because
//! other nodes wait too. Completion is handled in each verb's file: this table only reports what is [`Due`].

mod meeting;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use phalanx_spec::{Status, keys};
use phalanx_wire::{Info, InfoList, Nspace, ProcId};
use tracing::{debug, warn};

use super::directive::timeout;
use super::limits::MAX_COLLECTIVES;
use super::peer::Asker;
use super::peers::Peers;
use super::registry::Stage;
use super::timers::TimerId;
use super::turn::Cx;
use crate::explain::Waiting;
use crate::host::CollectiveKind as Kind;
use crate::machine::ConnId;
use meeting::Arrival;
pub(super) use meeting::{Collective, CollectiveState, Signature};

/// Work for the verb of a collective. The caller of the table does all due work before it calls the table again.
#[derive(Debug)]
pub(super) enum Due {
    /// All have arrived, and no earlier collective of the set is with the host.
    Gathered { id: u64, kind: Kind },
    /// It failed here: notify the host, since other nodes may wait.
    Failed { signature: Signature, status: Status },
    /// It failed here, because this process has ended: the host is notified.
    Missing { proc: ProcId, kind: Kind },
    /// Its time is up while the host has it; the host may end it for all.
    Overdue { id: u64 },
    /// A process ended that was to be in a group which continues without it; the remaining members are notified.
    LeftOut { group: String, proc: ProcId, others: Vec<ProcId> },
}

#[derive(Debug, Default)]
pub(super) struct Collectives {
    open: BTreeMap<u64, Collective>,
    queues: BTreeMap<Signature, VecDeque<u64>>,
    due: VecDeque<Due>,
    last: u64,
}

impl Collectives {
    /// A local process arrives at a collective.
    pub(super) fn enter(&mut self, cx: &mut Cx<'_>, from: Asker, signature: Signature, info: Vec<Info>) {
        self.enter_watched(cx, from, (signature, false), info);
    }

    /// `is_watched`: the group's members want to be notified when one of them ends.
    pub(super) fn enter_watched(
        &mut self,
        cx: &mut Cx<'_>,
        from: Asker,
        (signature, is_watched): (Signature, bool),
        info: Vec<Info>,
    ) {
        if !signature.procs.iter().any(|proc| proc.covers(&from.proc)) {
            warn!(proc = %from.proc, kind = ?signature.kind, "not a participant of what it wants to take part in: refused");
            let status = match signature.kind {
                Kind::GroupConstruct => Status::ERR_NOT_A_MEMBER,
                _ => Status::ERR_BAD_PARAM,
            };
            return cx.answer(from, status);
        }
        let Some((id, is_new)) = self.find_or_open(cx, &from, signature) else {
            return cx.answer(from, Status::ERR_OUT_OF_RESOURCE);
        };
        let Some(collective) = self.open.get_mut(&id) else { return };
        let failed = matches!(collective.state, CollectiveState::Failed(_));
        let with_clones = info.is_set(keys::ALL_CLONES_PARTICIPATE);
        if let Some(limit) = timeout(&info).filter(|_| !failed) {
            collective.end_by(cx.timers, id, cx.now.after(limit));
        }
        collective.add_info(info);
        collective.is_watched |= is_watched;
        let arrival = collective.arrived.entry(from.proc.clone()).or_insert(Arrival::Whole);
        if with_clones {
            *arrival = Arrival::ByAllClones;
        }
        if let CollectiveState::Failed(status) = collective.state {
            cx.answer(from, status);
            return self.close_if_abandoned(cx, id);
        }
        collective.askers.push(from);
        // A participant that will never arrive is noticed when the collective opens and when the participant ends, not at
        // each arrival.
        if is_new || self.is_complete(cx.peers, id) {
            self.advance(cx, id);
        }
    }

    /// The oldest collective of this set that this participant has not joined, or a new one, and whether it is new.
    fn find_or_open(&mut self, cx: &Cx<'_>, from: &Asker, signature: Signature) -> Option<(u64, bool)> {
        let queue = self.queues.get(&signature);
        let lacks = |id: &&u64| {
            let collective = self.open.get(*id);
            collective.is_some_and(|c| c.expected.contains(&from.proc) && c.has_place_for(from))
        };
        if let Some(id) = queue.into_iter().flatten().find(lacks) {
            return Some((*id, false));
        }
        if queue.map_or(0, VecDeque::len) >= MAX_COLLECTIVES {
            warn!(proc = %from.proc, limit = MAX_COLLECTIVES, "too many collectives of one set at once: refused");
            return None;
        }
        let mut expected = cx.peers.jobs.local_among(&signature.procs);
        expected.insert(from.proc.clone());
        self.last += 1;
        let id = self.last;
        self.queues.entry(signature.clone()).or_default().push_back(id);
        let collective = Collective {
            id,
            signature,
            expected,
            lost: BTreeSet::new(),
            arrived: BTreeMap::new(),
            askers: Vec::new(),
            is_watched: false,
            is_followed: false,
            info: Vec::new(),
            state: CollectiveState::Gathering,
            since: cx.now,
            timer: None,
        };
        self.open.insert(id, collective);
        Some((id, true))
    }

    /// Continues if all have arrived, fails if a participant never will.
    fn advance(&mut self, cx: &mut Cx<'_>, id: u64) {
        let Some(collective) = self.open.get(&id) else { return };
        if collective.state != CollectiveState::Gathering {
            return;
        }
        let kind = collective.signature.kind;
        let over = |proc: &&ProcId| cx.peers.jobs.stage(proc).is_none_or(Stage::is_over);
        let never = collective.missing().find(over).cloned();
        let complete = self.is_complete(cx.peers, id);
        if let Some(proc) =
            never.clone().filter(|_| self.open.get(&id).is_some_and(Collective::goes_on_without_the_dead))
        {
            self.leave_out(cx, id, &proc);
            return self.advance(cx, id);
        }
        if let Some(proc) = never {
            debug!(%proc, ?kind, "a participant has ended: the collective fails");
            return self.fail_without(cx, id, proc);
        }
        if !complete {
            return;
        }
        if self.earlier(id).all(|earlier| earlier.state != CollectiveState::WithHost) {
            self.hand_over(id);
        }
    }

    /// All have arrived and it is this collective's turn: hosts such as Slurm's plugin know one collective of a set at a
    /// time.
    fn hand_over(&mut self, id: u64) {
        if let Some(collective) = self.open.get_mut(&id) {
            collective.state = CollectiveState::WithHost;
            self.due.push_back(Due::Gathered { id, kind: collective.signature.kind });
        }
    }

    /// Earlier collectives of the same set.
    fn earlier(&self, id: u64) -> impl Iterator<Item = &Collective> {
        let open = &self.open;
        let queue = open.get(&id).and_then(|c| self.queues.get(&c.signature));
        queue.into_iter().flatten().take_while(move |other| **other != id).filter_map(|other| open.get(other))
    }

    /// A collective of this set has ended: the next one may have waited for that.
    pub(super) fn advance_next(&mut self, cx: &mut Cx<'_>, signature: &Signature) {
        let has_failed = |id: &u64| {
            let collective = self.open.get(id);
            collective.is_none_or(|collective| matches!(collective.state, CollectiveState::Failed(_)))
        };
        let queue = self.queues.get(signature);
        let next = queue.into_iter().flatten().copied().find(|id| !has_failed(id));
        if let Some(id) = next {
            self.advance(cx, id);
        }
    }

    fn leave_out(&mut self, cx: &mut Cx<'_>, id: u64, proc: &ProcId) {
        let Some(collective) = self.open.get_mut(&id) else { return };
        collective.expected.remove(proc);
        collective.lost.insert(proc.clone());
        // Members that watch the group have been notified already.
        let is_news = match collective.signature.kind {
            Kind::GroupConstruct => true,
            Kind::GroupDestruct => !collective.is_watched,
            _ => false,
        };
        if is_news {
            let (group, others) = (collective.signature.id.clone(), collective.survivors(&cx.peers.jobs));
            self.due.push_back(Due::LeftOut { group, proc: proc.clone(), others });
        }
    }

    fn fail_without(&mut self, cx: &mut Cx<'_>, id: u64, proc: ProcId) {
        let Some(collective) = self.open.get(&id) else { return };
        let kind = collective.signature.kind;
        if !collective.arrived.is_empty() {
            self.due.push_back(Due::Missing { proc, kind });
        }
        self.fail(cx, id, kind.without_a_member());
    }

    /// Fails a collective, and notifies the host if other nodes wait.
    fn fail(&mut self, cx: &mut Cx<'_>, id: u64, status: Status) {
        let Some(collective) = self.open.get(&id) else { return };
        let signature = &collective.signature;
        if collective.state == CollectiveState::Gathering && !cx.peers.jobs.are_all_local(&signature.procs) {
            let failed = Due::Failed { signature: signature.clone(), status };
            self.hand_over_before(cx, id);
            self.due.push_back(failed);
        }
        self.end_with_failure(cx, id, status);
    }

    /// Answers all participants that arrived with the failure.
    fn end_with_failure(&mut self, cx: &mut Cx<'_>, id: u64, status: Status) {
        let complete = self.is_complete(cx.peers, id);
        let Some(collective) = self.open.get_mut(&id) else { return };
        if matches!(collective.state, CollectiveState::Failed(_)) {
            return;
        }
        let with_host = collective.state == CollectiveState::WithHost;
        collective.state = CollectiveState::Failed(status);
        let timer = collective.timer.take();
        let waiting = std::mem::take(&mut collective.askers);
        let signature = collective.signature.clone();
        cx.timers.cancel(timer);
        if complete {
            self.close(cx, id);
        }
        for asker in waiting {
            cx.answer(asker, status);
        }
        self.close_if_abandoned(cx, id);
        if with_host {
            self.advance_next(cx, &signature);
        }
    }

    /// The host counts collectives of a set by its calls: complete ones that wait for their turn must reach it before the report
    /// that a later one failed.
    fn hand_over_before(&mut self, cx: &mut Cx<'_>, id: u64) {
        let waiting = self.earlier(id).filter(|earlier| earlier.state == CollectiveState::Gathering);
        for id in
            waiting.map(|earlier| earlier.id).filter(|id| self.is_complete(cx.peers, *id)).collect::<Vec<_>>()
        {
            self.hand_over(id);
        }
    }

    pub(super) fn on_overdue(&mut self, cx: &mut Cx<'_>, id: u64) {
        let Some(collective) = self.open.get_mut(&id) else { return };
        collective.timer = None;
        match collective.state {
            CollectiveState::WithHost => self.due.push_back(Due::Overdue { id }),
            CollectiveState::Gathering | CollectiveState::Failed(_) => self.fail_overdue(cx, id),
        }
    }

    pub(super) fn fail_overdue(&mut self, cx: &mut Cx<'_>, id: u64) {
        self.fail(cx, id, Status::ERR_TIMEOUT);
    }

    /// The next collective of these processes has failed elsewhere.
    pub(super) fn fail_next(
        &mut self,
        cx: &mut Cx<'_>,
        (kind, id): (Kind, &str),
        procs: &[ProcId],
        status: Status,
    ) {
        let jobs = &cx.peers.jobs;
        let wanted = jobs.each_of(procs);
        let is_theirs = |of: &&Signature| of.kind == kind && of.id == id && jobs.each_of(&of.procs) == wanted;
        let gathers =
            |id: &&u64| self.open.get(*id).is_some_and(|one| one.state == CollectiveState::Gathering);
        let queues = self.queues.iter().filter(|(signature, _)| is_theirs(signature));
        let next = queues.filter_map(|(_, queue)| queue.iter().find(gathers)).copied().min();
        next.into_iter().for_each(|id| self.fail(cx, id, status));
    }

    /// A process has ended or lost its connection: collectives that still expect it fail or continue without it.
    pub(super) fn fail_of(&mut self, cx: &mut Cx<'_>, proc: &ProcId) {
        let expects = |c: &Collective| c.expected.contains(proc) && !c.arrived.contains_key(proc);
        let affected: Vec<u64> = self.open.iter().filter(|(_, c)| expects(c)).map(|(id, _)| *id).collect();
        for id in affected {
            self.advance(cx, id);
            self.close_if_abandoned(cx, id);
        }
    }

    /// The host reports that these processes have failed or are being restarted, on any node: collectives of theirs that are
    /// still gathering fail, whether they had arrived or not, unless these continue without members that have ended.
    pub(super) fn fail_all_of(&mut self, cx: &mut Cx<'_>, gone: &BTreeSet<ProcId>) {
        let concerns = |c: &Collective| {
            let procs = &c.signature.procs;
            let is_member = |proc: &ProcId| procs.iter().any(|member| member.covers(proc));
            c.state == CollectiveState::Gathering
                && !c.goes_on_without_the_dead()
                && gone.iter().any(is_member)
        };
        let affected: Vec<u64> = self.open.iter().filter(|(_, c)| concerns(c)).map(|(id, _)| *id).collect();
        for id in affected {
            if let Some(status) =
                self.open.get(&id).map(|collective| collective.signature.kind.without_a_member())
            {
                self.end_with_failure(cx, id, status);
            }
        }
    }

    /// A new process takes a participant's place: what the old one had joined while it was being ended fails, and failed
    /// collectives are not kept for the new one, nor for others that arrive late.
    pub(super) fn begin_anew(&mut self, cx: &mut Cx<'_>, proc: &ProcId) {
        let has_joined =
            |c: &Collective| c.state == CollectiveState::Gathering && c.arrived.contains_key(proc);
        let joined = self.open.iter().filter(|(_, c)| has_joined(c));
        let joined: Vec<(u64, Status)> =
            joined.map(|(id, c)| (*id, c.signature.kind.without_a_member())).collect();
        for (id, status) in joined {
            self.end_with_failure(cx, id, status);
        }
        let is_failed = |c: &Collective| matches!(c.state, CollectiveState::Failed(_));
        let is_of = |c: &Collective| c.signature.procs.iter().any(|member| member.covers(proc));
        let open = self.open.iter().filter(|(_, c)| is_failed(c) && is_of(c));
        let failed: Vec<u64> = open.map(|(id, _)| *id).collect();
        for id in failed {
            self.close(cx, id);
        }
    }

    pub(super) fn end_of_nspace(&mut self, cx: &mut Cx<'_>, nspace: &Nspace) {
        let concerns = |c: &Collective| c.expected.iter().any(|proc| proc.nspace == *nspace);
        let affected: Vec<u64> = self.open.iter().filter(|(_, c)| concerns(c)).map(|(id, _)| *id).collect();
        for id in affected {
            self.fail(cx, id, Status::ERR_LOST_CONNECTION);
            self.close_if_abandoned(cx, id);
        }
    }

    /// Whether all participants have arrived.
    fn is_complete(&self, peers: &Peers, id: u64) -> bool {
        self.open.get(&id).is_some_and(|collective| collective.is_complete(peers))
    }

    /// A connection ends while its rank goes on: its calls are taken out of the collectives that are still gathering.
    pub(super) fn withdraw(&mut self, cx: &mut Cx<'_>, conn: ConnId, proc: &ProcId) {
        let (mut touched, mut free) = (Vec::new(), Vec::new());
        for (id, collective) in &mut self.open {
            if collective.state != CollectiveState::Gathering || !collective.arrived.contains_key(proc) {
                continue;
            }
            touched.push(*id);
            let gone: Vec<Asker> = collective.askers.extract_if(.., |asker| asker.conn == conn).collect();
            let has_left = !gone.is_empty();
            gone.into_iter().for_each(Asker::forget);
            if has_left && !collective.askers.iter().any(|asker| asker.proc == *proc) {
                collective.arrived.remove(proc);
                free.push(*id);
            }
        }
        for id in free {
            self.move_up(cx, id, proc);
        }
        // This connection may have been the last one of its rank that was missing.
        for id in touched {
            self.advance_or_close(cx, id);
        }
    }

    /// A rank's place in a collective is free: its calls in later collectives of the set each move up by one.
    fn move_up(&mut self, cx: &mut Cx<'_>, freed: u64, proc: &ProcId) {
        let Some(signature) = self.open.get(&freed).map(|c| c.signature.clone()) else { return };
        let queue = self.queues.get(&signature).cloned().unwrap_or_default();
        let mut free = freed;
        for later in queue.into_iter().filter(|id| *id > freed) {
            let gathering = |c: &&mut Collective| c.state == CollectiveState::Gathering;
            let Some(from) = self.open.get_mut(&later).filter(gathering) else { continue };
            let Some(arrival) = from.arrived.remove(proc) else { continue };
            let askers: Vec<Asker> = from.askers.extract_if(.., |asker| asker.proc == *proc).collect();
            let (info, deadline) = (from.info.clone(), from.timer.map(TimerId::at));
            let Some(to) = self.open.get_mut(&free) else { return };
            to.arrived.insert(proc.clone(), arrival);
            to.askers.extend(askers);
            to.add_info(info);
            if let Some(at) = deadline {
                to.end_by(cx.timers, free, at);
            }
            free = later;
        }
    }

    fn advance_or_close(&mut self, cx: &mut Cx<'_>, id: u64) {
        match self.open.get(&id) {
            Some(collective) if collective.arrived.is_empty() => {
                self.close(cx, id);
            }
            Some(_) => self.advance(cx, id),
            None => {}
        }
    }

    /// A failed collective stays for late participants; it is removed when none can arrive any more.
    fn close_if_abandoned(&mut self, cx: &mut Cx<'_>, id: u64) {
        let Some(collective) = self.open.get(&id) else { return };
        let failed = matches!(collective.state, CollectiveState::Failed(_));
        if failed && collective.missing().all(|proc| cx.peers.jobs.stage(proc).is_none_or(Stage::is_over)) {
            self.close(cx, id);
        }
    }

    /// The next piece of due work.
    pub(super) fn take_due(&mut self) -> Option<Due> {
        self.due.pop_front()
    }

    pub(super) fn get(&self, id: u64) -> Option<&Collective> {
        self.open.get(&id)
    }

    /// Removes a collective and returns it with the requests that wait for it.
    pub(super) fn close(&mut self, cx: &mut Cx<'_>, id: u64) -> Option<Collective> {
        let mut collective = self.open.remove(&id)?;
        cx.timers.cancel(collective.timer);
        if let Some(queue) = self.queues.get_mut(&collective.signature) {
            queue.retain(|other| *other != id);
            collective.is_followed = !queue.is_empty();
            if queue.is_empty() {
                self.queues.remove(&collective.signature);
            }
        }
        Some(collective)
    }

    pub(super) fn are_all_of(&self, nspace: &Nspace) -> bool {
        self.open.values().any(|one| one.expected.iter().all(|proc| proc.nspace == *nspace))
    }

    pub(super) fn explain(&self, peers: &Peers, waiting: &mut Vec<Waiting>) {
        for collective in self.open.values() {
            if matches!(collective.state, CollectiveState::Failed(_)) {
                continue;
            }
            let signature = &collective.signature;
            let named = signature.procs.iter().take(8).map(ToString::to_string).collect::<Vec<_>>().join(" ");
            let more = signature.procs.len().saturating_sub(8);
            let id = if signature.id.is_empty() { String::new() } else { format!("{} ", signature.id) };
            let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
            waiting.push(Waiting {
                operation: signature.kind.name().into(),
                subject: format!("{id}{named}{rest}"),
                asked_by: collective.arrived.keys().cloned().collect(),
                missing: collective.missing().chain(collective.without_all_clones(peers)).cloned().collect(),
                since: collective.since,
                deadline: collective.timer.map(TimerId::at),
                unblocked_by: match collective.state {
                    CollectiveState::Gathering if collective.is_complete(peers) => {
                        "the end of an earlier one of the same participants"
                    }
                    CollectiveState::Gathering => "the arrival of those who are missing",
                    CollectiveState::WithHost | CollectiveState::Failed(_) => "the host's answer",
                }
                .into(),
            });
        }
    }
}
