//! Groups that form by invitation: which accepted invitations still wait for their leader's word.
//!
//! Leaders and invited processes communicate by events, which the root passes on like all others. When a leader has finalized or ended,
//! the root notifies the processes that have accepted its invitation that the leader has failed.

use std::collections::BTreeSet;
use std::sync::Arc;

use phalanx_core::Event;
use phalanx_spec::{DataType, Range, Status, keys};
use phalanx_wire::{DataArray, Info, InfoList, Nspace, ProcId, Text, Value};

use crate::msg::{Down, procs};
use crate::ranges::Ranges;
use crate::root::dvm::Dvm;
use crate::root::interests::announcement;
use crate::root::turn::Cx;

#[derive(Debug, Default)]
pub(super) struct Invitations(BTreeSet<Accepted>);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Accepted {
    leader: ProcId,
    by: ProcId,
    /// Unknown for libraries of OpenPMIx, which do not name the group that they join.
    group: Option<Text>,
}

impl Invitations {
    pub(super) fn know(&self, nspace: &Nspace) -> bool {
        self.0.iter().any(|one| one.leader.nspace == *nspace || one.by.nspace == *nspace)
    }

    /// The leader has announced the outcome of its group.
    fn settle(&mut self, leader: &ProcId, group: Option<&Text>, told: &[ProcId]) {
        let is_of = |one: &Accepted| one.group.is_none() || one.group.as_ref() == group;
        self.0.retain(|one| one.leader != *leader || !is_of(one) || !told.contains(&one.by));
    }

    fn take(&mut self, is_wanted: impl Fn(&Accepted) -> bool) -> Vec<Accepted> {
        self.0.extract_if(.., |one| is_wanted(one)).collect()
    }
}

/// A process has raised an event: it may be part of an invitation.
pub(super) fn hear(cx: &mut Cx<'_>, dvm: &Dvm, invitations: &mut Invitations, event: &Event) {
    let named: Vec<ProcId> = procs(event.info.find(keys::EVENT_CUSTOM_RANGE)).collect();
    let group = event.info.find(keys::GROUP_ID).and_then(Value::as_text);
    if event.code != Status::GROUP_INVITE_ACCEPTED {
        return invitations.settle(&event.source, group, &named);
    }
    for leader in named {
        let accepted = Accepted { leader, by: event.source.clone(), group: group.cloned() };
        await_leader(cx, dvm, invitations, accepted);
    }
}

fn await_leader(cx: &mut Cx<'_>, dvm: &Dvm, invitations: &mut Invitations, accepted: Accepted) {
    let leader = &accepted.leader;
    let is_there = |rank: u32| {
        let job = dvm.jobs.get(&leader.nspace);
        job.is_some_and(|job| rank < job.desc.size && !job.gone().contains(rank))
    };
    if !is_there(leader.rank.0) && !dvm.is_tool(leader) {
        return tell_leader_failed(cx, dvm, accepted);
    }
    if invitations.0.len() >= MOST_ACCEPTED {
        tracing::warn!(%leader, by = %accepted.by, limit = MOST_ACCEPTED, "too many invitations: this leader is not watched");
        return;
    }
    if let Some(job) = dvm.jobs.get(&leader.nspace) {
        let ranks = Ranges::single(leader.rank.0);
        cx.cast(job.desc.nodes_of(&ranks), Down::Watch { nspace: leader.nspace.clone(), ranks });
    }
    invitations.0.insert(accepted);
}

/// These processes of a job have finalized or ended.
pub(super) fn leaders_over(
    cx: &mut Cx<'_>,
    dvm: &Dvm,
    invitations: &mut Invitations,
    nspace: &Nspace,
    ranks: &Ranges,
) {
    let over = |one: &Accepted| one.leader.nspace == *nspace && ranks.contains(one.leader.rank.0);
    let in_vain = invitations.take(over);
    in_vain.into_iter().for_each(|one| tell_leader_failed(cx, dvm, one));
}

pub(super) fn forget_tool(cx: &mut Cx<'_>, dvm: &Dvm, invitations: &mut Invitations, tool: &ProcId) {
    forget(cx, dvm, invitations, |proc| proc == tool);
}

pub(super) fn forget_job(cx: &mut Cx<'_>, dvm: &Dvm, invitations: &mut Invitations, nspace: &Nspace) {
    forget(cx, dvm, invitations, |proc| proc.nspace == *nspace);
}

fn forget(cx: &mut Cx<'_>, dvm: &Dvm, invitations: &mut Invitations, is_gone: impl Fn(&ProcId) -> bool) {
    let touched = invitations.take(|one| is_gone(&one.leader) || is_gone(&one.by));
    let in_vain = touched.into_iter().filter(|one| !is_gone(&one.by));
    in_vain.for_each(|one| tell_leader_failed(cx, dvm, one));
}

fn tell_leader_failed(cx: &mut Cx<'_>, dvm: &Dvm, accepted: Accepted) {
    let Accepted { leader, by, group } = accepted;
    let to = dvm.nodes_of_procs(std::iter::once(by.clone()));
    let range = DataArray { of: DataType::PROC, items: vec![Value::Proc(by)] };
    let mut info = vec![
        Info::new(keys::EVENT_CUSTOM_RANGE, range),
        Info::new(keys::EVENT_AFFECTED_PROC, leader.clone()),
    ];
    info.extend(group.map(|group| Info::new(keys::GROUP_ID, Value::String(group))));
    let event = Event { range: Range::CUSTOM, ..announcement(Status::GROUP_LEADER_FAILED, leader, info) };
    cx.cast(to, Down::Event { event: Arc::new(event), except: None });
}

/// Accepted invitations that are watched at a time.
const MOST_ACCEPTED: usize = 1 << 16;
