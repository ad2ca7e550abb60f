//! Groups: collects what members contribute, and assigns context ids.
//!
//! Groups that grow while they form are assembled by the root alone, as no daemon knows all members in advance: leaders name
//! the members they bring, and either how many leaders there are or, in a collective, which; other members only arrive. Such a
//! group is complete when all members that a leader named have arrived. It is given up if one of them ends before it arrives.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use phalanx_core::HostReply;
use phalanx_core::host::{GroupFormed, GroupRequest};
use phalanx_spec::{Status, keys};
use phalanx_wire::{Info, InfoList, Nspace, ProcId, Value};

use crate::msg::{Agreed, Collective, Down, Members, OpId, Outcome, each, procs as procs_in};
use crate::ranges::Ranges;
use crate::root::answer::{Answer, Asker};
use crate::root::consequence::Consequence;
use crate::root::dvm::Dvm;
use crate::root::jobs::Jobs;
use crate::root::kind::{Explained, Kind};
use crate::root::operations::Operations;
use crate::root::operations::Taken;
use crate::root::turn::{Cx, ENOUGH};

pub(crate) const ATTRIBUTES: &[&str] = &[
    keys::GROUP_ADD_MEMBERS,
    keys::GROUP_ASSIGN_CONTEXT_ID,
    keys::GROUP_BOOTSTRAP,
    keys::GROUP_FINAL_MEMBERSHIP_ORDER,
    keys::GROUP_FT_COLLECTIVE,
    keys::GROUP_INFO,
    keys::GROUP_INFO_ARRAY,
];
/// Attributes that a destruct honours.
pub(crate) const DESTRUCT_ATTRIBUTES: &[&str] = &[keys::GROUP_FT_COLLECTIVE];

/// A completed operation, and the daemons to send its outcome to.
#[derive(Clone, Debug)]
pub(super) struct Completed {
    pub(super) op: Arc<OpId>,
    pub(super) to: Ranges,
}

/// A group that grows while it forms.
#[derive(Debug, Default)]
pub(super) struct Assembly {
    name: String,
    /// The number of leaders, once a leader has given it.
    leaders: Option<u64>,
    /// Set once leaders that know each other have met in a collective.
    met: Option<Met>,
    /// The processes that have arrived, and whether each of them leads.
    came: BTreeMap<ProcId, bool>,
    /// The leaders that have arrived, and the processes that they have named.
    members: BTreeSet<ProcId>,
    /// Processes for which their daemons were asked to report the end.
    watched: BTreeSet<ProcId>,
    info: Vec<Info>,
}

#[derive(Debug)]
struct Met {
    meeting: Completed,
    procs: BTreeSet<ProcId>,
}

/// `None`: the processes that the members add have yet to arrive.
pub(super) fn form(
    cx: &mut Cx<'_>,
    dvm: &mut Dvm,
    operations: &mut Operations,
    meeting: Completed,
    collective: &Collective,
    members: Vec<ProcId>,
    infos: Vec<Info>,
) -> Option<Outcome> {
    let procs: BTreeSet<ProcId> = members.into_iter().collect();
    let added: Vec<ProcId> = added_by(&infos).collect();
    let name = collective.id.as_deref().unwrap_or_default();
    if added.is_empty() {
        return Some(Ok(Agreed::Group(describe(dvm, name, procs.into_iter().collect(), infos))));
    }
    let entered = Members::of(&added, |nspace| dvm.desc(nspace)).and_then(|added| {
        let (number, assembly) = open_assembly(cx, operations, name)?;
        match &assembly.met {
            // A repeat, sent again by another path.
            Some(met) if met.meeting.op == meeting.op => return Ok(number),
            Some(_) => return Err(Status::ERR_EXISTS),
            None if assembly.leaders.is_some() => return Err(Status::ERR_BAD_PARAM),
            None => {}
        }
        assembly.add(each(&added).chain(procs.iter().cloned()).collect(), &infos);
        assembly.met = Some(Met { meeting, procs });
        Ok(number)
    });
    match entered {
        Ok(number) => grow(cx, dvm, operations, number, &infos),
        Err(status) => return Some(Err(status)),
    }
    None
}

/// A collective of leaders has failed, so the processes that they would have added fail with it.
pub(super) fn give_up(cx: &mut Cx<'_>, operations: &mut Operations, collective: &Collective, status: Status) {
    let number = assembly_of(operations, collective.id.as_deref().unwrap_or_default());
    number.into_iter().for_each(|number| end_assembly(cx, operations, number, &Err(status)));
}

/// The same for leaders that have met and wait for the processes that they add.
pub(super) fn give_up_growing(
    cx: &mut Cx<'_>,
    operations: &mut Operations,
    collective: &Collective,
    status: Status,
) {
    let number = assembly_of(operations, collective.id.as_deref().unwrap_or_default());
    let met = number.and_then(|number| operations.get::<Assembly>(number)?.met.as_ref());
    if met.is_some_and(|met| matches!(&*met.meeting.op, OpId::Collective(op) if op == collective)) {
        number.into_iter().for_each(|number| end_assembly(cx, operations, number, &Err(status)));
    }
}

/// The group has formed: what all members learn about it.
fn describe(dvm: &mut Dvm, name: &str, members: Vec<ProcId>, infos: Vec<Info>) -> GroupFormed {
    dvm.relations.form(&dvm.jobs, name, &members);
    let context_id = infos.is_set(keys::GROUP_ASSIGN_CONTEXT_ID).then(|| dvm.relations.next_context());
    let contributed = |info: &Info| info.key == keys::GROUP_INFO || info.key == keys::GROUP_INFO_ARRAY;
    let members = in_order(members, infos.find(keys::GROUP_FINAL_MEMBERSHIP_ORDER));
    let info = infos.into_iter().filter(contributed).collect();
    GroupFormed { members, context_id, info }
}

/// A leader or a follower has arrived.
pub(super) fn assemble(
    cx: &mut Cx<'_>,
    dvm: &mut Dvm,
    operations: &mut Operations,
    answer: Answer,
    from: &ProcId,
    GroupRequest { id: name, procs, info, .. }: &GroupRequest,
) {
    let entered = named_by(dvm, from, procs, info).and_then(|(leaders, members)| {
        let (number, assembly) = enter_assembly(cx, operations, name, from, leaders)?;
        assembly.add(members, info);
        assembly.came.insert(from.clone(), leaders.is_some());
        Ok(number)
    });
    let number = match entered {
        Ok(number) => number,
        Err(status) => return answer.done(cx, status),
    };
    operations.join(cx, number, Asker::new(from, answer));
    grow(cx, dvm, operations, number, info);
}

/// A process has arrived, or leaders have met.
fn grow(cx: &mut Cx<'_>, dvm: &mut Dvm, operations: &mut Operations, number: u64, info: &[Info]) {
    let seconds = info.find(keys::TIMEOUT).and_then(Value::as_u64).filter(|seconds| *seconds > 0);
    if let Some(seconds) = seconds {
        operations.limit(number, cx.now.after(Duration::from_secs(seconds)));
    }
    try_assembly(cx, dvm, operations, number);
}

/// The number of leaders and the processes that this leader names; followers name none.
fn named_by(
    dvm: &Dvm,
    from: &ProcId,
    procs: &[ProcId],
    info: &[Info],
) -> Result<(Option<u64>, BTreeSet<ProcId>), Status> {
    let Some(leaders) = info.find(keys::GROUP_BOOTSTRAP) else { return Ok((None, BTreeSet::new())) };
    let leaders = leaders.as_u64().filter(|count| *count > 0).ok_or(Status::ERR_BAD_PARAM)?;
    let named: Vec<ProcId> = procs.iter().cloned().chain([from.clone()]).chain(added_by(info)).collect();
    Ok((Some(leaders), each(&Members::of(&named, |nspace| dvm.desc(nspace))?).collect()))
}

fn enter_assembly<'a>(
    cx: &mut Cx<'_>,
    operations: &'a mut Operations,
    name: &str,
    from: &ProcId,
    leaders: Option<u64>,
) -> Result<(u64, &'a mut Assembly), Status> {
    let (number, assembly) = open_assembly(cx, operations, name)?;
    if assembly.came.contains_key(from) {
        return Err(Status::ERR_EXISTS);
    }
    let others = assembly.leaders.or(assembly.met.as_ref().map(|_| 0));
    if leaders.is_some() && others.is_some_and(|others| Some(others) != leaders) {
        return Err(Status::ERR_BAD_PARAM);
    }
    assembly.leaders = assembly.leaders.or(leaders);
    Ok((number, assembly))
}

fn open_assembly<'a>(
    cx: &mut Cx<'_>,
    operations: &'a mut Operations,
    name: &str,
) -> Result<(u64, &'a mut Assembly), Status> {
    let number = assembly_of(operations, name).or_else(|| {
        let assembly = Assembly { name: name.to_owned(), ..Assembly::default() };
        operations.begin(cx, None, None, assembly)
    });
    let number = number.ok_or(Status::ERR_OUT_OF_RESOURCE)?;
    Ok((number, operations.get_mut(number).ok_or(Status::ERR_NOT_FOUND)?))
}

/// Processes have failed, or a job is over.
pub(super) fn try_assemblies(cx: &mut Cx<'_>, dvm: &mut Dvm, operations: &mut Operations) {
    assemblies_by_name(operations).into_iter().for_each(|number| try_assembly(cx, dvm, operations, number));
}

fn try_assembly(cx: &mut Cx<'_>, dvm: &mut Dvm, operations: &mut Operations, number: u64) {
    let Some(assembly) = operations.get::<Assembly>(number) else { return };
    let is_gone = |proc: &ProcId| dvm.jobs.get(&proc.nspace).is_none_or(|job| job.dead.contains(proc.rank.0));
    if assembly.members.iter().chain(assembly.came.keys()).any(is_gone) {
        return end_assembly(cx, operations, number, &Err(Status::GROUP_CONSTRUCT_ABORT));
    }
    if assembly.is_complete() {
        let Assembly { name, members, info, .. } = assembly;
        let (name, members, info) = (name.clone(), members.iter().cloned().collect(), info.clone());
        let outcome = Ok(describe(dvm, &name, members, info));
        return end_assembly(cx, operations, number, &outcome);
    }
    watch_missing(cx, dvm, operations, number);
}

/// Asks daemons to report members that end, however they end, without having arrived.
fn watch_missing(cx: &mut Cx<'_>, dvm: &Dvm, operations: &mut Operations, number: u64) {
    let Some(assembly) = operations.get_mut::<Assembly>(number) else { return };
    let unwatched: Vec<ProcId> =
        assembly.missing().filter(|proc| !assembly.watched.contains(*proc)).cloned().collect();
    assembly.watched.extend(unwatched.iter().cloned());
    let unwatched = Members::of(&unwatched, |nspace| dvm.desc(nspace));
    for Members { nspace, ranks } in unwatched.iter().flat_map(|all| all.iter().cloned()) {
        let Some(to) = dvm.jobs.get(&nspace).map(|job| job.desc.nodes_of(&ranks)) else { continue };
        cx.cast(to, Down::Watch { nspace, ranks });
    }
}

/// These processes have ended. A group that waits for one of them fails, as collectives do.
pub(super) fn assemblies_without(
    cx: &mut Cx<'_>,
    operations: &mut Operations,
    nspace: &Nspace,
    ranks: &Ranges,
) {
    let is_one = |proc: &ProcId| proc.nspace == *nspace && ranks.contains(proc.rank.0);
    let is_in_vain = |assembly: &Assembly| assembly.missing().any(is_one);
    let mut in_vain = assemblies_by_name(operations);
    in_vain.retain(|number| operations.get(*number).is_some_and(is_in_vain));
    for number in in_vain {
        end_assembly(cx, operations, number, &Err(Status::GROUP_CONSTRUCT_ABORT));
    }
}

fn end_assembly(
    cx: &mut Cx<'_>,
    operations: &mut Operations,
    number: u64,
    outcome: &Result<GroupFormed, Status>,
) {
    if let Some(Taken { kind, askers, .. }) = operations.take::<Assembly>(number) {
        kind.answer_all(cx, askers, outcome);
    }
}

fn assembly_of(operations: &Operations, name: &str) -> Option<u64> {
    operations.called::<Assembly>(name).next()
}

fn assemblies_by_name(operations: &Operations) -> Vec<u64> {
    let all = operations.of::<Assembly>();
    all.map(|(number, one)| (&one.name, number)).collect::<BTreeMap<_, _>>().into_values().collect()
}

impl Kind for Assembly {
    fn name(&self) -> &'static str {
        "group construct"
    }

    fn most(&self) -> usize {
        1 << 12
    }

    fn concerns(&self, nspace: &Nspace) -> bool {
        self.members.iter().chain(self.came.keys()).any(|proc| proc.nspace == *nspace)
    }

    fn is_of_askers(&self) -> bool {
        false
    }

    fn calls(&self) -> Vec<String> {
        vec![self.name.clone()]
    }

    fn answer(self: Box<Self>, cx: &mut Cx<'_>, askers: Vec<Asker>, status: Status) -> Vec<Consequence> {
        self.answer_all(cx, askers, &Err(status));
        Vec::new()
    }

    fn explain(&self, _: &[Asker], _: &Jobs) -> Explained {
        Explained {
            subject: self.name.clone(),
            waiting: Some(self.arrived().take(ENOUGH).cloned().collect()),
            missing: self.missing().take(ENOUGH).cloned().collect(),
            unblocked_by: match self.has_all_leaders() {
                true => "the arrival of those who are missing",
                false => "the arrival of all leaders of the group, and of those whom they bring",
            },
        }
    }
}

impl Assembly {
    fn add(&mut self, members: BTreeSet<ProcId>, info: &[Info]) {
        self.members.extend(members);
        self.info.extend_from_slice(info);
    }

    fn is_complete(&self) -> bool {
        self.has_all_leaders() && self.missing().next().is_none()
    }

    fn has_all_leaders(&self) -> bool {
        let leaders = self.came.values().filter(|leads| **leads).count() as u64;
        self.met.is_some() || self.leaders.is_some_and(|expected| leaders >= expected)
    }

    /// The processes that were named and have not arrived.
    fn missing(&self) -> impl Iterator<Item = &ProcId> {
        let met = |member: &ProcId| self.met.as_ref().is_some_and(|met| met.procs.contains(member));
        self.members.iter().filter(move |member| !self.came.contains_key(*member) && !met(member))
    }

    fn arrived(&self) -> impl Iterator<Item = &ProcId> {
        self.came.keys().chain(self.met.iter().flat_map(|met| &met.procs))
    }

    /// Answers every process that has arrived. One that no leader named is no member.
    fn answer_all(self, cx: &mut Cx<'_>, askers: Vec<Asker>, outcome: &Result<GroupFormed, Status>) {
        if let Some(Met { meeting: Completed { op, to }, .. }) = self.met {
            let outcome = outcome.clone().map(Agreed::Group);
            cx.cast(to, Down::Done { op, outcome });
        }
        for Asker { by, answer, .. } in askers {
            let reply = match outcome {
                Ok(_) if !self.members.contains(&by) => Err(Status::ERR_NOT_A_MEMBER),
                outcome => outcome.clone(),
            };
            answer.give(cx, HostReply::Group(reply));
        }
    }
}

/// In the order that a member has listed; members not listed come last.
fn in_order(mut members: Vec<ProcId>, order: Option<&Value>) -> Vec<ProcId> {
    let places: BTreeMap<ProcId, usize> = procs_in(order).zip(0..).collect();
    members.sort_by_key(|member| places.get(member).copied().unwrap_or(usize::MAX));
    members
}

fn added_by(info: &[Info]) -> impl Iterator<Item = ProcId> {
    let lists = info.iter().filter(|one| one.key == keys::GROUP_ADD_MEMBERS);
    lists.flat_map(|list| procs_in(Some(&list.value)))
}
