//! Checkpoints. Programs register how they can be made to take one; tools and processes request one; it is complete when every
//! rank has reported so (`PMIX_JCTRL_CHECKPOINT_COMPLETE`), or its time limit has passed.
//!
//! What a program does for a checkpoint, and where it stores data, is its own affair; here a checkpoint is a name. A job that
//! is preempted is notified first (`PMIX_JCTRL_PREEMPT_ALERT`), takes a checkpoint if it can, and is then ended.

use std::collections::BTreeMap;
use std::sync::Arc;

use phalanx_core::{Event, HostReply};
use phalanx_spec::{Range, Rank, Status, keys};
use phalanx_wire::{DataArray, Info, InfoList, Nspace, ProcId, Text, Value};

use crate::msg::{CheckpointCall, Control, ControlRequest, Down, Members, Method, Part, Registration, Task};
use crate::ranges::Ranges;
use crate::root::Root;
use crate::root::asked::Asked;
use crate::root::control::MOST_OPEN;
use crate::root::jobs::Jobs;
use crate::root::journal::What;
use crate::root::kind::{Explained, Kind};
use crate::root::operations::Asker;
use crate::root::query::names;
use crate::root::targets::Targets;
use crate::root::turn::Cx;

/// A checkpoint that is being taken.
#[derive(Debug)]
pub(super) struct Checkpointing {
    call: CheckpointCall,
    pub(super) targets: Targets,
    /// Daemons' tasks: the job of each, and whether the end of the task completes the checkpoint.
    tasks: BTreeMap<u32, (Nspace, bool)>,
}

/// The method by which some ranks take their checkpoint; none: they take none.
type Way = (Option<Method>, Members);

impl Kind for Checkpointing {
    fn name(&self) -> &'static str {
        "checkpoint"
    }

    fn most(&self) -> usize {
        MOST_OPEN
    }

    fn concerns(&self, nspace: &Nspace) -> bool {
        self.targets.concern(nspace)
    }

    fn failure(&self, status: Status) -> HostReply {
        HostReply::Infos(status, self.targets.told(status))
    }

    fn targets(&self) -> Option<&Targets> {
        Some(&self.targets)
    }

    /// Daemons have sent their signals, or run commands. Ranks that were signalled have yet to report completion.
    fn task_done(&mut self, task: u32, missing: &Ranges, part: Part, jobs: &Jobs) {
        let Some((nspace, is_complete)) = self.tasks.remove(&task) else { return };
        if let Part::Results(results) = part {
            if is_complete {
                self.targets.take(&nspace, &results);
            }
            let failed = results.iter().filter(|(status, _)| !status.is_success());
            failed.for_each(|(status, ranks)| self.targets.set(&nspace, ranks, status));
        }
        if let Some(desc) = jobs.get(&nspace).map(|job| &job.desc) {
            self.targets.set(&nspace, &desc.ranks_on_any(missing), Status::ERR_LOST_CONNECTION);
        }
    }

    fn is_done(&self, _: bool) -> bool {
        self.targets.are_closed()
    }

    fn explain(&self, _: &[Asker], _: &Jobs) -> Explained {
        Explained {
            subject: self.call.name.to_string_lossy(),
            missing: self.targets.missing(),
            unblocked_by: "the named processes saying that their checkpoint is complete",
            ..Explained::default()
        }
    }
}

impl Checkpointing {
    fn is_named_by(&self, event: &Event) -> bool {
        let named = event.info.find(keys::JOB_CTRL_CHECKPOINT).and_then(Value::as_text);
        named.is_none_or(|name| *name == self.call.name)
    }
}

impl Root {
    /// Records how a rank can take checkpoints.
    pub(super) fn register_ability(&mut self, from: &ProcId, registration: &Registration) -> Status {
        let Some(job) = self.jobs.get_mut(&from.nspace).filter(|job| from.rank.0 < job.desc.size) else {
            return Status::ERR_NOT_FOUND;
        };
        job.abilities.register(from.rank, registration);
        Status::SUCCESS
    }

    /// Makes the targets take a checkpoint. If one of them cannot, none is asked to.
    pub(super) fn checkpoint(
        &mut self,
        cx: &mut Cx<'_>,
        asker: Asker,
        members: &[Members],
        call: CheckpointCall,
    ) {
        let targets = self.with_the_dead(members);
        if targets.are_closed() {
            return self.tell_asker(cx, asker, (Status::ERR_NOT_FOUND, targets.told(Status::ERR_NOT_FOUND)));
        }
        let living = targets.open();
        let plan = match self.ways(&living, &call) {
            Ok(plan) => plan,
            Err(unable) => {
                let told = unable.told(Status::ERR_NOT_SUPPORTED);
                return self.tell_asker(cx, asker, (Status::ERR_NOT_SUPPORTED, told));
            }
        };
        let by = asker.by.clone();
        if call.preempts {
            self.alert(cx, &by, &living, &call);
        }
        let until = Some(cx.now.after(call.limit));
        let checkpointing = Checkpointing { call: call.clone(), targets, tasks: BTreeMap::new() };
        let asked = Asked::Checkpoint(Box::new(checkpointing));
        let Some(number) = self.begin_operation(cx, Some(asker), until, asked) else { return };
        for (method, targets) in plan {
            match method {
                Some(Method::Event(code)) => self.raise_for(cx, &by, code, &targets, &call.name),
                Some(Method::Signal(signal)) => {
                    let actions = vec![Control::Signal(signal)];
                    let request = Arc::new(ControlRequest { actions, grace: None, cleanup: None });
                    self.checkpoint_task(cx, number, false, targets, |targets| Task::Control {
                        targets,
                        request,
                    });
                }
                Some(Method::Command) => {
                    let (name, limit) = (call.name.clone(), call.limit);
                    let task = |targets| Task::Checkpoint { targets, name, limit };
                    self.checkpoint_task(cx, number, true, targets, task);
                }
                // It is preempted without a checkpoint.
                None => {
                    if let Some(Asked::Checkpoint(one)) =
                        self.operations.get_mut(number).map(|one| &mut one.asked)
                    {
                        one.targets.set(&targets.nspace, &targets.ranks, Status::SUCCESS);
                    }
                }
            }
        }
        self.try_operation(cx, number);
    }

    /// The method for each rank; an error lists the ranks that have none.
    fn ways(&self, living: &[Members], call: &CheckpointCall) -> Result<Vec<Way>, Targets> {
        let (mut plan, mut unable) = (Vec::new(), Targets::default());
        for Members { nspace, ranks } in living {
            let Some(job) = self.jobs.get(nspace) else { continue };
            let of = |ranks: &Ranges| Members { nspace: nspace.clone(), ranks: ranks.clone() };
            let between = job.restarting.and(ranks);
            if !between.is_empty() {
                unable.refuse(of(&between), Status::ERR_NOT_SUPPORTED, Some("they are being started again"));
                continue;
            }
            if call.preempts && job.abilities.preemptible.is_empty() {
                unable.refuse(of(ranks), Status::ERR_NOT_SUPPORTED, Some("their job is not preemptible"));
                continue;
            }
            if let Some(method) = call.methods.first() {
                plan.push((Some(*method), of(ranks)));
                continue;
            }
            let mut rest = ranks.clone();
            for (methods, able) in &job.abilities.methods {
                let here = able.and(ranks);
                if !here.is_empty() {
                    here.iter().for_each(|rank| rest.remove(rank));
                    plan.push((methods.first().copied(), of(&here)));
                }
            }
            match (rest.is_empty(), call.preempts) {
                (true, _) => {}
                _ if job.desc.checkpoint_command.is_some() => plan.push((Some(Method::Command), of(&rest))),
                (false, true) => plan.push((None, of(&rest))),
                (false, false) => {
                    unable.refuse(of(&rest), Status::ERR_NOT_SUPPORTED, Some(NO_WAY));
                }
            }
        }
        if unable.results().next().is_none() { Ok(plan) } else { Err(unable) }
    }

    /// Notifies the ranks that they are about to be preempted.
    fn alert(&mut self, cx: &mut Cx<'_>, by: &ProcId, living: &[Members], call: &CheckpointCall) {
        for targets in living {
            let what = What::Preempted { ranks: targets.ranks.clone(), by: by.clone() };
            self.append(cx, &targets.nspace, what);
            self.raise_for(cx, by, Status::JCTRL_PREEMPT_ALERT, targets, &call.name);
        }
    }

    /// Raises an event for these ranks alone, and only for handlers that registered for its code.
    fn raise_for(&self, cx: &mut Cx<'_>, by: &ProcId, code: Status, targets: &Members, name: &Text) {
        let Members { nspace, ranks } = targets;
        let Some(desc) = self.desc(nspace) else { return };
        let procs: Vec<Value> = match ranks.count() == desc.size {
            true => vec![ProcId::all(nspace).into()],
            false => ranks.iter().map(|rank| ProcId::new(nspace, Rank(rank)).into()).collect(),
        };
        let range = DataArray { of: phalanx_spec::DataType::PROC, items: procs };
        let info = vec![
            Info::new(keys::EVENT_CUSTOM_RANGE, range),
            Info::new(keys::EVENT_NON_DEFAULT, true),
            Info::new(keys::JOB_CTRL_CHECKPOINT, name.clone()),
        ];
        let event = Event { code, source: by.clone(), range: Range::CUSTOM, info };
        cx.cast(desc.nodes_of(ranks), Down::Event { event: Arc::new(event), except: None });
    }

    fn checkpoint_task(
        &mut self,
        cx: &mut Cx<'_>,
        number: u64,
        is_complete: bool,
        targets: Members,
        task: impl FnOnce(Members) -> Task,
    ) {
        let nspace = targets.nspace.clone();
        let daemons = self.desc(&nspace).map(|desc| desc.nodes_of(&targets.ranks)).unwrap_or_default();
        let task = self.give_task(cx, number, daemons, task(targets));
        if let Some(Asked::Checkpoint(one)) = self.operations.get_mut(number).map(|one| &mut one.asked) {
            one.tasks.insert(task, (nspace, is_complete));
        }
    }

    /// A rank reports that its checkpoint is complete, or, with a status, why it failed.
    pub(super) fn checkpoint_complete(&mut self, cx: &mut Cx<'_>, event: &Event) {
        let ProcId { nspace, rank } = &event.source;
        let status = match event.info.find(names::STATUS) {
            Some(Value::Status(status)) => *status,
            _ => Status::SUCCESS,
        };
        let mut touched = Vec::new();
        for (number, operation) in self.operations.iter_mut() {
            if let Asked::Checkpoint(one) = &mut operation.asked
                && one.is_named_by(event)
            {
                one.targets.set(nspace, &Ranges::single(rank.0), status);
                touched.push(number);
            }
        }
        touched.into_iter().for_each(|number| self.try_operation(cx, number));
    }

    /// These ranks have ended and take no checkpoint.
    pub(super) fn checkpoint_without(&mut self, cx: &mut Cx<'_>, nspace: &Nspace, ranks: &Ranges) {
        let mut touched = Vec::new();
        for (number, operation) in self.operations.iter_mut() {
            if let Asked::Checkpoint(one) = &mut operation.asked
                && one.targets.concern(nspace)
            {
                one.targets.set(nspace, ranks, Status::ERR_PROC_ABORTED);
                touched.push(number);
            }
        }
        touched.into_iter().for_each(|number| self.try_operation(cx, number));
    }

    /// All targets have a result, or the request ended early; then `status` is the reason.
    pub(super) fn answer_checkpoint(
        &mut self,
        cx: &mut Cx<'_>,
        askers: Vec<Asker>,
        mut one: Checkpointing,
        status: Status,
    ) {
        one.targets.close(status);
        let status = one.targets.failure().unwrap_or(Status::SUCCESS);
        let taken = one.targets.with(Status::SUCCESS);
        let name = &one.call.name;
        if status.is_success() {
            for Members { nspace, ranks } in &taken {
                if let Some(job) = self.jobs.get_mut(nspace) {
                    job.abilities.keep(name, ranks);
                }
                let what = What::Checkpointed { ranks: ranks.clone(), name: name.clone() };
                self.append(cx, nspace, what);
            }
        }
        let then = match (one.call.preempts, &one.call.then[..]) {
            (true, []) => vec![Control::Terminate { signal: crate::signals::SIGTERM }],
            (_, then) => then.to_vec(),
        };
        for asker in askers {
            if status.is_success() && !then.is_empty() {
                let request = ControlRequest { actions: then.clone(), grace: None, cleanup: None };
                self.control(cx, asker, &taken, request);
            } else {
                self.tell_asker(cx, asker, (status, one.targets.told(status)));
            }
        }
    }
}

const NO_WAY: &str = "they have registered no way to take a checkpoint";
