//! Group operations that go on without the members that end (`PMIX_GROUP_FT_COLLECTIVE`).
//!
//! Whom such an operation lacks, each daemon knows of its own members, and where none is left nobody says so. So it goes to the
//! root: a share of each daemon, with whom it lacks. The root has the others watched, and the operation has ended when there is
//! a share of each daemon that has a member left. Members of daemons without a share are announced to the survivors from here, all
//! others by their own servers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use phalanx_core::{Event, Time, Waiting};
use phalanx_spec::{DataType, Range, Rank, Status, keys};
use phalanx_wire::{DataArray, Info, Nspace, ProcId, Value};

use crate::id::NodeId;
use crate::msg::{Agreed, Collective, Down, GroupPart, Kind, OpId, Outcome, Part, each};
use crate::ranges::Ranges;
use crate::root::collective::Meeting;
use crate::root::{Cx, ENOUGH, Root};

#[derive(Debug, Default)]
pub(super) struct Survivals {
    open: BTreeMap<Collective, Survival>,
    /// The last that has ended, of its kind, members and name.
    ended: BTreeMap<Collective, u64>,
}

#[derive(Debug)]
struct Survival {
    since: Time,
    daemons: Ranges,
    came: Ranges,
    part: Part,
    lost: BTreeSet<ProcId>,
    /// Members that are known to have ended.
    over: BTreeSet<ProcId>,
}

impl Survivals {
    pub(super) fn know(&self, nspace: &Nspace) -> bool {
        let is_of = |op: &Collective| op.members.iter().all(|members| members.nspace == *nspace);
        self.open.keys().any(is_of) || self.ended.keys().any(is_of)
    }

    pub(super) fn forget(&mut self, nspace: &Nspace) {
        self.ended.retain(|op, _| op.members.iter().all(|members| members.nspace != *nspace));
    }

    fn is_full_for(&self, op: &Collective) -> bool {
        let is_known = self.ended.contains_key(&series(op));
        self.open.len() >= MOST || (!is_known && self.ended.len() >= MOST)
    }

    fn has_ended(&self, op: &Collective) -> bool {
        self.ended.get(&series(op)).is_some_and(|last| op.round <= *last)
    }
}

impl Root {
    pub(super) fn on_share(&mut self, cx: &mut Cx<'_>, from: NodeId, share: &GroupPart) {
        let GroupPart { op, part, lost } = share;
        let daemons = self.hosts_of(op);
        let survivals = &mut self.survivals;
        let is_new = !survivals.open.contains_key(op);
        let refused = match is_new {
            // Its members had been taken for gone.
            true if survivals.has_ended(op) => Some(Status::GROUP_CONSTRUCT_ABORT),
            true if survivals.is_full_for(op) => Some(Status::ERR_OUT_OF_RESOURCE),
            _ => None,
        };
        if let Some(status) = refused {
            let op = Arc::new(OpId::Collective(op.clone()));
            return cx.cast(Ranges::single(from.0), Down::Done { op, outcome: Err(status) });
        }
        let survival = survivals.open.entry(op.clone()).or_insert_with(|| Survival::new(cx.now, daemons));
        if survival.came.contains(from.0) {
            return;
        }
        survival.came.insert(from.0);
        survival.part.merge(part.clone());
        survival.lost.extend(lost.iter().cloned());
        if is_new {
            self.watch_others(cx, op, from);
        }
        self.try_survival(cx, op);
    }

    fn watch_others(&mut self, cx: &mut Cx<'_>, op: &Collective, from: NodeId) {
        for members in op.members.iter() {
            let Some(job) = self.jobs.get(&members.nspace) else { continue };
            let mut ranks = members.ranks.clone();
            job.desc.ranks_on(from).iter().for_each(|rank| ranks.remove(rank));
            let (to, nspace) = (job.desc.nodes_of(&ranks), members.nspace.clone());
            if !ranks.is_empty() {
                cx.cast(to, Down::Watch { nspace, ranks });
            }
        }
    }

    /// These have ended.
    pub(super) fn survivals_without(&mut self, cx: &mut Cx<'_>, nspace: &Nspace, ranks: &Ranges) {
        let survivals = &mut self.survivals;
        for (op, survival) in &mut survivals.open {
            let ours = op.members.iter().filter(|members| members.nspace == *nspace);
            let gone = ours.flat_map(|members| members.ranks.and(ranks).iter().collect::<Vec<_>>());
            survival.over.extend(gone.map(|rank| ProcId::new(nspace, Rank(rank))));
        }
        self.try_survivals(cx);
    }

    /// Somebody is waited for no longer.
    pub(super) fn try_survivals(&mut self, cx: &mut Cx<'_>) {
        let open: Vec<Collective> = self.survivals.open.keys().cloned().collect();
        open.iter().for_each(|op| self.try_survival(cx, op));
    }

    fn try_survival(&mut self, cx: &mut Cx<'_>, op: &Collective) {
        let Some(survival) = self.survivals.open.get(op) else { return };
        let waits = |daemon: u32| self.left_on(op, survival, NodeId(daemon)).next().is_some();
        let is_failed = matches!(survival.part, Part::Failed(_));
        if !is_failed && survival.absent().any(waits) {
            return;
        }
        let survivals = &mut self.survivals;
        let Some(survival) = survivals.open.remove(op) else { return };
        survivals.ended.insert(series(op), op.round);
        let (came, silent) = each(&op.members).partition(|proc| self.is_on(proc, &survival.came));
        let (came, silent): (Vec<ProcId>, Vec<ProcId>) = (came, silent);
        let survivors: Vec<ProcId> = came.into_iter().filter(|proc| !survival.lost.contains(proc)).collect();
        if !is_failed && op.kind == Kind::GroupConstruct {
            silent.iter().for_each(|proc| self.announce_lost(cx, op, proc, &survivors));
        }
        let meeting = Meeting { op: Arc::new(OpId::Collective(op.clone())), to: survival.daemons };
        if let Some(outcome) = self.outcome_without(cx, meeting.clone(), op, survivors, survival.part) {
            cx.cast(meeting.to, Down::Done { op: meeting.op, outcome });
        }
    }

    fn outcome_without(
        &mut self,
        cx: &mut Cx<'_>,
        meeting: Meeting,
        op: &Collective,
        survivors: Vec<ProcId>,
        part: Part,
    ) -> Option<Outcome> {
        match (op.kind, part) {
            (Kind::GroupConstruct, Part::Failed(status)) => {
                self.give_up_group(cx, op, status);
                Some(Err(status))
            }
            (_, Part::Failed(status)) => Some(Err(status)),
            (Kind::GroupConstruct, part) => self.form_group(cx, meeting, op, survivors, part),
            _ => Some(Ok(Agreed::Nothing)),
        }
    }

    /// The survivors hear of a member of whom no server could tell.
    fn announce_lost(&mut self, cx: &mut Cx<'_>, op: &Collective, proc: &ProcId, survivors: &[ProcId]) {
        let items = survivors.iter().cloned().map(Value::Proc).collect();
        let info = vec![
            Info::new(keys::GROUP_ID, op.id.as_deref().unwrap_or_default()),
            Info::new(keys::EVENT_AFFECTED_PROC, proc.clone()),
            Info::new(keys::EVENT_CUSTOM_RANGE, DataArray { of: DataType::PROC, items }),
        ];
        let (code, range) = (Status::GROUP_MEMBER_FAILED, Range::CUSTOM);
        let event = Arc::new(Event { code, source: proc.clone(), range, info });
        let to = self.nodes_of_procs(survivors.iter().cloned());
        cx.cast(to, Down::Event { event, except: None });
    }

    fn hosts_of(&self, op: &Collective) -> Ranges {
        let mut daemons = Ranges::new();
        for members in op.members.iter() {
            if let Some(job) = self.jobs.get(&members.nspace) {
                daemons.add(&job.desc.nodes_of(&members.ranks));
            }
        }
        daemons
    }

    /// The members on a daemon that may still come.
    fn left_on<'a>(
        &'a self,
        op: &'a Collective,
        survival: &'a Survival,
        daemon: NodeId,
    ) -> impl Iterator<Item = ProcId> + 'a {
        let is_lost = self.nodes.is_lost(daemon);
        let jobs = op.members.iter().filter(move |_| !is_lost);
        jobs.flat_map(move |members| {
            let job = self.jobs.get(&members.nspace);
            let here = job.map(|job| job.desc.ranks_on(daemon).and(&members.ranks)).unwrap_or_default();
            let is_left = |rank: &u32| job.is_some_and(|job| !job.dead.contains(*rank));
            let left: Vec<u32> = here.iter().filter(is_left).collect();
            left.into_iter().map(|rank| ProcId::new(&members.nspace, Rank(rank)))
        })
        .filter(|proc| !survival.over.contains(proc))
    }

    fn is_on(&self, proc: &ProcId, daemons: &Ranges) -> bool {
        let job = self.jobs.get(&proc.nspace);
        job.and_then(|job| job.desc.node_of(proc.rank)).is_some_and(|node| daemons.contains(node.0))
    }

    pub(super) fn explain_survivals(&self) -> Vec<Waiting> {
        let open = self.survivals.open.iter();
        let waiting = open.map(|(op, survival)| Waiting {
            operation: match op.kind {
                Kind::GroupDestruct => "group destruct",
                _ => "group construct",
            },
            subject: op.id.as_deref().unwrap_or_default().to_owned(),
            asked_by: Vec::new(),
            missing: survival
                .absent()
                .flat_map(|daemon| self.left_on(op, survival, NodeId(daemon)))
                .take(ENOUGH)
                .collect(),
            since: survival.since,
            deadline: None,
            unblocked_by: "the arrival of those who are missing, or their end",
        });
        waiting.collect()
    }
}

impl Survival {
    fn new(since: Time, daemons: Ranges) -> Survival {
        let (lost, over) = (BTreeSet::new(), BTreeSet::new());
        Survival { since, daemons, came: Ranges::new(), part: Part::Nothing, lost, over }
    }

    fn absent(&self) -> impl Iterator<Item = u32> {
        self.daemons.iter().filter(|daemon| !self.came.contains(*daemon))
    }
}

/// The same for all rounds.
fn series(op: &Collective) -> Collective {
    Collective { round: 0, ..op.clone() }
}

/// Operations of this kind at once, and sets that have had one.
const MOST: usize = 1 << 12;
