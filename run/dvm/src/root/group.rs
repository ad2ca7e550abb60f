//! Groups: what members contribute is collected, and the root gives the group its context id.
//!
//! Groups that grow while they form are assembled by the root alone, as no daemon knows whom to wait for: leaders say whom
//! they bring, and either how many of them there are or, in a collective, who; the others only come. Such a group is there
//! when all have come whom a leader has named. Who ends before it has come is waited for no longer: the group is given up.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use phalanx_core::host::GroupFormed;
use phalanx_core::{HostReply, Time, Waiting};
use phalanx_spec::{Status, keys};
use phalanx_wire::{Info, InfoList, Nspace, ProcId, Value};

use crate::msg::{Agreed, Collective, Down, Members, Outcome, each, procs as procs_in};
use crate::ranges::Ranges;
use crate::root::answer::Answer;
use crate::root::collective::Meeting;
use crate::root::timer::Timer;
use crate::root::{Cx, Root};

pub(crate) const ATTRIBUTES: &[&str] = &[
    keys::GROUP_ADD_MEMBERS,
    keys::GROUP_ASSIGN_CONTEXT_ID,
    keys::GROUP_BOOTSTRAP,
    keys::GROUP_FINAL_MEMBERSHIP_ORDER,
    keys::GROUP_FT_COLLECTIVE,
    keys::GROUP_INFO,
    keys::GROUP_INFO_ARRAY,
];
/// What a destruct honours.
pub(crate) const DESTRUCT_ATTRIBUTES: &[&str] = &[keys::GROUP_FT_COLLECTIVE];

/// Groups that grow, by name.
#[derive(Debug, Default)]
pub(super) struct Assemblies {
    open: BTreeMap<String, Assembly>,
    last: u64,
}

impl Assemblies {
    pub(super) fn know(&self, nspace: &Nspace) -> bool {
        let mut procs = self.open.values().flat_map(|one| one.members.iter().chain(one.came.keys()));
        procs.any(|proc| proc.nspace == *nspace)
    }
}

#[derive(Debug)]
struct Assembly {
    number: u64,
    since: Time,
    until: Option<Time>,
    /// How many there are, once one of them has said so.
    leaders: Option<u64>,
    /// Leaders who know each other have come together.
    met: Option<Met>,
    came: BTreeMap<ProcId, Came>,
    /// The leaders who have come, and whom they have named.
    members: BTreeSet<ProcId>,
    /// Their daemons have been asked to tell when they end.
    watched: BTreeSet<ProcId>,
    info: Vec<Info>,
}

#[derive(Debug)]
struct Met {
    meeting: Meeting,
    procs: BTreeSet<ProcId>,
}

#[derive(Debug)]
struct Came {
    answer: Answer,
    leads: bool,
}

impl Root {
    /// `None`: those whom the members add are waited for.
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
        if added.is_empty() {
            return Some(self.describe(procs.into_iter().collect(), infos).map(Agreed::Group));
        }
        let name = collective.id.as_deref().unwrap_or_default();
        let entered = Members::of(&added, |nspace| self.desc(nspace)).and_then(|added| {
            let assembly = self.open_assembly(cx.now, name)?;
            match &assembly.met {
                // It was sent once more, by another way.
                Some(met) if met.meeting.op == meeting.op => return Ok(()),
                Some(_) => return Err(Status::ERR_EXISTS),
                None if assembly.leaders.is_some() => return Err(Status::ERR_BAD_PARAM),
                None => {}
            }
            assembly.add(each(&added).chain(procs.iter().cloned()).collect(), &infos);
            assembly.met = Some(Met { meeting, procs });
            Ok(())
        });
        if let Err(status) = entered {
            return Some(Err(status));
        }
        self.end_assembly_by(cx, name, &infos);
        self.try_assembly(cx, name);
        None
    }

    /// Those who know each other have failed. Whom they would have added waits in vain.
    pub(super) fn give_up_group(&mut self, cx: &mut Cx<'_>, collective: &Collective, status: Status) {
        let name = collective.id.as_deref().unwrap_or_default();
        self.end_assembly(cx, name, &Err(status));
    }

    /// What all members are told of their group.
    fn describe(&mut self, members: Vec<ProcId>, infos: Vec<Info>) -> Result<GroupFormed, Status> {
        let context_id = infos.is_set(keys::GROUP_ASSIGN_CONTEXT_ID).then(|| {
            self.last_context += 1;
            self.last_context
        });
        let contributed = |info: &Info| info.key == keys::GROUP_INFO || info.key == keys::GROUP_INFO_ARRAY;
        let members = in_order(members, infos.find(keys::GROUP_FINAL_MEMBERSHIP_ORDER));
        let info = infos.into_iter().filter(contributed).collect();
        Ok(GroupFormed { members, context_id, info })
    }

    /// A leader or a follower has come.
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
            let assembly = self.enter_assembly(cx.now, name, from, leaders)?;
            assembly.add(members, info);
            Ok((assembly, leaders.is_some()))
        });
        match entered {
            Ok((assembly, leads)) => assembly.came.insert(from.clone(), Came { answer, leads }),
            Err(status) => return answer.done(cx, status),
        };
        self.end_assembly_by(cx, name, info);
        self.try_assembly(cx, name);
    }

    /// How many leaders there are and whom this one has named; followers cannot tell.
    fn named_by(
        &self,
        from: &ProcId,
        procs: &[ProcId],
        info: &[Info],
    ) -> Result<(Option<u64>, BTreeSet<ProcId>), Status> {
        let Some(leaders) = info.find(keys::GROUP_BOOTSTRAP) else { return Ok((None, BTreeSet::new())) };
        let leaders = leaders.as_u64().filter(|count| *count > 0).ok_or(Status::ERR_BAD_PARAM)?;
        let named: Vec<ProcId> = procs.iter().cloned().chain([from.clone()]).chain(added_by(info)).collect();
        Ok((Some(leaders), each(&Members::of(&named, |nspace| self.desc(nspace))?).collect()))
    }

    fn enter_assembly(
        &mut self,
        now: Time,
        name: &str,
        from: &ProcId,
        leaders: Option<u64>,
    ) -> Result<&mut Assembly, Status> {
        let assembly = self.open_assembly(now, name)?;
        if assembly.came.contains_key(from) {
            return Err(Status::ERR_EXISTS);
        }
        let others = assembly.leaders.or(assembly.met.as_ref().map(|_| 0));
        if leaders.is_some() && others.is_some_and(|others| Some(others) != leaders) {
            return Err(Status::ERR_BAD_PARAM);
        }
        assembly.leaders = assembly.leaders.or(leaders);
        Ok(assembly)
    }

    fn open_assembly(&mut self, now: Time, name: &str) -> Result<&mut Assembly, Status> {
        let assemblies = &mut self.assemblies;
        if !assemblies.open.contains_key(name) {
            if assemblies.open.len() >= MOST_ASSEMBLIES {
                return Err(Status::ERR_OUT_OF_RESOURCE);
            }
            assemblies.last += 1;
            assemblies.open.insert(name.to_owned(), Assembly::new(assemblies.last, now));
        }
        assemblies.open.get_mut(name).ok_or(Status::ERR_NOT_FOUND)
    }

    /// The earliest time limit of anybody is that of all.
    fn end_assembly_by(&mut self, cx: &mut Cx<'_>, name: &str, info: &[Info]) {
        let seconds = info.find(keys::TIMEOUT).and_then(Value::as_u64).filter(|seconds| *seconds > 0);
        let Some(at) = seconds.map(|seconds| cx.now.after(Duration::from_secs(seconds))) else { return };
        let Some(assembly) = self.assembly_mut(name) else { return };
        if assembly.until.is_none_or(|until| at < until) {
            assembly.until = Some(at);
            let number = assembly.number;
            self.timers.cancel(|timer| *timer == Timer::Assembly(number));
            self.timers.set(at, Timer::Assembly(number));
        }
    }

    pub(super) fn on_assembly_over(&mut self, cx: &mut Cx<'_>, number: u64) {
        let open = self.assemblies.open.iter();
        let name =
            open.into_iter().find(|(_, assembly)| assembly.number == number).map(|(name, _)| name.clone());
        if let Some(name) = name {
            self.end_assembly(cx, &name, &Err(Status::ERR_TIMEOUT));
        }
    }

    /// Processes have failed, or a job is over.
    pub(super) fn try_assemblies(&mut self, cx: &mut Cx<'_>) {
        let open = self.assemblies.open.keys();
        open.cloned().collect::<Vec<_>>().iter().for_each(|name| self.try_assembly(cx, name));
    }

    fn try_assembly(&mut self, cx: &mut Cx<'_>, name: &str) {
        let Some(assembly) = self.assemblies.open.get(name) else {
            return;
        };
        let is_gone =
            |proc: &ProcId| self.jobs.get(&proc.nspace).is_none_or(|job| job.dead.contains(proc.rank.0));
        if assembly.members.iter().chain(assembly.came.keys()).any(is_gone) {
            return self.end_assembly(cx, name, &Err(Status::GROUP_CONSTRUCT_ABORT));
        }
        if assembly.is_complete() {
            let (members, info) = (assembly.members.iter().cloned().collect(), assembly.info.clone());
            let outcome = self.describe(members, info);
            return self.end_assembly(cx, name, &outcome);
        }
        self.watch_missing(cx, name);
    }

    /// Of a member that ends without having come the root is told, however it ends.
    fn watch_missing(&mut self, cx: &mut Cx<'_>, name: &str) {
        let Some(assembly) = self.assembly_mut(name) else { return };
        let unwatched: Vec<ProcId> =
            assembly.missing().filter(|proc| !assembly.watched.contains(*proc)).cloned().collect();
        assembly.watched.extend(unwatched.iter().cloned());
        let unwatched = Members::of(&unwatched, |nspace| self.desc(nspace));
        for Members { nspace, ranks } in unwatched.iter().flat_map(|all| all.iter().cloned()) {
            let Some(to) = self.jobs.get(&nspace).map(|job| job.desc.nodes_of(&ranks)) else { continue };
            cx.cast(to, Down::Watch { nspace, ranks });
        }
    }

    /// These processes have ended. Where they are waited for, that is in vain, as in collectives.
    pub(super) fn assemblies_without(&mut self, cx: &mut Cx<'_>, nspace: &Nspace, ranks: &Ranges) {
        let is_one = |proc: &ProcId| proc.nspace == *nspace && ranks.contains(proc.rank.0);
        let open = self.assemblies.open.iter();
        let in_vain = open.filter(|(_, assembly)| assembly.missing().any(is_one));
        for name in in_vain.map(|(name, _)| name.clone()).collect::<Vec<_>>() {
            self.end_assembly(cx, &name, &Err(Status::GROUP_CONSTRUCT_ABORT));
        }
    }

    /// Everybody who has come is answered. Who was named by nobody is no member.
    fn end_assembly(&mut self, cx: &mut Cx<'_>, name: &str, outcome: &Result<GroupFormed, Status>) {
        let Some(assembly) = self.assemblies.open.remove(name) else { return };
        self.timers.cancel(|timer| *timer == Timer::Assembly(assembly.number));
        if let Some(Met { meeting: Meeting { op, to }, .. }) = assembly.met {
            let outcome = outcome.clone().map(Agreed::Group);
            cx.cast(to, Down::Done { op, outcome });
        }
        for (proc, came) in assembly.came {
            let reply = match outcome {
                Ok(_) if !assembly.members.contains(&proc) => Err(Status::ERR_NOT_A_MEMBER),
                outcome => outcome.clone(),
            };
            came.answer.give(cx, HostReply::Group(reply));
        }
    }

    fn assembly_mut(&mut self, name: &str) -> Option<&mut Assembly> {
        self.assemblies.open.get_mut(name)
    }

    pub(super) fn explain_assemblies(&self) -> Vec<Waiting> {
        let waiting = |(name, assembly): (&String, &Assembly)| Waiting {
            operation: "group construct",
            subject: name.clone(),
            asked_by: assembly.arrived().cloned().collect(),
            missing: assembly.missing().cloned().collect(),
            since: assembly.since,
            deadline: assembly.until,
            unblocked_by: match assembly.has_all_leaders() {
                true => "the arrival of those who are missing",
                false => "the arrival of all leaders of the group, and of those whom they bring",
            },
        };
        self.assemblies.open.iter().map(waiting).collect()
    }
}

impl Assembly {
    fn new(number: u64, since: Time) -> Assembly {
        Assembly {
            number,
            since,
            until: None,
            leaders: None,
            met: None,
            came: BTreeMap::new(),
            members: BTreeSet::new(),
            watched: BTreeSet::new(),
            info: Vec::new(),
        }
    }

    fn add(&mut self, members: BTreeSet<ProcId>, info: &[Info]) {
        self.members.extend(members);
        self.info.extend_from_slice(info);
    }

    fn is_complete(&self) -> bool {
        self.has_all_leaders() && self.missing().next().is_none()
    }

    fn has_all_leaders(&self) -> bool {
        let leaders = self.came.values().filter(|came| came.leads).count() as u64;
        self.met.is_some() || self.leaders.is_some_and(|expected| leaders >= expected)
    }

    /// Those who were named and have not come.
    fn missing(&self) -> impl Iterator<Item = &ProcId> {
        let met = |member: &ProcId| self.met.as_ref().is_some_and(|met| met.procs.contains(member));
        self.members.iter().filter(move |member| !self.came.contains_key(*member) && !met(member))
    }

    fn arrived(&self) -> impl Iterator<Item = &ProcId> {
        self.came.keys().chain(self.met.iter().flat_map(|met| &met.procs))
    }
}

/// As a member has listed them; who is not listed comes behind.
fn in_order(mut members: Vec<ProcId>, order: Option<&Value>) -> Vec<ProcId> {
    let places: BTreeMap<ProcId, usize> = procs_in(order).zip(0..).collect();
    members.sort_by_key(|member| places.get(member).copied().unwrap_or(usize::MAX));
    members
}

fn added_by(info: &[Info]) -> impl Iterator<Item = ProcId> {
    let lists = info.iter().filter(|one| one.key == keys::GROUP_ADD_MEMBERS);
    lists.flat_map(|list| procs_in(Some(&list.value)))
}

/// Groups that may grow at once.
const MOST_ASSEMBLIES: usize = 1 << 12;
