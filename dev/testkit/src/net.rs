//! The links between daemons: ordered streams of bytes, split, joined and delayed at random, and cut on request.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use phalanx_core::Time;
use phalanx_dvm::NodeId;

use crate::random::Random;

#[derive(Debug, Default)]
pub(crate) struct Net {
    /// Both directions of each open link, with its number.
    links: BTreeMap<(NodeId, NodeId), u64>,
    /// When the last message of a direction arrives.
    last: BTreeMap<(NodeId, NodeId), Time>,
    /// Bytes on their way in each direction of a link, with the time of their arrival.
    under_way: BTreeMap<(NodeId, NodeId), Stream>,
    /// Daemons that only reach each other.
    island: BTreeSet<NodeId>,
    /// Until when nothing arrives in either direction.
    stalled: BTreeMap<(NodeId, NodeId), Time>,
    made: u64,
    pub(crate) messages: u64,
    /// The longest latency of a message, in nanoseconds.
    latency: u64,
}

type Stream = VecDeque<(Time, Arc<[u8]>)>;

impl Net {
    pub(crate) fn new(latency: Duration) -> Net {
        Net { latency: latency.as_nanos() as u64, ..Net::default() }
    }

    pub(crate) fn link(&mut self, a: NodeId, b: NodeId) {
        self.made += 1;
        self.links.insert((a, b), self.made);
        self.links.insert((b, a), self.made);
    }

    /// The number of the link from `a` to `b`, if it is open.
    pub(crate) fn number(&self, a: NodeId, b: NodeId) -> Option<u64> {
        self.links.get(&(a, b)).copied()
    }

    pub(crate) fn unlink(&mut self, a: NodeId, b: NodeId) -> bool {
        self.under_way.remove(&(a, b));
        self.under_way.remove(&(b, a));
        self.links.remove(&(a, b)).is_some() & self.links.remove(&(b, a)).is_some()
    }

    /// Cuts all links of a daemon; returns the other ends.
    pub(crate) fn unlink_all(&mut self, node: NodeId) -> Vec<NodeId> {
        let peers: Vec<NodeId> = self
            .links
            .range((node, NodeId(0))..)
            .take_while(|((a, _), _)| *a == node)
            .map(|((_, b), _)| *b)
            .collect();
        peers.iter().for_each(|peer| {
            self.unlink(node, *peer);
        });
        peers
    }

    pub(crate) fn cut_off(&mut self, nodes: impl IntoIterator<Item = NodeId>) {
        self.island = nodes.into_iter().collect();
    }

    pub(crate) fn stall(&mut self, a: NodeId, b: NodeId, until: Time) {
        self.stalled.insert((a, b), until);
        self.stalled.insert((b, a), until);
    }

    pub(crate) fn reach(&self, a: NodeId, b: NodeId) -> bool {
        self.island.contains(&a) == self.island.contains(&b)
    }

    /// Sends a message now; returns when its pieces arrive, in order.
    pub(crate) fn send(
        &mut self,
        now: Time,
        (from, to): (NodeId, NodeId),
        bytes: Arc<[u8]>,
        random: &mut Random,
    ) -> Vec<Time> {
        self.messages += 1;
        let mut pieces = vec![bytes];
        while pieces.len() < MOST_PIECES && random.one_in(SPLIT_EVERY) {
            let Some(last) = pieces.pop() else { break };
            let (a, b) = last.split_at(random.between(0, last.len() as u64) as usize);
            pieces.extend([a.into(), b.into()]);
        }
        let queue = self.under_way.entry((from, to)).or_default();
        let last = self.last.entry((from, to)).or_default();
        let stalled = self.stalled.get(&(from, to)).copied().unwrap_or_default();
        let arrive = |bytes| {
            let at = now.0.max(stalled.0) + random.between(5_000, self.latency);
            *last = Time(at.max(last.0 + 1));
            queue.push_back((*last, bytes));
            *last
        };
        pieces.into_iter().map(arrive).collect()
    }

    /// Bytes that have arrived by now, joined with those that follow closely. None if an earlier call has returned them.
    pub(crate) fn arrived(&mut self, now: Time, from: NodeId, to: NodeId) -> Option<Arc<[u8]>> {
        let queue = self.under_way.get_mut(&(from, to))?;
        let (_, first) = queue.pop_front_if(|(at, _)| *at <= now)?;
        let mut joined = Vec::new();
        while let Some((_, next)) = queue.pop_front_if(|(at, _)| at.0 <= now.0 + JOIN_WITHIN) {
            if joined.is_empty() {
                joined.extend_from_slice(&first);
            }
            joined.extend_from_slice(&next);
        }
        Some(if joined.is_empty() { first } else { joined.into() })
    }
}

/// One message in this many is split, and its last piece again.
const SPLIT_EVERY: u64 = 16;
const MOST_PIECES: usize = 4;
/// In nanoseconds.
const JOIN_WITHIN: u64 = 500;
