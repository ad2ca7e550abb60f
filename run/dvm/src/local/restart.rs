//! Processes that are started again in their place. The root first has them ended, and when that is done everywhere, started.
//!
//! The end of a process that is about to be started again, and of its output, is not reported. In jobs that restart failed
//! ranks, it is held back until the root has decided. Actions on a process between two lives apply to its successor, and are
//! answered then.

use std::sync::Arc;

use phalanx_core::server::ServerCall;
use phalanx_spec::{Rank, Status};
use phalanx_wire::Text;

use crate::local::calls::Call;
use crate::local::drain;
use crate::local::iof;
use crate::local::job::{Jobs, LocalJob};
use crate::local::launch;
use crate::local::orders::Killed;
use crate::local::proc::Proc;
use crate::local::renewal::{Renewal, Step};
use crate::local::timer::Timer;
use crate::local::turn::Cx;
use crate::msg::{Members, NodeTable, OpId, Part, Programs, Results, TaskId};
use crate::ranges::Ranges;

/// Ends processes, and keeps their places.
pub(super) fn clear(cx: &mut Cx<'_>, jobs: &mut Jobs, task: &TaskId, targets: &Members) {
    let Some(job) = jobs.get_mut(&targets.nspace) else {
        return cx.join(OpId::Task(task.clone()), Part::Nothing);
    };
    let mut renewal = renewal(job, task, targets, Step::Clear);
    if job.reported_end || job.is_ending {
        let open = std::mem::take(&mut renewal.open);
        renewal.results.set(&open, Status::ERR_NOT_FOUND);
    }
    for rank in renewal.open.iter() {
        let id = job.id(Rank(rank));
        job.procs.get_mut(&Rank(rank)).into_iter().for_each(|proc| proc.clear(cx, &id));
    }
    job.renewals.push(renewal);
    cx.timers.set_once(cx.now.after(cx.config.limits.reap_grace), Timer::Reap(targets.nspace.clone()));
}

/// These ranks are about to run again somewhere. `ran`: those of which the last process ran.
pub(super) fn renewed(
    cx: &mut Cx<'_>,
    job: &mut LocalJob,
    table: &Arc<NodeTable>,
    (ranks, ran): (&Ranges, &Ranges),
    from: Option<&Text>,
) {
    job.generation += 1;
    let lives = Arc::make_mut(&mut job.lives);
    for rank in ranks.iter() {
        job.dead.remove(rank);
        let life = lives.entry(rank).or_default();
        life.number += u32::from(ran.contains(rank));
        life.from = from.cloned();
    }
    if job.registered {
        forget_values(cx, job, ranks);
        let info = job.desc.job_info(cx.config.id, &cx.config.scratch, table, &job.lives);
        let call = ServerCall::RegisterNspace(Box::new(info));
        cx.call(call, Call::Notice("reporting restarted ranks"));
    }
}

/// Starts new processes in the places that are kept.
pub(super) fn renew(cx: &mut Cx<'_>, jobs: &mut Jobs, task: &TaskId, targets: &Members) {
    let Some(job) = jobs.get_mut(&targets.nspace) else {
        return cx.join(OpId::Task(task.clone()), Part::Nothing);
    };
    let mut renewal = renewal(job, task, targets, Step::Start);
    let is_kept =
        |rank: &u32| job.procs.get(&Rank(*rank)).is_some_and(|proc| proc.next.is_some() && proc.is_gone());
    let kept: Ranges = renewal.open.iter().filter(is_kept).collect();
    renewal
        .results
        .set(&renewal.open.iter().filter(|rank| !kept.contains(*rank)).collect(), Status::ERR_NOT_FOUND);
    renewal.open = kept.clone();
    let (mut kill_at, mut is_killed) = (None, false);
    for rank in kept.iter() {
        let Some(next) = job.procs.get_mut(&Rank(rank)).and_then(|proc| proc.next.take()) else { continue };
        match next.killed() {
            Some(Killed::Asked { kill_at: at }) => kill_at = kill_at.into_iter().chain([at]).min(),
            Some(Killed::Forced) => is_killed = true,
            None => {}
        }
        job.procs.insert(Rank(rank), Proc::new(next));
    }
    job.renewals.push(renewal);
    if let Some(at) = kill_at {
        cx.timers.set(at, Timer::Kill(targets.nspace.clone()));
    }
    if is_killed {
        cx.timers.set_once(cx.now.after(cx.config.limits.reap_grace), Timer::Reap(targets.nspace.clone()));
    }
    kept.iter().for_each(|rank| launch::prepare(cx, &job.id(Rank(rank))));
    job.answer_held(cx, &kept, Status::SUCCESS, None);
}

fn renewal(job: &LocalJob, task: &TaskId, targets: &Members, step: Step) -> Renewal {
    let here = job.procs.keys().map(|rank| rank.0).filter(|rank| targets.ranks.contains(*rank));
    let (open, results) = (here.collect(), Results::default());
    let (ran, pids, programs) = (Ranges::new(), Vec::new(), Programs::default());
    Renewal { task: task.clone(), step, open, results, ran, pids, programs }
}

/// Takes note of the processes that have completed a step.
pub(super) fn advance(cx: &mut Cx<'_>, job: &mut LocalJob) {
    let (mut cleared, mut started) = (Vec::new(), Vec::new());
    for renewal in &mut job.renewals {
        for rank in renewal.open.clone().iter() {
            let Some(proc) = job.procs.get(&Rank(rank)) else { continue };
            let Some(status) = renewal.result(proc) else { continue };
            renewal.open.remove(rank);
            renewal.results.set(&Ranges::single(rank), status);
            match (renewal.step, proc.pid()) {
                (Step::Clear, _) => {
                    cleared.push(Rank(rank));
                    proc.exit_of().into_iter().for_each(|_| renewal.ran.insert(rank));
                }
                (Step::Start, Some(pid)) => {
                    renewal.pids.push((rank, pid));
                    renewal.programs.merge(job.programs.take(&Ranges::single(rank)));
                    started.push((Rank(rank), pid));
                }
                (Step::Start, None) => {}
            }
        }
    }
    for rank in cleared {
        // The server must forget it now, before its successor of the same name connects.
        let id = job.id(rank);
        cx.ended.retain(|ended| *ended != id);
        cx.timers.cancel(|timer| *timer == Timer::Over(id.clone()));
        job.release(cx, rank);
        forget_values(cx, job, &Ranges::single(rank.0));
    }
    if !started.is_empty() {
        let call = ServerCall::Started { nspace: job.desc.nspace.clone(), pids: started };
        cx.call(call, Call::Notice("reporting pids"));
    }
}

/// Contributes to the tasks that are complete.
pub(super) fn contribute(cx: &mut Cx<'_>, job: &mut LocalJob) {
    for renewal in job.renewals.extract_if(.., |renewal| renewal.open.is_empty()) {
        let (op, part) = renewal.part();
        cx.join(op, part);
    }
}

/// The job ends: no process is started again. Processes that have ended but are not settled are reported as they settle.
pub(super) fn give_places_up(cx: &mut Cx<'_>, job: &mut LocalJob) {
    job.is_ending = true;
    for renewal in &mut job.renewals {
        let open = std::mem::take(&mut renewal.open);
        renewal.results.set(&open, Status::ERR_PROC_ABORTED);
    }
    contribute(cx, job);
    let kept: Vec<Rank> =
        job.procs.iter().filter(|(_, proc)| proc.next.is_some()).map(|(rank, _)| *rank).collect();
    kept.into_iter().for_each(|rank| give_place_up(cx, job, rank));
}

/// This process is not started again: reports what has ended of it.
pub(super) fn give_place_up(cx: &mut Cx<'_>, job: &mut LocalJob, rank: Rank) {
    let Some(proc) = job.procs.get_mut(&rank) else { return };
    proc.next = None;
    job.answer_held(cx, &Ranges::single(rank.0), Status::ERR_NOT_FOUND, None);
    let Some(proc) = job.procs.get_mut(&rank).filter(|proc| proc.has_ended()) else { return };
    proc.streams.say().into_iter().for_each(|channel| iof::tell_ended(cx, job, rank, channel));
    drain::try_begin(cx, job);
}

/// Makes the server forget the values that these ranks have put.
fn forget_values(cx: &mut Cx<'_>, job: &LocalJob, ranks: &Ranges) {
    let (nspace, ranks) = (job.desc.nspace.clone(), ranks.iter().map(Rank).collect());
    let call = ServerCall::ForgetValues { nspace, ranks };
    cx.call(call, Call::Notice("forgetting the values of restarted ranks"));
}
