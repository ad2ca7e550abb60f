//! The links to neighbours in the tree: which are up, which have gone silent, and the hello on each.
//!
//! A link is used once both ends have sent their hello. A message for a neighbour without a usable link is dropped here: each
//! way through the tree has its own means to send again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use phalanx_core::Time;

use super::frames::{Frames, framed};
use super::msg::{Hello, Msg, VERSION};
use super::timer::Timer;
use super::{Cargo, Out, Overlay};
use crate::encoding::{Malformed, from_bytes, to_bytes};
use crate::id::NodeId;

#[derive(Debug)]
pub(super) struct Links {
    peers: BTreeMap<NodeId, Link>,
    /// The addresses of our ancestors, the parent first.
    pub(super) lineage: Vec<(NodeId, Arc<str>)>,
    /// When the links are checked next, if there are any.
    next_beat: Option<Time>,
    /// This daemon is about to say nothing, since when.
    stands: Option<Time>,
}

#[derive(Debug)]
struct Link {
    /// Received, and no whole message yet.
    frames: Frames,
    /// Both ends have sent their hello.
    ready: bool,
    heard: Time,
    said: Time,
    /// It has announced that it will be silent.
    stands: bool,
}

impl Links {
    pub(super) fn new(lineage: Vec<(NodeId, Arc<str>)>) -> Links {
        Links { peers: BTreeMap::new(), lineage, next_beat: None, stands: None }
    }

    pub(super) fn is_up(&self, peer: NodeId) -> bool {
        self.peers.contains_key(&peer)
    }

    pub(super) fn is_ready(&self, peer: NodeId) -> bool {
        self.peers.get(&peer).is_some_and(|link| link.ready)
    }
}

impl<C: Cargo> Overlay<C> {
    /// The link to a neighbour is up.
    pub(crate) fn on_link_up(&mut self, now: Time, peer: NodeId) {
        self.links.peers.insert(
            peer,
            Link { frames: Frames::default(), ready: false, heard: now, said: now, stands: false },
        );
        if self.links.next_beat.is_none() {
            self.set_beat(now);
        }
        // We always send the first hello to an ancestor; its own hello means that it accepts us.
        if peer < self.me {
            self.say_hello(peer);
        }
    }

    /// The next bytes from a neighbour, split anywhere.
    pub(crate) fn on_link_bytes(&mut self, now: Time, peer: NodeId, mut bytes: &[u8]) {
        // A long message is a sign of life before it is whole.
        if let Some(link) = self.links.peers.get_mut(&peer) {
            link.heard = now;
            link.stands = false;
        }
        // A message may end the link.
        while let Some(link) = self.links.peers.get_mut(&peer) {
            let body = match link.frames.next(&mut bytes) {
                Ok(Some(body)) => body,
                Ok(None) => return,
                Err(why) => return self.drop_link(now, peer, &why.to_string()),
            };
            match from_bytes(&body) {
                Ok(msg) => self.on_link_msg(now, peer, msg),
                Err(why) => return self.drop_link(now, peer, &not_understood(&body, &why)),
            }
        }
    }

    /// The process at the other end exists. The root may stand still (SIGSTOP cannot be announced, nor caught by a warden as at other
    /// daemons): as long as its process is there, the user may let it go on, or end it.
    pub(crate) fn on_link_acked(&mut self, now: Time, peer: NodeId, ago: Duration) {
        let of_root = self.links.peers.get_mut(&peer).filter(|_| peer == NodeId::ROOT);
        if let Some(link) = of_root {
            link.heard = link.heard.max(now.before(ago));
        }
    }

    /// A message as it goes over a link. A cast goes to many daemons, and is encoded once.
    pub(crate) fn link_bytes(&mut self, msg: &Msg<C>) -> Arc<[u8]> {
        let bytes = || framed(&to_bytes(msg)).into();
        match msg {
            Msg::Cast(cast) => self.casts.bytes_of(cast, bytes),
            _ => bytes(),
        }
    }

    pub(crate) fn on_link_msg(&mut self, now: Time, peer: NodeId, msg: Msg<C>) {
        let Some(link) = self.links.peers.get_mut(&peer) else { return };
        match msg {
            Msg::Hello(hello) if hello.node == peer && hello.version == VERSION => self.on_hello(now, hello),
            Msg::Hello(hello) => {
                let why = format!(
                    "daemon {} calls itself {} and speaks version {} of the protocol, not {VERSION}",
                    peer.0, hello.node.0, hello.version
                );
                self.drop_link(now, peer, &why);
            }
            _ if !link.ready => {}
            Msg::Heartbeat => {}
            Msg::StandStill => link.stands = true,
            Msg::Cards(cards) => self.on_cards(now, cards),
            Msg::Cast(cast) => self.on_cast(now, cast),
            Msg::CastAck { upto } => self.on_cast_ack(now, peer, upto),
            Msg::Gather(gather) => self.on_gather(gather),
            Msg::Post(post) => self.on_post(now, post),
            Msg::Chunk(chunk) => self.on_chunk(now, Some(peer), chunk),
            Msg::ChunkCredit { bytes } => self.on_chunk_credit(now, bytes),
            Msg::Routed(routed) => self.route(now, routed),
            Msg::Resend => self.resend(now),
        }
    }

    /// The link was lost, or an attempt to make it failed.
    pub(crate) fn on_link_down(&mut self, now: Time, peer: NodeId, why: &str) {
        let was_up = self.links.peers.remove(&peer).is_some();
        if peer < self.me {
            self.lost_uplink(now, peer, why);
        } else if was_up {
            self.lost_downlink(now, peer, why);
        }
    }

    pub(super) fn send(&mut self, now: Time, to: NodeId, msg: Msg<C>) {
        if let Some(link) = self.links.peers.get_mut(&to).filter(|link| link.ready) {
            link.said = now;
            let is_last = matches!(msg, Msg::StandStill);
            self.out.push_back(Out::Send { to, msg });
            if !is_last {
                self.say_standing(to);
            }
        }
    }

    /// Whatever is said is a sign of life, and may be the last for long.
    fn say_standing(&mut self, to: NodeId) {
        if self.links.stands.is_some() {
            self.out.push_back(Out::Send { to, msg: Msg::StandStill });
        }
    }

    pub(super) fn send_up(&mut self, now: Time, msg: Msg<C>) {
        if let Some(parent) = self.parent {
            self.send(now, parent, msg);
        }
    }

    fn on_hello(&mut self, now: Time, hello: Hello) {
        let peer = hello.node;
        if peer < self.me {
            self.accepted_by(now, hello);
        } else if self.children.contains(&peer) {
            self.accept(now, peer, hello.have);
        } else if self.tree.is_under(self.me, peer) && !self.tree.is_lost(peer) {
            self.on_orphan(now, peer, hello.have);
        } else {
            self.drop_link(now, peer, "it was given up before");
        }
    }

    /// `child` belongs to us and has announced its last cast.
    pub(super) fn accept(&mut self, now: Time, child: NodeId, have: u64) {
        let Some(link) = self.links.peers.get_mut(&child) else { return };
        link.ready = true;
        self.timers.cancel(|timer| *timer == Timer::Reconnect(child));
        self.forget_why(child);
        self.say_hello(child);
        self.reset_child_streams(child);
        self.send_casts_again(now, child, have);
    }

    fn say_hello(&mut self, to: NodeId) {
        let mut lineage = vec![(self.me, self.setup.address.clone())];
        lineage.extend(self.links.lineage.iter().cloned());
        let hello = Hello { version: VERSION, node: self.me, have: self.casts.have(), lineage };
        self.out.push_back(Out::Send { to, msg: Msg::Hello(hello) });
        self.say_standing(to);
    }

    pub(super) fn mark_ready(&mut self, peer: NodeId) {
        if let Some(link) = self.links.peers.get_mut(&peer) {
            link.ready = true;
        }
    }

    /// Ends a link from our side, as if it had been lost.
    pub(super) fn drop_link(&mut self, now: Time, peer: NodeId, why: &str) {
        tracing::warn!(peer = peer.0, why, "link dropped");
        if self.links.peers.contains_key(&peer) {
            self.out.push_back(Out::Unlink { to: peer });
            self.on_link_down(now, peer, why);
            self.remember_why(peer, why);
        }
    }

    /// Announces that this daemon will be silent for a while, so that it is not taken for lost. Deadlines of its own links are suspended, too.
    pub(crate) fn stand_still(&mut self, now: Time) {
        if self.links.stands.is_none() {
            self.links.stands = Some(now);
            self.say_to_all(now, || Msg::StandStill);
        }
    }

    fn say_to_all(&mut self, now: Time, msg: impl Fn() -> Msg<C>) {
        let peers: Vec<NodeId> = self.links.peers.keys().copied().collect();
        peers.into_iter().for_each(|peer| self.send(now, peer, msg()));
    }

    /// It is about to.
    pub(super) fn stands(&self) -> bool {
        self.links.stands.is_some()
    }

    /// What was to fall due meanwhile has as long as it had before.
    pub(crate) fn go_on(&mut self, now: Time) {
        if let Some(since) = self.links.stands.take() {
            self.timers.put_off(now.since(since), |_| true);
            self.say_to_all(now, || Msg::Heartbeat);
        }
    }

    pub(super) fn beat(&mut self, now: Time) {
        // If this daemon itself was late (its machine was suspended or overloaded), its neighbours were not silent: their
        // messages may still wait to be read.
        let late = self.links.next_beat.map(|at| now.since(at)).unwrap_or_default();
        for link in self.links.peers.values_mut() {
            link.heard = link.heard.after(late).min(now);
        }
        let (beat, silence) = (self.setup.heartbeat, self.setup.silence);
        let of = |wanted: fn(&Link, Time, Duration) -> bool, span| {
            let chosen = self.links.peers.iter().filter(|(_, link)| wanted(link, now, span));
            chosen.map(|(peer, _)| *peer).collect::<Vec<_>>()
        };
        let idle = of(|link, now, span| link.ready && now.since(link.said) >= span, beat / 2);
        let silent = of(|link, now, span| !link.stands && now.since(link.heard) >= span, silence);
        for peer in idle {
            self.send(now, peer, Msg::Heartbeat);
        }
        for peer in silent {
            self.drop_link(now, peer, &format!("it has said nothing for {} s", silence.as_secs()));
        }
        self.links.next_beat = None;
        if !self.links.peers.is_empty() {
            self.set_beat(now);
        }
    }

    fn set_beat(&mut self, now: Time) {
        let at = now.after(self.setup.heartbeat);
        self.links.next_beat = Some(at);
        self.timers.set(at, Timer::Beat);
    }
}

/// Describes what is wrong with a message. For a hello of another version, that is the version.
fn not_understood(body: &[u8], why: &Malformed) -> String {
    match Hello::version_in(body) {
        Some(version) if version != VERSION => {
            format!("it speaks version {version} of the protocol, not {VERSION}")
        }
        _ => format!("a message of {} bytes cannot be understood: {why}", body.len()),
    }
}
