//! The overlay's timers. A timer that has become irrelevant is ignored when it fires.

use crate::id::NodeId;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    /// Cards of booting daemons are collected a moment before they go up.
    Cards,
    /// Send heartbeats on idle links, look for silent ones.
    Beat,
    CastAck,
    PostAck,
    /// The time for a lost neighbour to come back.
    Reconnect(NodeId),
    /// The time for this orphan to find a parent.
    Orphaned,
}
