//! Collectives of processes: fence, connect and disconnect. Which daemons take part follows from the members.
//!
//! The same set of processes may fence again and again; the how-manieth time it is counts on every daemon alike, and is
//! part of the operation's name.

use std::collections::BTreeMap;
use std::sync::Arc;

use phalanx_core::host::LOST_MEMBERS;
use phalanx_core::{HostCall, HostReply};
use phalanx_spec::{Rank, Status, keys};
use phalanx_wire::{Blob, Info, InfoList, Nspace, ProcId, Value};

use crate::local::{Cx, ENOUGH, Local};
use crate::msg;
use crate::msg::{Agreed, Collective, GroupPart, Kind, Members, OpId, Outcome, Part, Up};
use crate::ranges::Ranges;

/// Which data are collected and how long is waited, the servers see to.
pub(crate) const ATTRIBUTES: &[&str] = &[];

/// Counts operations that are alike, and holds the upcalls that wait for them.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    counts: BTreeMap<Series, u64>,
    waiting: BTreeMap<Collective, Vec<HostCall>>,
}

type Series = (Kind, Arc<[Members]>, Option<Arc<str>>);

impl Local {
    /// Our clients' part of a fence.
    pub(super) fn on_fence(
        &mut self,
        cx: &mut Cx<'_>,
        call: HostCall,
        procs: &[ProcId],
        info: &[Info],
        data: Blob,
    ) {
        let part = if data.is_empty() { Part::Nothing } else { Part::Modex(vec![data]) };
        self.join_collective(cx, call, Kind::Fence, procs, info, None, part);
    }

    #[allow(clippy::too_many_arguments)] // The upcall's own fields.
    pub(super) fn join_collective(
        &mut self,
        cx: &mut Cx<'_>,
        call: HostCall,
        kind: Kind,
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
        let members = match Members::of(procs, |nspace| Some(&*self.jobs.get(nspace)?.desc)) {
            Ok(members) => members,
            Err(status) => return cx.reply(call, HostReply::Done(status)),
        };
        let Some(round) = self.rounds.next((kind, members.clone(), name.clone())) else {
            return cx.reply(call, HostReply::Done(Status::ERR_OUT_OF_RESOURCE));
        };
        let dead = |m: &Members| self.jobs.get(&m.nspace).is_none_or(|job| job.dead.intersects(&m.ranks));
        let survives = kind.may_lack_members(info);
        if !survives && members.iter().any(dead) {
            return cx.reply(call, HostReply::Done(Status::ERR_PROC_ABORTED));
        }
        let op = Collective { kind, members, id: name, round };
        self.rounds.waiting.entry(op.clone()).or_default().push(call);
        if survives {
            let lost = msg::procs(info.find(LOST_MEMBERS)).collect();
            cx.post(Up::GroupPart(Box::new(GroupPart { op, part, lost })));
        } else {
            cx.join(OpId::Collective(op), part);
        }
    }

    /// The daemons that contribute to an operation. `None`: the operation is about a job that is forgotten, or about processes that have failed.
    pub(crate) fn daemons_of(&self, op: &OpId) -> Option<Ranges> {
        match op {
            OpId::Started(nspace) | OpId::Ended(nspace) => Some(self.jobs.get(nspace)?.desc.nodes.clone()),
            OpId::Task(task) => Some(task.daemons.clone()),
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

    /// The members of an operation that live on `nodes`; no more than people read.
    pub(crate) fn members_on(&self, op: &OpId, nodes: &Ranges) -> Vec<ProcId> {
        let on = |nspace: &Nspace, ranks: Option<&Ranges>| -> Vec<ProcId> {
            let Some(job) = self.jobs.get(nspace) else { return Vec::new() };
            let here = |rank: &u32| nodes.contains(job.desc.places.node.get(*rank));
            let all = ranks.cloned().unwrap_or_else(|| job.desc.ranks());
            all.iter().filter(here).take(ENOUGH).map(|rank| ProcId::new(nspace, Rank(rank))).collect()
        };
        match op {
            OpId::Started(nspace) | OpId::Ended(nspace) => on(nspace, None),
            OpId::Task(_) => Vec::new(),
            OpId::Collective(c) => {
                c.members.iter().flat_map(|m| on(&m.nspace, Some(&m.ranks))).take(ENOUGH).collect()
            }
        }
    }

    /// The operation has ended.
    pub(super) fn answer_collective(&mut self, cx: &mut Cx<'_>, op: &OpId, outcome: &Outcome) {
        let OpId::Collective(collective) = op else { return };
        let waiting = self.rounds.waiting.remove(collective).unwrap_or_default();
        if collective.kind == Kind::Connect && outcome.is_ok() && !waiting.is_empty() {
            collective.members.iter().for_each(|m| self.introduce(cx, &m.nspace));
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
}

impl Rounds {
    fn next(&mut self, series: Series) -> Option<u64> {
        if self.counts.len() >= MOST_SERIES && !self.counts.contains_key(&series) {
            return None;
        }
        let count = self.counts.entry(series).or_default();
        *count += 1;
        Some(*count)
    }

    pub(super) fn know(&self, nspace: &Nspace) -> bool {
        let is_of = |members: &Arc<[Members]>| members.iter().all(|one| one.nspace == *nspace);
        self.counts.keys().any(|(_, members, _)| is_of(members))
            || self.waiting.keys().any(|op| is_of(&op.members))
    }

    pub(super) fn forget(&mut self, nspace: &Nspace) {
        self.counts.retain(|(_, members, _), _| members.iter().all(|m| m.nspace != *nspace));
    }
}

/// Different sets of processes that the living jobs may use in collectives.
const MOST_SERIES: usize = 1 << 16;
