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
use phalanx_wire::cmd::control::JobControl;
use phalanx_wire::{Nspace, ProcId};

use crate::msg::{self, Cancel, Control, ControlCall, ControlRequest, Members, Part, Pauser, Purpose, Task};
use crate::ranges::Ranges;
use crate::root::answer::{Answer, Asker, id_of};
use crate::root::checkpoint;
use crate::root::consequence::Consequence;
use crate::root::dvm::Dvm;
use crate::root::jobs::Jobs;
use crate::root::kind::{Explained, Kind, MOST_OPEN};
use crate::root::operations::Operations;
use crate::root::permission;
use crate::root::provision;
use crate::root::record;
use crate::root::restart;
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
                then.extend(self.spared().map(|members| Consequence::Spared {
                    members,
                    by: asker.by.clone(),
                    signal,
                }));
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
            unblocked_by: match self.request.actions.contains(&Control::Suspend) {
                true => {
                    "everything that the named processes have started standing still, or a second of looking for it"
                }
                false => "the daemons of the named processes doing what was asked for",
            },
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

    /// The targets that had ended when their daemons received the request.
    fn spared(&self) -> impl Iterator<Item = Members> {
        let gone = self.targets.with(Status::ERR_NOT_FOUND);
        let sent = self.members.iter().filter_map(move |sent| {
            let gone = gone.iter().find(|gone| gone.nspace == sent.nspace)?;
            Some(Members { nspace: sent.nspace.clone(), ranks: gone.ranks.and(&sent.ranks) })
        });
        sent.filter(|members| !members.ranks.is_empty())
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

/// A request of job control by a process or a tool.
pub(super) fn job_control(
    cx: &mut Cx<'_>,
    dvm: &mut Dvm,
    operations: &mut Operations,
    cleanups: &Cleanups,
    answer: Answer,
    from: &ProcId,
    JobControl { targets, directives }: &JobControl,
) -> Vec<Consequence> {
    let ControlCall { id, cancel, registration, purpose } = match ControlCall::read(from, directives) {
        Ok(call) => call,
        Err(status) => {
            answer.done(cx, status);
            return Vec::new();
        }
    };
    let mut then = Vec::new();
    let cancelled = cancel.map(|cancel| {
        let (status, all) = self::cancel(cx, dvm, operations, from, &cancel);
        then.extend(all);
        status
    });
    let registered = registration.map(|registration| checkpoint::register_ability(dvm, from, &registration));
    let Some(purpose) = purpose else {
        let status = cancelled.or(registered).unwrap_or(Status::SUCCESS);
        answer.give(cx, HostReply::Infos(status, Vec::new()));
        return then;
    };
    let is_dvm = match &targets[..] {
        // As OpenPMIx's tools use it: no targets means the whole DVM.
        [] => dvm.is_tool(from),
        // A rank that names no target means its own job.
        named => named.iter().all(|proc| *proc.nspace.as_str() == *dvm.config.dvm),
    };
    let ends = |action: &msg::Control| matches!(action, msg::Control::Terminate { .. });
    if is_dvm && matches!(&purpose, Purpose::Act(request) if request.actions.iter().any(ends)) {
        if !permission::may_steer_all(dvm, from) {
            answer.done(cx, Status::ERR_NO_PERMISSIONS);
            return then;
        }
        answer.give(cx, HostReply::Infos(Status::SUCCESS, Vec::new()));
        then.push(Consequence::Shutdown { by: from.clone() });
        return then;
    }
    let asker = Asker { by: from.clone(), id, answer };
    // Provisioning targets nodes, not processes.
    let members = match &purpose {
        Purpose::Provision(_) => Ok(Vec::new()),
        _ => permission::targets_of(dvm, from, targets),
    };
    match members {
        Ok(members) => match purpose {
            Purpose::Act(request) => {
                then.extend(control(cx, dvm, operations, cleanups, asker, &members, request))
            }
            Purpose::Checkpoint(call) => {
                then.extend(checkpoint::checkpoint(cx, dvm, operations, asker, &members, call));
            }
            Purpose::Restart(from) => {
                then.extend(restart::restart(cx, dvm, operations, Some(asker), &members, from));
            }
            Purpose::Provision(nodes) => provision::provision(cx, dvm, operations, asker, nodes),
        },
        Err(refused) => {
            let status = refused.results().next().unwrap_or(Status::ERR_NOT_FOUND);
            then.push(Consequence::Tell { asker, status, results: refused.told(status) });
        }
    }
    then
}

/// Carries the request out on the targets that have not ended, and records the requester in their journals.
pub(super) fn control(
    cx: &mut Cx<'_>,
    dvm: &mut Dvm,
    operations: &mut Operations,
    cleanups: &Cleanups,
    asker: Asker,
    members: &[Members],
    request: ControlRequest,
) -> Vec<Consequence> {
    let from = &asker.by;
    let deadly = request.actions.iter().filter_map(|action| action.deadly()).collect::<Vec<_>>();
    for Members { nspace, ranks } in &permission::with_the_dead(dvm, members).open() {
        for signal in &deadly {
            record::killed(cx, dvm, operations, nspace, ranks, from, *signal);
        }
        let sent = request.actions.iter().filter_map(|action| action.sent());
        sent.for_each(|signal| record::signalled(cx, dvm, nspace, ranks, from, signal));
        for action in &request.actions {
            record::paused(cx, dvm, nspace, ranks, (Some(from), &request.pauser), *action);
        }
    }
    send_out(cx, dvm, operations, cleanups, asker, members, Arc::new(request))
}

/// Cancels earlier requests of this process or tool. A tool may also cancel the named requests of others.
fn cancel(
    cx: &mut Cx<'_>,
    dvm: &Dvm,
    operations: &mut Operations,
    by: &ProcId,
    cancel: &Cancel,
) -> (Status, Vec<Consequence>) {
    let is_tool = dvm.is_tool(by);
    let is_meant = |asker: &Asker| match cancel {
        Cancel::All => asker.by == *by,
        Cancel::Named(id) => asker.id.as_ref() == Some(id) && (asker.by == *by || is_tool),
    };
    let (found, then) = operations.dismiss(cx, |kind| kind.is_control(), is_meant, Status::ERR_JOB_CANCELED);
    let status = if found || *cancel == Cancel::All { Status::SUCCESS } else { Status::ERR_NOT_FOUND };
    (status, then)
}

/// Sends a request to the daemons of its targets.
fn send_out(
    cx: &mut Cx<'_>,
    dvm: &Dvm,
    operations: &mut Operations,
    cleanups: &Cleanups,
    asker: Asker,
    members: &[Members],
    request: Arc<ControlRequest>,
) -> Vec<Consequence> {
    let mut targets = permission::with_the_dead(dvm, members);
    let living = targets.iter().map(|t| Members { nspace: t.nspace.clone(), ranks: t.open.clone() });
    let members: Arc<[Members]> = living.collect();
    if targets.are_closed() {
        return vec![Consequence::Tell {
            asker,
            status: Status::ERR_NOT_FOUND,
            results: targets.told(Status::ERR_NOT_FOUND),
        }];
    }
    if cleanups.entered.contains(&(members.clone(), request.clone())) {
        return vec![Consequence::Tell {
            asker,
            status: Status::SUCCESS,
            results: targets.told(Status::SUCCESS),
        }];
    }
    if request.is_cleanup_alone() {
        let is_same = |one: &Controlling| one.request == request && one.members == members;
        let same = operations.of::<Controlling>().find(|(_, one)| is_same(one));
        if let Some(number) = same.map(|(number, _)| number) {
            operations.join(cx, number, asker);
            return Vec::new();
        }
    }
    if request.actions.contains(&Control::Resume) && request.pauser == Pauser::Request {
        explain_standing(dvm, &mut targets, &members);
    }
    let control = Controlling { request: request.clone(), members: members.clone(), targets };
    let Some(number) = operations.begin(cx, Some(asker), None, control) else { return Vec::new() };
    for targets in members.iter().filter(|targets| !targets.ranks.is_empty()) {
        let Members { nspace, ranks } = targets;
        let daemons = dvm.desc(nspace).map(|desc| desc.nodes_of(ranks)).unwrap_or_default();
        let task = Task::Control { targets: targets.clone(), request: request.clone() };
        operations.give_task(cx, number, daemons, task);
    }
    Vec::new()
}

/// A request to resume ranks does not end the standstill of their launcher.
fn explain_standing(dvm: &Dvm, targets: &mut Targets, members: &[Members]) {
    for Members { nspace, ranks } in members {
        let Some(job) = dvm.jobs.get(nspace) else { continue };
        let standing = job.pauses.suspended(ranks);
        if !standing.is_empty() {
            let why = format!("the launcher, which is suspended, still holds {}", standing.in_words());
            targets.explain(nspace, Status::SUCCESS, &why);
        }
    }
}

/// Processes have ended before all daemons have done their part.
pub(super) fn control_without(
    cx: &mut Cx<'_>,
    operations: &mut Operations,
    nspace: &Nspace,
    ranks: &Ranges,
) -> Vec<Consequence> {
    let mut then = checkpoint::checkpoint_without(cx, operations, nspace, ranks);
    let all = operations.of_mut::<Controlling>();
    let touched: Vec<(u64, bool)> =
        all.map(|(number, control)| (number, control.without(nspace, ranks))).collect();
    for (number, is_over) in touched {
        let is_of_job =
            |task: &Task| matches!(task, Task::Control { targets, .. } if targets.nspace == *nspace);
        then.extend(operations.drop_tasks(cx, number, |task| is_over && is_of_job(task)));
    }
    then
}

/// The most completed cleanup requests that are remembered.
const MOST_ENTERED: usize = 1024;
