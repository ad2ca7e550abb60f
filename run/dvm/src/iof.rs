//! Output of processes on its way to those who read it: nothing lost, nothing reordered, never more held than stated.
//!
//! A stream may be read only as far as it has credit; credit comes back when all who read it have taken what was read. So a
//! slow terminal stops the process, not the daemons between. On the way up each link carries a bounded number of bytes
//! at a time. The daemon that read a chunk keeps it until it was taken, and sends it again when the way has changed. At the
//! root `readers.rs` decides who gets it: the user, and whoever has pulled the stream (`pull.rs`).

mod cache;
mod past;
mod pull;
mod readers;
mod retained;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use phalanx_spec::IofChannel;
use phalanx_wire::ProcId;

pub(crate) use cache::{Cache, CachePlan};
use pull::Delivering;
pub(crate) use pull::{OUTPUTS, PULL_ATTRIBUTES, TapName};
use readers::Readers;

use crate::config::Limits;
use crate::daemon::{Cx, Daemon};
use crate::effect::Effect;
use crate::msg::{Chunk, ChunkAck, Msg, NodeId};

#[derive(Debug)]
pub(crate) struct Iof {
    last: u64,
    /// Read here, not yet taken by everybody.
    unacked: BTreeMap<u64, Chunk>,
    /// To go up, ours and our children's, with the child whose link it came by.
    queue: VecDeque<(Option<NodeId>, Chunk)>,
    /// How many bytes the parent still takes.
    credit: usize,
    link: usize,
    /// Output for those who pulled it here, with our server.
    delivering: Delivering,
    /// Root only.
    readers: Readers,
}

impl Iof {
    pub(crate) fn new(limits: &Limits) -> Iof {
        Iof {
            last: 0,
            unacked: BTreeMap::new(),
            queue: VecDeque::new(),
            credit: limits.output_link,
            link: limits.output_link,
            delivering: Delivering::default(),
            readers: Readers::default(),
        }
    }
}

/// What reading `bytes` at once costs of a stream's credit: tiny pieces are not cheaper than what keeps them.
pub fn charge(bytes: usize) -> usize {
    bytes.max(LEAST_CHARGE)
}

/// A stream with less credit than this is not read.
pub const LEAST_CHARGE: usize = 256;

impl Daemon {
    /// What one stream may have read ahead of its readers when `procs` processes share the node.
    pub(crate) fn stream_window(&self, procs: usize) -> usize {
        let limits = &self.config.limits;
        let share = limits.output_pool / (2 * procs.max(1));
        share.clamp(2 * LEAST_CHARGE, limits.output_link.max(2 * LEAST_CHARGE))
    }

    pub(crate) fn on_output(&mut self, cx: &mut Cx<'_>, proc: ProcId, channel: IofChannel, data: Arc<[u8]>) {
        let open = self.proc_mut(&proc).and_then(|entry| entry.stream(channel)).is_some_and(|open| *open);
        if open && !data.is_empty() {
            self.emit_chunk(cx, proc, channel, data);
        }
    }

    pub(crate) fn on_output_closed(&mut self, cx: &mut Cx<'_>, proc: &ProcId, channel: IofChannel) {
        let Some(open) = self.proc_mut(proc).and_then(|entry| entry.stream(channel)).filter(|open| **open)
        else {
            return;
        };
        *open = false;
        self.emit_chunk(cx, proc.clone(), channel, Arc::default());
    }

    fn emit_chunk(&mut self, cx: &mut Cx<'_>, proc: ProcId, channel: IofChannel, data: Arc<[u8]>) {
        let mut pid = None;
        if let Some(job) = self.jobs.get_mut(&proc.nspace) {
            job.chunks += 1;
            pid = job.procs.get(&proc.rank).and_then(|entry| entry.pid);
        }
        self.iof.last += 1;
        let chunk = Chunk { origin: self.me, seq: self.iof.last, proc, pid, channel, data };
        self.iof.unacked.insert(chunk.seq, chunk.clone());
        self.on_chunk(cx, None, chunk);
    }

    /// A chunk, read here or come from a child.
    pub(crate) fn on_chunk(&mut self, cx: &mut Cx<'_>, via: Option<NodeId>, chunk: Chunk) {
        if self.me == NodeId::ROOT {
            return self.show(cx, via, chunk);
        }
        self.iof.queue.push_back((via, chunk));
        self.pump_chunks(cx);
    }

    pub(crate) fn on_chunk_credit(&mut self, cx: &mut Cx<'_>, bytes: usize) {
        self.iof.credit = (self.iof.credit + bytes).min(self.iof.link);
        self.pump_chunks(cx);
    }

    fn pump_chunks(&mut self, cx: &mut Cx<'_>) {
        if !self.parent.is_some_and(|parent| self.links.is_ready(parent)) {
            return;
        }
        // A chunk larger than the whole window goes when the window is empty.
        let fits = |bytes: usize, credit: usize, link: usize| bytes <= credit || credit == link;
        while let Some((_, chunk)) = self.iof.queue.front() {
            if !fits(chunk.data.len(), self.iof.credit, self.iof.link) {
                return;
            }
            let Some((via, chunk)) = self.iof.queue.pop_front() else { return };
            let bytes = chunk.data.len();
            self.iof.credit = self.iof.credit.saturating_sub(bytes);
            self.send_up(cx, Msg::Chunk(chunk));
            if let Some(child) = via.filter(|_| bytes > 0) {
                self.send(cx, child, Msg::ChunkCredit { bytes });
            }
        }
    }

    /// Everybody has taken these: the streams may be read further.
    pub(crate) fn on_chunk_acks(&mut self, cx: &mut Cx<'_>, acks: &[ChunkAck]) {
        let mut touched = Vec::new();
        let ours = acks.iter().filter(|ack| ack.origin == self.me).flat_map(|ack| ack.first..=ack.last);
        for seq in ours {
            let Some(Chunk { proc, channel, data, .. }) = self.iof.unacked.remove(&seq) else { continue };
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

    /// The way up is a new one; what our children had queued here they send again themselves.
    pub(crate) fn send_chunks_again(&mut self, cx: &mut Cx<'_>) {
        self.iof.queue = self.iof.unacked.values().map(|chunk| (None, chunk.clone())).collect();
        self.iof.credit = self.iof.link;
        self.pump_chunks(cx);
    }

    /// A child's link is new, or the child is lost: no credit goes back for what came by the old one.
    pub(crate) fn reset_child_output(&mut self, child: NodeId) {
        self.iof.readers.reset_child(child);
        self.iof.queue.retain(|(via, _)| *via != Some(child));
    }
}
