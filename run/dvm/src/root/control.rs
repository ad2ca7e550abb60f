//! Job control: requests by processes and tools that act on processes.
//!
//! A request goes to all daemons that host targets, and is answered when each of them has done its part. So success means that
//! signals were sent and paths recorded. The reply gives the result for each target (`targets.rs`), and distinguishes targets
//! on a lost node and targets that had ended before (`PMIX_ERR_NOT_FOUND`, whatever the action).
//!
//! The requester may cancel the request. What daemons have done by then stays done.

use std::collections::BTreeSet;
use std::sync::Arc;

use phalanx_core::HostReply;
use phalanx_spec::Status;
use phalanx_wire::{Info, Nspace, ProcId};

use crate::msg::{self, Cancel, Control, ControlCall, ControlRequest, Members, Part, Pauser, Task, Wanted};
use crate::ranges::Ranges;
use crate::root::Root;
use crate::root::answer::{Answer, Asker, id_of};
use crate::root::consequence::Consequence;
use crate::root::jobs::Jobs;
use crate::root::kind::{Explained, Kind, MOST_OPEN};
use crate::root::permission;
use crate::root::provision;
use crate::root::targets::{Targets, named};
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

    fn targets(&self) -> Option<&Targets> {
        Some(&self.targets)
    }

    fn task_done(&mut self, task: &Task, missing: &Ranges, part: Part, jobs: &Jobs) {
        let Task::Control { targets: Members { nspace, .. }, .. } = task else { return };
        let Some(target) = self.targets.iter_mut().find(|target| target.nspace == *nspace) else { return };
        if let Part::Results(results) = part {
            target.take(&results);
        }
        if let Some(job) = jobs.get(&target.nspace) {
            target.set(&job.desc.ranks_on_any(missing), Status::ERR_LOST_CONNECTION);
        }
        let rest = target.open.clone();
        target.set(&rest, Status::ERR_NOT_FOUND);
    }

    fn answer(self: Box<Self>, _: &mut Cx<'_>, askers: Vec<Asker>, status: Status) -> Vec<Consequence> {
        let status = if status.is_success() { self.status() } else { status };
        let deadly = self.request.actions.iter().find_map(|action| action.deadly());
        let mut then = Vec::new();
        for asker in askers {
            if let Some(signal) = deadly {
                let ended = self.targets.with(Status::SUCCESS).into_iter();
                then.extend(ended.map(|members| Consequence::Ended {
                    members,
                    by: asker.by.clone(),
                    signal,
                }));
            }
            then.push(Consequence::Tell { asker, status, results: self.targets.told(status) });
        }
        if status.is_success() && self.request.is_cleanup_alone() {
            then.push(Consequence::Cleanup { members: self.members, request: self.request });
        }
        then
    }

    fn explain(&self, askers: &[Asker], _: &Jobs) -> Explained {
        Explained {
            subject: id_of(askers) + &named(&self.members),
            missing: self.targets.missing(),
            unblocked_by: "the daemons of the named processes doing what was asked for",
            ..Explained::default()
        }
    }
}

impl Controlling {
    /// These targets are gone: an action on them counts as done, a cleanup for them as failed. Returns whether nothing is left
    /// to do for their job.
    fn without(&mut self, nspace: &Nspace, ranks: &Ranges) -> bool {
        let status = match self.request.cleanup {
            Some(_) => Status::ERR_PROC_ABORTED,
            None => Status::SUCCESS,
        };
        let mut of_job = self.targets.iter_mut().filter(|t| t.nspace == *nspace && !t.open.is_empty());
        of_job.next().is_some_and(|target| {
            target.set(ranks, status);
            target.open.is_empty()
        })
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
    /// Requests that all daemons have recorded.
    entered: BTreeSet<(Arc<[Members]>, Arc<ControlRequest>)>,
}

impl Cleanups {
    pub(super) fn know(&self, nspace: &Nspace) -> bool {
        self.entered.iter().any(|(members, _)| members.iter().any(|one| one.nspace == *nspace))
    }

    pub(super) fn enter(&mut self, members: Arc<[Members]>, request: Arc<ControlRequest>) {
        if self.entered.len() < MOST_ENTERED {
            self.entered.insert((members, request));
        }
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
        let ControlCall { id, cancel, registration, wanted } = match ControlCall::read(from, directives) {
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
            [] => self.dvm.is_tool(from),
            // A rank that names no target means its own job.
            named => named.iter().all(|proc| *proc.nspace.as_str() == *self.dvm.config.dvm),
        };
        let ends = |action: &msg::Control| matches!(action, msg::Control::Terminate { .. });
        if is_dvm && matches!(&wanted, Wanted::Act(request) if request.actions.iter().any(ends)) {
            if !permission::may_steer_all(&self.dvm, from) {
                return answer.done(cx, Status::ERR_NO_PERMISSIONS);
            }
            answer.give(cx, HostReply::Infos(Status::SUCCESS, Vec::new()));
            return self.on_shutdown(cx, Some(from));
        }
        let asker = Asker { by: from.clone(), id, answer };
        // Provisioning targets nodes, not processes.
        let members = match &wanted {
            Wanted::Provision(_) => Ok(Vec::new()),
            _ => permission::targets_of(&self.dvm, from, targets),
        };
        match members {
            Ok(members) => match wanted {
                Wanted::Act(request) => self.control(cx, asker, &members, request),
                Wanted::Checkpoint(call) => self.checkpoint(cx, asker, &members, call),
                Wanted::Restart(from) => self.restart(cx, Some(asker), &members, from),
                Wanted::Provision(nodes) => {
                    provision::provision(cx, &self.dvm, &mut self.operations, asker, nodes)
                }
            },
            Err(refused) => {
                let status = refused.results().next().unwrap_or(Status::ERR_NOT_FOUND);
                self.answered.tell(cx, asker, (status, refused.told(status)));
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
        for Members { nspace, ranks } in &permission::with_the_dead(&self.dvm, members).open() {
            for signal in &deadly {
                self.note_killed(cx, nspace, ranks, from, *signal);
            }
            let sent = request.actions.iter().filter_map(|action| action.sent());
            sent.for_each(|signal| self.note_signalled(cx, nspace, ranks, from, signal));
            for action in &request.actions {
                self.note_paused(cx, nspace, ranks, (Some(from), &request.pauser), *action);
            }
        }
        self.send_out(cx, asker, members, Arc::new(request));
    }

    /// Cancels earlier requests of this process or tool. A tool may also cancel the named requests of others.
    fn cancel(&mut self, cx: &mut Cx<'_>, by: &ProcId, cancel: &Cancel) -> Status {
        let is_tool = self.dvm.is_tool(by);
        let is_meant = |asker: &Asker| match cancel {
            Cancel::All => asker.by == *by,
            Cancel::Named(id) => asker.id.as_ref() == Some(id) && (asker.by == *by || is_tool),
        };
        let found = self.dismiss(cx, |kind| kind.is_control(), is_meant, Status::ERR_JOB_CANCELED);
        if found || *cancel == Cancel::All { Status::SUCCESS } else { Status::ERR_NOT_FOUND }
    }

    /// Sends a request to the daemons of its targets.
    fn send_out(&mut self, cx: &mut Cx<'_>, asker: Asker, members: &[Members], request: Arc<ControlRequest>) {
        let mut targets = permission::with_the_dead(&self.dvm, members);
        let living = targets.iter().map(|t| Members { nspace: t.nspace.clone(), ranks: t.open.clone() });
        let members: Arc<[Members]> = living.collect();
        if targets.are_closed() {
            return self.answered.tell(
                cx,
                asker,
                (Status::ERR_NOT_FOUND, targets.told(Status::ERR_NOT_FOUND)),
            );
        }
        if self.cleanups.entered.contains(&(members.clone(), request.clone())) {
            return self.answered.tell(cx, asker, (Status::SUCCESS, targets.told(Status::SUCCESS)));
        }
        if request.is_cleanup_alone() {
            let is_same = |one: &Controlling| one.request == request && one.members == members;
            let same = self.operations.of::<Controlling>().find(|(_, one)| is_same(one));
            if let Some(number) = same.map(|(number, _)| number) {
                return self.operations.join(cx, number, asker);
            }
        }
        if request.actions.contains(&Control::Resume) && request.pauser == Pauser::Request {
            self.explain_standing(&mut targets, &members);
        }
        let control = Controlling { request: request.clone(), members: members.clone(), targets };
        let Some(number) = self.operations.begin(cx, Some(asker), None, control) else { return };
        for targets in members.iter().filter(|targets| !targets.ranks.is_empty()) {
            let Members { nspace, ranks } = targets;
            let daemons = self.dvm.desc(nspace).map(|desc| desc.nodes_of(ranks)).unwrap_or_default();
            let task = Task::Control { targets: targets.clone(), request: request.clone() };
            self.operations.give_task(cx, number, daemons, task);
        }
    }

    /// A request to resume ranks does not end the standstill of their launcher.
    fn explain_standing(&self, targets: &mut Targets, members: &[Members]) {
        for Members { nspace, ranks } in members {
            let Some(job) = self.dvm.jobs.get(nspace) else { continue };
            let standing = job.pauses.suspended(ranks);
            if !standing.is_empty() {
                let why = format!("the launcher, which is suspended, still holds {}", standing.in_words());
                targets.explain(nspace, Status::SUCCESS, &why);
            }
        }
    }

    /// Processes have ended before all daemons have done their part.
    pub(super) fn control_without(&mut self, cx: &mut Cx<'_>, nspace: &Nspace, ranks: &Ranges) {
        self.checkpoint_without(cx, nspace, ranks);
        let all = self.operations.of_mut::<Controlling>();
        let touched: Vec<(u64, bool)> =
            all.map(|(number, control)| (number, control.without(nspace, ranks))).collect();
        for (number, is_over) in touched {
            let is_of_job =
                |task: &Task| matches!(task, Task::Control { targets, .. } if targets.nspace == *nspace);
            let then = self.operations.drop_tasks(cx, number, |task| is_over && is_of_job(task));
            self.carry_out(cx, then);
        }
    }
}

/// The most completed cleanup requests that are remembered.
const MOST_ENTERED: usize = 1024;
