//! Job control: requests by processes and tools that act on processes.
//!
//! A request goes to all daemons that host targets, and is answered when each of them has done its part. So success means that
//! signals were sent and paths recorded. The reply gives the result for each target (`targets.rs`), and distinguishes targets
//! on a lost node and targets that had ended before (`PMIX_ERR_NOT_FOUND`, whatever the action).
//!
//! The requester may cancel the request. What daemons have done by then stays done.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use phalanx_core::HostReply;
use phalanx_spec::Status;
use phalanx_wire::{Info, Nspace, ProcId};

use crate::msg::{self, Cancel, ControlCall, ControlRequest, Members, Part, Task, Wanted};
use crate::ranges::Ranges;
use crate::root::Root;
use crate::root::answer::Answer;
use crate::root::asked::Asked;
use crate::root::jobs::Jobs;
use crate::root::kind::{Explained, Kind};
use crate::root::operations::Asker;
use crate::root::targets::Targets;
use crate::root::turn::Cx;

/// A request that is being carried out.
#[derive(Debug)]
pub(super) struct Controlling {
    request: Arc<ControlRequest>,
    members: Arc<[Members]>,
    pub(super) targets: Targets,
}

impl Kind for Controlling {
    fn name(&self) -> &'static str {
        "job control"
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

    fn task_done(&mut self, task: u32, missing: &Ranges, part: Part, jobs: &Jobs) {
        let Some(target) = self.targets.iter_mut().find(|target| target.task == task) else { return };
        if let Part::Results(results) = part {
            target.take(&results);
        }
        if let Some(job) = jobs.get(&target.nspace) {
            target.set(&job.desc.ranks_on_any(missing), Status::ERR_LOST_CONNECTION);
        }
        let rest = target.open.clone();
        target.set(&rest, Status::ERR_NOT_FOUND);
    }

    fn explain(&self, askers: &[Asker], _: &Jobs) -> Explained {
        let id = askers.iter().find_map(|asker| asker.id.as_ref());
        let id = id.map(|id| format!("{}: ", id.to_string_lossy())).unwrap_or_default();
        Explained {
            subject: id + &named(&self.members),
            missing: self.targets.missing(),
            unblocked_by: "the daemons of the named processes doing what was asked for",
            ..Explained::default()
        }
    }
}

/// The targets of a request, as ranges.
pub(super) fn named(members: &[Members]) -> String {
    members.iter().map(|m| format!("{}:{}", m.nspace, m.ranks)).collect::<Vec<_>>().join(" ")
}

impl Controlling {
    /// These targets are gone: an action on them counts as done, a cleanup for them as failed. Returns the tasks with nothing
    /// left to do.
    fn without(&mut self, nspace: &Nspace, ranks: &Ranges) -> Vec<u32> {
        let status = match self.request.cleanup {
            Some(_) => Status::ERR_PROC_ABORTED,
            None => Status::SUCCESS,
        };
        let of_job = self.targets.iter_mut().filter(|t| t.nspace == *nspace && !t.open.is_empty());
        let emptied = of_job.filter_map(|target| {
            target.set(ranks, status);
            target.open.is_empty().then_some(target.task)
        });
        emptied.collect()
    }

    /// The status over all targets. As with kill(2), it is no failure if some of several had ended before. A request for
    /// cleanup alone fails if any daemon has refused its paths.
    fn status(&self) -> Status {
        let results = || self.targets.results();
        let is_done = results().any(Status::is_success);
        let is_well = |status: &Status| status.is_success() || (is_done && *status == Status::ERR_NOT_FOUND);
        match results().find(|status| !is_well(status)) {
            None => Status::SUCCESS,
            Some(_) if is_done && !self.request.is_cleanup_alone() => Status::ERR_PARTIAL_SUCCESS,
            Some(status) => status,
        }
    }
}

/// Cleanup requests. Every process of a large job may send the same one.
#[derive(Debug, Default)]
pub(super) struct Cleanups {
    /// Requests in progress, with their operations.
    being_entered: BTreeMap<Cleanup, u64>,
    /// Requests that all daemons have recorded.
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
    /// A request of job control by a process or a tool.
    pub(super) fn job_control(
        &mut self,
        cx: &mut Cx<'_>,
        answer: Answer,
        from: &ProcId,
        targets: &[ProcId],
        directives: &[Info],
    ) {
        let ControlCall { id, cancel, registration, wanted } = match ControlCall::read(directives) {
            Ok(call) => call,
            Err(status) => return answer.done(cx, status),
        };
        let cancelled = cancel.map(|cancel| self.cancel(cx, from, &cancel));
        let registered = registration.map(|registration| self.register_ability(from, &registration));
        let Some(wanted) = wanted else {
            let status = cancelled.or(registered).unwrap_or(Status::SUCCESS);
            return answer.give(cx, HostReply::Infos(status, Vec::new()));
        };
        let is_dvm = match targets {
            // As OpenPMIx's tools use it: no targets means the whole DVM.
            [] => self.is_tool(from),
            // A rank that names no target means its own job.
            named => named.iter().all(|proc| *proc.nspace.as_str() == *self.config.dvm),
        };
        let ends = |action: &msg::Control| matches!(action, msg::Control::Terminate { .. });
        if is_dvm && matches!(&wanted, Wanted::Act(request) if request.actions.iter().any(ends)) {
            if !self.may_steer_all(from) {
                return answer.done(cx, Status::ERR_NO_PERMISSIONS);
            }
            answer.give(cx, HostReply::Infos(Status::SUCCESS, Vec::new()));
            return self.on_shutdown(cx, Some(from));
        }
        let asker = Asker { by: from.clone(), id, answer };
        // Provisioning targets nodes, not processes.
        let members = match &wanted {
            Wanted::Provision(_) => Ok(Vec::new()),
            _ => self.targets_of(from, targets),
        };
        match members {
            Ok(members) => match wanted {
                Wanted::Act(request) => self.control(cx, asker, &members, request),
                Wanted::Checkpoint(call) => self.checkpoint(cx, asker, &members, call),
                Wanted::Restart(from) => self.restart(cx, Some(asker), &members, from),
                Wanted::Provision(nodes) => self.provision(cx, asker, nodes),
            },
            Err(refused) => {
                let status = refused.results().next().unwrap_or(Status::ERR_NOT_FOUND);
                self.tell_asker(cx, asker, (status, refused.told(status)));
            }
        }
    }

    /// Carries the request out on the targets that have not ended, and records the requester in their journals.
    pub(super) fn control(
        &mut self,
        cx: &mut Cx<'_>,
        asker: Asker,
        members: &[Members],
        request: ControlRequest,
    ) {
        let from = &asker.by;
        let deadly = request.actions.iter().filter_map(|action| action.deadly()).collect::<Vec<_>>();
        for Members { nspace, ranks } in &self.with_the_dead(members).open() {
            for signal in &deadly {
                self.note_killed(cx, nspace, ranks, from, *signal);
            }
            let sent = request.actions.iter().filter_map(|action| action.sent());
            sent.for_each(|signal| self.note_signalled(cx, nspace, ranks, from, signal));
            for action in &request.actions {
                self.note_paused(cx, nspace, ranks, Some(from), *action);
            }
        }
        self.carry_out(cx, asker, members, Arc::new(request));
    }

    /// Cancels earlier requests of this process or tool. A tool may also cancel the named requests of others.
    fn cancel(&mut self, cx: &mut Cx<'_>, by: &ProcId, cancel: &Cancel) -> Status {
        let is_tool = self.is_tool(by);
        let is_meant = |asker: &Asker| match cancel {
            Cancel::All => asker.by == *by,
            Cancel::Named(id) => asker.id.as_ref() == Some(id) && (asker.by == *by || is_tool),
        };
        let is_control = |asked: &Asked| asked.kind().targets().is_some();
        let found = self.dismiss(cx, is_control, is_meant, Status::ERR_JOB_CANCELED);
        if found || *cancel == Cancel::All { Status::SUCCESS } else { Status::ERR_NOT_FOUND }
    }

    /// Sends a request to the daemons of its targets.
    fn carry_out(
        &mut self,
        cx: &mut Cx<'_>,
        asker: Asker,
        members: &[Members],
        request: Arc<ControlRequest>,
    ) {
        let targets = self.with_the_dead(members);
        let living = targets.iter().map(|t| Members { nspace: t.nspace.clone(), ranks: t.open.clone() });
        let members: Arc<[Members]> = living.collect();
        if targets.are_closed() {
            return self.tell_asker(cx, asker, (Status::ERR_NOT_FOUND, targets.told(Status::ERR_NOT_FOUND)));
        }
        let cleanup = (members.clone(), request.clone());
        if self.cleanups.entered.contains(&cleanup) {
            return self.tell_asker(cx, asker, (Status::SUCCESS, targets.told(Status::SUCCESS)));
        }
        if let Some(number) = self.cleanups.being_entered.get(&cleanup)
            && let Some(same) = self.operations.get_mut(*number)
        {
            return same.askers.push(asker);
        }
        let control = Controlling { request: request.clone(), members: members.clone(), targets };
        let asked = Asked::Control(control);
        let Some(number) = self.begin_operation(cx, Some(asker), None, asked) else { return };
        if request.is_cleanup_alone() {
            self.cleanups.being_entered.insert(cleanup, number);
        }
        for (at, targets) in members.iter().enumerate().filter(|(_, targets)| !targets.ranks.is_empty()) {
            let Members { nspace, ranks } = targets;
            let daemons = self.desc(nspace).map(|desc| desc.nodes_of(ranks)).unwrap_or_default();
            let task = Task::Control { targets: targets.clone(), request: request.clone() };
            let task = self.give_task(cx, number, daemons, task);
            if let Some(Asked::Control(control)) = self.operations.get_mut(number).map(|one| &mut one.asked)
                && let Some(target) = control.targets.iter_mut().nth(at)
            {
                target.task = task;
            }
        }
    }

    /// All targets have a result, or the request has failed as a whole.
    pub(super) fn answer_control(
        &mut self,
        cx: &mut Cx<'_>,
        askers: Vec<Asker>,
        control: Controlling,
        status: Status,
    ) {
        let status = if status.is_success() { control.status() } else { status };
        let deadly = control.request.actions.iter().find_map(|action| action.deadly());
        for asker in askers {
            for Members { nspace, ranks } in &control.targets.with(Status::SUCCESS) {
                deadly
                    .into_iter()
                    .for_each(|signal| self.tell_who_ends(cx, nspace, ranks, &asker.by, signal));
            }
            self.tell_asker(cx, asker, (status, control.targets.told(status)));
        }
        let cleanup = (control.members, control.request);
        self.cleanups.being_entered.remove(&cleanup);
        let is_to_keep = cleanup.1.is_cleanup_alone() && self.cleanups.entered.len() < MOST_ENTERED;
        if status.is_success() && is_to_keep {
            self.cleanups.entered.insert(cleanup);
        }
    }

    /// Processes have ended before all daemons have done their part.
    pub(super) fn control_without(&mut self, cx: &mut Cx<'_>, nspace: &Nspace, ranks: &Ranges) {
        self.checkpoint_without(cx, nspace, ranks);
        let mut emptied = Vec::new();
        for (number, operation) in self.operations.iter_mut() {
            if let Asked::Control(control) = &mut operation.asked {
                emptied.push((number, control.without(nspace, ranks)));
            }
        }
        emptied.iter().for_each(|(number, tasks)| self.drop_tasks(cx, *number, tasks));
    }
}

/// The most completed cleanup requests that are remembered.
const MOST_ENTERED: usize = 1024;

/// Requests of one kind that may be open at one time.
pub(super) const MOST_OPEN: usize = 1 << 10;
