//! What happens when a daemon is lost: who declares it, where its children go, what becomes of its processes.
//!
//! Only a parent declares a child lost, after it had time to come back, or at once when the child's own children turn
//! up as orphans. The root then tells everybody. A daemon that finds no parent any more ends itself and its processes,
//! so both sides of a cut come to the same end.

use std::collections::BTreeMap;

use crate::daemon::{Cx, Daemon};
use crate::effect::Effect;
use crate::msg::{Down, Hello, Msg, NodeId, Up};
use crate::timers::Timer;

#[derive(Debug, Default)]
pub(crate) struct Fault {
    /// Orphans at our door whose parent we have not given up yet, with the last cast that they have.
    orphans: BTreeMap<NodeId, u64>,
    /// While we look for a parent: how many ancestors we have tried.
    tried: Option<usize>,
}

impl Daemon {
    /// The link to our parent, or to an ancestor that we asked to be one, is gone or could not be made.
    pub(crate) fn lost_uplink(&mut self, cx: &mut Cx<'_>, peer: NodeId) {
        let expected = match self.fault.tried {
            None => self.parent,
            Some(tried) => self.links.lineage.get(tried).map(|(node, _)| *node),
        };
        if expected != Some(peer) || self.over {
            return;
        }
        let next = match self.fault.tried {
            // The parent may be alive and only the link broken.
            None => {
                self.timers.set(cx.now.after(self.config.limits.reconnect * 2), Timer::Orphaned);
                0
            }
            Some(tried) => tried + 1,
        };
        self.fault.tried = Some(next);
        match self.links.lineage.get(next) {
            Some((to, address)) => cx.effect(Effect::Connect { to: *to, address: address.to_string() }),
            None => self.abandon(cx, "no ancestor can be reached"),
        }
    }

    /// An ancestor has said hello: it is our parent now.
    pub(crate) fn accepted_by(&mut self, cx: &mut Cx<'_>, hello: Hello) {
        let peer = hello.node;
        if !self.tree.ancestors(self.me).any(|ancestor| ancestor == peer) {
            return self.drop_link(cx, peer, "it is no ancestor of ours");
        }
        for between in
            self.tree.ancestors(self.me).take_while(|ancestor| *ancestor > peer).collect::<Vec<_>>()
        {
            self.tree.lose(between);
        }
        self.fault.tried = None;
        self.timers.cancel(|timer| *timer == Timer::Orphaned);
        self.links.lineage = hello.lineage;
        self.parent = Some(peer);
        self.mark_ready(peer);
        self.send_reports_again(cx);
        self.send_gathers_again(cx);
        self.resend(cx);
    }

    /// The way to the root is a new one: our subtree sends again what was not acknowledged.
    pub(crate) fn resend(&mut self, cx: &mut Cx<'_>) {
        self.send_posts_again(cx);
        self.send_chunks_again(cx);
        for child in self.children.clone().iter() {
            self.send(cx, *child, Msg::Resend);
        }
    }

    /// A child's link is gone.
    pub(crate) fn lost_downlink(&mut self, cx: &mut Cx<'_>, peer: NodeId) {
        self.fault.orphans.remove(&peer);
        if !self.children.contains(&peer) || self.over {
            return;
        }
        let orphaned = self.fault.orphans.keys().any(|orphan| self.tree.is_under(peer, *orphan));
        if orphaned {
            self.lose(cx, peer, "its link broke and its children came to us");
        } else {
            self.timers.set(cx.now.after(self.config.limits.reconnect), Timer::Reconnect(peer));
        }
    }

    /// A daemon further down says that it has lost its parent.
    pub(crate) fn on_orphan(&mut self, cx: &mut Cx<'_>, orphan: NodeId, have: u64) {
        self.fault.orphans.insert(orphan, have);
        let child = self.children.iter().copied().find(|child| self.tree.is_under(*child, orphan));
        if let Some(child) = child.filter(|child| !self.links.is_up(*child)) {
            self.lose(cx, child, "its link broke and its children came to us");
        }
    }

    pub(crate) fn on_reconnect_over(&mut self, cx: &mut Cx<'_>, child: NodeId) {
        if self.children.contains(&child) && !self.links.is_up(child) {
            let waited = self.config.limits.reconnect.as_secs();
            self.lose(cx, child, &format!("its link broke and it did not come back within {waited} s"));
        }
    }

    pub(crate) fn on_orphaned_too_long(&mut self, cx: &mut Cx<'_>) {
        if self.fault.tried.is_some() {
            self.abandon(cx, "no ancestor has taken us in");
        }
    }

    /// Declares a child lost.
    fn lose(&mut self, cx: &mut Cx<'_>, child: NodeId, why: &str) {
        tracing::warn!(node = child.0, why, "daemon lost");
        self.take_loss(cx, child);
        self.post(cx, Up::NodeLost { node: child, why: why.to_owned() });
    }

    /// Root only: tells everybody, once.
    pub(crate) fn on_node_lost(&mut self, cx: &mut Cx<'_>, node: NodeId, why: &str) {
        if !self.note_lost(node) {
            return;
        }
        self.forget_posts_of(node);
        self.forget_chunks_of(cx, node);
        self.cast_all(cx, Down::Lost { node });
        self.on_tools_lost(cx, node);
        self.lose_processes(cx, node, why);
    }

    /// From now on the tree is without `node`. Its children become ours if it was our child.
    pub(crate) fn take_loss(&mut self, cx: &mut Cx<'_>, node: NodeId) {
        if node == self.me {
            return self.abandon(cx, "the others have given this daemon up");
        }
        if self.tree.is_lost(node) {
            return;
        }
        self.tree.lose(node);
        if self.links.is_up(node) && node > self.me {
            self.drop_link(cx, node, "it was given up");
        }
        let was_child = self.children.contains(&node);
        self.children = self.tree.children(self.me).into();
        if was_child {
            self.inherit_acks(node);
            self.reset_child_output(node);
            let ours: Vec<NodeId> =
                self.children.iter().copied().filter(|child| self.tree.is_under(node, *child)).collect();
            for child in ours {
                match self.fault.orphans.remove(&child) {
                    Some(have) => self.accept(cx, child, have),
                    None => {
                        let until = cx.now.after(self.config.limits.reconnect * 2);
                        self.timers.set(until, Timer::Reconnect(child));
                    }
                }
            }
        }
        self.boot_without(cx, node);
        self.try_all_gathers(cx);
        self.try_survivals(cx);
        self.modex_without(cx, node);
    }

    /// We are alone: nothing of the job may outlive us.
    fn abandon(&mut self, cx: &mut Cx<'_>, why: &str) {
        tracing::error!(why, "giving up");
        self.stop(cx);
    }
}
