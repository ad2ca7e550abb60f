//! Operations to which many daemons contribute: what is done with the parts once all have arrived.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use phalanx_core::Event;
use phalanx_core::host::CollectiveKind;
use phalanx_spec::{DataType, Range, Status, keys};
use phalanx_wire::{Blob, DataArray, Info, InfoList, Nspace, ProcId, Value};

use crate::msg::{Agreed, Collective, Down, GroupPart, OpId, Outcome, Part, Policy, each};
use crate::ranges::Ranges;
use crate::root::dvm::Dvm;
use crate::root::group::{self, Completed};
use crate::root::operations::Operations;
use crate::root::relations::Relation;
use crate::root::turn::Cx;

/// The last operations of each series that have ended (a series is the operation without its number), and the pending
/// operations announced to daemons.
#[derive(Debug, Default)]
pub(super) struct Collectives {
    ended: BTreeMap<Collective, VecDeque<u64>>,
    expected: BTreeSet<Collective>,
}

impl Collectives {
    fn set_ended(&mut self, op: &Collective) {
        self.expected.remove(op);
        if self.ended.len() >= MOST_SERIES {
            self.ended.pop_first();
        }
        let ended = self.ended.entry(Collective { round: 0, ..op.clone() }).or_default();
        if ended.len() >= KEPT {
            ended.pop_front();
        }
        ended.push_back(op.round);
    }

    /// Operations of one series end in roughly ascending order.
    fn has_ended(&self, op: &Collective) -> bool {
        let ended = self.ended.get(&Collective { round: 0, ..op.clone() });
        ended.is_some_and(|ended| {
            ended.contains(&op.round) || (ended.len() >= KEPT && ended.iter().all(|other| *other > op.round))
        })
    }

    pub(super) fn know(&self, nspace: &Nspace) -> bool {
        let is_of = |op: &Collective| op.members.iter().all(|members| members.nspace == *nspace);
        self.ended.keys().chain(&self.expected).any(is_of)
    }

    pub(super) fn forget(&mut self, nspace: &Nspace) {
        let lives = |op: &Collective| op.members.iter().any(|members| members.nspace != *nspace);
        self.ended.retain(|op, _| lives(op));
        self.expected.retain(lives);
    }
}

/// All parts of a collective are here, except those of daemons that were lost.
pub(super) fn gathered(
    cx: &mut Cx<'_>,
    dvm: &mut Dvm,
    operations: &mut Operations,
    collectives: &mut Collectives,
    meeting: Completed,
    missing: &Ranges,
    part: Part,
) {
    let op = meeting.op.clone();
    let OpId::Collective(collective) = &*op else { return };
    // It has failed, and all daemons were notified.
    if collectives.has_ended(collective) {
        return;
    }
    let part = match collective.policy {
        Policy::Fixed if !missing.is_empty() => Part::Failed(collective.kind.without_a_member()),
        _ => part,
    };
    let outcome = outcome_of(cx, dvm, operations, meeting.clone(), collective, missing, part);
    collectives.set_ended(collective);
    if let Some(outcome) = outcome {
        cx.cast(meeting.to, Down::Done { op, outcome });
    }
}

/// The result of all parts. `None`: it comes later.
fn outcome_of(
    cx: &mut Cx<'_>,
    dvm: &mut Dvm,
    operations: &mut Operations,
    meeting: Completed,
    collective: &Collective,
    missing: &Ranges,
    part: Part,
) -> Option<Outcome> {
    let members = &collective.members;
    Some(match (collective.kind, part) {
        (CollectiveKind::GroupConstruct, Part::Failed(status)) => {
            group::give_up(cx, operations, collective, status);
            Err(status)
        }
        (_, Part::Failed(status)) => Err(status),
        (CollectiveKind::Fence, part) => {
            dvm.relate(members, Relation::Fenced);
            Ok(Agreed::Modex(if let Part::Modex(blobs) = part { join(&blobs) } else { Blob::default() }))
        }
        (CollectiveKind::Connect, _) => {
            dvm.relate(members, Relation::Connected);
            Ok(Agreed::Nothing)
        }
        (CollectiveKind::Disconnect, _) => {
            dvm.relate(members, Relation::Disconnected);
            Ok(Agreed::Nothing)
        }
        (CollectiveKind::GroupDestruct, part) => {
            if let Some(group) = &collective.id {
                dvm.relations.dissolve(group, &collective.members);
            }
            let part = if let Part::Group(part) = part { part } else { GroupPart::default() };
            // Members that asked for all ends were already notified.
            if !part.info.is_set(keys::GROUP_NOTIFY_TERMINATION) {
                survivors(cx, dvm, collective, missing, &part);
            }
            Ok(Agreed::Nothing)
        }
        (CollectiveKind::GroupConstruct, part) => {
            let part = if let Part::Group(part) = part { part } else { GroupPart::default() };
            let members = survivors(cx, dvm, collective, missing, &part);
            return group::form(cx, dvm, operations, meeting, collective, members, part.info);
        }
    })
}

/// The members that have arrived. Missing members that no server has reported as gone are announced to them.
fn survivors(cx: &mut Cx<'_>, dvm: &Dvm, op: &Collective, missing: &Ranges, part: &GroupPart) -> Vec<ProcId> {
    let mut silent: BTreeSet<ProcId> = part.silent.iter().cloned().collect();
    if !missing.is_empty() {
        let is_lost = |proc: &ProcId| dvm.node_of(proc).is_some_and(|node| missing.contains(node.0));
        silent.extend(each(&op.members).filter(is_lost));
    }
    let lost: BTreeSet<&ProcId> = part.lost.iter().chain(&silent).collect();
    let survivors: Vec<ProcId> = each(&op.members).filter(|proc| !lost.contains(proc)).collect();
    silent.iter().for_each(|proc| announce_lost(cx, dvm, op, proc, &survivors));
    survivors
}

fn announce_lost(cx: &mut Cx<'_>, dvm: &Dvm, op: &Collective, proc: &ProcId, survivors: &[ProcId]) {
    let items = survivors.iter().cloned().map(Value::Proc).collect();
    let info = vec![
        Info::new(keys::GROUP_ID, op.id.as_deref().unwrap_or_default()),
        Info::new(keys::EVENT_AFFECTED_PROC, proc.clone()),
        Info::new(keys::EVENT_CUSTOM_RANGE, DataArray { of: DataType::PROC, items }),
    ];
    let (code, range) = (Status::GROUP_MEMBER_FAILED, Range::CUSTOM);
    let event = Arc::new(Event { code, source: proc.clone(), range, info });
    let to = dvm.nodes_of_procs(survivors.iter().cloned());
    cx.cast(to, Down::Event { event, except: None });
}

/// An operation waits at some daemon. Asks the others to report members that have ended without arriving, which they would
/// not do by themselves.
pub(super) fn on_waits(cx: &mut Cx<'_>, dvm: &Dvm, collectives: &mut Collectives, op: &Collective) {
    if collectives.has_ended(op) || collectives.expected.len() >= MOST_SERIES {
        return;
    }
    // Every daemon reports an operation that spans all of them.
    let is_known = collectives.expected.contains(op);
    if is_known && op.policy == Policy::Fixed {
        return;
    }
    let daemons = daemons_of(dvm, op);
    if !is_known {
        collectives.expected.insert(op.clone());
        cx.cast(daemons.clone(), Down::Expect(op.clone()));
    }
    if op.policy != Policy::Fixed {
        cx.wait_for(OpId::Collective(op.clone()), daemons);
    }
}

/// The operation fails for all members alike: for those that have arrived, and for those yet to come.
pub(super) fn on_fails(
    cx: &mut Cx<'_>,
    dvm: &Dvm,
    operations: &mut Operations,
    collectives: &mut Collectives,
    op: &Collective,
    status: Status,
) {
    if collectives.has_ended(op) {
        return group::give_up_growing(cx, operations, op, status);
    }
    collectives.set_ended(op);
    if op.kind == CollectiveKind::GroupConstruct {
        group::give_up(cx, operations, op, status);
    }
    let to = daemons_of(dvm, op);
    let op = Arc::new(OpId::Collective(op.clone()));
    cx.cast(to, Down::Done { op, outcome: Err(status) });
}

fn daemons_of(dvm: &Dvm, op: &Collective) -> Ranges {
    if let Policy::Shrinks { daemons } = &op.policy {
        return daemons.clone();
    }
    let mut daemons = Ranges::new();
    for members in op.members.iter() {
        if let Some(job) = dvm.jobs.get(&members.nspace) {
            daemons.add(&job.desc.nodes_of(&members.ranks));
        }
    }
    daemons
}

fn join(blobs: &[Blob]) -> Blob {
    let mut all = Vec::with_capacity(blobs.iter().map(Blob::len).sum());
    blobs.iter().for_each(|blob| all.extend_from_slice(blob.as_bytes()));
    Blob::from(all)
}

/// The most series that are remembered.
const MOST_SERIES: usize = 1 << 16;
/// How many ended operations are remembered per series. Non-blocking calls let a few be under way at once.
const KEPT: usize = 16;
