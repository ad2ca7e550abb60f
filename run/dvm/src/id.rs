//! Names that all rooms have in common: of daemons, and of what has arrived at the root and is not done with.

use serde::{Deserialize, Serialize};

/// A daemon's number in its DVM. The root is 0; the tree follows from the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NodeId(pub u32);

impl NodeId {
    pub const ROOT: NodeId = NodeId(0);
}

/// A chunk at the root, until the root has taken it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Landing(pub(crate) u64);
