//! What neighbours say to each other. Versioned, ours alone, carried by any transport in order.

use std::sync::Arc;

use super::Cargo;

use crate::id::NodeId;
use crate::ranges::Ranges;

/// The version of this protocol. Daemons of one DVM all come from one binary, so a difference is a mistake of whoever
/// started them, and the link is refused.
pub(super) const VERSION: u16 = 1;

#[derive(Clone, Debug)]
pub enum Msg<C: Cargo> {
    /// The first message on every link, both ways. From a parent it also accepts the child.
    Hello(Hello),
    Heartbeat,
    /// Who has come up in the sender's subtree: sent up while booting.
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
    /// The way to the root has changed: everybody below sends again what was not acknowledged.
    Resend,
}

#[derive(Clone, Debug)]
pub struct Hello {
    pub version: u16,
    pub node: NodeId,
    /// The last cast that the sender has.
    pub have: u64,
    /// Where the sender, its parent, its parent's parent ... are reached.
    pub lineage: Vec<(NodeId, Arc<str>)>,
}

/// From the root to some daemons; every daemon on the way sees it too. All daemons see casts in one order.
#[derive(Clone, Debug)]
pub struct Cast<C: Cargo> {
    pub seq: u64,
    pub to: Ranges,
    pub body: CastBody<C>,
}

#[derive(Clone, Debug)]
pub enum CastBody<C: Cargo> {
    /// Up to where the root has the posts of these daemons.
    PostAcks(Vec<(NodeId, u64)>),
    ChunkAcks(Vec<ChunkAck>),
    Lost(NodeId),
    Cargo(Arc<C::Down>),
}

/// What the sender's whole subtree contributes to a collective operation.
#[derive(Clone, Debug)]
pub struct Gather<C: Cargo> {
    pub op: Arc<C::Op>,
    pub from: NodeId,
    /// Participants below `from` that were lost before they contributed.
    pub missing: Ranges,
    pub part: C::Part,
}

/// From one daemon to the root, in order, exactly once.
#[derive(Clone, Debug)]
pub struct Post<C: Cargo> {
    pub origin: NodeId,
    pub seq: u64,
    pub body: PostBody<C>,
}

#[derive(Clone, Debug)]
pub enum PostBody<C: Cargo> {
    /// The sender declares its child lost.
    Lost {
        node: NodeId,
        why: String,
    },
    Cargo(Arc<C::Up>),
}

/// A piece of a stream on its way to the root, in order, exactly once.
#[derive(Clone, Debug)]
pub struct Chunk<C: Cargo> {
    pub origin: NodeId,
    pub seq: u64,
    pub body: C::Bulk,
}

/// The root has taken these chunks of `origin`.
#[derive(Clone, Copy, Debug)]
pub struct ChunkAck {
    pub origin: NodeId,
    pub first: u64,
    pub last: u64,
}

#[derive(Clone, Debug)]
pub struct Routed<C: Cargo> {
    pub from: NodeId,
    pub to: NodeId,
    pub body: C::Side,
}
