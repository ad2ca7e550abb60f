//! Posts: messages from one daemon to the root, in order and exactly once, even when daemons between them are lost.
//!
//! The sender keeps each post until the root has acknowledged it and sends it again when the path has changed
//! ([`Msg::Resend`]); the root counts per sender. Daemons on the path only pass it on.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use phalanx_core::Time;

use super::msg::{CastBody, Msg, Post, PostBody};
use super::timer::Timer;
use super::{Arrived, Cargo, Overlay};
use crate::id::NodeId;
use crate::ranges::Ranges;

#[derive(Debug)]
pub(super) struct Posts<C: Cargo> {
    last: u64,
    unacked: VecDeque<Post<C>>,
    /// At the root: per sender, the last post that was taken.
    taken: BTreeMap<NodeId, u64>,
    /// At the root: senders with an acknowledgement due.
    untold: BTreeSet<NodeId>,
}

impl<C: Cargo> Default for Posts<C> {
    fn default() -> Posts<C> {
        Posts { last: 0, unacked: VecDeque::new(), taken: BTreeMap::new(), untold: BTreeSet::new() }
    }
}

impl<C: Cargo> Overlay<C> {
    /// Sends a post to the root.
    pub(crate) fn post(&mut self, now: Time, body: C::Up) {
        self.post_body(now, PostBody::Cargo(Arc::new(body)));
    }

    pub(super) fn post_body(&mut self, now: Time, body: PostBody<C>) {
        if self.is_root() {
            return self.take_post(now, self.me, body);
        }
        self.posts.last += 1;
        let post = Post { origin: self.me, seq: self.posts.last, body };
        self.posts.unacked.push_back(post.clone());
        self.send_up(now, Msg::Post(post));
    }

    pub(super) fn on_post(&mut self, now: Time, post: Post<C>) {
        if !self.is_root() {
            return self.send_up(now, Msg::Post(post));
        }
        if self.tree.is_lost(post.origin) {
            return;
        }
        let taken = self.posts.taken.entry(post.origin).or_default();
        self.posts.untold.insert(post.origin);
        self.timers.set_once(now.after(ACK_DELAY), Timer::PostAck);
        // A post after a gap was sent before the sender knew that its path had broken; it comes again, in order.
        if post.seq == *taken + 1 {
            *taken = post.seq;
            self.take_post(now, post.origin, post.body);
        }
    }

    fn take_post(&mut self, now: Time, origin: NodeId, body: PostBody<C>) {
        match body {
            PostBody::Lost { node, why } => self.on_node_lost(now, node, why),
            PostBody::Cargo(body) => self.arrived(Arrived::Post { origin, body }),
        }
    }

    pub(super) fn ack_posts(&mut self, now: Time) {
        let mut to = Ranges::new();
        // When all daemons do the same, they have sent equally many posts.
        let mut acks: BTreeMap<u64, Ranges> = BTreeMap::new();
        for node in std::mem::take(&mut self.posts.untold) {
            if let Some(upto) = self.posts.taken.get(&node) {
                acks.entry(*upto).or_default().insert(node.0);
                to.insert(node.0);
            }
        }
        if !acks.is_empty() {
            self.cast_body(now, to, CastBody::PostAcks(acks.into_iter().collect()));
        }
    }

    pub(super) fn on_post_acks(&mut self, acks: &[(u64, Ranges)]) {
        if let Some((upto, _)) = acks.iter().find(|(_, of)| of.contains(self.me.0)) {
            while self.posts.unacked.front().is_some_and(|post| post.seq <= *upto) {
                self.posts.unacked.pop_front();
            }
        }
    }

    pub(super) fn send_posts_again(&mut self, now: Time) {
        let again: Vec<Post<C>> = self.posts.unacked.iter().cloned().collect();
        again.into_iter().for_each(|post| self.send_up(now, Msg::Post(post)));
    }

    pub(super) fn forget_posts_of(&mut self, lost: NodeId) {
        self.posts.taken.remove(&lost);
        self.posts.untold.remove(&lost);
    }
}

const ACK_DELAY: Duration = Duration::from_millis(500);
