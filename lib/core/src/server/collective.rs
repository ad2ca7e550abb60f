//! What fence, connect, disconnect and the groups have in common: processes meet, and all are answered together.
//!
//! Local participants meet here; when the last has come, the host is asked once for the whole node, and its answer goes to
//! all. A meeting is known by its kind, its id and its set of participants, in whatever order they were given. A
//! participant that comes again before the meeting has ended opens the next one of the same set: meetings of one set
//! are a queue, and connections of one rank come in its name (see `clones`). If a participant ends before it came, or time runs out, the meeting fails for all, also for those who
//! come later, and the host is told, since other nodes wait for it too. What completion means is in the file of each verb.

mod clones;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use phalanx_spec::{Rank, Status, keys};
use phalanx_wire::{Info, InfoList, Nspace, ProcId};
use tracing::{debug, warn};

use super::directive::timeout;
use super::limits::MAX_COLLECTIVES;
use super::peer::Asker;
use super::registry::Stage;
use super::timers::{Timer, TimerId, Timers};
use super::{Cx, Server};
use crate::explain::Waiting;
use crate::host::HostReply;
use crate::machine::Time;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Fence,
    Connect,
    Disconnect,
    GroupConstruct,
    GroupDestruct,
}

/// What tells one meeting from another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Signature {
    pub(super) kind: Kind,
    /// The group's id; empty for other kinds.
    pub(super) id: String,
    /// Sorted, without doubles.
    pub(super) procs: Arc<[ProcId]>,
}

#[derive(Debug)]
pub(super) struct Collective {
    id: u64,
    pub(super) signature: Signature,
    /// Local participants.
    pub(super) expected: BTreeSet<ProcId>,
    /// Participants that have ended, and without whom it goes on.
    pub(super) lost: BTreeSet<ProcId>,
    arrived: BTreeMap<ProcId, Arrival>,
    /// Who waits for the end, the latest last.
    askers: Vec<Asker>,
    /// What the participants gave, each info once.
    pub(super) info: Vec<Info>,
    pub(super) state: State,
    since: Time,
    timer: Option<TimerId>,
}

/// How a participant has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arrival {
    Whole,
    /// All its connections must come before it has.
    ByAllClones,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Gathering,
    WithHost,
    /// It has failed; whoever still comes is told so.
    Failed(Status),
}

#[derive(Debug, Default)]
pub(super) struct Collectives {
    open: BTreeMap<u64, Collective>,
    queues: BTreeMap<Signature, VecDeque<u64>>,
    last: u64,
}

impl Collectives {
    pub(super) fn are_all_of(&self, nspace: &Nspace) -> bool {
        self.open.values().any(|one| one.expected.iter().all(|proc| proc.nspace == *nspace))
    }
}

impl Signature {
    pub(super) fn new(kind: Kind, id: String, mut procs: Vec<ProcId>) -> Signature {
        procs.sort();
        procs.dedup();
        Signature { kind, id, procs: procs.into() }
    }
}

impl Collective {
    /// Local participants that have not come.
    fn missing(&self) -> impl Iterator<Item = &ProcId> {
        self.expected.iter().filter(|proc| !self.arrived.contains_key(*proc))
    }

    /// Its deadline is at this time, or earlier.
    fn end_by(&mut self, timers: &mut Timers, id: u64, at: Time) {
        if self.timer.is_none_or(|timer| at < timer.at()) {
            timers.cancel(self.timer);
            self.timer = Some(timers.set(at, Timer::Collective(id)));
        }
    }

    fn add_info(&mut self, info: Vec<Info>) {
        for one in info {
            if !self.info.contains(&one) {
                self.info.push(one);
            }
        }
    }

    /// Those who came, the latest first. What that process did last is still in the caches of its processor; those who
    /// came first have long been asleep.
    pub(super) fn latest_first(&self) -> impl Iterator<Item = &Asker> {
        self.askers.iter().rev()
    }
}

impl Server {
    /// A local process comes to a meeting.
    pub(super) fn enter(&mut self, cx: &mut Cx<'_>, from: Asker, signature: Signature, info: Vec<Info>) {
        if !signature.procs.iter().any(|proc| proc.covers(&from.proc)) {
            warn!(proc = %from.proc, kind = ?signature.kind, "not a participant of what it wants to take part in: refused");
            let status = match signature.kind {
                Kind::GroupConstruct => Status::ERR_NOT_A_MEMBER,
                _ => Status::ERR_BAD_PARAM,
            };
            return self.answer(cx, &from, status);
        }
        let Some((id, is_new)) = self.find_or_open(cx, &from, signature) else {
            return self.answer(cx, &from, Status::ERR_OUT_OF_RESOURCE);
        };
        let Some(collective) = self.collectives.open.get_mut(&id) else { return };
        let failed = matches!(collective.state, State::Failed(_));
        let with_clones = info.is_set(keys::ALL_CLONES_PARTICIPATE);
        if let Some(limit) = timeout(&info).filter(|_| !failed) {
            collective.end_by(&mut self.timers, id, cx.now.after(limit));
        }
        collective.add_info(info);
        let arrival = collective.arrived.entry(from.proc.clone()).or_insert(Arrival::Whole);
        if with_clones {
            *arrival = Arrival::ByAllClones;
        }
        collective.askers.push(from.clone());
        let state = collective.state;
        match state {
            State::Failed(status) => {
                self.answer(cx, &from, status);
                self.close_if_abandoned(id);
            }
            // Nobody expected is left once the host is asked.
            State::WithHost => {}
            // That somebody will never come is noticed when the meeting opens and when it happens, not at each arrival.
            State::Gathering if is_new || self.is_complete(id) => self.advance(cx, id),
            State::Gathering => {}
        }
    }

    /// The oldest meeting of this set that lacks this participant, or a new one, and whether it is new.
    fn find_or_open(&mut self, cx: &Cx<'_>, from: &Asker, signature: Signature) -> Option<(u64, bool)> {
        let queue = self.collectives.queues.get(&signature);
        let lacks = |id: &&u64| {
            let collective = self.collectives.open.get(*id);
            collective.is_some_and(|c| c.expected.contains(&from.proc) && c.has_place_for(from))
        };
        if let Some(id) = queue.into_iter().flatten().find(lacks) {
            return Some((*id, false));
        }
        if queue.map_or(0, VecDeque::len) >= MAX_COLLECTIVES {
            warn!(proc = %from.proc, limit = MAX_COLLECTIVES, "too many collectives of one set at once: refused");
            return None;
        }
        let mut expected = self.local_members(&signature.procs);
        expected.insert(from.proc.clone());
        self.collectives.last += 1;
        let id = self.collectives.last;
        self.collectives.queues.entry(signature.clone()).or_default().push_back(id);
        let collective = Collective {
            id,
            signature,
            expected,
            lost: BTreeSet::new(),
            arrived: BTreeMap::new(),
            askers: Vec::new(),
            info: Vec::new(),
            state: State::Gathering,
            since: cx.now,
            timer: None,
        };
        self.collectives.open.insert(id, collective);
        Some((id, true))
    }

    /// The participants, without those of this node that are lost.
    pub(super) fn survivors(&self, collective: &Collective) -> Vec<ProcId> {
        let procs = &collective.signature.procs;
        match collective.lost.is_empty() {
            true => procs.to_vec(),
            false => self.each_of(procs).difference(&collective.lost).cloned().collect(),
        }
    }

    /// The processes of a set, one by one. Of a job that is not registered here only those that are named.
    fn each_of(&self, procs: &[ProcId]) -> BTreeSet<ProcId> {
        let mut members = BTreeSet::new();
        for proc in procs {
            match self.jobs.get(&proc.nspace).filter(|_| proc.rank == Rank::WILDCARD) {
                Some(job) => {
                    let ranks = (0..).take(job.size()).map(Rank);
                    members.extend(ranks.map(|rank| ProcId::new(&proc.nspace, rank)));
                }
                None => {
                    members.insert(proc.clone());
                }
            }
        }
        members
    }

    /// The processes of a set that are on this node. A job that is not registered here has none.
    fn local_members(&self, procs: &[ProcId]) -> BTreeSet<ProcId> {
        let mut members = BTreeSet::new();
        for proc in procs {
            let Some(job) = self.jobs.get(&proc.nspace) else { continue };
            if proc.rank == Rank::WILDCARD {
                members.extend(job.local.iter().map(|rank| ProcId::new(&proc.nspace, *rank)));
            } else if job.is_local(proc.rank) {
                members.insert(proc.clone());
            }
        }
        members
    }

    /// Whether nobody outside this node takes part.
    pub(super) fn is_all_local(&self, procs: &[ProcId]) -> bool {
        procs.iter().all(|proc| {
            self.jobs.get(&proc.nspace).is_some_and(|job| {
                if proc.rank == Rank::WILDCARD {
                    job.local.len() == job.size()
                } else {
                    job.is_local(proc.rank)
                }
            })
        })
    }

    /// Goes on if everybody has come, fails if somebody never will.
    fn advance(&mut self, cx: &mut Cx<'_>, id: u64) {
        let Some(collective) = self.collectives.open.get(&id) else { return };
        if collective.state != State::Gathering {
            return;
        }
        let kind = collective.signature.kind;
        let over = |proc: &&ProcId| self.stage(proc).is_none_or(Stage::is_over);
        let never = collective.missing().find(over).cloned();
        let complete = self.is_complete(id);
        if let Some(proc) = never.clone().filter(|_| self.goes_on_without_the_dead(id)) {
            self.leave_out(cx, id, &proc);
            return self.advance(cx, id);
        }
        if let Some(proc) = never {
            debug!(%proc, ?kind, "a participant has ended: the collective fails");
            let status = match kind {
                Kind::GroupConstruct => Status::GROUP_CONSTRUCT_ABORT,
                _ => Status::ERR_LOST_CONNECTION,
            };
            return self.fail(cx, id, status);
        }
        if !complete {
            return;
        }
        if self.earlier(id).all(|earlier| earlier.state != State::WithHost) {
            self.hand_over(cx, id);
        }
    }

    /// Everybody has come, and it is this one's turn: hosts such as Slurm's plugin know one meeting of a set at a time.
    fn hand_over(&mut self, cx: &mut Cx<'_>, id: u64) {
        let Some(collective) = self.collectives.open.get_mut(&id) else { return };
        collective.state = State::WithHost;
        match collective.signature.kind {
            Kind::Fence => self.on_fence_gathered(cx, id),
            Kind::Connect | Kind::Disconnect => self.on_connect_gathered(cx, id),
            Kind::GroupConstruct | Kind::GroupDestruct => self.on_group_gathered(cx, id),
        }
    }

    /// The meetings of the same set that come before this one.
    fn earlier(&self, id: u64) -> impl Iterator<Item = &Collective> {
        let open = &self.collectives.open;
        let queue = open.get(&id).and_then(|c| self.collectives.queues.get(&c.signature));
        queue.into_iter().flatten().take_while(move |other| **other != id).filter_map(|other| open.get(other))
    }

    /// A meeting of this set has ended: the next one may have waited for that.
    fn advance_next(&mut self, cx: &mut Cx<'_>, signature: &Signature) {
        let has_failed = |id: &u64| {
            let collective = self.collectives.open.get(id);
            collective.is_none_or(|collective| matches!(collective.state, State::Failed(_)))
        };
        let queue = self.collectives.queues.get(signature);
        let next = queue.into_iter().flatten().copied().find(|id| !has_failed(id));
        if let Some(id) = next {
            self.advance(cx, id);
        }
    }

    fn leave_out(&mut self, cx: &mut Cx<'_>, id: u64, proc: &ProcId) {
        let Some(collective) = self.collectives.open.get_mut(&id) else { return };
        collective.expected.remove(proc);
        collective.lost.insert(proc.clone());
        self.on_member_left_out(cx, id, proc);
    }

    /// Tells everybody who came that the meeting has failed, and the host if somebody elsewhere waits.
    fn fail(&mut self, cx: &mut Cx<'_>, id: u64, status: Status) {
        let complete = self.is_complete(id);
        let Some(collective) = self.collectives.open.get_mut(&id) else { return };
        if matches!(collective.state, State::Failed(_)) {
            return;
        }
        let with_host = collective.state == State::WithHost;
        collective.state = State::Failed(status);
        let timer = collective.timer.take();
        let waiting = collective.askers.clone();
        let signature = collective.signature.clone();
        self.timers.cancel(timer);
        if !with_host && !self.is_all_local(&signature.procs) {
            self.hand_over_before(cx, id);
            match signature.kind {
                Kind::Fence => self.report_failed_fence(cx, &signature, status),
                Kind::Connect | Kind::Disconnect => self.report_failed_connect(cx, &signature, status),
                Kind::GroupConstruct | Kind::GroupDestruct => {
                    self.report_failed_group(cx, &signature, status)
                }
            }
        }
        if complete {
            self.close(id);
        }
        for asker in waiting {
            self.answer(cx, &asker, status);
        }
        self.close_if_abandoned(id);
        if with_host {
            self.advance_next(cx, &signature);
        }
    }

    /// The host counts meetings of a set by its calls: those that wait for their turn must not come behind the word that a later
    /// one has failed.
    fn hand_over_before(&mut self, cx: &mut Cx<'_>, id: u64) {
        let waiting = self.earlier(id).filter(|earlier| earlier.state == State::Gathering);
        for id in waiting.map(|earlier| earlier.id).filter(|id| self.is_complete(*id)).collect::<Vec<_>>() {
            self.hand_over(cx, id);
        }
    }

    pub(super) fn on_collective_answered(&mut self, cx: &mut Cx<'_>, id: u64, reply: HostReply) {
        let Some(signature) = self.collectives.open.get(&id).map(|c| c.signature.clone()) else { return };
        match signature.kind {
            Kind::Fence => self.on_fence_answered(cx, id, reply),
            Kind::Connect | Kind::Disconnect => self.on_connect_answered(cx, id, &reply),
            Kind::GroupConstruct | Kind::GroupDestruct => self.on_group_answered(cx, id, reply),
        }
        self.advance_next(cx, &signature);
    }

    pub(super) fn on_collective_overdue(&mut self, cx: &mut Cx<'_>, id: u64) {
        if let Some(collective) = self.collectives.open.get_mut(&id) {
            collective.timer = None;
            self.fail(cx, id, Status::ERR_TIMEOUT);
        }
    }

    /// A process has ended or lost its connection: meetings that still expect it fail, and none expects it further.
    pub(super) fn fail_collectives_of(&mut self, cx: &mut Cx<'_>, proc: &ProcId) {
        let expects = |c: &Collective| c.expected.contains(proc) && !c.arrived.contains_key(proc);
        let affected: Vec<u64> =
            self.collectives.open.iter().filter(|(_, c)| expects(c)).map(|(id, _)| *id).collect();
        for id in affected {
            self.advance(cx, id);
            self.close_if_abandoned(id);
        }
    }

    pub(super) fn end_collectives_of_nspace(&mut self, cx: &mut Cx<'_>, nspace: &Nspace) {
        let concerns = |c: &Collective| c.expected.iter().any(|proc| proc.nspace == *nspace);
        let affected: Vec<u64> =
            self.collectives.open.iter().filter(|(_, c)| concerns(c)).map(|(id, _)| *id).collect();
        for id in affected {
            self.fail(cx, id, Status::ERR_LOST_CONNECTION);
            self.close_if_abandoned(id);
        }
    }

    /// A failed meeting stays for those who have not come; when nobody is left who could, it is forgotten.
    fn close_if_abandoned(&mut self, id: u64) {
        let Some(collective) = self.collectives.open.get(&id) else { return };
        let failed = matches!(collective.state, State::Failed(_));
        if failed && collective.missing().all(|proc| self.stage(proc).is_none_or(Stage::is_over)) {
            self.close(id);
        }
    }

    /// The meeting, for the verb's own file.
    pub(super) fn collective(&self, id: u64) -> Option<&Collective> {
        self.collectives.open.get(&id)
    }

    /// Ends a meeting: what it was, with whoever waits.
    pub(super) fn close(&mut self, id: u64) -> Option<Collective> {
        let collective = self.collectives.open.remove(&id)?;
        self.timers.cancel(collective.timer);
        if let Some(queue) = self.collectives.queues.get_mut(&collective.signature) {
            queue.retain(|other| *other != id);
            if queue.is_empty() {
                self.collectives.queues.remove(&collective.signature);
            }
        }
        Some(collective)
    }

    pub(super) fn explain_collectives(&self, waiting: &mut Vec<Waiting>) {
        for collective in self.collectives.open.values() {
            if matches!(collective.state, State::Failed(_)) {
                continue;
            }
            let signature = &collective.signature;
            let named = signature.procs.iter().take(8).map(ToString::to_string).collect::<Vec<_>>().join(" ");
            let more = signature.procs.len().saturating_sub(8);
            let id = if signature.id.is_empty() { String::new() } else { format!("{} ", signature.id) };
            let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
            waiting.push(Waiting {
                operation: match signature.kind {
                    Kind::Fence => "fence",
                    Kind::Connect => "connect",
                    Kind::Disconnect => "disconnect",
                    Kind::GroupConstruct => "group construct",
                    Kind::GroupDestruct => "group destruct",
                },
                subject: format!("{id}{named}{rest}"),
                asked_by: collective.arrived.keys().cloned().collect(),
                missing: collective.missing().chain(self.without_all_clones(collective)).cloned().collect(),
                since: collective.since,
                deadline: collective.timer.map(TimerId::at),
                unblocked_by: match collective.state {
                    State::Gathering if self.is_complete(collective.id) => {
                        "the end of an earlier one of the same participants"
                    }
                    State::Gathering => "the arrival of those who are missing",
                    State::WithHost | State::Failed(_) => "the host's answer",
                },
            });
        }
    }
}
