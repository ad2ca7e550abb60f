//! The ends of processes, and of a job's processes here.
//!
//! A process has ended when it was reaped, its server has noticed, its streams are closed and their contents have been taken.
//! When all of a job's processes here have ended, this daemon contributes to the job's end. Whether the end of one process ends
//! the job is the root's decision (`root/fate.rs`).

use std::time::Duration;

use phalanx_spec::Rank;

use crate::effect::Effect;
use crate::local::inspect;
use crate::local::job::LocalJob;
use crate::local::proc::{Pmix, Proc};
use crate::local::restart;
use crate::local::stdin;
use crate::local::timer::Timer;
use crate::local::turn::Cx;
use crate::msg::{EndGroup, Ends, ExitStatus, FailurePolicy, OpId, Part, ProcEnd, Reached, ReportedEnds, Up};
use crate::ranges::Ranges;
use crate::signals::SIGCONT;

pub(super) fn exited(cx: &mut Cx<'_>, job: &mut LocalJob, rank: Rank, status: ExitStatus) {
    let id = job.id(rank);
    let Some(proc) = job.procs.get_mut(&rank) else { return };
    let Some(was_paused) = proc.exit(status, cx.now.since(job.since)) else { return };
    // A request to resume could no longer name the rank, so the processes it has left would stay stopped.
    if was_paused {
        cx.effect(Effect::SignalTree { proc: id.clone(), signal: SIGCONT });
    }
    let pmix = proc.pmix;
    if !status.is_success() && pmix == Pmix::Never {
        inspect::look(cx, job);
    }
    // Its last message may still be unread by its server; only then is it known whether it finalized.
    if pmix == Pmix::Connected {
        cx.timers.set(cx.now.after(cx.config.limits.settle_grace), Timer::Settle(job.desc.nspace.clone()));
    } else {
        settle(cx, job, rank);
    }
    // Input that it has not read is lost.
    if stdin::reads_stdin(&job.desc, rank) {
        stdin::refused(cx, &id);
    }
}

/// The last messages of processes that have exited should have been read by now.
pub(super) fn settle_all(cx: &mut Cx<'_>, job: &mut LocalJob) {
    let Some(until) = cx.now.since(job.since).checked_sub(cx.config.limits.settle_grace) else { return };
    let due = job.procs.iter().filter(|(_, proc)| proc.is_unsettled(until));
    let due: Vec<Rank> = due.map(|(rank, _)| *rank).collect();
    due.into_iter().for_each(|rank| settle(cx, job, rank));
}

/// All that determines how a process ended is known.
pub(super) fn settle(cx: &mut Cx<'_>, job: &mut LocalJob, rank: Rank) {
    let (id, is_recoverable) = (job.id(rank), job.is_recoverable());
    let Some(proc) = job.procs.get_mut(&rank) else { return };
    let Some(exit) = proc.settle() else { return };
    let end = ProcEnd {
        proc: id.clone(),
        node: cx.config.hostname.to_string(),
        pid: exit.pid,
        status: Some(exit.status),
        after: exit.after,
        killed_by_us: exit.killed.is_some(),
        lost_connection: proc.lost_connection(),
    };
    let telling = match (job.desc.on_failure, job.desc.reported_ends) {
        // Only the first failure is reported; the others are in the job's end.
        (FailurePolicy::KillJob, ReportedEnds::Deciding) => !job.reported_failure,
        _ => true,
    };
    let ends_job = job.desc.on_failure.ends_job(&end);
    if end.is_failure() && is_recoverable {
        proc.next.get_or_insert_default();
    }
    let is_kept = proc.next.is_some();
    if end.is_failure() && telling {
        job.reported_failure = true;
        cx.post(Up::Failed(end));
    } else if !end.is_failure() && !is_kept && job.desc.reported_ends == ReportedEnds::All {
        cx.post(Up::Left(end));
    }
    if ends_job {
        // The others are about to be ended. To notify those that wait for this one first helps nothing.
        cx.timers.set(cx.now.after(OVER_GRACE), Timer::Over(id));
    } else {
        cx.ended.push_back(id);
    }
    job.clean_up_after(cx, rank);
    if !is_kept {
        restart::give_place_up(cx, job, rank);
    }
}

/// The root asks for a report when these processes can take part in nothing any more.
pub(super) fn watch(job: &mut LocalJob, ranks: &Ranges) {
    let here = ranks.iter().filter(|rank| job.procs.contains_key(&Rank(*rank)));
    job.watched.add(&here.collect());
}

/// Reports those that the root has asked for.
pub(super) fn tell_over(cx: &mut Cx<'_>, job: &mut LocalJob) {
    let is_over = |rank: &u32| job.procs.get(&Rank(*rank)).is_none_or(Proc::is_over);
    let over: Ranges = job.watched.iter().filter(is_over).collect();
    if !over.is_empty() {
        over.iter().for_each(|rank| job.watched.remove(rank));
        cx.post(Up::Over { nspace: job.desc.nspace.clone(), ranks: over });
    }
}

/// Contributes to the job's end when nothing of it is left here.
pub(super) fn try_ended(cx: &mut Cx<'_>, job: &mut LocalJob) {
    let over = |proc: &Proc| proc.is_finished() && proc.next.is_none();
    if job.reported_end || job.procs.is_empty() || job.chunks > 0 || !job.procs.values().all(over) {
        return;
    }
    job.reported_end = true;
    // With many processes, times are coarse, so that equal ends can be merged.
    let grain = if job.desc.size <= EXACT { 1 } else { 1000 };
    let mut ends = Vec::new();
    for (rank, proc) in &job.procs {
        let after = proc.exit_of().map_or(Duration::ZERO, |exit| exit.after);
        let group = EndGroup {
            ranks: Ranges::single(rank.0),
            status: proc.exit_of().map(|exit| exit.status),
            killed_by_us: proc.killed().is_some(),
            lost_connection: proc.lost_connection(),
            connected: job.connected.contains(rank.0),
            after: Duration::from_millis((after.as_millis() as u64).div_ceil(grain) * grain),
        };
        EndGroup::merge(&mut ends, vec![group]);
    }
    let is_finalized = |proc: &&Proc| proc.pmix == Pmix::Finalized;
    let count = job.procs.values().filter(is_finalized).count() as u32;
    let finalized = Reached { count, after: job.finalized_after };
    let mut exited = Reached::default();
    let ran = job.procs.values().filter_map(Proc::exit_of);
    ran.for_each(|exit| exited.merge(Reached { count: 1, after: exit.after }));
    let ends = Ends { groups: ends, connected: job.has_connected(), finalized, exited };
    cx.join(OpId::Ended(job.desc.nspace.clone()), Part::Ends(Box::new(ends)));
}

/// The job of a failed process is ended well within this time.
const OVER_GRACE: Duration = Duration::from_millis(500);
/// In jobs up to this size, end times are exact to the millisecond.
const EXACT: u32 = 1024;
