//! The messages between neighbours. Versioned, private to us, carried in order by any transport.

use std::sync::Arc;

use super::Cargo;

use crate::encoding::{Reader, encoded};
use crate::id::NodeId;
use crate::ranges::Ranges;

/// The version of this protocol. Daemons of one DVM all come from one binary, so a difference means a mistake in starting them,
/// and the link is refused.
pub(super) const VERSION: u16 = 2;

#[derive(Clone, Debug)]
pub(crate) enum Msg<C: Cargo> {
    /// The first message on every link, both ways. From a parent it also accepts the child.
    Hello(Hello),
    Heartbeat,
    /// The sender is about to pause, and will be silent until it goes on.
    StandStill,
    /// The daemons that have come up in the sender's subtree: sent up while booting.
    Cards(Vec<(NodeId, C::Card)>),
    Cast(Arc<Cast<C>>),
    /// The sender's whole subtree has all casts up to this one.
    CastAck {
        upto: u64,
    },
    Gather(Gather<C>),
    Post(Post<C>),
    Chunk(Chunk<C>),
    /// The sender has passed on this many bytes of the receiver's chunks.
    ChunkCredit {
        bytes: usize,
    },
    Routed(Routed<C>),
    /// The path to the root has changed: all daemons below send again what was not acknowledged.
    Resend,
}

#[derive(Clone, Debug)]
pub(crate) struct Hello {
    pub version: u16,
    pub node: NodeId,
    /// The last cast that the sender has.
    pub have: u64,
    /// The addresses of the sender, its parent, its parent's parent and so on.
    pub lineage: Vec<(NodeId, Arc<str>)>,
}

impl Hello {
    /// The version in a hello, whatever the format of the rest.
    pub(super) fn version_in(body: &[u8]) -> Option<u16> {
        match body {
            [0, version @ ..] => Reader::new(version).number().ok()?.try_into().ok(),
            _ => None,
        }
    }
}

/// From the root to some daemons; every daemon on the way sees it, too. All daemons see casts in one order.
#[derive(Clone, Debug)]
pub(crate) struct Cast<C: Cargo> {
    pub seq: u64,
    pub to: Ranges,
    pub body: CastBody<C>,
}

#[derive(Clone, Debug)]
pub(crate) enum CastBody<C: Cargo> {
    /// The last post of each of these daemons that the root has.
    PostAcks(Vec<(u64, Ranges)>),
    ChunkAcks(Vec<ChunkAck>),
    Lost(NodeId),
    Cargo(Arc<C::Down>),
}

/// What the sender's whole subtree contributes to a collective operation.
#[derive(Clone, Debug)]
pub(crate) struct Gather<C: Cargo> {
    pub op: Arc<C::Op>,
    pub from: NodeId,
    /// Participants below `from` that were lost before they contributed.
    pub missing: Ranges,
    pub part: C::Part,
}

/// From one daemon to the root, in order, exactly once.
#[derive(Clone, Debug)]
pub(crate) struct Post<C: Cargo> {
    pub origin: NodeId,
    pub seq: u64,
    pub body: PostBody<C>,
}

#[derive(Clone, Debug)]
pub(crate) enum PostBody<C: Cargo> {
    /// The sender declares its child lost.
    Lost {
        node: NodeId,
        why: String,
    },
    Cargo(Arc<C::Up>),
}

/// A piece of a stream on its way to the root, in order, exactly once.
#[derive(Clone, Debug)]
pub(crate) struct Chunk<C: Cargo> {
    pub origin: NodeId,
    pub seq: u64,
    pub body: C::Bulk,
}

/// The root has taken these chunks of each of `origins`.
#[derive(Clone, Debug)]
pub(crate) struct ChunkAck {
    pub origins: Ranges,
    pub first: u64,
    pub last: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Routed<C: Cargo> {
    pub from: NodeId,
    pub to: NodeId,
    pub body: C::Side,
}

// The first bytes of a hello never change: they let a daemon of another version report what is wrong.
encoded!(<C: Cargo> enum Msg {
    0 Hello(hello),
    1 Heartbeat,
    2 Cards(cards),
    3 Cast(cast),
    4 CastAck { upto },
    5 Gather(gather),
    6 Post(post),
    7 Chunk(chunk),
    8 ChunkCredit { bytes },
    9 Routed(routed),
    10 Resend,
    11 StandStill,
});
encoded!(struct Hello { version, node, have, lineage });
encoded!(<C: Cargo> struct Cast { seq, to, body });
encoded!(<C: Cargo> enum CastBody { 0 PostAcks(acks), 1 ChunkAcks(acks), 2 Lost(node), 3 Cargo(down) });
encoded!(<C: Cargo> struct Gather { op, from, missing, part });
encoded!(<C: Cargo> struct Post { origin, seq, body });
encoded!(<C: Cargo> enum PostBody { 0 Lost { node, why }, 1 Cargo(up) });
encoded!(<C: Cargo> struct Chunk { origin, seq, body });
encoded!(struct ChunkAck { origins, first, last });
encoded!(<C: Cargo> struct Routed { from, to, body });
