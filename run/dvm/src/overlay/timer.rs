//! What an overlay waits for by the clock. An entry that has lost its meaning is ignored when it fires.

use crate::id::NodeId;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    /// Cards of booting daemons are collected a moment before they go up.
    Cards,
    /// Say something on idle links, look for silent ones.
    Beat,
    CastAck,
    PostAck,
    /// A lost neighbour had this long to come back.
    Reconnect(NodeId),
    /// This orphan had this long to find a parent.
    Orphaned,
}
