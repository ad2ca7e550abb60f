//! Acting on processes: signals, termination with a deadline, stop and continue.

use std::collections::BTreeMap;
use std::time::Duration;

use phalanx_core::host::Asked;
use phalanx_core::{HostCall, HostReply, ServerCall};
use phalanx_spec::{Rank, Status};
use phalanx_wire::ProcId;
use phalanx_wire::cmd::control::JobControl;

use crate::effect::Effect;
use crate::local::calls::Call;
use crate::local::end;
use crate::local::job::{self, Jobs, LocalJob};
use crate::local::launch;
use crate::local::orders::{Action, Killed};
use crate::local::proc::Proc;
use crate::local::requests::Requests;
use crate::local::restart;
use crate::local::timer::Timer;
use crate::local::turn::Cx;
use crate::msg::{
    Control, ControlCall, ControlRequest, ExitStatus, Members, OpId, Part, Pauser, Purpose, Results,
    SpawnFailure, TaskId, Up,
};
use crate::ranges::Ranges;
use crate::signals::SIGKILL;

/// Returns the ranks for which [`tree_stopped`] follows. `ranks`: `None` for all. `grace`: the time from the polite signal to
/// the kill; the job's own by default. `pauser`: the reason for a pause.
pub(super) fn act_on(
    cx: &mut Cx<'_>,
    job: &mut LocalJob,
    ranks: Option<&Ranges>,
    control: Control,
    (grace, pauser): (Option<Duration>, &Pauser),
) -> Ranges {
    let nspace = job.desc.nspace.clone();
    let limits = &cx.config.limits;
    let (kill_grace, reap_grace) = (limits.kill_grace, limits.reap_grace);
    let grace = grace.or(job.desc.kill_after).unwrap_or(kill_grace);
    let kill_at = cx.now.after(grace);
    let alone = ranks.is_some() && !job.is_ending;
    let action = Action { control, pauser, kill_at, alone };
    let (mut stopped, mut paused) = (Ranges::new(), [Vec::new(), Vec::new()]);
    for (rank, proc) in chosen(&mut job.procs, ranks) {
        if control == Control::Suspend && proc.next.is_none() && proc.running().is_some() {
            stopped.insert(rank.0);
        }
        let is_paused = proc.act(cx, &ProcId::new(&nspace, rank), &action);
        is_paused.into_iter().for_each(|is_paused| paused[usize::from(is_paused)].push(rank));
    }
    for (is_paused, ranks) in [false, true].into_iter().zip(paused).filter(|(_, ranks)| !ranks.is_empty()) {
        let call = ServerCall::Paused { nspace: nspace.clone(), ranks, is_paused };
        cx.call(call, Call::Notice("reporting a pause"));
    }
    let waits = job.procs.values().any(|proc| proc.killed().is_some() && !proc.is_gone());
    match control {
        Control::Terminate { .. } if waits => cx.timers.set(kill_at, Timer::Kill(nspace)),
        Control::Kill if waits => cx.timers.set_once(cx.now.after(reap_grace), Timer::Reap(nspace)),
        _ => {}
    }
    if ranks.is_none() && control.deadly().is_some() {
        restart::give_places_up(cx, job);
    }
    stopped
}

/// A process was stopped with its descendants; `escaped`: with some of them.
pub(super) fn tree_stopped(cx: &mut Cx<'_>, job: &mut LocalJob, rank: Rank, escaped: bool) {
    let ranks = Ranges::single(rank.0);
    if !escaped {
        return job.answer_held(cx, &ranks, Status::SUCCESS, None);
    }
    let text = format!("rank {rank} on {} is paused in part: {ESCAPED}", cx.config.hostname);
    cx.post(Up::Note { about: Some(job.id(rank)), text });
    job.answer_held(cx, &ranks, Status::ERR_PARTIAL_SUCCESS, Some(ESCAPED));
}

/// Kills processes that were asked to end and are still there, and the processes left by ranks that were asked to end while
/// their job goes on.
pub(super) fn kill_due(cx: &mut Cx<'_>, job: &mut LocalJob) {
    for (rank, proc) in &mut job.procs {
        if !job.is_ending && proc.must_rest_be_killed(cx.now) {
            let proc = ProcId::new(&job.desc.nspace, *rank);
            cx.effect(Effect::SignalTree { proc, signal: SIGKILL });
        }
    }
    let due = job.procs.iter().filter(|(_, proc)| proc.must_be_killed(cx.now));
    let ranks: Ranges = due.map(|(rank, _)| rank.0).collect();
    if !ranks.is_empty() {
        act_on(cx, job, Some(&ranks), Control::Kill, (None, &Pauser::default()));
    }
}

/// A process that survives SIGKILL hangs in the kernel; the job does not wait for it.
pub(super) fn reap_due(cx: &mut Cx<'_>, job: &mut LocalJob) {
    let hangs = |proc: &Proc| proc.killed() == Some(Killed::Forced) && !proc.is_gone();
    let hanging = job.procs.iter().filter(|(_, proc)| hangs(proc));
    let hanging: Vec<_> = hanging.map(|(rank, proc)| (*rank, proc.running())).collect();
    for (rank, running) in hanging {
        let pid = running.map(|pid| format!(" (pid {pid})")).unwrap_or_default();
        let text = format!("rank {rank}{pid} on {} survived SIGKILL", cx.config.hostname);
        cx.post(Up::Note { about: Some(job.id(rank)), text });
        match running {
            Some(_) => {
                end::exited(cx, job, rank, ExitStatus::Signal { number: SIGKILL, core_dumped: false });
            }
            None => launch::spawn_failed(cx, job, rank, SpawnFailure::never_answered()),
        }
    }
}

/// A job control request by a process of ours. Only cleanup paths for processes of this node can be registered without the
/// root.
pub(super) fn on_request(
    cx: &mut Cx<'_>,
    (jobs, requests): (&mut Jobs, &mut Requests),
    call: HostCall,
    asked: Asked<JobControl>,
) {
    match ControlCall::read(&asked.from, &asked.directives) {
        Err(status) => cx.reply(call, HostReply::Done(status)),
        Ok(ControlCall {
            cancel: None,
            registration: None,
            purpose: Some(Purpose::Act(ControlRequest { actions, cleanup: Some(cleanup), .. })),
            ..
        }) if actions.is_empty()
            && let Ok(members) =
                Members::targets(&asked.from, &asked.targets, |nspace| Some(&*jobs.get(nspace)?.desc))
            && members.iter().all(|of| are_here(jobs, of)) =>
        {
            let status = job::register_cleanup(cx, jobs, &members, &cleanup);
            cx.reply(call, HostReply::Infos(status, Vec::new()));
        }
        Ok(_) => requests.hand_up(cx, call, asked.into()),
    }
}

/// A job control task with targets here. The answer waits for targets that are being started again or stopped.
pub(super) fn on_task(
    cx: &mut Cx<'_>,
    jobs: &mut Jobs,
    id: &TaskId,
    targets: &Members,
    request: &ControlRequest,
) {
    let Members { nspace, ranks } = targets;
    let job = jobs.get(nspace);
    let here: Ranges = job
        .into_iter()
        .flat_map(|job| job.procs.keys())
        .map(|rank| rank.0)
        .filter(|rank| ranks.contains(*rank))
        .collect();
    let is_gone = |rank: &u32| {
        let proc = job.and_then(|job| job.procs.get(&Rank(*rank)));
        proc.is_none_or(Proc::is_gone)
    };
    let kept = job.map(|job| job.kept(&here)).unwrap_or_default();
    let gone: Ranges = here.iter().filter(|rank| is_gone(rank) && !kept.contains(*rank)).collect();
    let living: Ranges = here.iter().filter(|rank| !gone.contains(*rank)).collect();
    let mut results = Results::default();
    if let Some(cleanup) = &request.cleanup {
        let members = [Members { nspace: nspace.clone(), ranks: here.clone() }];
        let status = job::register_cleanup(cx, jobs, &members, cleanup);
        if !status.is_success() || request.actions.is_empty() {
            results.set(&here, status);
            return cx.join(OpId::Task(id.clone()), Part::Results(results));
        }
    }
    let job = jobs.get_mut(nspace);
    let mut open = kept;
    if let Some(job) = job {
        for action in &request.actions {
            open.add(&act_on(cx, job, Some(&living), *action, (request.grace, &request.pauser)));
        }
        results.set(&living.iter().filter(|rank| !open.contains(*rank)).collect(), Status::SUCCESS);
        results.set(&gone, Status::ERR_NOT_FOUND);
        if !open.is_empty() {
            return job.hold(id, open, results);
        }
    }
    cx.join(OpId::Task(id.clone()), Part::Results(results));
}

/// Whether all of them are processes of this node.
fn are_here(jobs: &Jobs, members: &Members) -> bool {
    let Some(job) = jobs.get(&members.nspace) else { return false };
    members.ranks.iter().all(|rank| job.procs.contains_key(&Rank(rank)))
}

fn chosen<'a>(
    procs: &'a mut BTreeMap<Rank, Proc>,
    ranks: Option<&'a Ranges>,
) -> impl Iterator<Item = (Rank, &'a mut Proc)> {
    procs
        .iter_mut()
        .filter(move |(rank, _)| ranks.is_none_or(|ranks| ranks.contains(rank.0)))
        .map(|(rank, proc)| (*rank, proc))
}

/// Why not all of a rank could be stopped.
const ESCAPED: &str = "it starts processes faster than they can be stopped, and some go on";
