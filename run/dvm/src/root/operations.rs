//! The table of requests that cannot be answered at once: the requesters, start and deadline, the daemons' outstanding tasks,
//! the results so far, and the right to answer.
//!
//! Verbs differ in what they have daemons do, in what comes back, and in what the reply says ([`Kind`]; each verb's file has its
//! own). Deadlines, lost daemons, jobs that end meanwhile and explanations are the same for all, and are here.
//!
//! Askers that cancel, end or are lost with their daemon are dismissed in one place.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use phalanx_core::{Time, Waiting};
use phalanx_spec::Status;
use phalanx_wire::Nspace;

use crate::msg::{Down, OpId, Part, Task, TaskId};
use crate::ranges::Ranges;
use crate::root::answer::Asker;
use crate::root::consequence::Consequence;
use crate::root::jobs::Jobs;
use crate::root::kind::{Explained, Kind};
use crate::root::turn::{Cx, ENOUGH};
use crate::timers::Timers;

#[derive(Debug, Default)]
pub(super) struct Operations {
    last: u64,
    open: BTreeMap<u64, Operation>,
    /// How many operations of each verb are open.
    counts: BTreeMap<&'static str, usize>,
    /// The operations that are looked for by a name.
    called: BTreeMap<String, BTreeSet<u64>>,
    deadlines: Timers<u64>,
}

#[derive(Debug)]
pub(super) struct Operation {
    kind: Box<dyn Kind>,
    /// All requesters of the same thing, or all participants. A stop for a debugger has none.
    askers: Vec<Asker>,
    since: Time,
    until: Option<Time>,
    /// Outstanding tasks of daemons.
    tasks: BTreeMap<u32, Arc<Task>>,
    last_task: u32,
}

/// An operation that was taken out of the table.
#[derive(Debug)]
pub(super) struct Taken<K> {
    pub(super) kind: K,
    pub(super) askers: Vec<Asker>,
    pub(super) since: Time,
    pub(super) until: Option<Time>,
}

impl Operation {
    pub(super) fn kind(&self) -> &dyn Kind {
        &*self.kind
    }

    pub(super) fn askers(&self) -> &[Asker] {
        &self.askers
    }

    pub(super) fn since(&self) -> Time {
        self.since
    }

    fn is_done(&self) -> bool {
        self.kind.is_done(self.tasks.is_empty())
    }

    fn explain(&self, jobs: &Jobs) -> Waiting {
        let Explained { subject, waiting, missing, unblocked_by } = self.kind.explain(&self.askers, jobs);
        let askers = || self.askers.iter().take(ENOUGH).map(|asker| asker.by.clone()).collect();
        Waiting {
            operation: self.kind.name().into(),
            subject,
            asked_by: waiting.unwrap_or_else(askers),
            missing,
            since: self.since,
            deadline: self.until,
            unblocked_by: unblocked_by.into(),
        }
    }
}

impl Operations {
    /// Enters a request that cannot be answered at once. `None`: too many are waiting; the requester has been answered with an
    /// error.
    pub(super) fn begin(
        &mut self,
        cx: &mut Cx<'_>,
        asker: Option<Asker>,
        until: Option<Time>,
        kind: impl Kind,
    ) -> Option<u64> {
        let count = self.counts.entry(kind.name()).or_default();
        if *count >= kind.most() {
            asker.into_iter().for_each(|asker| asker.answer.done(cx, Status::ERR_OUT_OF_RESOURCE));
            return None;
        }
        *count += 1;
        self.last += 1;
        let number = self.last;
        for name in kind.calls() {
            self.called.entry(name).or_default().insert(number);
        }
        let (kind, askers, since) = (Box::new(kind), asker.into_iter().collect(), cx.now);
        let (tasks, last_task) = (BTreeMap::new(), 0);
        self.open.insert(number, Operation { kind, askers, since, until, tasks, last_task });
        until.into_iter().for_each(|until| self.deadlines.set(until, number));
        Some(number)
    }

    /// Another requester of the same thing, or another participant.
    pub(super) fn join(&mut self, cx: &mut Cx<'_>, number: u64, asker: Asker) {
        match self.open.get_mut(&number) {
            Some(open) => open.askers.push(asker),
            None => asker.answer.done(cx, Status::ERROR),
        }
    }

    /// Sets a time limit; the earliest limit of any participant applies to all.
    pub(super) fn limit(&mut self, number: u64, at: Time) {
        if self.open.get(&number).is_some_and(|open| open.until.is_none_or(|until| at < until)) {
            self.move_limit(number, at);
        }
    }

    /// Sets another time limit.
    pub(super) fn move_limit(&mut self, number: u64, at: Time) {
        let Some(open) = self.open.get_mut(&number) else { return };
        let before = open.until.replace(at);
        before.into_iter().for_each(|until| self.deadlines.remove(until, number));
        self.deadlines.set(at, number);
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        self.deadlines.next()
    }

    /// The first operation whose deadline has passed.
    pub(super) fn pop_due(&mut self, now: Time) -> Option<u64> {
        self.deadlines.pop_due(now)
    }

    /// Whether any operation concerns this job, or was requested by one of its processes.
    pub(super) fn know(&self, nspace: &Nspace) -> bool {
        self.open
            .values()
            .any(|one| one.kind.concerns(nspace) || one.askers.iter().any(|asker| asker.by.nspace == *nspace))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Operation> {
        self.open.values()
    }

    pub(super) fn get<K: Kind>(&self, number: u64) -> Option<&K> {
        (&*self.open.get(&number)?.kind as &dyn Any).downcast_ref()
    }

    pub(super) fn get_mut<K: Kind>(&mut self, number: u64) -> Option<&mut K> {
        (&mut *self.open.get_mut(&number)?.kind as &mut dyn Any).downcast_mut()
    }

    /// The operations of one kind.
    pub(super) fn of<K: Kind>(&self) -> impl Iterator<Item = (u64, &K)> {
        self.open.iter().filter_map(|(number, one)| Some((*number, (&*one.kind as &dyn Any).downcast_ref()?)))
    }

    pub(super) fn of_mut<K: Kind>(&mut self) -> impl Iterator<Item = (u64, &mut K)> {
        let open = self.open.iter_mut();
        open.filter_map(|(number, one)| Some((*number, (&mut *one.kind as &mut dyn Any).downcast_mut()?)))
    }

    /// The operations of one kind that are looked for by this name, the oldest first.
    pub(super) fn called<K: Kind>(&self, name: &str) -> impl Iterator<Item = u64> {
        let called = self.called.get(name).into_iter().flatten().copied();
        called.filter(|number| self.get::<K>(*number).is_some())
    }

    /// Gives daemons a task of the operation. [`Operations::task_done`] follows, even if they are lost.
    pub(super) fn give_task(&mut self, cx: &mut Cx<'_>, operation: u64, daemons: Ranges, task: Task) {
        let Some(open) = self.open.get_mut(&operation) else { return };
        open.last_task += 1;
        let number = open.last_task;
        let (id, task) = (TaskId { operation, number, daemons: daemons.clone() }, Arc::new(task));
        open.tasks.insert(number, task.clone());
        cx.cast(daemons.clone(), Down::Task { id: id.clone(), task });
        // All of these daemons may be lost before any has answered.
        cx.wait_for(OpId::Task(id), daemons);
    }

    /// The living daemons have done a task.
    #[must_use]
    pub(super) fn task_done(
        &mut self,
        cx: &mut Cx<'_>,
        jobs: &Jobs,
        id: &TaskId,
        missing: &Ranges,
        part: Part,
    ) -> Vec<Consequence> {
        let Some(open) = self.open.get_mut(&id.operation) else { return Vec::new() };
        let Some(task) = open.tasks.remove(&id.number) else { return Vec::new() }; // Dropped meanwhile.
        open.kind.task_done(&task, missing, part, jobs);
        self.try_done(cx, id.operation)
    }

    /// Stops waiting for these tasks, as their results are known or no longer wanted.
    #[must_use]
    pub(super) fn drop_tasks(
        &mut self,
        cx: &mut Cx<'_>,
        number: u64,
        is_one: impl Fn(&Task) -> bool,
    ) -> Vec<Consequence> {
        let Some(open) = self.open.get_mut(&number) else { return Vec::new() };
        open.tasks.retain(|_, task| !is_one(task));
        self.try_done(cx, number)
    }

    /// Answers the operation if daemons have finished all tasks, and no rank has something left to do.
    #[must_use]
    pub(super) fn try_done(&mut self, cx: &mut Cx<'_>, number: u64) -> Vec<Consequence> {
        let Some(open) = self.open.get_mut(&number).filter(|open| open.is_done()) else { return Vec::new() };
        if open.kind.has_next_step() {
            return vec![Consequence::NextStep(number)];
        }
        self.finish(cx, number, Status::SUCCESS)
    }

    /// Ends the operation and answers its askers.
    #[must_use]
    pub(super) fn finish(&mut self, cx: &mut Cx<'_>, number: u64, status: Status) -> Vec<Consequence> {
        let Some(Operation { kind, askers, .. }) = self.remove(number) else { return Vec::new() };
        kind.answer(cx, askers, status)
    }

    /// Takes the operation out of the table; the caller answers it.
    #[must_use = "the askers wait for the answer"]
    pub(super) fn take<K: Kind>(&mut self, number: u64) -> Option<Taken<K>> {
        self.get::<K>(number)?;
        let Operation { kind, askers, since, until, .. } = self.remove(number)?;
        let kind = *(kind as Box<dyn Any>).downcast().ok()?;
        Some(Taken { kind, askers, since, until })
    }

    fn remove(&mut self, number: u64) -> Option<Operation> {
        let operation = self.open.remove(&number)?;
        if let Some(count) = self.counts.get_mut(operation.kind.name()) {
            *count -= 1;
        }
        for name in operation.kind.calls() {
            if let Some(numbers) = self.called.get_mut(&name) {
                numbers.remove(&number);
                if numbers.is_empty() {
                    self.called.remove(&name);
                }
            }
        }
        operation.until.into_iter().for_each(|until| self.deadlines.remove(until, number));
        Some(operation)
    }

    /// Dismisses the matching requesters of the chosen operations with `status`. Other requesters of the same operation go on
    /// waiting; one without any is over, whatever daemons still do for it. Returns whether a requester matched.
    #[must_use]
    pub(super) fn dismiss(
        &mut self,
        cx: &mut Cx<'_>,
        chosen: impl Fn(&dyn Kind) -> bool,
        is_gone: impl Fn(&Asker) -> bool,
        status: Status,
    ) -> (bool, Vec<Consequence>) {
        let has_gone = |one: &Operation| chosen(&*one.kind) && one.askers.iter().any(&is_gone);
        let numbers: Vec<u64> =
            self.open.iter().filter(|(_, one)| has_gone(one)).map(|(number, _)| *number).collect();
        let mut then = Vec::new();
        for number in &numbers {
            let Some(open) = self.open.get_mut(number) else { continue };
            let gone: Vec<Asker> = open.askers.extract_if(.., |asker| is_gone(asker)).collect();
            // A restart that has begun must run to its end.
            if open.askers.is_empty() && !open.kind.outlives_askers() {
                let Some(Operation { kind, .. }) = self.remove(*number) else { continue };
                then.extend(kind.answer(cx, gone, status));
                continue;
            }
            for asker in gone {
                match open.kind.targets() {
                    Some(targets) => {
                        then.push(Consequence::Tell { asker, status, results: targets.told(status) })
                    }
                    None => asker.answer.give(cx, open.kind.failure(status)),
                }
            }
        }
        (!numbers.is_empty(), then)
    }

    pub(super) fn explain(&self, jobs: &Jobs) -> Vec<Waiting> {
        self.open.values().map(|operation| operation.explain(jobs)).collect()
    }
}
