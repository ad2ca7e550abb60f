//! What daemons say to each other. Versioned, ours alone, carried by any transport in order.

use serde::{Deserialize, Serialize};

/// A daemon's number in its DVM. The root is 0; the tree follows from the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NodeId(pub u32);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Msg {}
