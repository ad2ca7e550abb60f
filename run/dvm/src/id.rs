//! Identifiers that all rooms share: of daemons, and of chunks that the root has not finished with.

use crate::encoding::{Encode, Malformed, Reader, Writer};

/// A daemon's number in its DVM. The root is 0; the numbers determine the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

impl NodeId {
    pub const ROOT: NodeId = NodeId(0);
}

impl Encode for NodeId {
    fn encode(&self, to: &mut Writer) {
        self.0.encode(to);
    }

    fn decode(from: &mut Reader<'_>) -> Result<NodeId, Malformed> {
        u32::decode(from).map(NodeId)
    }
}

/// A chunk at the root, until the root has taken it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Landing(pub(crate) u64);
