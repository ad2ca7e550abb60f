//! The table of what somebody has asked for and that is not done at once: who has asked, since when, until when, what
//! daemons have still to do, what came out so far, and the right to answer.
//!
//! Verbs differ in what they have daemons do, in what comes back, and in what the reply says ([`Asked`]; each verb's file has its
//! own part). Deadlines, lost daemons, jobs that end meanwhile and explanations are the same for all, and are here.

use std::collections::BTreeMap;
use std::sync::Arc;

use phalanx_core::{HostReply, Time, Waiting};
use phalanx_spec::Status;
use phalanx_wire::{Nspace, ProcId};

use crate::msg::{Down, OpId, Part, Task, TaskId};
use crate::ranges::Ranges;
use crate::root::answer::Answer;
use crate::root::control::Controlling;
use crate::root::publish::Lookup;
use crate::root::spawn::Spawning;
use crate::root::survey::Question;
use crate::root::timer::Timer;
use crate::root::{Cx, Root};

#[derive(Debug, Default)]
pub(super) struct Operations {
    last: u64,
    open: BTreeMap<u64, Operation>,
    /// How many of each verb are open.
    counts: BTreeMap<&'static str, usize>,
}

#[derive(Debug)]
pub(super) struct Operation {
    pub(super) asked: Asked,
    pub(super) by: ProcId,
    /// To all who have asked for the same.
    pub(super) answers: Vec<Answer>,
    since: Time,
    until: Option<Time>,
    /// What daemons have still to do.
    tasks: BTreeMap<u32, TaskId>,
    last_task: u32,
}

/// What was asked for, and what is known of it so far.
#[derive(Debug)]
pub(super) enum Asked {
    Control(Controlling),
    Query(Question),
    Spawn(Spawning),
    Lookup(Lookup),
}

impl Asked {
    fn name(&self) -> &'static str {
        match self {
            Asked::Control(_) => "job control",
            Asked::Query(_) => "query",
            Asked::Spawn(_) => "spawn",
            Asked::Lookup(_) => "lookup",
        }
    }

    /// Operations of this kind that may be open at one time.
    fn most(&self) -> usize {
        match self {
            Asked::Lookup(_) => 1 << 16,
            Asked::Control(_) | Asked::Query(_) => 1 << 10,
            // Each is a job that was placed.
            Asked::Spawn(_) => usize::MAX,
        }
    }

    fn concerns(&self, nspace: &Nspace) -> bool {
        match self {
            Asked::Control(control) => control.concerns(nspace),
            Asked::Query(question) => question.concerns(nspace),
            Asked::Spawn(spawning) => spawning.nspace == *nspace,
            Asked::Lookup(_) => false,
        }
    }
}

impl Operations {
    /// Whether any is about this job, or was asked for by one of its processes.
    pub(super) fn know(&self, nspace: &Nspace) -> bool {
        self.open.values().any(|one| one.by.nspace == *nspace || one.asked.concerns(nspace))
    }

    pub(super) fn get(&self, number: u64) -> Option<&Operation> {
        self.open.get(&number)
    }

    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut Operation> {
        self.open.get_mut(&number)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (u64, &mut Operation)> {
        self.open.iter_mut().map(|(number, operation)| (*number, operation))
    }

    /// Those of whom this is true.
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
    /// Enters what cannot be answered at once. `None`: too many wait already, and whoever has asked is told so.
    pub(super) fn begin_operation(
        &mut self,
        cx: &mut Cx<'_>,
        answer: Answer,
        by: &ProcId,
        until: Option<Time>,
        asked: Asked,
    ) -> Option<u64> {
        let operations = &mut self.operations;
        let count = operations.counts.entry(asked.name()).or_default();
        if *count >= asked.most() {
            answer.done(cx, Status::ERR_OUT_OF_RESOURCE);
            return None;
        }
        *count += 1;
        operations.last += 1;
        let number = operations.last;
        let (by, answers, since) = (by.clone(), vec![answer], cx.now);
        let (tasks, last_task) = (BTreeMap::new(), 0);
        operations.open.insert(number, Operation { asked, by, answers, since, until, tasks, last_task });
        if let Some(until) = until {
            self.timers.set(until, Timer::Operation(number));
        }
        Some(number)
    }

    /// Has daemons do a part of it. [`Root::task_done`] follows, whether they live or not.
    pub(super) fn give_task(&mut self, cx: &mut Cx<'_>, operation: u64, daemons: Ranges, task: Task) -> u32 {
        let Some(open) = self.operations.open.get_mut(&operation) else { return 0 };
        open.last_task += 1;
        let number = open.last_task;
        let id = TaskId { operation, number, daemons: daemons.clone() };
        open.tasks.insert(number, id.clone());
        cx.cast(daemons.clone(), Down::Task { id: id.clone(), task: Arc::new(task) });
        // Those that are asked may be lost before anybody has answered.
        cx.wait_for(OpId::Task(id), daemons);
        number
    }

    /// The living daemons have done it.
    pub(super) fn task_done(&mut self, cx: &mut Cx<'_>, id: &TaskId, missing: &Ranges, part: Part) {
        let Some(open) = self.operations.open.get_mut(&id.operation) else { return };
        if open.tasks.remove(&id.number).is_none() {
            return; // It was waited for no longer.
        }
        match &mut open.asked {
            Asked::Control(control) => {
                let desc = |nspace: &Nspace| self.jobs.get(nspace).map(|job| &*job.desc);
                control.done(id.number, missing, part, desc);
            }
            Asked::Query(question) => question.told(id.number, part),
            Asked::Spawn(_) | Asked::Lookup(_) => {}
        }
        self.try_operation(cx, id.operation);
    }

    /// What this task was to find out or to do is known, or wanted, no longer.
    pub(super) fn drop_tasks(&mut self, cx: &mut Cx<'_>, operation: u64, tasks: &[u32]) {
        let Some(open) = self.operations.open.get_mut(&operation) else { return };
        tasks.iter().for_each(|number| drop(open.tasks.remove(number)));
        self.try_operation(cx, operation);
    }

    /// Answers it if daemons have done all that they were given.
    fn try_operation(&mut self, cx: &mut Cx<'_>, number: u64) {
        if self.operations.get(number).is_some_and(|open| open.tasks.is_empty())
            && let Some(operation) = self.end_operation(number)
        {
            self.answer_operation(cx, operation, Status::SUCCESS);
        }
    }

    /// Takes it out of the table, for whoever answers it.
    #[must_use = "somebody waits for the answer"]
    pub(super) fn end_operation(&mut self, number: u64) -> Option<Operation> {
        let operation = self.operations.take(number)?;
        if let Some(until) = operation.until {
            self.timers.remove(until, Timer::Operation(number));
        }
        if let Asked::Lookup(lookup) = &operation.asked {
            self.store.forget_waiting(number, lookup);
        }
        Some(operation)
    }

    /// Ends those of whom this is true, with this status.
    pub(super) fn fail_operations(
        &mut self,
        cx: &mut Cx<'_>,
        chosen: impl Fn(&Operation) -> bool,
        status: Status,
    ) {
        for number in self.operations.numbers(chosen) {
            if let Some(operation) = self.end_operation(number) {
                self.answer_operation(cx, operation, status);
            }
        }
    }

    /// Nobody wants it any longer than this.
    pub(super) fn on_operation_due(&mut self, cx: &mut Cx<'_>, number: u64) {
        if let Some(Asked::Spawn(spawning)) = self.operations.get(number).map(|one| &one.asked) {
            let nspace = spawning.nspace.clone();
            return self.on_start_limit(cx, &nspace);
        }
        if let Some(operation) = self.end_operation(number) {
            self.answer_operation(cx, operation, Status::ERR_TIMEOUT);
        }
    }

    /// The job is over: nobody of it waits, and of it nothing more is to be done or known.
    pub(super) fn end_operations_of(&mut self, cx: &mut Cx<'_>, nspace: &Nspace) {
        self.fail_operations(cx, |one| one.by.nspace == *nspace, Status::ERR_LOST_CONNECTION);
        self.control_without(cx, nspace, &Ranges::first(u32::MAX));
        self.end_surveys_of(cx, nspace);
    }

    /// Success: daemons have done all that they were given.
    fn answer_operation(&mut self, cx: &mut Cx<'_>, operation: Operation, status: Status) {
        let reply = match operation.asked {
            Asked::Control(control) => return self.answer_control(cx, operation.answers, control, status),
            Asked::Query(question) if status.is_success() => {
                self.answer_question(cx, &operation.by, &question)
            }
            Asked::Query(_) => HostReply::Done(status),
            Asked::Spawn(_) => HostReply::Spawned(Err(status)),
            Asked::Lookup(_) => HostReply::Lookup(Err(status)),
        };
        operation.answers.into_iter().for_each(|answer| answer.give(cx, reply.clone()));
    }

    pub(super) fn explain_operations(&self) -> Vec<Waiting> {
        let waiting = |operation: &Operation| {
            let mut missing = Vec::new();
            let (subject, unblocked_by) = match &operation.asked {
                Asked::Control(control) => {
                    missing = control.missing();
                    (control.subject(), "the daemons of the named processes doing what was asked for")
                }
                Asked::Query(question) => (question.subject(), "the daemons telling what they know"),
                Asked::Spawn(spawning) => {
                    missing = self.not_started(&spawning.nspace);
                    (spawning.nspace.to_string(), "the start of the named processes")
                }
                Asked::Lookup(lookup) => (lookup.subject(), "somebody publishing the keys"),
            };
            Waiting {
                operation: operation.asked.name(),
                subject,
                asked_by: vec![operation.by.clone()],
                missing,
                since: operation.since,
                deadline: operation.until,
                unblocked_by,
            }
        };
        self.operations.open.values().map(waiting).collect()
    }
}
