//! The tree of daemons and the ways in which messages travel on it.
//!
//! An [`Overlay`] belongs to one daemon. It keeps the links to its neighbours, repairs the tree after a loss, and carries its
//! owner's cargo without looking inside: [`Cargo`] names the types. There are five ways, each with its own rule for surviving
//! the loss of an inner daemon: casts (root to many), gathers (many to root, merged on the way), posts and streams (one to
//! root) and routed messages (one to one). All output for the owner leaves through [`Overlay::pop`], in order.

mod cards;
mod cast;
mod frames;
mod gather;
mod link;
mod msg;
mod post;
mod repair;
mod routed;
mod stream;
#[cfg(test)]
mod tests;
mod timer;
mod tree;

use std::collections::VecDeque;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use phalanx_core::Time;

use crate::encoding::Encode;
use crate::id::{Landing, NodeId};
use crate::ranges::Ranges;
use crate::timers::Timers;

use cards::Cards;
use cast::Casts;
use gather::Gathers;
use link::Links;
#[cfg(test)]
pub(crate) use msg::{Cast, CastBody, Post, PostBody};
pub(crate) use msg::{Gather, Msg};
use post::Posts;
use repair::Repair;
use stream::Streams;
use timer::Timer;
pub use tree::{Hop, Tree};

/// What an overlay carries.
pub(crate) trait Cargo: Clone + Debug + 'static {
    /// From the root to some daemons.
    type Down: Encode + Clone + Debug;
    /// From one daemon to the root.
    type Up: Encode + Clone + Debug;
    /// Names a collective operation, equally on all daemons.
    type Op: Encode + Clone + Debug + Ord;
    /// What a daemon contributes to an operation.
    type Part: Merge + Encode + Clone + Debug;
    /// From one daemon to another.
    type Side: Encode + Clone + Debug;
    /// A daemon's introduction when it comes up.
    type Card: Encode + Clone + Debug;
    /// A piece of a stream to the root.
    type Bulk: Bulk + Encode + Clone + Debug;

    /// The operation with this result.
    fn result_of(down: &Self::Down) -> Option<&Self::Op>;
}

/// Contributions that become one on the way up.
pub(crate) trait Merge: Default {
    fn merge(&mut self, other: Self);
}

/// Something that takes room on a link.
pub(crate) trait Bulk {
    /// Bytes of payload. Nothing waits for room for an empty piece.
    fn bytes(&self) -> usize;
}

/// Output for the owner and its shell.
#[derive(Debug)]
pub(crate) enum Out<C: Cargo> {
    Send { to: NodeId, msg: Msg<C> },
    Unlink { to: NodeId },
    Connect { to: NodeId, address: Arc<str> },
    Arrived(Arrived<C>),
}

#[derive(Debug)]
pub(crate) enum Arrived<C: Cargo> {
    /// At the root: these daemons have come up.
    Cards(Vec<(NodeId, C::Card)>),
    /// A cast that came by. Not all that come by are addressed to this daemon.
    Cast {
        addressed: bool,
        body: Arc<C::Down>,
    },
    /// At the root.
    Post {
        origin: NodeId,
        body: Arc<C::Up>,
    },
    /// A contribution to an operation; the owner knows the participants and calls [`Overlay::take_part`], or drops it.
    Part(Gather<C>),
    /// At the root: another contribution is here, but not all.
    Advanced(Arc<C::Op>),
    /// At the root: all contributions, except those of daemons that were lost before they sent theirs.
    Gathered {
        op: Arc<C::Op>,
        among: Ranges,
        missing: Ranges,
        part: C::Part,
    },
    Side {
        from: NodeId,
        body: C::Side,
    },
    /// At the root: the next piece of a daemon's streams. Its sender holds it until [`Overlay::taken`].
    Bulk {
        landing: Landing,
        body: C::Bulk,
    },
    /// The root has taken these pieces of ours.
    Taken(Vec<C::Bulk>),
    /// The tree goes on without this daemon.
    Without(NodeId),
    /// At the root, once for each daemon: it is lost, and the other daemons are being notified.
    Lost {
        node: NodeId,
        why: String,
    },
    /// This daemon has no path to the root any more.
    Alone {
        why: String,
    },
}

/// What a daemon knows of its overlay when it starts.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) me: NodeId,
    pub(crate) size: u32,
    pub(crate) radix: u32,
    /// The address at which orphans reach this daemon.
    pub(crate) address: Arc<str>,
    /// The addresses of its ancestors, the parent first.
    pub(crate) lineage: Vec<(NodeId, Arc<str>)>,
    /// Between two messages on an idle link.
    pub(crate) heartbeat: Duration,
    /// A link that is silent for this long is dead.
    pub(crate) silence: Duration,
    /// How long a daemon has to come back after its link was lost.
    pub(crate) reconnect: Duration,
    /// Bytes of streams in flight on one link.
    pub(crate) window: usize,
}

#[derive(Debug)]
pub(crate) struct Overlay<C: Cargo> {
    setup: Setup,
    me: NodeId,
    tree: Tree,
    parent: Option<NodeId>,
    /// The daemons below with us as their next living ancestor.
    children: Arc<[NodeId]>,
    links: Links,
    repair: Repair,
    cards: Cards<C>,
    casts: Casts<C>,
    gathers: Gathers<C>,
    posts: Posts<C>,
    streams: Streams<C>,
    timers: Timers<Timer>,
    out: VecDeque<Out<C>>,
    /// The owner has ended: lost neighbours are not looked for any more.
    over: bool,
}

impl<C: Cargo> Overlay<C> {
    pub(crate) fn new(setup: Setup) -> Overlay<C> {
        let tree = Tree::new(setup.size, setup.radix);
        Overlay {
            me: setup.me,
            parent: tree.parent(setup.me),
            children: tree.children(setup.me).into(),
            tree,
            links: Links::new(setup.lineage.clone()),
            repair: Repair::default(),
            cards: Cards::default(),
            casts: Casts::default(),
            gathers: Gathers::default(),
            posts: Posts::default(),
            streams: Streams::new(setup.window),
            timers: Timers::default(),
            out: VecDeque::new(),
            over: false,
            setup,
        }
    }

    pub(crate) fn is_root(&self) -> bool {
        self.me == NodeId::ROOT
    }

    /// The next output for the owner.
    pub(crate) fn pop(&mut self) -> Option<Out<C>> {
        self.out.pop_front()
    }

    pub(crate) fn deadline(&self) -> Option<Time> {
        self.timers.next().filter(|_| !self.stands())
    }

    /// Handles due timers.
    pub(crate) fn tick(&mut self, now: Time) {
        while !self.stands()
            && let Some(timer) = self.timers.pop_due(now)
        {
            match timer {
                Timer::Cards => self.send_cards(now),
                Timer::Beat => self.beat(now),
                Timer::CastAck => self.ack_casts(now),
                Timer::PostAck => self.ack_posts(now),
                Timer::Reconnect(child) => self.on_reconnect_over(now, child),
                Timer::Orphaned => self.on_orphaned_too_long(),
            }
        }
    }

    /// The owner ends: links may go down without a reaction.
    pub(crate) fn stop(&mut self) {
        self.over = true;
    }

    fn arrived(&mut self, arrived: Arrived<C>) {
        self.out.push_back(Out::Arrived(arrived));
    }
}
