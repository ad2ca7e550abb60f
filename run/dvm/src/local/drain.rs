//! What is left of a job when none of its processes runs here: output on its way, and streams that others hold open.

use std::time::Duration;

use phalanx_spec::{IofChannel, Rank};

use crate::local::iof;
use crate::local::job::LocalJob;
use crate::local::timer::Timer;
use crate::local::turn::Cx;
use crate::msg::Up;

/// If no process is left here, sets the timers that close its streams, and that report it.
pub(super) fn try_begin(cx: &mut Cx<'_>, job: &LocalJob) {
    if job.is_empty() {
        let nspace = &job.desc.nspace;
        cx.timers.set_once(cx.now.after(cx.config.limits.output_grace), Timer::Drain(nspace.clone()));
        cx.timers.set_once(cx.now.after(EXITED_AFTER), Timer::Exited(nspace.clone()));
    }
}

/// Reports that no process is left here; otherwise the root would not know until their output has been taken.
pub(super) fn tell_exited(cx: &mut Cx<'_>, job: &LocalJob) {
    if job.is_empty() {
        cx.post(Up::Exited { nspace: job.desc.nspace.clone() });
    }
}

/// Closes streams that other processes hold open after ours have died, once nothing was written for a while. Streams that
/// wait for their readers are spared: what the processes have written is still to be read.
pub(super) fn on_due(cx: &mut Cx<'_>, job: &mut LocalJob) {
    let grace = cx.config.limits.output_grace;
    if !job.is_empty() {
        return;
    }
    if job.chunks > 0 || cx.now.since(job.wrote) < grace {
        return cx.timers.set_once(cx.now.after(grace), Timer::Drain(job.desc.nspace.clone()));
    }
    let mut open: Vec<(Rank, IofChannel)> = Vec::new();
    for (rank, proc) in &job.procs {
        open.extend(proc.streams.open().map(|channel| (*rank, channel)));
    }
    open.into_iter().for_each(|(rank, channel)| iof::closed(cx, job, rank, channel));
}

/// Output of ordinary jobs has been taken by then.
const EXITED_AFTER: Duration = Duration::from_millis(500);
