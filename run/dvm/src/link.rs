//! The links to neighbours in the tree: who is there, who has gone silent, what is said first.
//!
//! A link is used once both ends have said hello. A message for a neighbour without a usable link is dropped here:
//! each way through the tree has its own means to send again (`cast.rs`, `gather.rs`, `post.rs`, `iof.rs`).

use std::collections::BTreeMap;
use std::sync::Arc;

use phalanx_core::Time;

use crate::daemon::{Cx, Daemon};
use crate::effect::Effect;
use crate::msg::{Hello, Msg, NodeId, VERSION};
use crate::timers::Timer;

#[derive(Debug, Default)]
pub(crate) struct Links {
    peers: BTreeMap<NodeId, Link>,
    /// Where our ancestors are reached, the parent first.
    pub(crate) lineage: Vec<(NodeId, Arc<str>)>,
    beating: bool,
}

#[derive(Debug)]
struct Link {
    /// Both ends have said hello.
    ready: bool,
    heard: Time,
    said: Time,
}

impl Links {
    pub(crate) fn new(lineage: Vec<(NodeId, Arc<str>)>) -> Links {
        Links { lineage, ..Links::default() }
    }

    pub(crate) fn is_up(&self, peer: NodeId) -> bool {
        self.peers.contains_key(&peer)
    }

    pub(crate) fn is_ready(&self, peer: NodeId) -> bool {
        self.peers.get(&peer).is_some_and(|link| link.ready)
    }
}

impl Daemon {
    pub(crate) fn send(&mut self, cx: &mut Cx<'_>, to: NodeId, msg: Msg) {
        if let Some(link) = self.links.peers.get_mut(&to).filter(|link| link.ready) {
            link.said = cx.now;
            cx.effect(Effect::Link { to, msg });
        }
    }

    pub(crate) fn send_up(&mut self, cx: &mut Cx<'_>, msg: Msg) {
        if let Some(parent) = self.parent {
            self.send(cx, parent, msg);
        }
    }

    pub(crate) fn on_link_up(&mut self, cx: &mut Cx<'_>, peer: NodeId) {
        self.links.peers.insert(peer, Link { ready: false, heard: cx.now, said: cx.now });
        if !self.links.beating {
            self.links.beating = true;
            self.timers.set(cx.now.after(self.config.limits.heartbeat), Timer::Beat);
        }
        // An ancestor speaks first only when it takes us; towards one we always speak first.
        if peer < self.me {
            self.say_hello(cx, peer);
        }
    }

    pub(crate) fn on_link_msg(&mut self, cx: &mut Cx<'_>, peer: NodeId, msg: Msg) {
        let Some(link) = self.links.peers.get_mut(&peer) else { return };
        link.heard = cx.now;
        match msg {
            Msg::Hello(hello) if hello.node == peer && hello.version == VERSION => self.on_hello(cx, hello),
            Msg::Hello(hello) => {
                let why = format!(
                    "daemon {} calls itself {} and speaks version {} of the protocol, not {VERSION}",
                    peer.0, hello.node.0, hello.version
                );
                self.drop_link(cx, peer, &why);
            }
            _ if !link.ready => {}
            Msg::Heartbeat => {}
            Msg::Report(reports) => self.on_reports(cx, reports),
            Msg::Cast(cast) => self.on_cast(cx, cast),
            Msg::CastAck { upto } => self.on_cast_ack(cx, peer, upto),
            Msg::Gather(gather) => self.on_gather(cx, gather),
            Msg::Post(post) => self.on_post(cx, post),
            Msg::Chunk(chunk) => self.on_chunk(cx, Some(peer), chunk),
            Msg::ChunkCredit { bytes } => self.on_chunk_credit(cx, bytes),
            Msg::Routed(routed) => self.on_routed(cx, routed),
            Msg::Resend => self.resend(cx),
        }
    }

    fn on_hello(&mut self, cx: &mut Cx<'_>, hello: Hello) {
        let peer = hello.node;
        if peer < self.me {
            self.accepted_by(cx, hello);
        } else if self.children.contains(&peer) {
            self.accept(cx, peer, hello.have);
        } else if self.tree.is_under(self.me, peer) && !self.tree.is_lost(peer) {
            self.on_orphan(cx, peer, hello.have);
        } else {
            self.drop_link(cx, peer, "it was given up before");
        }
    }

    /// `child` belongs to us and has said what it has.
    pub(crate) fn accept(&mut self, cx: &mut Cx<'_>, child: NodeId, have: u64) {
        let Some(link) = self.links.peers.get_mut(&child) else { return };
        link.ready = true;
        self.timers.cancel(|timer| *timer == Timer::Reconnect(child));
        self.say_hello(cx, child);
        self.reset_child_output(child);
        self.send_casts_again(cx, child, have);
    }

    pub(crate) fn say_hello(&mut self, cx: &mut Cx<'_>, to: NodeId) {
        let mut lineage = vec![(self.me, self.config.address.clone())];
        lineage.extend(self.links.lineage.iter().cloned());
        let hello = Hello { version: VERSION, node: self.me, have: self.cast.have, lineage };
        cx.effect(Effect::Link { to, msg: Msg::Hello(hello) });
    }

    pub(crate) fn mark_ready(&mut self, peer: NodeId) {
        if let Some(link) = self.links.peers.get_mut(&peer) {
            link.ready = true;
        }
    }

    /// Ends a link from our side, as if it had been lost.
    pub(crate) fn drop_link(&mut self, cx: &mut Cx<'_>, peer: NodeId, why: &str) {
        tracing::warn!(peer = peer.0, why, "link dropped");
        if self.links.peers.contains_key(&peer) {
            cx.effect(Effect::Unlink { to: peer });
            self.on_link_down(cx, peer);
        }
    }

    pub(crate) fn on_link_down(&mut self, cx: &mut Cx<'_>, peer: NodeId) {
        let was_up = self.links.peers.remove(&peer).is_some();
        if peer < self.me {
            self.lost_uplink(cx, peer);
        } else if was_up {
            self.lost_downlink(cx, peer);
        }
    }

    pub(crate) fn beat(&mut self, cx: &mut Cx<'_>) {
        let limits = &self.config.limits;
        let (beat, silence) = (limits.heartbeat, limits.silence);
        let of = |wanted: fn(&Link, Time, std::time::Duration) -> bool, span| {
            let chosen = self.links.peers.iter().filter(|(_, link)| wanted(link, cx.now, span));
            chosen.map(|(peer, _)| *peer).collect::<Vec<_>>()
        };
        let idle = of(|link, now, span| link.ready && now.since(link.said) >= span, beat / 2);
        let silent = of(|link, now, span| now.since(link.heard) >= span, silence);
        for peer in idle {
            self.send(cx, peer, Msg::Heartbeat);
        }
        for peer in silent {
            self.drop_link(cx, peer, &format!("it has said nothing for {} s", silence.as_secs()));
        }
        self.links.beating = !self.links.peers.is_empty();
        if self.links.beating {
            self.timers.set(cx.now.after(beat), Timer::Beat);
        }
    }
}
