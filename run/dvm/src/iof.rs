//! Output of processes on its way to the user: nothing lost, nothing reordered, never more held than stated.
//!
//! A stream may be read only as far as it has credit; credit comes back when the user has taken what was read. So a
//! slow terminal stops the process, not the daemons between. On the way up each link carries a bounded number of bytes
//! at a time. The daemon that read a chunk keeps it until the user has it, and sends it again when the way has changed.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use phalanx_spec::IofChannel;
use phalanx_wire::ProcId;

use crate::config::Limits;
use crate::daemon::{Cx, Daemon};
use crate::effect::{Effect, Report};
use crate::msg::{Chunk, Down, Msg, NodeId};

#[derive(Debug)]
pub(crate) struct Iof {
    last: u64,
    /// Read here, not yet taken by the user.
    unacked: VecDeque<Chunk>,
    /// To go up, ours and our children's, with the child whose link it came by.
    queue: VecDeque<(Option<NodeId>, Chunk)>,
    /// How many bytes the parent still takes.
    credit: usize,
    link: usize,
    /// Root only.
    sink: Sink,
}

/// What the user has been shown but has not taken.
#[derive(Debug, Default)]
struct Sink {
    shown: VecDeque<Shown>,
    /// Bytes taken of the first of `shown`.
    taken: usize,
    /// Per daemon, the last chunk that was shown.
    last: BTreeMap<NodeId, u64>,
    /// Per daemon, the last chunk taken, not told yet.
    untold: BTreeMap<NodeId, u64>,
    untold_bytes: usize,
}

#[derive(Debug)]
struct Shown {
    origin: NodeId,
    seq: u64,
    bytes: usize,
    via: Option<NodeId>,
}

impl Iof {
    pub(crate) fn new(limits: &Limits) -> Iof {
        Iof {
            last: 0,
            unacked: VecDeque::new(),
            queue: VecDeque::new(),
            credit: limits.output_link,
            link: limits.output_link,
            sink: Sink::default(),
        }
    }
}

impl Daemon {
    /// What one stream may have read ahead of the user when `procs` processes share the node.
    pub(crate) fn stream_window(&self, procs: usize) -> usize {
        let limits = &self.config.limits;
        (limits.output_pool / (2 * procs.max(1))).clamp(512, limits.output_link.max(512))
    }

    pub(crate) fn on_output(&mut self, cx: &mut Cx<'_>, proc: ProcId, channel: IofChannel, data: &[u8]) {
        let open = self.proc_mut(&proc).and_then(|entry| entry.stream(channel)).is_some_and(|open| *open);
        if open && !data.is_empty() {
            self.emit_chunk(cx, proc, channel, data.into());
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
        if let Some(job) = self.jobs.get_mut(&proc.nspace) {
            job.chunks += 1;
        }
        self.iof.last += 1;
        let chunk = Chunk { origin: self.me, seq: self.iof.last, proc, channel, data };
        self.iof.unacked.push_back(chunk.clone());
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

    /// Root only: hands a chunk to the user, once.
    fn show(&mut self, cx: &mut Cx<'_>, via: Option<NodeId>, chunk: Chunk) {
        let Chunk { origin, seq, proc, channel, data } = chunk;
        let last = self.iof.sink.last.entry(origin).or_default();
        if seq != *last + 1 || self.tree.is_lost(origin) {
            // Came twice, or its predecessor is still to come again.
            if let Some(child) = via.filter(|_| !data.is_empty()) {
                self.send(cx, child, Msg::ChunkCredit { bytes: data.len() });
            }
            return;
        }
        *last = seq;
        self.iof.sink.shown.push_back(Shown { origin, seq, bytes: data.len(), via });
        if data.is_empty() {
            cx.report(Report::OutputEnd { proc, channel });
        } else {
            cx.report(Report::Output { proc, channel, data: data.to_vec() });
        }
        self.on_output_taken(cx, 0);
    }

    /// Root only: the user has taken so many more bytes.
    pub(crate) fn on_output_taken(&mut self, cx: &mut Cx<'_>, bytes: usize) {
        let mut credits: BTreeMap<NodeId, usize> = BTreeMap::new();
        let sink = &mut self.iof.sink;
        sink.taken += bytes;
        while let Some(shown) = sink.shown.front().filter(|shown| shown.bytes <= sink.taken) {
            sink.taken -= shown.bytes;
            sink.untold_bytes += shown.bytes;
            sink.untold.insert(shown.origin, shown.seq);
            if let Some(child) = shown.via.filter(|_| shown.bytes > 0) {
                *credits.entry(child).or_default() += shown.bytes;
            }
            sink.shown.pop_front();
        }
        if sink.shown.is_empty() {
            sink.taken = 0;
        }
        let telling = sink.shown.is_empty() || sink.untold_bytes >= TELL_AFTER;
        let acks = if telling { std::mem::take(&mut sink.untold) } else { BTreeMap::new() };
        for (child, bytes) in credits {
            self.send(cx, child, Msg::ChunkCredit { bytes });
        }
        if !acks.is_empty() {
            self.iof.sink.untold_bytes = 0;
            let to = acks.keys().map(|node| node.0).collect();
            self.cast(cx, to, Down::ChunkAcks(acks.into_iter().collect()));
        }
    }

    /// The user has everything of ours up to here: the streams may be read further.
    pub(crate) fn on_chunk_acks(&mut self, cx: &mut Cx<'_>, acks: &[(NodeId, u64)]) {
        let Some((_, upto)) = acks.iter().find(|(node, _)| *node == self.me) else { return };
        let mut touched = Vec::new();
        while self.iof.unacked.front().is_some_and(|chunk| chunk.seq <= *upto) {
            let Some(Chunk { proc, channel, data, .. }) = self.iof.unacked.pop_front() else { return };
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
                cx.effect(Effect::Credit { proc, channel, bytes: data.len() });
            }
        }
        touched.iter().for_each(|nspace| self.try_ended(cx, nspace));
    }

    /// The way up is a new one; what our children had queued here they send again themselves.
    pub(crate) fn send_chunks_again(&mut self, cx: &mut Cx<'_>) {
        self.iof.queue = self.iof.unacked.iter().map(|chunk| (None, chunk.clone())).collect();
        self.iof.credit = self.iof.link;
        self.pump_chunks(cx);
    }

    /// A child's link is new, or the child is lost: no credit goes back for what came by the old one.
    pub(crate) fn reset_child_output(&mut self, child: NodeId) {
        let shown = self.iof.sink.shown.iter_mut().filter(|shown| shown.via == Some(child));
        shown.for_each(|shown| shown.via = None);
        self.iof.queue.retain(|(via, _)| *via != Some(child));
    }

    pub(crate) fn forget_chunks_of(&mut self, lost: NodeId) {
        self.iof.sink.last.remove(&lost);
        self.iof.sink.untold.remove(&lost);
    }
}

/// Takings are told to the daemons in steps of this many bytes, or when there is nothing left to take.
const TELL_AFTER: usize = 32 << 10;
