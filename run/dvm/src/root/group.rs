//! Groups: collects what members contribute, and assigns context ids.
//!
//! Groups that grow while they form are assembled by the root alone, as no daemon knows all members in advance: leaders name
//! the members they bring, and either how many leaders there are or, in a collective, which; other members only arrive. Such a
//! group is complete when all members that a leader named have arrived. It is given up if one of them ends before it arrives.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use phalanx_core::HostReply;
use phalanx_core::host::GroupFormed;
use phalanx_spec::{Status, keys};
use phalanx_wire::{Info, InfoList, Nspace, ProcId, Value};

use crate::msg::{Agreed, Collective, Down, Members, OpId, Outcome, each, procs as procs_in};
use crate::ranges::Ranges;
use crate::root::Root;
use crate::root::answer::{Answer, Asker};
use crate::root::collective::Meeting;
use crate::root::consequence::Consequence;
use crate::root::jobs::Jobs;
use crate::root::kind::{Explained, Kind};
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
    meeting: Meeting,
    procs: BTreeSet<ProcId>,
}

impl Root {
    /// `None`: the processes that the members add have yet to arrive.
    pub(super) fn form_group(
        &mut self,
        cx: &mut Cx<'_>,
        meeting: Meeting,
        collective: &Collective,
        members: Vec<ProcId>,
        infos: Vec<Info>,
    ) -> Option<Outcome> {
        let procs: BTreeSet<ProcId> = members.into_iter().collect();
        let added: Vec<ProcId> = added_by(&infos).collect();
        let name = collective.id.as_deref().unwrap_or_default();
        if added.is_empty() {
            return Some(Ok(Agreed::Group(self.describe(name, procs.into_iter().collect(), infos))));
        }
        let entered = Members::of(&added, |nspace| self.dvm.desc(nspace)).and_then(|added| {
            let (number, assembly) = self.open_assembly(cx, name)?;
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
            Ok(number) => self.grow(cx, number, &infos),
            Err(status) => return Some(Err(status)),
        }
        None
    }

    /// A collective of leaders has failed, so the processes that they would have added fail with it.
    pub(super) fn give_up_group(&mut self, cx: &mut Cx<'_>, collective: &Collective, status: Status) {
        let number = self.assembly_of(collective.id.as_deref().unwrap_or_default());
        number.into_iter().for_each(|number| self.end_assembly(cx, number, &Err(status)));
    }

    /// The same for leaders that have met and wait for the processes that they add.
    pub(super) fn give_up_growing(&mut self, cx: &mut Cx<'_>, collective: &Collective, status: Status) {
        let number = self.assembly_of(collective.id.as_deref().unwrap_or_default());
        let met = number.and_then(|number| self.operations.get::<Assembly>(number)?.met.as_ref());
        if met.is_some_and(|met| matches!(&*met.meeting.op, OpId::Collective(op) if op == collective)) {
            number.into_iter().for_each(|number| self.end_assembly(cx, number, &Err(status)));
        }
    }

    /// The group has formed: what all members learn about it.
    fn describe(&mut self, name: &str, members: Vec<ProcId>, infos: Vec<Info>) -> GroupFormed {
        self.dvm.relations.form(&self.dvm.jobs, name, &members);
        let context_id = infos.is_set(keys::GROUP_ASSIGN_CONTEXT_ID).then(|| {
            self.last_context += 1;
            self.last_context
        });
        let contributed = |info: &Info| info.key == keys::GROUP_INFO || info.key == keys::GROUP_INFO_ARRAY;
        let members = in_order(members, infos.find(keys::GROUP_FINAL_MEMBERSHIP_ORDER));
        let info = infos.into_iter().filter(contributed).collect();
        GroupFormed { members, context_id, info }
    }

    /// A leader or a follower has arrived.
    pub(super) fn assemble(
        &mut self,
        cx: &mut Cx<'_>,
        answer: Answer,
        from: &ProcId,
        name: &str,
        procs: &[ProcId],
        info: &[Info],
    ) {
        let entered = self.named_by(from, procs, info).and_then(|(leaders, members)| {
            let (number, assembly) = self.enter_assembly(cx, name, from, leaders)?;
            assembly.add(members, info);
            assembly.came.insert(from.clone(), leaders.is_some());
            Ok(number)
        });
        let number = match entered {
            Ok(number) => number,
            Err(status) => return answer.done(cx, status),
        };
        self.operations.join(cx, number, Asker::new(from, answer));
        self.grow(cx, number, info);
    }

    /// A process has arrived, or leaders have met.
    fn grow(&mut self, cx: &mut Cx<'_>, number: u64, info: &[Info]) {
        let seconds = info.find(keys::TIMEOUT).and_then(Value::as_u64).filter(|seconds| *seconds > 0);
        if let Some(seconds) = seconds {
            self.operations.limit(number, cx.now.after(Duration::from_secs(seconds)));
        }
        self.try_assembly(cx, number);
    }

    /// The number of leaders and the processes that this leader names; followers name none.
    fn named_by(
        &self,
        from: &ProcId,
        procs: &[ProcId],
        info: &[Info],
    ) -> Result<(Option<u64>, BTreeSet<ProcId>), Status> {
        let Some(leaders) = info.find(keys::GROUP_BOOTSTRAP) else { return Ok((None, BTreeSet::new())) };
        let leaders = leaders.as_u64().filter(|count| *count > 0).ok_or(Status::ERR_BAD_PARAM)?;
        let named: Vec<ProcId> = procs.iter().cloned().chain([from.clone()]).chain(added_by(info)).collect();
        Ok((Some(leaders), each(&Members::of(&named, |nspace| self.dvm.desc(nspace))?).collect()))
    }

    fn enter_assembly(
        &mut self,
        cx: &mut Cx<'_>,
        name: &str,
        from: &ProcId,
        leaders: Option<u64>,
    ) -> Result<(u64, &mut Assembly), Status> {
        let (number, assembly) = self.open_assembly(cx, name)?;
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

    fn open_assembly(&mut self, cx: &mut Cx<'_>, name: &str) -> Result<(u64, &mut Assembly), Status> {
        let number = self.assembly_of(name).or_else(|| {
            let assembly = Assembly { name: name.to_owned(), ..Assembly::default() };
            self.operations.begin(cx, None, None, assembly)
        });
        let number = number.ok_or(Status::ERR_OUT_OF_RESOURCE)?;
        Ok((number, self.operations.get_mut(number).ok_or(Status::ERR_NOT_FOUND)?))
    }

    /// Processes have failed, or a job is over.
    pub(super) fn try_assemblies(&mut self, cx: &mut Cx<'_>) {
        self.assemblies_by_name().into_iter().for_each(|number| self.try_assembly(cx, number));
    }

    fn try_assembly(&mut self, cx: &mut Cx<'_>, number: u64) {
        let Some(assembly) = self.operations.get::<Assembly>(number) else { return };
        let is_gone =
            |proc: &ProcId| self.dvm.jobs.get(&proc.nspace).is_none_or(|job| job.dead.contains(proc.rank.0));
        if assembly.members.iter().chain(assembly.came.keys()).any(is_gone) {
            return self.end_assembly(cx, number, &Err(Status::GROUP_CONSTRUCT_ABORT));
        }
        if assembly.is_complete() {
            let Assembly { name, members, info, .. } = assembly;
            let (name, members, info) = (name.clone(), members.iter().cloned().collect(), info.clone());
            let outcome = Ok(self.describe(&name, members, info));
            return self.end_assembly(cx, number, &outcome);
        }
        self.watch_missing(cx, number);
    }

    /// Asks daemons to report members that end, however they end, without having arrived.
    fn watch_missing(&mut self, cx: &mut Cx<'_>, number: u64) {
        let Some(assembly) = self.operations.get_mut::<Assembly>(number) else { return };
        let unwatched: Vec<ProcId> =
            assembly.missing().filter(|proc| !assembly.watched.contains(*proc)).cloned().collect();
        assembly.watched.extend(unwatched.iter().cloned());
        let unwatched = Members::of(&unwatched, |nspace| self.dvm.desc(nspace));
        for Members { nspace, ranks } in unwatched.iter().flat_map(|all| all.iter().cloned()) {
            let Some(to) = self.dvm.jobs.get(&nspace).map(|job| job.desc.nodes_of(&ranks)) else { continue };
            cx.cast(to, Down::Watch { nspace, ranks });
        }
    }

    /// These processes have ended. A group that waits for one of them fails, as collectives do.
    pub(super) fn assemblies_without(&mut self, cx: &mut Cx<'_>, nspace: &Nspace, ranks: &Ranges) {
        let is_one = |proc: &ProcId| proc.nspace == *nspace && ranks.contains(proc.rank.0);
        let is_in_vain = |assembly: &Assembly| assembly.missing().any(is_one);
        let mut in_vain = self.assemblies_by_name();
        in_vain.retain(|number| self.operations.get(*number).is_some_and(is_in_vain));
        for number in in_vain {
            self.end_assembly(cx, number, &Err(Status::GROUP_CONSTRUCT_ABORT));
        }
    }

    fn end_assembly(&mut self, cx: &mut Cx<'_>, number: u64, outcome: &Result<GroupFormed, Status>) {
        if let Some(Taken { kind, askers, .. }) = self.operations.take::<Assembly>(number) {
            kind.answer_all(cx, askers, outcome);
        }
    }

    fn assembly_of(&self, name: &str) -> Option<u64> {
        self.operations.called::<Assembly>(name).next()
    }

    fn assemblies_by_name(&self) -> Vec<u64> {
        let all = self.operations.of::<Assembly>();
        all.map(|(number, one)| (&one.name, number)).collect::<BTreeMap<_, _>>().into_values().collect()
    }
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
        if let Some(Met { meeting: Meeting { op, to }, .. }) = self.met {
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
