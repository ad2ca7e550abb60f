//! Collectives of processes: fence, connect, disconnect and groups. The members determine which daemons take part.
//!
//! The same set of processes may fence again and again; the sequence number counts alike on every daemon, and is part of the
//! operation's name.
//!
//! An operation may fail before this daemon's members reach it: a member ended elsewhere, or the time limit of a member has
//! passed. The root decides that once, for all, and each daemon remembers it for its members that are yet to arrive.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use phalanx_core::host::CollectiveKind;
use phalanx_core::{HostCall, HostReply, ServerCall};
use phalanx_spec::{Rank, Status, keys};
use phalanx_wire::{Blob, Info, InfoList, Nspace, ProcId, Value};

use crate::id::NodeId;
use crate::local::calls::Call;
use crate::local::job::{Jobs, LocalJob};
use crate::local::proc::Proc;
use crate::local::timer::Timer;
use crate::local::turn::{Cx, ENOUGH};
use crate::msg::{Agreed, Collective, GroupPart, Members, NodeTable, OpId, Outcome, Part, Policy, Up, each};
use crate::ranges::Ranges;

/// Counts operations of each series, and holds the upcalls that wait for them.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    /// By series: the operation without its number.
    counts: BTreeMap<Collective, Count>,
    waiting: BTreeMap<Collective, Vec<HostCall>>,
    /// Operations that have waited for a while and were reported to the root.
    told: BTreeSet<Collective>,
    /// Operations that wait elsewhere and have not begun here.
    expected: BTreeSet<Collective>,
}

#[derive(Debug, Default)]
struct Count {
    begun: u64,
    /// The last one that this daemon has contributed to for absent members.
    ended: u64,
    /// Operations that have failed before this daemon's members have reached them.
    failed: BTreeMap<u64, Status>,
}

impl Rounds {
    /// Our clients' part of a fence.
    pub(super) fn fence(
        &mut self,
        cx: &mut Cx<'_>,
        jobs: &Jobs,
        call: HostCall,
        procs: &[ProcId],
        info: &[Info],
        data: Blob,
    ) {
        let part = if data.is_empty() { Part::Nothing } else { Part::Modex(vec![data]) };
        self.join(cx, jobs, call, CollectiveKind::Fence, procs, info, None, part);
    }

    #[allow(clippy::too_many_arguments)] // The upcall's own fields.
    pub(super) fn join(
        &mut self,
        cx: &mut Cx<'_>,
        jobs: &Jobs,
        call: HostCall,
        kind: CollectiveKind,
        procs: &[ProcId],
        info: &[Info],
        name: Option<Arc<str>>,
        part: Part,
    ) {
        // A failure here is a failure everywhere.
        let part = match info.find(keys::LOCAL_COLLECTIVE_STATUS) {
            Some(Value::Status(status)) if !status.is_success() => Part::Failed(*status),
            _ => part,
        };
        let members = match Members::of(procs, |nspace| Some(&*jobs.get(nspace)?.desc)) {
            Ok(members) => members,
            Err(status) => return cx.reply(call, HostReply::Done(status)),
        };
        let policy = policy(jobs, kind, info, &members);
        let op = Collective { kind, members, id: name, round: 0, policy };
        // Daemons' counts may differ when a member is started again, so a new generation begins a new count.
        let generation = op.members.iter().filter_map(|m| Some(jobs.get(&m.nspace)?.generation)).sum();
        let next = self.next(op.clone(), generation);
        self.tell_failed(cx, jobs, &op, generation);
        let op = match next {
            Ok(op) => op,
            Err(status) => return cx.reply(call, HostReply::Done(status)),
        };
        let was_expected = self.expected.remove(&op);
        let dead = |m: &Members| jobs.get(&m.nspace).is_none_or(|job| job.dead.intersects(&m.ranks));
        if op.policy == Policy::Fixed && op.members.iter().any(dead) {
            return cx.reply(call, HostReply::Done(kind.without_a_member()));
        }
        self.waiting.entry(op.clone()).or_default().push(call);
        if was_expected {
            self.told.insert(op.clone());
        } else {
            cx.timers.set_once(cx.now.after(PATIENCE), Timer::Waits);
        }
        match part {
            // Members that wait elsewhere learn of it without waiting for the other parts.
            Part::Failed(status) => cx.post(Up::Fails { op, status }),
            part => cx.join(OpId::Collective(op), part),
        }
    }

    /// The time limit of this upcall has passed, so the operation fails for all its members.
    pub(super) fn on_overdue(&mut self, cx: &mut Cx<'_>, call: HostCall, overdue: u64) {
        let mut waiting = self.waiting.iter();
        let overdue = waiting.find(|(_, calls)| calls.iter().any(|call| call.number() == overdue));
        let status = match overdue {
            Some((op, _)) => {
                cx.post(Up::Fails { op: op.clone(), status: Status::ERR_TIMEOUT });
                Status::SUCCESS
            }
            None => Status::ERR_NOT_FOUND,
        };
        cx.reply(call, HostReply::Done(status));
    }

    /// If the next operation of this series has already failed, our server must fail it, too: members may be waiting there for
    /// others of this node.
    fn tell_failed(&mut self, cx: &mut Cx<'_>, jobs: &Jobs, series: &Collective, generation: u64) {
        let Some(status) = self.next_fails(series, generation) else { return };
        let all = |of: &Members| jobs.get(&of.nspace).is_some_and(|job| job.desc.ranks() == of.ranks);
        let named = |of: &Members| match all(of) {
            true => vec![ProcId::all(&of.nspace)],
            false => each(std::slice::from_ref(of)).collect(),
        };
        let procs = series.members.iter().flat_map(named).collect();
        let id = series.id.as_deref().unwrap_or_default().to_owned();
        let fails = ServerCall::FailCollective { kind: series.kind, id, procs, status };
        cx.call(fails, Call::Notice("the failure of a collective"));
    }

    /// Reports operations that have waited for a while, each once: the root then has daemons check whether members have ended
    /// there.
    pub(super) fn on_patience_over(&mut self, cx: &mut Cx<'_>) {
        let Rounds { waiting, told, .. } = self;
        waiting.keys().filter(|op| told.insert((*op).clone())).for_each(|op| cx.post(Up::Waits(op.clone())));
    }

    /// An operation waits elsewhere for members of this daemon, which may have ended.
    pub(super) fn expect(&mut self, cx: &mut Cx<'_>, jobs: &Jobs, op: &Collective) {
        if !self.have_begun(op) {
            self.expected.insert(op.clone());
            self.try_expected(cx, jobs);
        }
    }

    /// A process has ended here that other members may be waiting for.
    pub(super) fn try_expected(&mut self, cx: &mut Cx<'_>, jobs: &Jobs) {
        let expected = std::mem::take(&mut self.expected);
        for op in expected {
            let here: Vec<ProcId> = op.members.iter().flat_map(|members| hosted(cx, jobs, members)).collect();
            let over = |is_over: fn(&Proc) -> bool| {
                let proc = |of: &ProcId| jobs.get(&of.nspace)?.procs.get(&of.rank);
                move |of: &ProcId| proc(of).is_none_or(is_over)
            };
            if op.policy == Policy::Fixed {
                if let Some(absent) = here.iter().find(|of| over(Proc::never_comes)(of)) {
                    let status = op.kind.without_a_member();
                    tell_missing(cx, jobs, absent, op.kind);
                    cx.post(Up::Fails { op, status });
                } else {
                    self.expected.insert(op);
                }
                continue;
            }
            if !here.iter().all(over(Proc::is_over)) {
                self.expected.insert(op);
                continue;
            }
            self.set_ended(&op);
            cx.join(OpId::Collective(op), Part::Group(GroupPart { silent: here, ..GroupPart::default() }));
        }
    }

    /// The operation has ended.
    pub(super) fn answer(
        &mut self,
        cx: &mut Cx<'_>,
        (jobs, table): (&mut Jobs, &Arc<NodeTable>),
        op: &OpId,
        outcome: &Outcome,
    ) {
        let OpId::Collective(collective) = op else { return };
        let waiting = self.waiting.remove(collective).unwrap_or_default();
        self.told.remove(collective);
        self.expected.remove(collective);
        if let Err(status) = outcome
            && collective.members.iter().any(|members| !hosted(cx, jobs, members).is_empty())
        {
            self.set_failed(collective, *status);
            let series = Collective { round: 0, ..collective.clone() };
            self.tell_failed(cx, jobs, &series, collective.round >> GENERATION);
        }
        if collective.kind == CollectiveKind::Connect && outcome.is_ok() && !waiting.is_empty() {
            for members in collective.members.iter() {
                jobs.get_mut(&members.nspace).into_iter().for_each(|job| job.introduce(cx, table));
            }
        }
        for call in waiting {
            let reply = match outcome {
                Err(status) => HostReply::Done(*status),
                Ok(Agreed::Nothing) => HostReply::Done(Status::SUCCESS),
                Ok(Agreed::Modex(data)) => HostReply::Modex(Ok(data.clone())),
                Ok(Agreed::Group(formed)) => HostReply::Group(Ok(formed.clone())),
            };
            cx.reply(call, reply);
        }
    }

    /// The operation is given up, because a participant is gone.
    pub(super) fn give_up(&mut self, cx: &mut Cx<'_>, tables: (&mut Jobs, &Arc<NodeTable>), op: &OpId) {
        let OpId::Collective(collective) = op else { return };
        self.answer(cx, tables, op, &Err(collective.kind.without_a_member()));
    }
}

/// A collective fails, because this process has ended without joining it. If px has ended it, that is no news.
pub(super) fn tell_missing(cx: &mut Cx<'_>, jobs: &Jobs, proc: &ProcId, kind: CollectiveKind) {
    let here = jobs.get(&proc.nspace).and_then(|job| job.procs.get(&proc.rank));
    if here.is_none_or(|proc| proc.killed().is_none()) {
        let text = format!(
            "rank {} (on {}) ended without taking part in a {} that others were waiting in: it fails",
            proc.rank,
            cx.config.hostname,
            kind.name(),
        );
        cx.post(Up::Note { about: Some(proc.clone()), text });
    }
}

/// These ranks have failed or are being restarted somewhere: our server does not let its clients wait for them.
pub(super) fn without(cx: &mut Cx<'_>, job: &mut LocalJob, ranks: &Ranges) {
    job.dead.add(ranks);
    if job.registered {
        let (nspace, ranks) = (job.desc.nspace.clone(), ranks.iter().map(Rank).collect());
        let fails = ServerCall::FailCollectivesOf { nspace, ranks };
        cx.call(fails, Call::Notice("the failure of the collectives of ranks that are gone"));
    }
}

fn policy(jobs: &Jobs, kind: CollectiveKind, info: &[Info], members: &[Members]) -> Policy {
    let is_group = matches!(kind, CollectiveKind::GroupConstruct | CollectiveKind::GroupDestruct);
    if !is_group || !info.is_set(keys::GROUP_FT_COLLECTIVE) {
        return Policy::Fixed;
    }
    let mut daemons = Ranges::new();
    for members in members {
        if let Some(job) = jobs.get(&members.nspace) {
            daemons.add(&job.desc.nodes_of(&members.ranks));
        }
    }
    Policy::Shrinks { daemons }
}

/// The members that are processes of this node.
fn hosted(cx: &Cx<'_>, jobs: &Jobs, members: &Members) -> Vec<ProcId> {
    let job = jobs.get(&members.nspace);
    let here = job.map(|job| job.desc.ranks_on(cx.config.id).and(&members.ranks)).unwrap_or_default();
    each(&[Members { nspace: members.nspace.clone(), ranks: here }]).collect()
}

/// The daemons that contribute to an operation. `None`: it concerns a forgotten job, or processes that have failed.
pub(super) fn daemons_of(jobs: &Jobs, op: &OpId) -> Option<Ranges> {
    match op {
        OpId::Started(nspace) | OpId::Ended(nspace) => Some(jobs.get(nspace)?.desc.nodes.clone()),
        OpId::Task(task) => Some(task.daemons.clone()),
        // A part that arrives after its jobs were forgotten is a repeat, and no other daemon sends one.
        OpId::Collective(Collective { policy: Policy::Shrinks { daemons }, members, .. }) => {
            members.iter().any(|of| jobs.contains_key(&of.nspace)).then(|| daemons.clone())
        }
        OpId::Collective(collective) => {
            let mut nodes = Ranges::new();
            for members in collective.members.iter() {
                let job = jobs.get(&members.nspace).filter(|job| !job.dead.intersects(&members.ranks))?;
                nodes.add(&job.desc.nodes_of(&members.ranks));
            }
            Some(nodes)
        }
    }
}

/// The members of an operation on `nodes`; no more than a person reads.
pub(super) fn members_on(jobs: &Jobs, op: &OpId, nodes: &Ranges) -> Vec<ProcId> {
    let on = |nspace: &Nspace, ranks: Option<&Ranges>| -> Vec<ProcId> {
        let Some(job) = jobs.get(nspace) else { return Vec::new() };
        let hosts = job.desc.nodes.and(nodes);
        let there = hosts.iter().map(|node| job.desc.ranks_on(NodeId(node)));
        let members = there.map(|here| ranks.map_or_else(|| here.clone(), |ranks| here.and(ranks)));
        let found = members.flat_map(|members| members.iter().collect::<Vec<_>>()).take(ENOUGH);
        found.map(|rank| ProcId::new(nspace, Rank(rank))).collect()
    };
    match op {
        OpId::Started(nspace) | OpId::Ended(nspace) => on(nspace, None),
        OpId::Task(_) => Vec::new(),
        OpId::Collective(c) => {
            c.members.iter().flat_map(|m| on(&m.nspace, Some(&m.ranks))).take(ENOUGH).collect()
        }
    }
}

impl Rounds {
    /// The operation with its number in its series.
    fn next(&mut self, op: Collective, generation: u64) -> Result<Collective, Status> {
        if self.counts.len() >= MOST_SERIES && !self.counts.contains_key(&op) {
            return Err(Status::ERR_OUT_OF_RESOURCE);
        }
        let count = self.counts.entry(op.clone()).or_default();
        count.begun = count.begun.max(generation << GENERATION) + 1;
        let has_failed = count.failed.remove(&count.begun);
        count.failed.retain(|round, _| *round > count.begun);
        match (has_failed, count.begun > count.ended) {
            (Some(status), _) => Err(status),
            (None, true) => Ok(Collective { round: count.begun, ..op }),
            // Its members had been reported as gone.
            (None, false) => Err(Status::GROUP_CONSTRUCT_ABORT),
        }
    }

    /// The status with which the next operation of a series has already failed.
    fn next_fails(&self, series: &Collective, generation: u64) -> Option<Status> {
        let count = self.counts.get(series)?;
        count.failed.get(&(count.begun.max(generation << GENERATION) + 1)).copied()
    }

    /// Whether this daemon's members have reached the operation, or it has failed before.
    fn have_begun(&self, op: &Collective) -> bool {
        let count = self.counts.get(&Collective { round: 0, ..op.clone() });
        count.is_some_and(|count| count.begun >= op.round || count.failed.contains_key(&op.round))
    }

    /// Records that the operation has failed, unless this daemon's members have already reached it.
    fn set_failed(&mut self, op: &Collective, status: Status) {
        if self.have_begun(op) {
            return;
        }
        let series = Collective { round: 0, ..op.clone() };
        if self.counts.len() >= MOST_SERIES && !self.counts.contains_key(&series) {
            return;
        }
        let failed = &mut self.counts.entry(series).or_default().failed;
        failed.insert(op.round, status);
        if failed.len() > MOST_FAILED {
            failed.pop_first();
        }
    }

    /// Records that this daemon has contributed although none of its members had arrived.
    fn set_ended(&mut self, op: &Collective) {
        let count = self.counts.entry(Collective { round: 0, ..op.clone() }).or_default();
        count.ended = count.ended.max(op.round);
    }

    pub(super) fn know(&self, nspace: &Nspace) -> bool {
        let is_of = |op: &Collective| op.members.iter().all(|one| one.nspace == *nspace);
        self.counts.keys().chain(self.waiting.keys()).chain(&self.told).chain(&self.expected).any(is_of)
    }

    pub(super) fn forget(&mut self, nspace: &Nspace) {
        let lives = |op: &Collective| op.members.iter().any(|m| m.nspace != *nspace);
        self.counts.retain(|op, _| lives(op));
        self.told.retain(lives);
        self.expected.retain(lives);
    }
}

/// The bits of a round's number below those that count restarts of members.
const GENERATION: u32 = 32;
/// The most different sets of processes that the living jobs may use in collectives.
const MOST_SERIES: usize = 1 << 16;
/// The most failed operations of one series that are remembered before this daemon's members reach the first of them.
const MOST_FAILED: usize = 256;
/// How long an operation waits before daemons are asked whether any of their members have ended.
const PATIENCE: Duration = Duration::from_millis(100);
