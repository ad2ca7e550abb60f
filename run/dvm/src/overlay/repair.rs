//! Loss of a daemon: which daemon declares it, and what happens to its children.
//!
//! Only a parent declares a child lost: after the child had time to come back, or at once when the child's own children turn up
//! as orphans. The root then notifies all daemons. A daemon that finds no parent any more is alone and ends, so both sides of a
//! cut come to the same result.

use std::collections::{BTreeMap, BTreeSet};

use phalanx_core::Time;

use super::msg::{CastBody, Hello, Msg, PostBody};
use super::timer::Timer;
use super::{Arrived, Cargo, Out, Overlay};
use crate::id::NodeId;
use crate::ranges::Ranges;

#[derive(Debug, Default)]
pub(super) struct Repair {
    /// Orphans that have come to us although we have not given up their parent yet, with the last cast that each has.
    orphans: BTreeMap<NodeId, u64>,
    /// While we look for a parent: how many ancestors we have tried.
    tried: Option<usize>,
    /// Meanwhile: why those have no link with us, the last reason of each.
    refused: BTreeMap<NodeId, String>,
    /// At the root: the lost daemons that were announced.
    told: BTreeSet<NodeId>,
    /// Why children that may come back have no link.
    dropped: BTreeMap<NodeId, String>,
}

impl<C: Cargo> Overlay<C> {
    /// The link to our parent, or to an ancestor that we asked to be one, is gone or could not be made.
    pub(super) fn lost_uplink(&mut self, now: Time, peer: NodeId, why: &str) {
        let expected = match self.repair.tried {
            None => self.parent,
            Some(tried) => self.links.lineage.get(tried).map(|(node, _)| *node),
        };
        if expected != Some(peer) || self.over {
            return;
        }
        self.repair.refused.insert(peer, why.to_owned());
        let next = match self.repair.tried {
            // The parent may be alive and only the link broken.
            None => {
                self.timers.set(now.after(self.setup.reconnect * 2), Timer::Orphaned);
                0
            }
            Some(tried) => tried + 1,
        };
        self.repair.tried = Some(next);
        match self.links.lineage.get(next) {
            Some((to, address)) => self.out.push_back(Out::Connect { to: *to, address: address.clone() }),
            None => self.alone("no ancestor can be reached"),
        }
    }

    /// No daemon above takes us in.
    fn alone(&mut self, why: &str) {
        let reasons = self.repair.refused.iter().map(|(node, why)| format!("daemon {}: {why}", node.0));
        let reasons = reasons.collect::<Vec<_>>().join("; ");
        self.arrived(Arrived::Alone { why: format!("{why} ({reasons})") });
    }

    /// An ancestor has sent its hello: it is our parent now.
    pub(super) fn accepted_by(&mut self, now: Time, hello: Hello) {
        let peer = hello.node;
        if !self.tree.ancestors(self.me).any(|ancestor| ancestor == peer) {
            return self.drop_link(now, peer, "it is no ancestor of ours");
        }
        let between = self.tree.ancestors(self.me).take_while(|node| *node > peer);
        for between in between.filter(|node| !self.tree.is_lost(*node)).collect::<Vec<_>>() {
            self.tree.lose(between);
            self.arrived(Arrived::Without(between));
        }
        self.repair.tried = None;
        self.repair.refused.clear();
        self.timers.cancel(|timer| *timer == Timer::Orphaned);
        self.links.lineage = hello.lineage;
        self.parent = Some(peer);
        self.mark_ready(peer);
        self.send_cards_again(now);
        self.send_gathers_again(now);
        self.resend(now);
    }

    /// The path to the root is new: our subtree sends again what was not acknowledged.
    pub(super) fn resend(&mut self, now: Time) {
        self.send_posts_again(now);
        self.send_chunks_again(now);
        for child in self.children.clone().iter() {
            self.send(now, *child, Msg::Resend);
        }
    }

    /// A child's link is gone.
    pub(super) fn lost_downlink(&mut self, now: Time, peer: NodeId, why: &str) {
        self.repair.orphans.remove(&peer);
        if !self.children.contains(&peer) || self.over {
            return;
        }
        let orphaned = self.repair.orphans.keys().any(|orphan| self.tree.is_under(peer, *orphan));
        if orphaned {
            self.lose(now, peer, "its link broke and its children came to us");
        } else {
            self.repair.dropped.insert(peer, format!("its link broke ({why})"));
            self.timers.set(now.after(self.setup.reconnect), Timer::Reconnect(peer));
        }
    }

    /// We have dropped a link ourselves. If it was a child's, the reason is stated when the child is declared lost.
    pub(super) fn remember_why(&mut self, peer: NodeId, why: &str) {
        if self.children.contains(&peer) && !self.over {
            self.repair.dropped.insert(peer, why.to_owned());
        }
    }

    pub(super) fn forget_why(&mut self, child: NodeId) {
        self.repair.dropped.remove(&child);
    }

    /// A daemon further down reports that it has lost its parent.
    pub(super) fn on_orphan(&mut self, now: Time, orphan: NodeId, have: u64) {
        self.repair.orphans.insert(orphan, have);
        let child = self.children.iter().copied().find(|child| self.tree.is_under(*child, orphan));
        if let Some(child) = child.filter(|child| !self.links.is_up(*child)) {
            self.lose(now, child, "its link broke and its children came to us");
        }
    }

    pub(super) fn on_reconnect_over(&mut self, now: Time, child: NodeId) {
        if self.children.contains(&child) && !self.links.is_up(child) {
            let waited = self.setup.reconnect.as_secs_f32();
            let why = self.repair.dropped.remove(&child).unwrap_or_else(|| "its link broke".to_owned());
            self.lose(now, child, &format!("{why}, and it did not come back within {waited:.1} s"));
        }
    }

    pub(super) fn on_orphaned_too_long(&mut self) {
        if self.repair.tried.is_some() {
            self.alone("no ancestor has taken us in");
        }
    }

    /// At the root: the starter of that daemon knows that it is gone, or will never come.
    pub(crate) fn declare_lost(&mut self, now: Time, node: NodeId, why: &str) {
        if !self.tree.is_lost(node) && !self.over {
            self.lose(now, node, why);
        }
    }

    /// This daemon ends, though the DVM does not: the others need not find out by waiting for it.
    pub(crate) fn leave(&mut self, now: Time, why: &str) {
        if !self.over {
            self.post_body(now, PostBody::Lost { node: self.me, why: why.to_owned() });
        }
    }

    /// Declares a daemon lost: a child, or at the root any.
    fn lose(&mut self, now: Time, child: NodeId, why: &str) {
        tracing::warn!(node = child.0, why, "daemon lost");
        self.take_loss(now, child);
        self.post_body(now, PostBody::Lost { node: child, why: why.to_owned() });
    }

    /// At the root: announces the loss, once.
    pub(super) fn on_node_lost(&mut self, now: Time, node: NodeId, why: String) {
        if !self.repair.told.insert(node) {
            return;
        }
        self.forget_posts_of(node);
        self.forget_chunks_of(node);
        self.cast_body(now, Ranges::first(self.tree.size()), CastBody::Lost(node));
        self.arrived(Arrived::Lost { node, why });
    }

    /// From now on the tree is without `node`. Its children become ours if it was our child.
    pub(super) fn take_loss(&mut self, now: Time, node: NodeId) {
        if node == self.me {
            return self.arrived(Arrived::Alone { why: "the others have given this daemon up".to_owned() });
        }
        if self.tree.is_lost(node) {
            return;
        }
        self.tree.lose(node);
        if self.links.is_up(node) && node > self.me {
            self.drop_link(now, node, "it was given up");
        }
        let was_child = self.children.contains(&node);
        self.children = self.tree.children(self.me).into();
        if was_child {
            self.inherit_acks(node);
            self.reset_child_streams(node);
            let ours: Vec<NodeId> =
                self.children.iter().copied().filter(|child| self.tree.is_under(node, *child)).collect();
            for child in ours {
                match self.repair.orphans.remove(&child) {
                    Some(have) => self.accept(now, child, have),
                    None => {
                        let until = now.after(self.setup.reconnect * 2);
                        self.timers.set(until, Timer::Reconnect(child));
                    }
                }
            }
        }
        self.arrived(Arrived::Without(node));
        self.try_all_gathers(now);
    }
}
