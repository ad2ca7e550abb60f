//! The links between daemons: in order, delayed at random, cut when told.

use std::collections::{BTreeMap, BTreeSet};

use std::time::Duration;

use phalanx_core::Time;
use phalanx_dvm::NodeId;

use crate::random::Random;

#[derive(Debug, Default)]
pub(crate) struct Net {
    /// Both directions of a link that stands, with the number of its making.
    links: BTreeMap<(NodeId, NodeId), u64>,
    /// When the last message of a direction arrives.
    last: BTreeMap<(NodeId, NodeId), Time>,
    /// Daemons that only reach each other.
    island: BTreeSet<NodeId>,
    made: u64,
    pub(crate) messages: u64,
    /// The longest that a message takes, in nanoseconds.
    latency: u64,
}

impl Net {
    pub(crate) fn new(latency: Duration) -> Net {
        Net { latency: latency.as_nanos() as u64, ..Net::default() }
    }

    pub(crate) fn link(&mut self, a: NodeId, b: NodeId) {
        self.made += 1;
        self.links.insert((a, b), self.made);
        self.links.insert((b, a), self.made);
    }

    /// The number of the link from `a` to `b`, if it stands.
    pub(crate) fn number(&self, a: NodeId, b: NodeId) -> Option<u64> {
        self.links.get(&(a, b)).copied()
    }

    pub(crate) fn unlink(&mut self, a: NodeId, b: NodeId) -> bool {
        self.links.remove(&(a, b)).is_some() & self.links.remove(&(b, a)).is_some()
    }

    /// Cuts all links of a daemon, and names the other ends.
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

    pub(crate) fn reach(&self, a: NodeId, b: NodeId) -> bool {
        self.island.contains(&a) == self.island.contains(&b)
    }

    /// When a message that is sent now arrives: later than the one before it.
    pub(crate) fn arrival(&mut self, now: Time, from: NodeId, to: NodeId, random: &mut Random) -> Time {
        self.messages += 1;
        let at = now.0 + random.between(5_000, self.latency);
        let last = self.last.entry((from, to)).or_default();
        *last = Time(at.max(last.0 + 1));
        *last
    }
}
