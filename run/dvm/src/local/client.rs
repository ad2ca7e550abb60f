//! Processes as clients of our server: when they connect, finalize, or lose their connection.

use std::time::Duration;

use phalanx_core::host::ClientRefused;
use phalanx_core::{HostCall, HostReply};
use phalanx_spec::{Rank, Status};
use phalanx_wire::Text;

use crate::effect::Effect;
use crate::local::end;
use crate::local::job::LocalJob;
use crate::local::proc::Pmix;
use crate::local::timer::Timer;
use crate::local::turn::Cx;
use crate::msg::Up;

/// A client has connected, finalized, or lost its connection.
pub(super) fn is_now(cx: &mut Cx<'_>, job: &mut LocalJob, rank: Rank, pmix: Pmix) {
    let Some(proc) = job.procs.get_mut(&rank) else { return };
    if pmix == Pmix::Lost && proc.pmix == Pmix::Finalized {
        return;
    }
    // This concerns its predecessor.
    if proc.is_preparing() && pmix != Pmix::Connected {
        return;
    }
    if pmix == Pmix::Finalized {
        job.finalized_after = cx.now.since(job.since);
    }
    let first = proc.pmix == Pmix::Never;
    proc.pmix = pmix;
    if first && pmix == Pmix::Connected {
        let scratch = job.desc.directory(&cx.config.scratch);
        cx.effect(Effect::MakeScratch { path: Text::from(format!("{scratch}/{}", rank.0)) });
        if !job.connected.contains(rank.0) {
            job.connected.insert(rank.0);
            job.connected_after = cx.now.since(job.since);
            cx.timers.set_once(cx.now.after(COLLECT), Timer::Connected(job.desc.nspace.clone()));
        }
    }
    if matches!(pmix, Pmix::Finalized | Pmix::Lost) {
        end::settle(cx, job, rank);
    }
}

/// Our server has lost a client. A dying process closes its connection before it can be reaped: it is given up once it is
/// reaped, or after a while if it goes on living.
pub(super) fn lost(
    cx: &mut Cx<'_>,
    job: &mut LocalJob,
    rank: Rank,
    (call, cut_off): (HostCall, Option<String>),
) {
    if let Some(why) = cut_off {
        tell_cut_off(cx, job, rank, &why);
    }
    is_now(cx, job, rank, Pmix::Lost);
    let unheld = match job.procs.get_mut(&rank) {
        Some(proc) => proc.lose(call),
        None => Some(call),
    };
    match unheld {
        Some(call) => cx.reply(call, HostReply::Done(Status::SUCCESS)),
        // It is released soon.
        None if job.has_ended(rank) => {}
        None => cx.timers.set(cx.now.after(cx.config.limits.settle_grace), Timer::Over(job.id(rank))),
    }
}

/// Our server has closed the connection of a rank. Later reports do not show the reason. Only the first of a job here is
/// reported.
fn tell_cut_off(cx: &mut Cx<'_>, job: &mut LocalJob, rank: Rank, why: &str) {
    if std::mem::replace(&mut job.reported_cut_off, true) {
        return;
    }
    let text = format!(
        "the connection of rank {rank} (on {}) to its PMIx server was closed: {why}",
        cx.config.hostname
    );
    cx.post(Up::Note { about: Some(job.id(rank)), text });
}

/// Reports how many ranks have called init.
pub(super) fn tell_connected(cx: &mut Cx<'_>, job: &LocalJob) {
    cx.post(Up::Connected { nspace: job.desc.nspace.clone(), reached: job.has_connected() });
}

/// Delays progress reports, so that they are few.
const COLLECT: Duration = Duration::from_millis(250);

/// Our server has refused a process of another user that calls itself a rank. Only the first of a job here is reported.
pub(super) fn refused(cx: &mut Cx<'_>, job: &mut LocalJob, refused: &ClientRefused) {
    let ClientRefused { proc, uid, pid, expected } = refused;
    if std::mem::replace(&mut job.reported_refusal, true) {
        return;
    }
    let pid = pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default();
    let text = format!(
        "the PMIx server of {} has refused rank {}: the process that calls itself so{pid} runs as user {uid}, and the \
         job as user {expected}. Ranks have the user of px: start px as user {uid}, instead of changing the user in \
         front of the program",
        cx.config.hostname, proc.rank
    );
    cx.post(Up::Note { about: Some(proc.clone()), text });
}

/// Our server has not taken what a rank has committed. Its library may ignore that.
pub(super) fn commit_refused(cx: &mut Cx<'_>, job: &mut LocalJob, rank: Rank, why: &str) {
    if job.reported_commits == MAX_COMMITS {
        return;
    }
    job.reported_commits += 1;
    let last = if job.reported_commits == MAX_COMMITS { ". Further ones here are not reported" } else { "" };
    let text = format!(
        "the PMIx server of {} has refused a commit of rank {rank}: {why}. What it has put is not available to others{last}",
        cx.config.hostname
    );
    cx.post(Up::Note { about: Some(job.id(rank)), text });
}

/// So many refused commits of a job are reported by each daemon.
const MAX_COMMITS: usize = 8;
