//! The table of requests that cannot be answered at once: the requesters, start and deadline, the daemons' outstanding tasks,
//! the results so far, and the right to answer.
//!
//! Verbs differ in what they have daemons do, in what comes back, and in what the reply says ([`Asked`]; each verb's file has its
//! own part). Deadlines, lost daemons, jobs that end meanwhile and explanations are the same for all, and are here.
//!
//! Askers that cancel, end or are lost with their daemon are dismissed in one place.

use std::collections::BTreeMap;
use std::sync::Arc;

use phalanx_core::{Time, Waiting};
use phalanx_spec::Status;
use phalanx_wire::{Nspace, ProcId, Text};

use crate::id::NodeId;
use crate::msg::{Down, OpId, Part, Task, TaskId};
use crate::ranges::Ranges;
use crate::root::Root;
use crate::root::answer::Answer;
use crate::root::asked::Asked;
use crate::root::kind::Explained;
use crate::root::timer::Timer;
use crate::root::turn::{Cx, ENOUGH};

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

impl Operations {
    /// Whether any operation concerns this job, or was requested by one of its processes.
    pub(super) fn know(&self, nspace: &Nspace) -> bool {
        self.open.values().any(|one| {
            one.asked.kind().concerns(nspace) || one.askers.iter().any(|asker| asker.by.nspace == *nspace)
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
        if let Some(count) = self.counts.get_mut(operation.asked.kind().name()) {
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
        let count = operations.counts.entry(asked.kind().name()).or_default();
        if *count >= asked.kind().most() {
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
        open.asked.kind_mut().task_done(id.number, missing, part, &self.jobs);
        self.try_operation(cx, id.operation);
    }

    /// Stops waiting for these tasks, as their results are known or no longer wanted.
    pub(super) fn drop_tasks(&mut self, cx: &mut Cx<'_>, operation: u64, tasks: &[u32]) {
        let Some(open) = self.operations.open.get_mut(&operation) else { return };
        tasks.iter().for_each(|number| drop(open.tasks.remove(number)));
        self.try_operation(cx, operation);
    }

    /// Answers the operation if daemons have finished all tasks, and no rank has something left to do.
    pub(super) fn try_operation(&mut self, cx: &mut Cx<'_>, number: u64) {
        let is_done = |open: &Operation| open.asked.kind().is_done(open.tasks.is_empty());
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
        self.forget_asked(number, &operation.asked);
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
            if !open.askers.is_empty() || open.asked.kind().outlives_askers() {
                let told = open.asked.kind().targets().map(|targets| targets.told(status));
                let failure = open.asked.kind().failure(status);
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

    /// The job is over: dismisses its requesters, and ends what operations still wait for from it.
    pub(super) fn end_operations_of(&mut self, cx: &mut Cx<'_>, nspace: &Nspace) {
        let is_of_job = |asker: &Asker| asker.by.nspace == *nspace;
        self.dismiss(cx, Asked::is_of_askers, is_of_job, Status::ERR_LOST_CONNECTION);
        self.end_stops_of(cx, nspace);
        self.control_without(cx, nspace, &Ranges::first(u32::MAX));
        self.end_surveys_of(cx, nspace);
        self.end_last_look_of(nspace);
    }

    pub(super) fn explain_operations(&self) -> Vec<Waiting> {
        self.operations.open.values().map(|operation| self.explain_operation(operation)).collect()
    }

    fn explain_operation(&self, operation: &Operation) -> Waiting {
        let kind = operation.asked.kind();
        let Explained { subject, waiting, missing, unblocked_by } =
            kind.explain(&operation.askers, &self.jobs);
        let askers = || operation.askers.iter().take(ENOUGH).map(|asker| asker.by.clone()).collect();
        let asked_by = waiting.unwrap_or_else(askers);
        let (since, deadline) = (operation.since, operation.until);
        Waiting {
            operation: kind.name().into(),
            subject,
            asked_by,
            missing,
            since,
            deadline,
            unblocked_by: unblocked_by.into(),
        }
    }
}
