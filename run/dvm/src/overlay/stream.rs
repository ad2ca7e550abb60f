//! Streams to the root: nothing lost, nothing reordered, never more under way than stated.
//!
//! On the way up each link carries a bounded number of bytes at a time; credit for it comes back when the receiver has passed
//! them on, or, at the root, taken them. The daemon that a chunk comes from keeps it until the root has taken it, and sends it
//! again when the path has changed.

use std::collections::{BTreeMap, VecDeque};

use phalanx_core::Time;

use super::msg::{CastBody, Chunk, ChunkAck, Msg};
use super::{Arrived, Bulk, Cargo, Overlay};
use crate::id::{Landing, NodeId};
use crate::ranges::Ranges;

#[derive(Debug)]
pub(super) struct Streams<C: Cargo> {
    last: u64,
    /// Our pieces that the root has not taken yet.
    unacked: BTreeMap<u64, C::Bulk>,
    /// Chunks to go up, ours and our children's, with the child that sent them.
    queue: VecDeque<(Option<NodeId>, Chunk<C>)>,
    /// How many bytes the parent still takes.
    credit: usize,
    window: usize,
    arrivals: Arrivals,
}

/// At the root.
#[derive(Debug, Default)]
struct Arrivals {
    /// Per daemon, the last chunk that was taken in.
    last: BTreeMap<NodeId, u64>,
    landed: BTreeMap<Landing, Landed>,
    landings: u64,
    /// Bytes that are held although the credit for their link was returned.
    lent: usize,
    /// Taken, and not acknowledged yet.
    untold: Vec<(NodeId, u64)>,
    untold_bytes: usize,
}

#[derive(Debug)]
struct Landed {
    origin: NodeId,
    seq: u64,
    bytes: usize,
    /// The child to return the link's credit to.
    via: Option<NodeId>,
    lent: bool,
}

impl<C: Cargo> Streams<C> {
    pub(super) fn new(window: usize) -> Streams<C> {
        Streams {
            last: 0,
            unacked: BTreeMap::new(),
            queue: VecDeque::new(),
            credit: window,
            window,
            arrivals: Arrivals::default(),
        }
    }
}

impl<C: Cargo> Overlay<C> {
    /// Sends a piece of this daemon's streams to the root.
    pub(crate) fn stream(&mut self, now: Time, body: C::Bulk) {
        self.streams.last += 1;
        let seq = self.streams.last;
        self.streams.unacked.insert(seq, body.clone());
        self.on_chunk(now, None, Chunk { origin: self.me, seq, body });
    }

    /// A chunk, our own or from a child.
    pub(super) fn on_chunk(&mut self, now: Time, via: Option<NodeId>, chunk: Chunk<C>) {
        if self.is_root() {
            return self.land(now, via, chunk);
        }
        self.streams.queue.push_back((via, chunk));
        self.pump_chunks(now);
    }

    pub(super) fn on_chunk_credit(&mut self, now: Time, bytes: usize) {
        self.streams.credit = (self.streams.credit.saturating_add(bytes)).min(self.streams.window);
        self.pump_chunks(now);
    }

    fn pump_chunks(&mut self, now: Time) {
        if !self.parent.is_some_and(|parent| self.links.is_ready(parent)) {
            return;
        }
        // A chunk larger than the whole window goes when the window is empty.
        let fits = |bytes: usize, credit: usize, window: usize| bytes <= credit || credit == window;
        while let Some((_, chunk)) = self.streams.queue.front() {
            if !fits(chunk.body.bytes(), self.streams.credit, self.streams.window) {
                return;
            }
            let Some((via, chunk)) = self.streams.queue.pop_front() else { return };
            let bytes = chunk.body.bytes();
            self.streams.credit = self.streams.credit.saturating_sub(bytes);
            self.send_up(now, Msg::Chunk(chunk));
            self.give_back(now, via, bytes);
        }
    }

    /// Returns credit to a child.
    fn give_back(&mut self, now: Time, child: Option<NodeId>, bytes: usize) {
        if let Some(child) = child.filter(|_| bytes > 0) {
            self.send(now, child, Msg::ChunkCredit { bytes });
        }
    }

    /// The root has taken these chunks.
    pub(super) fn on_chunk_acks(&mut self, acks: &[ChunkAck]) {
        let mut taken = Vec::new();
        for ack in acks.iter().filter(|ack| ack.origins.contains(self.me.0) && ack.first <= ack.last) {
            taken.extend(
                self.streams.unacked.extract_if(ack.first..=ack.last, |_, _| true).map(|(_, bulk)| bulk),
            );
        }
        if !taken.is_empty() {
            self.arrived(Arrived::Taken(taken));
        }
    }

    /// The path up is new; our children send again themselves what they had queued here.
    pub(super) fn send_chunks_again(&mut self, now: Time) {
        let origin = self.me;
        let chunk = |(seq, body): (&u64, &C::Bulk)| (None, Chunk { origin, seq: *seq, body: body.clone() });
        self.streams.queue = self.streams.unacked.iter().map(chunk).collect();
        self.streams.credit = self.streams.window;
        self.pump_chunks(now);
    }

    /// A child's link is new, or the child is lost: no credit goes back for what came by the old one.
    pub(super) fn reset_child_streams(&mut self, child: NodeId) {
        let of_child = self.streams.arrivals.landed.values_mut().filter(|landed| landed.via == Some(child));
        of_child.for_each(|landed| landed.via = None);
        self.streams.queue.retain(|(via, _)| *via != Some(child));
    }

    fn land(&mut self, now: Time, via: Option<NodeId>, chunk: Chunk<C>) {
        let Chunk { origin, seq, body } = chunk;
        let bytes = body.bytes();
        let arrivals = &mut self.streams.arrivals;
        let last = arrivals.last.entry(origin).or_default();
        if seq != *last + 1 || self.tree.is_lost(origin) {
            // A repeat, or its predecessor is yet to come again.
            return self.give_back(now, via, bytes);
        }
        *last = seq;
        arrivals.landings += 1;
        let landing = Landing(arrivals.landings);
        arrivals.landed.insert(landing, Landed { origin, seq, bytes, via, lent: false });
        self.arrived(Arrived::Bulk { landing, body });
    }

    /// At the root: this chunk is done with. The next [`Overlay::tell_taken`] acknowledges it.
    pub(crate) fn taken(&mut self, now: Time, landing: Landing) {
        let arrivals = &mut self.streams.arrivals;
        let Some(landed) = arrivals.landed.remove(&landing) else { return };
        if landed.lent {
            arrivals.lent -= landed.bytes;
        }
        if !self.tree.is_lost(landed.origin) {
            arrivals.untold.push((landed.origin, landed.seq));
            arrivals.untold_bytes += landed.bytes;
        }
        self.give_back(now, landed.via, landed.bytes);
    }

    /// At the root: this chunk will be held for long, so its link may be used for others, up to a bound.
    pub(crate) fn lend(&mut self, now: Time, landing: Landing) {
        let arrivals = &mut self.streams.arrivals;
        let Some(landed) = arrivals.landed.get_mut(&landing) else { return };
        if landed.via.is_some() && arrivals.lent + landed.bytes <= MOST_LENT {
            let (via, bytes) = (landed.via.take(), landed.bytes);
            landed.lent = true;
            arrivals.lent += bytes;
            self.give_back(now, via, bytes);
        }
    }

    /// At the root: acknowledges what was taken, in steps or `at_once`.
    pub(crate) fn tell_taken(&mut self, now: Time, at_once: bool) {
        let arrivals = &mut self.streams.arrivals;
        if arrivals.untold.is_empty() || !(at_once || arrivals.untold_bytes >= TELL_AFTER) {
            return;
        }
        arrivals.untold_bytes = 0;
        let mut untold = std::mem::take(&mut arrivals.untold);
        untold.sort_unstable();
        let (mut to, mut spans) = (Ranges::new(), BTreeMap::<(u64, u64), Ranges>::new());
        for run in untold.chunk_by(|a, b| a.0 == b.0 && a.1 + 1 == b.1) {
            if let [(origin, first), ..] = run {
                to.insert(origin.0);
                spans.entry((*first, first + run.len() as u64 - 1)).or_default().insert(origin.0);
            }
        }
        let ack = |((first, last), origins)| ChunkAck { origins, first, last };
        let acks = spans.into_iter().map(ack).collect();
        self.cast_body(now, to, CastBody::ChunkAcks(acks));
    }

    pub(super) fn forget_chunks_of(&mut self, lost: NodeId) {
        self.streams.arrivals.last.remove(&lost);
        self.streams.arrivals.untold.retain(|(origin, _)| *origin != lost);
    }
}

/// Chunks are acknowledged in steps of this many bytes.
const TELL_AFTER: usize = 32 << 10;
/// The most bytes held at the root although the credit for their link was returned.
const MOST_LENT: usize = 8 << 20;
