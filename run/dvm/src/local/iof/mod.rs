//! Output of processes on its way to its readers: nothing lost, nothing reordered, never more held than stated.
//!
//! A stream may be read only as far as it has credit; credit comes back when all readers have taken what was read. So a slow
//! terminal stops the process, not the daemons between. The overlay carries what was read to the root, which decides on the
//! readers: the user, and every client that has pulled the stream (`pull.rs`).

mod pull;

use std::sync::Arc;

use phalanx_spec::{IofChannel, Rank};
use phalanx_wire::Nspace;

use crate::config::Limits;
use crate::effect::Effect;
use crate::local::job::{Jobs, LocalJob};
use crate::local::turn::Cx;
use crate::msg::{LEAST_CHARGE, OutputPiece, charge};

pub(in crate::local) use pull::Delivering;

/// How far one stream may be read ahead of its readers when `procs` processes share the node.
pub(in crate::local) fn stream_window(limits: &Limits, procs: usize) -> usize {
    let share = limits.output_pool / (2 * procs.max(1));
    share.clamp(2 * LEAST_CHARGE, limits.output_link.max(2 * LEAST_CHARGE))
}

/// A process has written.
pub(in crate::local) fn wrote(
    cx: &mut Cx<'_>,
    job: &mut LocalJob,
    rank: Rank,
    (channel, data): (IofChannel, Arc<[u8]>),
) {
    let is_open = job.procs.get(&rank).is_some_and(|proc| proc.streams.is_open(channel));
    if is_open && !data.is_empty() {
        emit(cx, job, rank, (channel, data));
    }
}

/// A stream of a process is closed. Not reported while the process may be started again.
pub(in crate::local) fn closed(cx: &mut Cx<'_>, job: &mut LocalJob, rank: Rank, channel: IofChannel) {
    let is_kept = job.procs.get(&rank).is_some_and(|proc| job.keeps_end(proc));
    let was_open = job.procs.get_mut(&rank).is_some_and(|proc| proc.streams.close(channel, is_kept));
    if was_open && !is_kept {
        tell_ended(cx, job, rank, channel);
    }
}

/// Reports the end of a stream.
pub(in crate::local) fn tell_ended(cx: &mut Cx<'_>, job: &mut LocalJob, rank: Rank, channel: IofChannel) {
    emit(cx, job, rank, (channel, Arc::default()));
}

fn emit(cx: &mut Cx<'_>, job: &mut LocalJob, rank: Rank, (channel, data): (IofChannel, Arc<[u8]>)) {
    job.chunks += 1;
    job.wrote = cx.now;
    let pid = job.procs.get(&rank).and_then(|proc| proc.pid());
    cx.stream(OutputPiece { proc: job.id(rank), pid, channel, data });
}

/// All readers have taken these pieces: the streams may be read further. Returns the jobs of which nothing is on its way.
pub(in crate::local) fn taken(cx: &mut Cx<'_>, jobs: &mut Jobs, pieces: Vec<OutputPiece>) -> Vec<Nspace> {
    let mut done = Vec::new();
    for OutputPiece { proc, channel, data, .. } in pieces {
        let Some(job) = jobs.get_mut(&proc.nspace) else { continue };
        job.chunks -= 1;
        if job.chunks == 0 && done.last() != Some(&proc.nspace) {
            done.push(proc.nspace.clone());
        }
        let is_open = job.procs.get(&proc.rank).is_some_and(|entry| entry.streams.is_open(channel));
        if is_open && !data.is_empty() {
            cx.effect(Effect::Credit { proc, channel, bytes: charge(data.len()) });
        }
    }
    done
}
