//! Checkpoints. Programs register how they can be made to take one; tools and processes request one; it is complete when every
//! rank has reported so (`PMIX_JCTRL_CHECKPOINT_COMPLETE`), or its time limit has passed.
//!
//! What a program does for a checkpoint, and where it stores data, is its own affair; here a checkpoint is a name. A job that
//! is preempted is notified first (`PMIX_JCTRL_PREEMPT_ALERT`), takes a checkpoint if it can, and is then ended.

use std::sync::Arc;
use std::time::Duration;

use phalanx_core::Event;
use phalanx_spec::{Range, Rank, Status, keys};
use phalanx_wire::{DataArray, Info, InfoList, Nspace, ProcId, Text, Value};

use crate::msg::{CheckpointCall, Control, ControlRequest, Down, Members, Method, Part, Registration, Task};
use crate::ranges::Ranges;
use crate::root::answer::Asker;
use crate::root::consequence::Consequence;
use crate::root::dvm::Dvm;
use crate::root::jobs::Jobs;
use crate::root::journal::What;
use crate::root::kind::{Explained, Kind, MOST_OPEN};
use crate::root::operations::Operations;
use crate::root::permission;
use crate::root::query::names;
use crate::root::targets::Targets;
use crate::root::turn::Cx;
use crate::signals::SIGTERM;

/// A checkpoint that is being taken.
#[derive(Debug)]
pub(super) struct Checkpointing {
    call: CheckpointCall,
    targets: Targets,
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

    fn targets(&self) -> Option<&Targets> {
        Some(&self.targets)
    }

    /// Daemons have sent their signals, or run commands. Ranks that were signalled have yet to report completion.
    fn task_done(&mut self, task: &Task, missing: &Ranges, part: Part, jobs: &Jobs) {
        let (nspace, is_complete) = match task {
            Task::Control { targets, .. } => (&targets.nspace, false),
            Task::Checkpoint { targets, .. } => (&targets.nspace, true),
            _ => return,
        };
        if let Part::Results(results) = part {
            if is_complete {
                self.targets.take(nspace, &results);
            }
            let failed = results.iter().filter(|(status, _)| !status.is_success());
            failed.for_each(|(status, ranks)| self.targets.set(nspace, ranks, status));
        }
        if let Some(desc) = jobs.get(nspace).map(|job| &job.desc) {
            self.targets.set(nspace, &desc.ranks_on_any(missing), Status::ERR_LOST_CONNECTION);
        }
    }

    fn is_done(&self, _: bool) -> bool {
        self.targets.are_closed()
    }

    /// All targets have a result, or the request ended early; then `status` is the reason.
    fn answer(mut self: Box<Self>, _: &mut Cx<'_>, askers: Vec<Asker>, status: Status) -> Vec<Consequence> {
        self.targets.close(status);
        let status = self.targets.failure().unwrap_or(Status::SUCCESS);
        let taken = self.targets.with(Status::SUCCESS);
        let mut then = Vec::new();
        if status.is_success() {
            let name = &self.call.name;
            let of_job = |members: &Members| Consequence::Checkpointed {
                members: members.clone(),
                name: name.clone(),
            };
            then.extend(taken.iter().map(of_job));
        }
        let actions = match (self.call.preempts, &self.call.then[..]) {
            (true, []) => vec![Control::Terminate { signal: SIGTERM }],
            (_, actions) => actions.to_vec(),
        };
        let is_to_act = status.is_success() && !actions.is_empty();
        then.extend(askers.into_iter().map(|asker| match is_to_act {
            true => {
                let request = ControlRequest::of(actions.clone());
                Consequence::Control { asker, members: taken.clone(), request }
            }
            false => Consequence::Tell { asker, status, results: self.targets.told(status) },
        }));
        then
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

/// Records how a rank can take checkpoints.
pub(super) fn register_ability(dvm: &mut Dvm, from: &ProcId, registration: &Registration) -> Status {
    let Some(job) = dvm.jobs.get_mut(&from.nspace).filter(|job| from.rank.0 < job.desc.size) else {
        return Status::ERR_NOT_FOUND;
    };
    job.abilities.register(from.rank, registration);
    Status::SUCCESS
}

/// Makes the targets take a checkpoint. If one of them cannot, none is asked to.
pub(super) fn checkpoint(
    cx: &mut Cx<'_>,
    dvm: &mut Dvm,
    operations: &mut Operations,
    asker: Asker,
    members: &[Members],
    mut call: CheckpointCall,
) -> Vec<Consequence> {
    let targets = permission::with_the_dead(dvm, members);
    if targets.are_closed() {
        return vec![Consequence::Tell {
            asker,
            status: Status::ERR_NOT_FOUND,
            results: targets.told(Status::ERR_NOT_FOUND),
        }];
    }
    let living = targets.open();
    call.resolve(|signal| {
        let jobs = living.iter().filter_map(|one| Some((dvm.jobs.get(&one.nspace)?, &one.ranks)));
        let mut methods = jobs
            .flat_map(|(job, ranks)| job.abilities.methods.iter().filter(|(_, able)| able.intersects(ranks)));
        methods.any(|(methods, _)| methods.contains(&Method::Signal(signal)))
    });
    let plan = match ways(dvm, &living, &call) {
        Ok(plan) => plan,
        Err(unable) => {
            let told = unable.told(Status::ERR_NOT_SUPPORTED);
            return vec![Consequence::Tell { asker, status: Status::ERR_NOT_SUPPORTED, results: told }];
        }
    };
    let by = asker.by.clone();
    if call.preempts {
        alert(cx, dvm, &by, &living, &call);
    }
    // Commands are ended by their daemons at the limit, and then all of them have a result.
    let by_command = plan.iter().any(|(method, _)| *method == Some(Method::Command));
    let until = Some(cx.now.after(call.limit + if by_command { COMMANDS_END } else { Duration::ZERO }));
    let checkpointing = Checkpointing { call: call.clone(), targets };
    let Some(number) = operations.begin(cx, Some(asker), until, checkpointing) else { return Vec::new() };
    for (method, targets) in plan {
        match method {
            Some(Method::Event(code)) => raise_for(cx, dvm, &by, code, &targets, &call.name),
            Some(Method::Signal(signal)) => {
                let actions = vec![Control::Signal(signal)];
                let request = Arc::new(ControlRequest::of(actions));
                let daemons = dvm.daemons_of(&targets);
                operations.give_task(cx, number, daemons, Task::Control { targets, request });
            }
            Some(Method::Command) => {
                let (name, limit) = (call.name.clone(), call.limit);
                let daemons = dvm.daemons_of(&targets);
                operations.give_task(cx, number, daemons, Task::Checkpoint { targets, name, limit });
            }
            // It is preempted without a checkpoint.
            None => {
                if let Some(one) = operations.get_mut::<Checkpointing>(number) {
                    one.targets.set(&targets.nspace, &targets.ranks, Status::SUCCESS);
                }
            }
        }
    }
    operations.try_done(cx, number)
}

/// The method for each rank; an error lists the ranks that have none.
fn ways(dvm: &Dvm, living: &[Members], call: &CheckpointCall) -> Result<Vec<Way>, Targets> {
    let (mut plan, mut unable) = (Vec::new(), Targets::default());
    for Members { nspace, ranks } in living {
        let Some(job) = dvm.jobs.get(nspace) else { continue };
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
fn alert(cx: &mut Cx<'_>, dvm: &mut Dvm, by: &ProcId, living: &[Members], call: &CheckpointCall) {
    for targets in living {
        let what = What::Preempted { ranks: targets.ranks.clone(), by: by.clone() };
        dvm.append(cx, &targets.nspace, what);
        raise_for(cx, dvm, by, Status::JCTRL_PREEMPT_ALERT, targets, &call.name);
    }
}

/// Raises an event for these ranks alone, and only for handlers that registered for its code.
fn raise_for(cx: &mut Cx<'_>, dvm: &Dvm, by: &ProcId, code: Status, targets: &Members, name: &Text) {
    let Members { nspace, ranks } = targets;
    let Some(desc) = dvm.desc(nspace) else { return };
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

/// A rank reports that its checkpoint is complete, or, with a status, why it failed.
pub(super) fn checkpoint_complete(
    cx: &mut Cx<'_>,
    operations: &mut Operations,
    event: &Event,
) -> Vec<Consequence> {
    let ProcId { nspace, rank } = &event.source;
    let status = match event.info.find(names::STATUS) {
        Some(Value::Status(status)) => *status,
        _ => Status::SUCCESS,
    };
    let is_meant = |one: &Checkpointing| one.is_named_by(event);
    set_results(cx, operations, is_meant, (nspace, &Ranges::single(rank.0), status))
}

/// These ranks have ended and take no checkpoint.
pub(super) fn checkpoint_without(
    cx: &mut Cx<'_>,
    operations: &mut Operations,
    nspace: &Nspace,
    ranks: &Ranges,
) -> Vec<Consequence> {
    let is_meant = |one: &Checkpointing| one.targets.concern(nspace);
    set_results(cx, operations, is_meant, (nspace, ranks, Status::ERR_PROC_ABORTED))
}

fn set_results(
    cx: &mut Cx<'_>,
    operations: &mut Operations,
    is_meant: impl Fn(&Checkpointing) -> bool,
    (nspace, ranks, status): (&Nspace, &Ranges, Status),
) -> Vec<Consequence> {
    let mut touched = Vec::new();
    for (number, one) in operations.of_mut::<Checkpointing>().filter(|(_, one)| is_meant(one)) {
        one.targets.set(nspace, ranks, status);
        touched.push(number);
    }
    touched.into_iter().flat_map(|number| operations.try_done(cx, number)).collect()
}

pub(super) fn checkpointed(cx: &Cx<'_>, dvm: &mut Dvm, Members { nspace, ranks }: &Members, name: &Text) {
    if let Some(job) = dvm.jobs.get_mut(nspace) {
        job.abilities.keep(name, ranks);
    }
    dvm.append(cx, nspace, What::Checkpointed { ranks: ranks.clone(), name: name.clone() });
}

/// How long daemons may take to end late commands and to report.
const COMMANDS_END: Duration = Duration::from_secs(10);
const NO_WAY: &str = "they have registered no way to take a checkpoint";
