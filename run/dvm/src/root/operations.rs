//! The table of requests that cannot be answered at once: the requesters, start and deadline, the daemons' outstanding tasks,
//! the results so far, and the right to answer.
//!
//! Verbs differ in what they have daemons do, in what comes back, and in what the reply says ([`Asked`]; each verb's file has its
//! own part). Deadlines, lost daemons, jobs that end meanwhile and explanations are the same for all, and are here.
//!
//! Askers that cancel, end or are lost with their daemon are dismissed in one place.

use std::collections::BTreeMap;
use std::sync::Arc;

use phalanx_core::{HostReply, Time, Waiting};
use phalanx_spec::Status;
use phalanx_wire::{Nspace, ProcId, Text};

use crate::id::NodeId;
use crate::job::JobRequest;
use crate::msg::{Down, OpId, Part, Task, TaskId};
use crate::ranges::Ranges;
use crate::root::answer::Answer;
use crate::root::checkpoint::Checkpointing;
use crate::root::control::Controlling;
use crate::root::debug::Stop;
use crate::root::group::Assembly;
use crate::root::last_look::LastLook;
use crate::root::provision::Provisioning;
use crate::root::publish::Lookup;
use crate::root::restart::Restarting;
use crate::root::spawn::Spawning;
use crate::root::survey::Question;
use crate::root::targets::Targets;
use crate::root::timer::Timer;
use crate::root::{Cx, ENOUGH, Root};

#[derive(Debug, Default)]
pub(super) struct Operations {
    last: u64,
    open: BTreeMap<u64, Operation>,
    /// How many operations of each verb are open.
    counts: BTreeMap<&'static str, usize>,
}

#[derive(Debug)]
pub(super) struct Operation {
    pub(super) asked: Asked,
    /// All requesters of the same thing, or all participants. A stop for a debugger has none.
    pub(super) askers: Vec<Asker>,
    since: Time,
    until: Option<Time>,
    /// Outstanding tasks of daemons.
    tasks: BTreeMap<u32, TaskId>,
    last_task: u32,
}

impl Operation {
    pub(super) fn since(&self) -> Time {
        self.since
    }

    pub(super) fn until(&self) -> Option<Time> {
        self.until
    }
}

/// A requester that waits for an answer.
#[derive(Debug)]
pub(super) struct Asker {
    pub(super) by: ProcId,
    /// The requester's name for the request.
    pub(super) id: Option<Text>,
    pub(super) answer: Answer,
}

impl Asker {
    pub(super) fn new(by: &ProcId, answer: Answer) -> Asker {
        Asker { by: by.clone(), id: None, answer }
    }
}

/// The request, and the results so far.
#[derive(Debug)]
pub(super) enum Asked {
    Control(Controlling),
    Checkpoint(Box<Checkpointing>),
    Restart(Box<Restarting>),
    Provision(Provisioning),
    Query(Question),
    Spawn(Spawning),
    /// A spawn that waits for the daemons to come up.
    Postponed(Box<JobRequest>),
    Lookup(Lookup),
    /// Ranks are to wait for a debugger.
    Stop(Stop),
    /// A group that grows while it forms.
    Group(Assembly),
    /// What processes wait for, as the end of their job has been decided.
    LastLook(LastLook),
}

impl Asked {
    fn name(&self) -> &'static str {
        match self {
            Asked::Control(_) => "job control",
            Asked::Checkpoint(_) => "checkpoint",
            Asked::Restart(_) => "restart",
            Asked::Provision(_) => "provision",
            Asked::Query(_) => "query",
            Asked::Spawn(_) | Asked::Postponed(_) => "spawn",
            Asked::Lookup(_) => "lookup",
            Asked::Stop(_) => "stop for a debugger",
            Asked::Group(_) => "group construct",
            Asked::LastLook(_) => "last look",
        }
    }

    /// Whether each requester waits for itself. A group is one operation for all participants; nothing waits for a stop or a
    /// last look.
    pub(super) fn is_of_askers(&self) -> bool {
        !matches!(self, Asked::Stop(_) | Asked::Group(_) | Asked::LastLook(_))
    }

    /// The reply to a requester if its operation ends early.
    fn failure(&self, status: Status) -> HostReply {
        match self {
            Asked::Control(_) | Asked::Checkpoint(_) | Asked::Restart(_) => {
                HostReply::Infos(status, self.targets().map_or_else(Vec::new, |t| t.told(status)))
            }
            Asked::Spawn(_) | Asked::Postponed(_) => HostReply::Spawned(Err(status)),
            Asked::Lookup(_) => HostReply::Lookup(Err(status)),
            Asked::Group(_) => HostReply::Group(Err(status)),
            Asked::Provision(_) | Asked::Query(_) | Asked::Stop(_) | Asked::LastLook(_) => {
                HostReply::Done(status)
            }
        }
    }

    /// The targets of a request of job control.
    pub(super) fn targets(&self) -> Option<&Targets> {
        match self {
            Asked::Control(control) => Some(&control.targets),
            Asked::Checkpoint(one) => Some(&one.targets),
            Asked::Restart(one) => Some(&one.targets),
            _ => None,
        }
    }

    /// The most operations of this kind that may be open at one time.
    fn most(&self) -> usize {
        match self {
            Asked::Lookup(_) => 1 << 16,
            Asked::Control(_)
            | Asked::Checkpoint(_)
            | Asked::Restart(_)
            | Asked::Provision(_)
            | Asked::Query(_)
            | Asked::Postponed(_) => 1 << 10,
            Asked::Group(_) => 1 << 12,
            // Bounded by the number of jobs that were placed.
            Asked::Spawn(_) | Asked::Stop(_) | Asked::LastLook(_) => usize::MAX,
        }
    }

    fn concerns(&self, nspace: &Nspace) -> bool {
        match self {
            Asked::Control(_) | Asked::Checkpoint(_) | Asked::Restart(_) => {
                self.targets().is_some_and(|targets| targets.concern(nspace))
            }
            Asked::Query(question) => question.concerns(nspace),
            Asked::Spawn(spawning) => spawning.nspace == *nspace,
            Asked::Lookup(_) | Asked::Postponed(_) | Asked::Provision(_) => false,
            Asked::Stop(stop) => stop.nspace == *nspace,
            Asked::Group(assembly) => assembly.concerns(nspace),
            Asked::LastLook(look) => look.nspace == *nspace,
        }
    }
}

impl Operations {
    /// Whether any operation concerns this job, or was requested by one of its processes.
    pub(super) fn know(&self, nspace: &Nspace) -> bool {
        self.open.values().any(|one| {
            one.asked.concerns(nspace) || one.askers.iter().any(|asker| asker.by.nspace == *nspace)
        })
    }

    pub(super) fn get(&self, number: u64) -> Option<&Operation> {
        self.open.get(&number)
    }

    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut Operation> {
        self.open.get_mut(&number)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Operation> {
        self.open.values()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (u64, &mut Operation)> {
        self.open.iter_mut().map(|(number, operation)| (*number, operation))
    }

    /// The numbers of the chosen operations.
    pub(super) fn numbers(&self, chosen: impl Fn(&Operation) -> bool) -> Vec<u64> {
        self.open.iter().filter(|(_, one)| chosen(one)).map(|(number, _)| *number).collect()
    }

    fn take(&mut self, number: u64) -> Option<Operation> {
        let operation = self.open.remove(&number)?;
        if let Some(count) = self.counts.get_mut(operation.asked.name()) {
            *count -= 1;
        }
        Some(operation)
    }
}

impl Root {
    /// Enters a request that cannot be answered at once. `None`: too many are waiting; the requester has been answered with an
    /// error.
    pub(super) fn begin_operation(
        &mut self,
        cx: &mut Cx<'_>,
        asker: Option<Asker>,
        until: Option<Time>,
        asked: Asked,
    ) -> Option<u64> {
        let operations = &mut self.operations;
        let count = operations.counts.entry(asked.name()).or_default();
        if *count >= asked.most() {
            asker.into_iter().for_each(|asker| asker.answer.done(cx, Status::ERR_OUT_OF_RESOURCE));
            return None;
        }
        *count += 1;
        operations.last += 1;
        let number = operations.last;
        let (askers, since) = (asker.into_iter().collect(), cx.now);
        let (tasks, last_task) = (BTreeMap::new(), 0);
        operations.open.insert(number, Operation { asked, askers, since, until, tasks, last_task });
        if let Some(until) = until {
            self.timers.set(until, Timer::Operation(number));
        }
        Some(number)
    }

    /// Sets a time limit; the earliest limit of any participant applies to all.
    pub(super) fn limit_operation(&mut self, number: u64, at: Time) {
        let Some(open) = self.operations.open.get_mut(&number) else { return };
        if open.until.is_none_or(|until| at < until) {
            let before = open.until.replace(at);
            before.into_iter().for_each(|until| self.timers.remove(until, Timer::Operation(number)));
            self.timers.set(at, Timer::Operation(number));
        }
    }

    /// Gives daemons a task of the operation. [`Root::task_done`] follows, even if they are lost.
    pub(super) fn give_task(&mut self, cx: &mut Cx<'_>, operation: u64, daemons: Ranges, task: Task) -> u32 {
        let Some(open) = self.operations.open.get_mut(&operation) else { return 0 };
        open.last_task += 1;
        let number = open.last_task;
        let id = TaskId { operation, number, daemons: daemons.clone() };
        open.tasks.insert(number, id.clone());
        cx.cast(daemons.clone(), Down::Task { id: id.clone(), task: Arc::new(task) });
        // All of these daemons may be lost before any has answered.
        cx.wait_for(OpId::Task(id), daemons);
        number
    }

    /// The living daemons have done a task.
    pub(super) fn task_done(&mut self, cx: &mut Cx<'_>, id: &TaskId, missing: &Ranges, part: Part) {
        let Some(open) = self.operations.open.get_mut(&id.operation) else { return };
        if open.tasks.remove(&id.number).is_none() {
            return; // Dropped meanwhile.
        }
        match &mut open.asked {
            Asked::Control(control) => {
                let desc = |nspace: &Nspace| self.jobs.get(nspace).map(|job| &*job.desc);
                control.done(id.number, missing, part, desc);
            }
            Asked::Checkpoint(one) => {
                let desc = |nspace: &Nspace| self.jobs.get(nspace).map(|job| &*job.desc);
                one.done(id.number, missing, &part, desc);
            }
            Asked::Restart(one) => {
                let desc = |nspace: &Nspace| self.jobs.get(nspace).map(|job| &*job.desc);
                one.done(id.number, missing, part, desc);
            }
            Asked::Provision(one) => one.done(part),
            Asked::Query(question) => question.told(id.number, part),
            Asked::LastLook(look) => look.told(part),
            Asked::Spawn(_) | Asked::Postponed(_) | Asked::Lookup(_) | Asked::Stop(_) | Asked::Group(_) => {}
        }
        self.try_operation(cx, id.operation);
    }

    /// Stops waiting for these tasks, as their results are known or no longer wanted.
    pub(super) fn drop_tasks(&mut self, cx: &mut Cx<'_>, operation: u64, tasks: &[u32]) {
        let Some(open) = self.operations.open.get_mut(&operation) else { return };
        tasks.iter().for_each(|number| drop(open.tasks.remove(number)));
        self.try_operation(cx, operation);
    }

    /// Takes out the spawns that wait for the daemons to come up, the oldest first.
    #[must_use = "somebody waits for the answers"]
    pub(super) fn take_postponed(&mut self) -> Vec<(Operation, Box<JobRequest>)> {
        let numbers = self.operations.numbers(|one| matches!(one.asked, Asked::Postponed(_)));
        let jobs = numbers.into_iter().filter_map(|number| {
            let operation = self.end_operation(number)?;
            let Asked::Postponed(job) = &operation.asked else { return None };
            let job = job.clone();
            Some((operation, job))
        });
        jobs.collect()
    }

    /// Answers the operation if daemons have finished all tasks, and no rank has something left to do.
    pub(super) fn try_operation(&mut self, cx: &mut Cx<'_>, number: u64) {
        let is_done = |open: &Operation| match &open.asked {
            Asked::Checkpoint(one) => one.targets.are_closed(),
            _ => open.tasks.is_empty(),
        };
        if self.operations.get(number).is_some_and(is_done)
            && self.go_on_restarting(cx, number)
            && let Some(operation) = self.end_operation(number)
        {
            self.answer_operation(cx, operation, Status::SUCCESS);
        }
    }

    /// Takes the operation out of the table; the caller answers it.
    #[must_use = "somebody waits for the answer"]
    pub(super) fn end_operation(&mut self, number: u64) -> Option<Operation> {
        let operation = self.operations.take(number)?;
        if let Some(until) = operation.until {
            self.timers.remove(until, Timer::Operation(number));
        }
        match &operation.asked {
            Asked::Lookup(lookup) => self.store.forget_waiting(number, lookup),
            Asked::Group(assembly) => self.assemblies.forget(assembly),
            Asked::Stop(stop) => self.forget_stop(number, &stop.nspace),
            Asked::Control(_)
            | Asked::Checkpoint(_)
            | Asked::Restart(_)
            | Asked::Provision(_)
            | Asked::Query(_)
            | Asked::Spawn(_)
            | Asked::Postponed(_)
            | Asked::LastLook(_) => {}
        }
        Some(operation)
    }

    /// Dismisses the matching requesters of the chosen operations with `status`. Other requesters of the same operation go on
    /// waiting; one without any is over, whatever daemons still do for it. Returns whether a requester matched.
    pub(super) fn dismiss(
        &mut self,
        cx: &mut Cx<'_>,
        chosen: impl Fn(&Asked) -> bool,
        is_gone: impl Fn(&Asker) -> bool,
        status: Status,
    ) -> bool {
        let numbers = self.operations.numbers(|one| chosen(&one.asked) && one.askers.iter().any(&is_gone));
        for number in &numbers {
            let Some(open) = self.operations.get_mut(*number) else { continue };
            let gone: Vec<Asker> = open.askers.extract_if(.., |asker| is_gone(asker)).collect();
            // A restart that has begun must run to its end.
            if !open.askers.is_empty() || matches!(open.asked, Asked::Restart(_)) {
                let told = open.asked.targets().map(|targets| targets.told(status));
                let failure = open.asked.failure(status);
                for asker in gone {
                    match &told {
                        Some(told) => self.tell_asker(cx, asker, (status, told.clone())),
                        None => asker.answer.give(cx, failure.clone()),
                    }
                }
            } else if let Some(operation) = self.end_operation(*number) {
                self.answer_operation(cx, Operation { askers: gone, ..operation }, status);
            }
        }
        !numbers.is_empty()
    }

    /// A daemon is lost, and with it the requesters that it served.
    pub(super) fn dismiss_askers_on(&mut self, cx: &mut Cx<'_>, node: NodeId) {
        let is_there = |asker: &Asker| asker.answer.origin() == node;
        self.dismiss(cx, Asked::is_of_askers, is_there, Status::ERR_LOST_CONNECTION);
    }

    /// The deadline of an operation has passed.
    pub(super) fn on_operation_due(&mut self, cx: &mut Cx<'_>, number: u64) {
        if let Some(Asked::Spawn(spawning)) = self.operations.get(number).map(|one| &one.asked) {
            let nspace = spawning.nspace.clone();
            return self.on_start_limit(cx, &nspace);
        }
        if let Some(operation) = self.end_operation(number) {
            self.answer_operation(cx, operation, Status::ERR_TIMEOUT);
        }
    }

    /// The job is over: dismisses its requesters, and ends what operations still wait for from it.
    pub(super) fn end_operations_of(&mut self, cx: &mut Cx<'_>, nspace: &Nspace) {
        let is_of_job = |asker: &Asker| asker.by.nspace == *nspace;
        self.dismiss(cx, Asked::is_of_askers, is_of_job, Status::ERR_LOST_CONNECTION);
        self.end_stops_of(cx, nspace);
        self.control_without(cx, nspace, &Ranges::first(u32::MAX));
        self.end_surveys_of(cx, nspace);
        self.end_last_look_of(nspace);
    }

    /// Answers the requesters. Success: daemons have finished all tasks.
    pub(super) fn answer_operation(&mut self, cx: &mut Cx<'_>, operation: Operation, status: Status) {
        let Operation { asked, askers, .. } = operation;
        match asked {
            Asked::Control(control) => self.answer_control(cx, askers, control, status),
            Asked::Checkpoint(one) => self.answer_checkpoint(cx, askers, *one, status),
            Asked::Restart(one) => self.answer_restart(cx, askers, *one, status),
            Asked::Provision(one) => self.answer_provision(cx, askers, &one, status),
            Asked::Group(assembly) => self.answer_group(cx, askers, assembly, &Err(status)),
            Asked::Query(question) if status.is_success() => {
                for Asker { by, answer, .. } in askers {
                    let reply = self.answer_question(cx, &by, &question);
                    answer.give(cx, reply);
                }
            }
            Asked::LastLook(look) => self.note_last_look(cx, look),
            asked => {
                askers.into_iter().for_each(|asker| asker.answer.give(cx, asked.failure(status)));
            }
        }
    }

    pub(super) fn explain_operations(&self) -> Vec<Waiting> {
        self.operations.open.values().map(|operation| self.explain_operation(operation)).collect()
    }

    fn explain_operation(&self, operation: &Operation) -> Waiting {
        let mut asked_by: Vec<ProcId> =
            operation.askers.iter().take(ENOUGH).map(|asker| asker.by.clone()).collect();
        let mut missing = Vec::new();
        let (subject, unblocked_by) = match &operation.asked {
            Asked::Control(control) => {
                missing = control.targets.missing();
                let ids: Vec<_> = operation.askers.iter().filter_map(|asker| asker.id.as_ref()).collect();
                let ids = ids.first().map(|id| format!("{}: ", id.to_string_lossy())).unwrap_or_default();
                let until = "the daemons of the named processes doing what was asked for";
                (ids + &control.subject(), until)
            }
            Asked::Checkpoint(one) => {
                missing = one.targets.missing();
                (one.subject(), "the named processes saying that their checkpoint is complete")
            }
            Asked::Restart(one) => {
                missing = one.targets.missing();
                (one.subject(), one.unblocked_by())
            }
            Asked::Provision(one) => {
                (one.nodes.to_string_lossy(), "the site's program that provisions nodes")
            }
            Asked::Query(question) => (question.subject(), "the daemons telling what they know"),
            Asked::Spawn(spawning) => {
                missing = self.not_started(&spawning.nspace);
                (spawning.nspace.to_string(), "the start of the named processes")
            }
            Asked::Postponed(job) => (programs(job), "the daemons of the DVM being up"),
            Asked::Lookup(lookup) => (lookup.subject(), "somebody publishing the keys"),
            Asked::Stop(stop) => {
                asked_by = self.desc(&stop.nspace).into_iter().flat_map(|desc| desc.parent.clone()).collect();
                missing = stop.missing();
                (stop.subject(), stop.unblocked_by())
            }
            Asked::Group(assembly) => {
                asked_by = assembly.arrived().take(ENOUGH).cloned().collect();
                missing = assembly.missing().take(ENOUGH).cloned().collect();
                (assembly.name.clone(), assembly.unblocked_by())
            }
            Asked::LastLook(look) => (look.nspace.to_string(), "the daemons telling what they have seen"),
        };
        let (since, deadline) = (operation.since, operation.until);
        Waiting {
            operation: operation.asked.name().into(),
            subject,
            asked_by,
            missing,
            since,
            deadline,
            unblocked_by: unblocked_by.into(),
        }
    }
}

/// The programs of a job.
fn programs(job: &JobRequest) -> String {
    let names = job.apps.iter().filter_map(|app| app.argv.first()).map(Text::to_string_lossy);
    names.collect::<Vec<_>>().join(" ")
}
