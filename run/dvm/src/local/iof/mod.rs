//! Output of processes on its way to its readers: nothing lost, nothing reordered, never more held than stated.
//!
//! A stream may be read only as far as it has credit; credit comes back when all readers have taken what was read. So a slow
//! terminal stops the process, not the daemons between. The overlay carries what was read to the root, which decides on the
//! readers: the user, and every client that has pulled the stream (`pull.rs`).

mod pull;

use std::sync::Arc;

use phalanx_spec::IofChannel;
use phalanx_wire::ProcId;

use crate::config::Limits;
use crate::effect::Effect;
use crate::local::Tables;
use crate::local::turn::Cx;
use crate::msg::{LEAST_CHARGE, OutputPiece, charge};

pub(in crate::local) use pull::Delivering;

/// How far one stream may be read ahead of its readers when `procs` processes share the node.
pub(in crate::local) fn stream_window(limits: &Limits, procs: usize) -> usize {
    let share = limits.output_pool / (2 * procs.max(1));
    share.clamp(2 * LEAST_CHARGE, limits.output_link.max(2 * LEAST_CHARGE))
}

impl Tables {
    pub(in crate::local) fn on_output(
        &mut self,
        cx: &mut Cx<'_>,
        proc: ProcId,
        channel: IofChannel,
        data: Arc<[u8]>,
    ) {
        let open = self.proc_mut(&proc).and_then(|entry| entry.stream(channel)).is_some_and(|open| *open);
        if open && !data.is_empty() {
            self.emit_chunk(cx, proc, channel, data);
        }
    }

    pub(in crate::local) fn on_output_closed(&mut self, cx: &mut Cx<'_>, proc: &ProcId, channel: IofChannel) {
        let Some(job) = self.jobs.get_mut(&proc.nspace) else { return };
        let is_kept = job.procs.get(&proc.rank).is_some_and(|entry| job.keeps_end(entry));
        let Some(entry) = job.procs.get_mut(&proc.rank) else { return };
        let Some(open) = entry.stream(channel).filter(|open| **open) else { return };
        *open = false;
        if is_kept {
            let at = [IofChannel::STDOUT, IofChannel::STDERR].iter().position(|one| *one == channel);
            entry.unsaid[at.unwrap_or(2)] = true;
            return self.try_renewals(cx, &proc.nspace);
        }
        self.tell_stream_ended(cx, proc.clone(), channel);
    }

    pub(in crate::local) fn tell_stream_ended(&mut self, cx: &mut Cx<'_>, proc: ProcId, channel: IofChannel) {
        self.emit_chunk(cx, proc, channel, Arc::default());
    }

    fn emit_chunk(&mut self, cx: &mut Cx<'_>, proc: ProcId, channel: IofChannel, data: Arc<[u8]>) {
        let mut pid = None;
        if let Some(job) = self.jobs.get_mut(&proc.nspace) {
            job.chunks += 1;
            job.wrote = cx.now;
            pid = job.procs.get(&proc.rank).and_then(|entry| entry.pid);
        }
        cx.stream(OutputPiece { proc, pid, channel, data });
    }

    /// All readers have taken these pieces: the streams may be read further.
    pub(in crate::local) fn on_taken(&mut self, cx: &mut Cx<'_>, pieces: Vec<OutputPiece>) {
        let mut touched = Vec::new();
        for OutputPiece { proc, channel, data, .. } in pieces {
            let Some(job) = self.jobs.get_mut(&proc.nspace) else { continue };
            job.chunks -= 1;
            if job.chunks == 0 && touched.last() != Some(&proc.nspace) {
                touched.push(proc.nspace.clone());
            }
            let open = job
                .procs
                .get_mut(&proc.rank)
                .and_then(|entry| entry.stream(channel))
                .is_some_and(|open| *open);
            if open && !data.is_empty() {
                cx.effect(Effect::Credit { proc, channel, bytes: charge(data.len()) });
            }
        }
        touched.iter().for_each(|nspace| self.try_ended(cx, nspace));
    }
}
