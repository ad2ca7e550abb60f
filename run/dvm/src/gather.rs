//! Collective operations on their way up: each daemon waits for its own part and for one from each child below which
//! there are participants, merges them, and sends one message to its parent.
//!
//! What a daemon has sent it keeps until the result comes by, and sends again when its parent changes. A part stands
//! for the sender's whole subtree, and subtrees never overlap in part (`tree.rs`), so a repeated part is recognised by
//! its sender. What an operation *does* is in the file of its name; this one does not look into parts beyond merging.

use std::collections::BTreeMap;
use std::sync::Arc;

use phalanx_core::host::GroupFormed;
use phalanx_core::{Time, Waiting};
use phalanx_spec::{Rank, Status};
use phalanx_wire::{Blob, Info, Nspace, ProcId};

use crate::daemon::{Cx, Daemon, ENOUGH, Local};
use crate::msg::{Down, Gather, Msg, NodeId};
use crate::procs::EndGroup;
use crate::ranges::Ranges;
use crate::survey::{Found, Subject, Survey};
use crate::tree::Tree;

/// Names one operation; equal on all daemons that take part.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OpId {
    /// All processes of the job run, or could not be started.
    Started(Nspace),
    /// All processes of the job have ended and their output is out.
    Ended(Nspace),
    Collective(Collective),
    /// The root has asked the daemons for something.
    Survey(Survey),
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Collective {
    pub kind: Kind,
    pub members: Arc<[Members]>,
    /// A group's name.
    pub id: Option<Arc<str>>,
    /// The how-manieth of its kind, members and name.
    pub round: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Fence,
    Connect,
    Disconnect,
    GroupConstruct,
    GroupDestruct,
    /// Registration of paths for processes of several daemons.
    Cleanup,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Members {
    pub nspace: Nspace,
    pub ranks: Ranges,
}

/// What a subtree contributes.
#[derive(Clone, Debug)]
pub enum Part {
    Nothing,
    Modex(Vec<Blob>),
    Infos(Vec<Info>),
    /// Rank and pid of the processes that run.
    Pids(Vec<(u32, u32)>),
    Ends(Vec<EndGroup>),
    Found(Box<Found>),
    /// Somebody could not take part.
    Failed(Status),
}

pub(crate) type Outcome = Result<Settled, Status>;

#[derive(Clone, Debug)]
pub enum Settled {
    Nothing,
    Modex(Blob),
    Group(GroupFormed),
}

/// An operation to which all have contributed, and who is told how it ends.
#[derive(Clone, Debug)]
pub(crate) struct Meeting {
    pub(crate) op: Arc<OpId>,
    pub(crate) to: Ranges,
}

#[derive(Debug, Default)]
pub(crate) struct Gathers {
    open: BTreeMap<Arc<OpId>, Open>,
}

#[derive(Debug)]
struct Open {
    since: Time,
    /// The daemons that contribute.
    participants: Ranges,
    own: Option<Part>,
    got: BTreeMap<NodeId, (Ranges, Part)>,
    sent: Option<Gather>,
}

impl Daemon {
    /// This daemon's own part. Completes at once when nobody else is waited for.
    pub(crate) fn contribute(&mut self, cx: &mut Cx<'_>, op: OpId, part: Part) {
        let op = Arc::new(op);
        let Some(open) = self.open_gather(cx.now, &op) else { return };
        if open.own.is_none() {
            open.own = Some(part);
            self.try_gather(cx, &op);
        }
    }

    pub(crate) fn on_gather(&mut self, cx: &mut Cx<'_>, gather: Gather) {
        let Gather { op, from, missing, part } = gather;
        if !self.gathers.open.contains_key(&op) && self.cast.holds_result_of(&op) {
            return; // The sender's link broke before the result reached it; the result is being sent again.
        }
        let lost: Vec<NodeId> = self.tree.ancestors(from).take_while(|a| *a > self.me).collect();
        let Some(open) = self.open_gather(cx.now, &op) else { return };
        if lost.iter().any(|ancestor| open.got.contains_key(ancestor)) {
            return; // Covered by what the sender's lost parent had sent before.
        }
        open.got.entry(from).or_insert((missing, part));
        if self.me == NodeId::ROOT {
            self.gather_advanced(cx, &op);
        }
        self.try_gather(cx, &op);
    }

    /// The parent is another one, or its link is new.
    pub(crate) fn send_gathers_again(&mut self, cx: &mut Cx<'_>) {
        let again: Vec<Gather> = self.gathers.open.values().filter_map(|open| open.sent.clone()).collect();
        again.into_iter().for_each(|gather| self.send_up(cx, Msg::Gather(gather)));
    }

    /// Somebody is no longer waited for.
    pub(crate) fn try_all_gathers(&mut self, cx: &mut Cx<'_>) {
        let open: Vec<Arc<OpId>> = self.gathers.open.keys().cloned().collect();
        open.into_iter().for_each(|op| self.try_gather(cx, &op));
    }

    /// The result has come by. `true`: this daemon knew of the operation.
    pub(crate) fn close_gather(&mut self, op: &OpId) -> bool {
        self.gathers.open.remove(op).is_some()
    }

    /// Root only: somebody that was waited for is lost, and maybe nobody else will ever bring the operation up again.
    pub(crate) fn reconsider_gather(&mut self, cx: &mut Cx<'_>, op: OpId) {
        let op = Arc::new(op);
        if self.open_gather(cx.now, &op).is_some() {
            self.try_gather(cx, &op);
        }
    }

    /// Gives up all operations that `concerned` picks, and names them.
    pub(crate) fn drop_gathers(&mut self, concerned: impl Fn(&OpId) -> bool) -> Vec<Arc<OpId>> {
        self.gathers.open.extract_if(.., |op, _| concerned(op)).map(|(op, _)| op).collect()
    }

    fn open_gather(&mut self, now: Time, op: &Arc<OpId>) -> Option<&mut Open> {
        if !self.gathers.open.contains_key(op) {
            let participants = self.participants(op)?;
            let open = Open { since: now, participants, own: None, got: BTreeMap::new(), sent: None };
            self.gathers.open.insert(op.clone(), open);
        }
        self.gathers.open.get_mut(op)
    }

    /// `None`: the operation is about a job that is forgotten, or about processes that have failed.
    fn participants(&self, op: &OpId) -> Option<Ranges> {
        match op {
            OpId::Started(nspace) | OpId::Ended(nspace) => Some(self.jobs.get(nspace)?.desc.nodes.clone()),
            OpId::Survey(survey) => match &survey.of {
                Subject::Procs { nspace, .. } => Some(self.jobs.get(nspace)?.desc.nodes.clone()),
                Subject::Waits | Subject::Nodes => Some(Ranges::first(self.tree.size())),
            },
            OpId::Collective(collective) => {
                let mut nodes = Ranges::new();
                for members in collective.members.iter() {
                    let job =
                        self.jobs.get(&members.nspace).filter(|job| !job.dead.intersects(&members.ranks))?;
                    nodes.add(&job.desc.nodes_of(&members.ranks));
                }
                Some(nodes)
            }
        }
    }

    fn try_gather(&mut self, cx: &mut Cx<'_>, op: &Arc<OpId>) {
        let Some(open) = self.gathers.open.get_mut(op) else { return };
        if open.sent.is_some() || !open.is_complete(self.me, &self.tree, &self.children) {
            return;
        }
        let mut missing = open.missing(self.me, &self.tree);
        let mut part = open.own.take().unwrap_or(Part::Nothing);
        for (below, theirs) in std::mem::take(&mut open.got).into_values() {
            missing.add(&below);
            part.merge(theirs);
        }
        if self.me == NodeId::ROOT {
            self.finish_gather(cx, op.clone(), missing, part);
        } else {
            let gather = Gather { op: op.clone(), from: self.me, missing, part };
            open.sent = Some(gather.clone());
            self.send_up(cx, Msg::Gather(gather));
        }
    }

    /// Everybody's part is at the root.
    fn finish_gather(&mut self, cx: &mut Cx<'_>, op: Arc<OpId>, missing: Ranges, part: Part) {
        let Some(open) = self.gathers.open.remove(&op) else { return };
        match (&*op, part) {
            (OpId::Started(nspace), part) => {
                let nspace = nspace.clone();
                self.cast(cx, open.participants, Down::Done { op, outcome: Ok(Settled::Nothing) });
                self.job_started(cx, &nspace, part);
            }
            (OpId::Ended(nspace), part) => {
                let nspace = nspace.clone();
                self.cast(cx, open.participants, Down::Done { op, outcome: Ok(Settled::Nothing) });
                self.inbox.push_back(Local::Ended { nspace, part });
            }
            (OpId::Survey(survey), part) => {
                let survey = survey.clone();
                self.cast(cx, open.participants, Down::Done { op, outcome: Ok(Settled::Nothing) });
                self.surveyed(cx, &survey, part);
            }
            (OpId::Collective(collective), part) => {
                let meeting = Meeting { op: op.clone(), to: open.participants };
                let outcome = match missing.is_empty() {
                    true => self.outcome_of(cx, meeting.clone(), collective, part),
                    false => Some(Err(Status::ERR_LOST_CONNECTION)),
                };
                if let Some(outcome) = outcome {
                    self.cast(cx, meeting.to, Down::Done { op: meeting.op, outcome });
                }
            }
        }
    }

    /// How far an operation has come, seen from the root: members whose part has arrived, and all.
    pub(crate) fn gathered_nodes(&self, op: &OpId) -> Option<(Ranges, Ranges)> {
        let open = self.gathers.open.get(op)?;
        let mut arrived = Ranges::new();
        for from in open.got.keys() {
            arrived.add(&self.tree.under(*from).and(&open.participants));
        }
        if open.own.is_some() {
            arrived.insert(self.me.0);
        }
        Some((arrived, open.participants.clone()))
    }

    pub(crate) fn explain_gathers(&self) -> Vec<Waiting> {
        let waiting = |(op, open): (&Arc<OpId>, &Open)| Waiting {
            operation: op.name(),
            subject: op.subject(),
            asked_by: Vec::new(),
            missing: self.members_on(op, &open.awaited(self.me, &self.tree)),
            since: open.since,
            deadline: None,
            unblocked_by: "the named processes' daemons sending their part, or being declared lost",
        };
        self.gathers.open.iter().map(waiting).collect()
    }

    /// The members of an operation that live on `nodes`; no more than people read.
    fn members_on(&self, op: &OpId, nodes: &Ranges) -> Vec<ProcId> {
        let on = |nspace: &Nspace, ranks: Option<&Ranges>| -> Vec<ProcId> {
            let Some(job) = self.jobs.get(nspace) else { return Vec::new() };
            let here = |rank: &u32| nodes.contains(job.desc.places.node.get(*rank));
            let all = ranks.cloned().unwrap_or_else(|| job.desc.ranks());
            all.iter().filter(here).take(ENOUGH).map(|rank| ProcId::new(nspace, Rank(rank))).collect()
        };
        match op {
            OpId::Started(nspace) | OpId::Ended(nspace) => on(nspace, None),
            OpId::Survey(_) => Vec::new(),
            OpId::Collective(c) => {
                c.members.iter().flat_map(|m| on(&m.nspace, Some(&m.ranks))).take(ENOUGH).collect()
            }
        }
    }
}

impl Open {
    fn is_complete(&self, me: NodeId, tree: &Tree, children: &[NodeId]) -> bool {
        let here = !self.participants.contains(me.0) || self.own.is_some();
        here && children.iter().all(|child| !self.lives_below(tree, *child) || self.covers(tree, *child))
    }

    /// Whether a participant that is not lost is in the subtree of `child`.
    fn lives_below(&self, tree: &Tree, child: NodeId) -> bool {
        if !tree.reaches(child, &self.participants) {
            return false;
        }
        if tree.lost().next().is_none() {
            return true;
        }
        tree.under(child).and(&self.participants).iter().any(|node| !tree.is_lost(NodeId(node)))
    }

    /// Whether the part of `node`, or of an ancestor that spoke for it, is here.
    fn covers(&self, tree: &Tree, node: NodeId) -> bool {
        self.got.contains_key(&node) || tree.ancestors(node).any(|ancestor| self.got.contains_key(&ancestor))
    }

    /// Lost participants for which nobody has spoken.
    fn missing(&self, me: NodeId, tree: &Tree) -> Ranges {
        let lost = tree.lost().filter(|node| self.participants.contains(node.0) && tree.is_under(me, *node));
        lost.filter(|node| !self.covers(tree, *node)).map(|node| node.0).collect()
    }

    /// Participants below `me`, itself included, that are still waited for.
    fn awaited(&self, me: NodeId, tree: &Tree) -> Ranges {
        let below = tree.under(me).and(&self.participants);
        let absent = |node: &u32| match NodeId(*node) {
            node if node == me => self.own.is_none() && self.sent.is_none(),
            node => self.sent.is_none() && !tree.is_lost(node) && !self.covers(tree, node),
        };
        below.iter().filter(absent).collect()
    }
}

impl Part {
    pub(crate) fn merge(&mut self, other: Part) {
        match (&mut *self, other) {
            (_, Part::Nothing) | (Part::Failed(_), _) => {}
            (_, Part::Failed(status)) => *self = Part::Failed(status),
            (Part::Nothing, other) => *self = other,
            (Part::Modex(blobs), Part::Modex(more)) => blobs.extend(more),
            (Part::Infos(infos), Part::Infos(more)) => infos.extend(more),
            (Part::Pids(pids), Part::Pids(more)) => pids.extend(more),
            (Part::Ends(ends), Part::Ends(more)) => EndGroup::merge(ends, more),
            (Part::Found(found), Part::Found(more)) => found.merge(*more),
            // One binary on all daemons: an operation has parts of one kind.
            (_, _) => {}
        }
    }
}

impl OpId {
    pub fn name(&self) -> &'static str {
        match self {
            OpId::Started(_) => "start of a job",
            OpId::Ended(_) => "end of a job",
            OpId::Survey(_) => "survey",
            OpId::Collective(collective) => match collective.kind {
                Kind::Fence => "fence",
                Kind::Connect => "connect",
                Kind::Disconnect => "disconnect",
                Kind::GroupConstruct => "group construct",
                Kind::GroupDestruct => "group destruct",
                Kind::Cleanup => "registration of a cleanup",
            },
        }
    }

    fn subject(&self) -> String {
        match self {
            OpId::Started(nspace) | OpId::Ended(nspace) => nspace.to_string(),
            OpId::Survey(Survey { of: Subject::Procs { nspace, .. }, .. }) => {
                format!("processes of {nspace}")
            }
            OpId::Survey(Survey { of: Subject::Nodes, .. }) => "what nodes use".to_owned(),
            OpId::Survey(Survey { of: Subject::Waits, .. }) => "what is waited for".to_owned(),
            OpId::Collective(collective) => {
                let members = collective.members.iter().map(|m| format!("{}:{}", m.nspace, m.ranks));
                let mut subject = members.collect::<Vec<_>>().join(" ");
                if let Some(id) = &collective.id {
                    subject = format!("{id}: {subject}");
                }
                format!("{subject} (round {})", collective.round)
            }
        }
    }

    /// Whether `nspace` has members in it.
    pub fn concerns(&self, nspace: &Nspace) -> bool {
        match self {
            OpId::Started(job) | OpId::Ended(job) => job == nspace,
            OpId::Survey(survey) => survey.of.concerns(nspace),
            OpId::Collective(collective) => collective.members.iter().any(|m| m.nspace == *nspace),
        }
    }
}
