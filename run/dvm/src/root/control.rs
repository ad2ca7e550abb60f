//! Job control: what processes and tools want done to processes.
//!
//! A request goes to all daemons that host targets, and is answered when each of them has done its part. So success means that
//! signals were sent and paths entered. The results are kept for each target: one on a node that was lost, or that had ended
//! before, is told from the others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use phalanx_core::HostReply;
use phalanx_spec::Status;
use phalanx_wire::{Info, Nspace, ProcId};

use crate::msg::{self, ControlRequest, JobDesc, Members, Part, Results, Task, each};
use crate::ranges::Ranges;
use crate::root::answer::Answer;
use crate::root::operations::Asked;
use crate::root::{Cx, ENOUGH, Root};

/// A request that is being carried out.
#[derive(Debug)]
pub(super) struct Controlling {
    request: Arc<ControlRequest>,
    members: Arc<[Members]>,
    /// By task, of one job each.
    targets: BTreeMap<u32, Target>,
}

#[derive(Debug)]
struct Target {
    nspace: Nspace,
    /// Those without a result.
    open: Ranges,
    results: Results,
}

impl Controlling {
    /// Daemons have done their part, but for those that were lost.
    pub(super) fn done<'a>(
        &mut self,
        task: u32,
        missing: &Ranges,
        part: Part,
        desc_of: impl Fn(&Nspace) -> Option<&'a JobDesc>,
    ) {
        let Some(target) = self.targets.get_mut(&task) else { return };
        if let Part::Results(results) = part {
            results.iter().for_each(|(status, ranks)| target.set(ranks, status));
        }
        if let Some(desc) = desc_of(&target.nspace).filter(|_| !missing.is_empty()) {
            let lost = target.open.iter().filter(|rank| missing.contains(desc.places.node.get(*rank)));
            let lost: Ranges = lost.collect();
            target.set(&lost, Status::ERR_LOST_CONNECTION);
        }
        let rest = target.open.clone();
        target.set(&rest, self.request.result_of_gone());
    }

    /// These targets are gone. What was to be done to them need not be done; what was to be entered for them has not been.
    /// Returned are the tasks of which nothing is left to do.
    fn without(&mut self, nspace: &Nspace, ranks: &Ranges) -> Vec<u32> {
        let status = match self.request.cleanup {
            Some(_) => Status::ERR_PROC_ABORTED,
            None => Status::SUCCESS,
        };
        let of_job = self.targets.iter_mut().filter(|(_, target)| target.nspace == *nspace);
        let emptied = of_job.filter_map(|(task, target)| {
            target.set(ranks, status);
            target.open.is_empty().then_some(*task)
        });
        emptied.collect()
    }

    pub(super) fn concerns(&self, nspace: &Nspace) -> bool {
        self.targets.values().any(|target| target.nspace == *nspace && !target.open.is_empty())
    }

    pub(super) fn subject(&self) -> String {
        let members = self.members.iter().map(|m| format!("{}:{}", m.nspace, m.ranks));
        members.collect::<Vec<_>>().join(" ")
    }

    /// No more than people read.
    pub(super) fn missing(&self) -> Vec<ProcId> {
        let open = self
            .targets
            .values()
            .map(|target| Members { nspace: target.nspace.clone(), ranks: target.open.clone() });
        each(&open.collect::<Vec<_>>()).take(ENOUGH).collect()
    }

    /// What all targets together come to. As with kill(2), it is no failure if some of several have ended before. Paths that one
    /// daemon has refused are refused.
    fn status(&self) -> Status {
        let results =
            || self.targets.values().flat_map(|target| target.results.iter().map(|(status, _)| status));
        let is_done = results().any(Status::is_success);
        let is_well = |status: &Status| status.is_success() || (is_done && *status == Status::ERR_NOT_FOUND);
        match results().find(|status| !is_well(status)) {
            None => Status::SUCCESS,
            Some(_) if is_done && !self.request.is_cleanup_alone() => Status::ERR_PARTIAL_SUCCESS,
            Some(status) => status,
        }
    }
}

impl Target {
    /// Of each the first result counts.
    fn set(&mut self, ranks: &Ranges, status: Status) {
        let new = ranks.and(&self.open);
        self.results.set(&new, status);
        new.iter().for_each(|rank| self.open.remove(rank));
    }
}

/// Every process of a large job may ask for the same cleanup.
#[derive(Debug, Default)]
pub(super) struct Cleanups {
    /// With the operation that does it.
    being_entered: BTreeMap<Cleanup, u64>,
    /// Those that all daemons have entered.
    entered: BTreeSet<Cleanup>,
}

type Cleanup = (Arc<[Members]>, Arc<ControlRequest>);

impl Cleanups {
    pub(super) fn know(&self, nspace: &Nspace) -> bool {
        let mut all = self.entered.iter().chain(self.being_entered.keys());
        all.any(|(members, _)| members.iter().any(|one| one.nspace == *nspace))
    }

    pub(super) fn forget(&mut self, nspace: &Nspace) {
        self.entered.retain(|(members, _)| members.iter().all(|m| m.nspace != *nspace));
    }
}

impl Root {
    /// What a process or a tool wants done to processes.
    pub(super) fn job_control(
        &mut self,
        cx: &mut Cx<'_>,
        answer: Answer,
        from: &ProcId,
        targets: &[ProcId],
        directives: &[Info],
    ) {
        let read = ControlRequest::read(directives);
        let ends = |request: &ControlRequest| {
            request.actions.iter().any(|action| matches!(action, msg::Control::Terminate { .. }))
        };
        let is_dvm = match targets {
            // As OpenPMIx's tools ask for it: nobody in particular is the whole DVM.
            [] => self.is_tool(from),
            // What ranks ask for by no name is for their own job.
            named => named.iter().all(|proc| *proc.nspace.as_str() == *self.config.dvm),
        };
        if is_dvm && read.as_ref().is_ok_and(ends) {
            answer.give(cx, HostReply::Infos(Status::SUCCESS, Vec::new()));
            return self.on_shutdown(cx);
        }
        let members = Members::targets(from, targets, |nspace| self.desc(nspace));
        let (request, members) = match read.and_then(|request| Ok((request, members?))) {
            Ok(read) => read,
            Err(status) => return answer.done(cx, status),
        };
        let deadly = request.actions.iter().filter_map(|action| action.deadly()).collect::<Vec<_>>();
        for Members { nspace, ranks } in members.iter() {
            deadly.iter().for_each(|signal| self.note_killed(cx, nspace, ranks, from, *signal));
            let sent = request.actions.iter().filter_map(|action| action.sent());
            sent.for_each(|signal| self.note_signalled(cx, nspace, ranks, from, signal));
        }
        self.carry_out(cx, answer, from, members, Arc::new(request));
    }

    /// Sends a request to the daemons of its targets.
    fn carry_out(
        &mut self,
        cx: &mut Cx<'_>,
        answer: Answer,
        from: &ProcId,
        members: Arc<[Members]>,
        request: Arc<ControlRequest>,
    ) {
        let members: Arc<[Members]> = members.iter().cloned().map(|m| self.without_dead(m)).collect();
        let cleanup = (members.clone(), request.clone());
        if members.iter().all(|m| m.ranks.is_empty()) {
            return answer.give(cx, HostReply::Infos(request.result_of_gone(), Vec::new()));
        }
        if self.cleanups.entered.contains(&cleanup) {
            return answer.give(cx, HostReply::Infos(Status::SUCCESS, Vec::new()));
        }
        if let Some(number) = self.cleanups.being_entered.get(&cleanup)
            && let Some(same) = self.operations.get_mut(*number)
        {
            return same.answers.push(answer);
        }
        let (targets, asked) = (BTreeMap::new(), request.clone());
        let asked = Asked::Control(Controlling { request: asked, members: members.clone(), targets });
        let Some(number) = self.begin_operation(cx, answer, from, None, asked) else { return };
        if request.is_cleanup_alone() {
            self.cleanups.being_entered.insert(cleanup, number);
        }
        for targets in members.iter().filter(|m| !m.ranks.is_empty()) {
            let Members { nspace, ranks } = targets.clone();
            let daemons = self.desc(&nspace).map(|desc| desc.nodes_of(&ranks)).unwrap_or_default();
            let task = Task::Control { targets: targets.clone(), request: request.clone() };
            let task = self.give_task(cx, number, daemons, task);
            if let Some(Asked::Control(control)) = self.operations.get_mut(number).map(|one| &mut one.asked) {
                control.targets.insert(task, Target { nspace, open: ranks, results: Results::default() });
            }
        }
    }

    fn without_dead(&self, mut members: Members) -> Members {
        if let Some(job) = self.jobs.get(&members.nspace) {
            let dead = job.dead.and(&members.ranks);
            dead.iter().for_each(|rank| members.ranks.remove(rank));
        }
        members
    }

    /// All targets have a result, or it has failed as a whole.
    pub(super) fn answer_control(
        &mut self,
        cx: &mut Cx<'_>,
        answers: Vec<Answer>,
        control: Controlling,
        status: Status,
    ) {
        let status = if status.is_success() { control.status() } else { status };
        let cleanup = (control.members, control.request);
        self.cleanups.being_entered.remove(&cleanup);
        let is_to_keep = cleanup.1.is_cleanup_alone() && self.cleanups.entered.len() < MOST_ENTERED;
        if status.is_success() && is_to_keep {
            self.cleanups.entered.insert(cleanup);
        }
        answers.into_iter().for_each(|answer| answer.give(cx, HostReply::Infos(status, Vec::new())));
    }

    /// Processes are gone before all daemons have done their part.
    pub(super) fn control_without(&mut self, cx: &mut Cx<'_>, nspace: &Nspace, ranks: &Ranges) {
        let mut emptied = Vec::new();
        for (number, operation) in self.operations.iter_mut() {
            if let Asked::Control(control) = &mut operation.asked {
                emptied.push((number, control.without(nspace, ranks)));
            }
        }
        emptied.iter().for_each(|(number, tasks)| self.drop_tasks(cx, *number, tasks));
    }
}

/// Cleanups that are remembered to be known everywhere.
const MOST_ENTERED: usize = 1024;
