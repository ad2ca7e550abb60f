//! What one daemon tells the root: in order and exactly once, also when daemons between them are lost.
//!
//! The sender keeps each post until the root has acknowledged it and sends it again when the way has changed
//! ([`Msg::Resend`]); the root counts per sender. Daemons on the way only pass it on.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::daemon::{Cx, Daemon, Local};
use crate::msg::{Down, Msg, NodeId, Post, Up};
use crate::timers::Timer;

#[derive(Debug, Default)]
pub(crate) struct Posts {
    last: u64,
    unacked: VecDeque<Post>,
    /// Root only: per sender, the last post that was taken.
    taken: BTreeMap<NodeId, u64>,
    /// Root only: senders that have not been told.
    untold: BTreeSet<NodeId>,
}

impl Daemon {
    pub(crate) fn post(&mut self, cx: &mut Cx<'_>, body: Up) {
        if self.me == NodeId::ROOT {
            self.inbox.push_back(Local::Up { origin: self.me, body: Arc::new(body) });
            return;
        }
        self.posts.last += 1;
        let post = Post { origin: self.me, seq: self.posts.last, body: Arc::new(body) };
        self.posts.unacked.push_back(post.clone());
        self.send_up(cx, Msg::Post(post));
    }

    pub(crate) fn on_post(&mut self, cx: &mut Cx<'_>, post: Post) {
        if self.me != NodeId::ROOT {
            return self.send_up(cx, Msg::Post(post));
        }
        if self.tree.is_lost(post.origin) {
            return;
        }
        let taken = self.posts.taken.entry(post.origin).or_default();
        self.posts.untold.insert(post.origin);
        self.timers.set_once(cx.now.after(ACK_DELAY), Timer::PostAck);
        // What follows a gap was sent before the sender knew that its way had broken; it comes again, in order.
        if post.seq == *taken + 1 {
            *taken = post.seq;
            self.inbox.push_back(Local::Up { origin: post.origin, body: post.body });
        }
    }

    pub(crate) fn ack_posts(&mut self, cx: &mut Cx<'_>) {
        let told = std::mem::take(&mut self.posts.untold).into_iter();
        let acks: Vec<(NodeId, u64)> = told.filter_map(|n| Some((n, *self.posts.taken.get(&n)?))).collect();
        if !acks.is_empty() {
            let to = acks.iter().map(|(node, _)| node.0).collect();
            self.cast(cx, to, Down::PostAcks(acks));
        }
    }

    pub(crate) fn on_post_acks(&mut self, acks: &[(NodeId, u64)]) {
        if let Some((_, upto)) = acks.iter().find(|(node, _)| *node == self.me) {
            while self.posts.unacked.front().is_some_and(|post| post.seq <= *upto) {
                self.posts.unacked.pop_front();
            }
        }
    }

    pub(crate) fn send_posts_again(&mut self, cx: &mut Cx<'_>) {
        let again: Vec<Post> = self.posts.unacked.iter().cloned().collect();
        again.into_iter().for_each(|post| self.send_up(cx, Msg::Post(post)));
    }

    pub(crate) fn forget_posts_of(&mut self, lost: NodeId) {
        self.posts.taken.remove(&lost);
        self.posts.untold.remove(&lost);
    }
}

const ACK_DELAY: Duration = Duration::from_millis(500);
