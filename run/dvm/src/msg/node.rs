//! Nodes, as their daemons describe them and as all daemons know them.

use std::sync::Arc;

use crate::hosts::Slots;
use crate::id::NodeId;

/// What a daemon says of its node.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeReport {
    pub hostname: Arc<str>,
    pub slots: Slots,
    pub max_slots: Option<u32>,
    /// Equal for nodes that look the same.
    pub signature: Arc<str>,
}

/// All nodes by number.
#[derive(Clone, Debug, Default)]
pub struct NodeTable {
    names: Vec<Arc<str>>,
}

impl NodeTable {
    pub(crate) fn new(names: Vec<Arc<str>>) -> NodeTable {
        NodeTable { names }
    }

    /// A node's name; empty for a number that nobody has.
    pub fn name(&self, node: NodeId) -> Arc<str> {
        self.names.get(node.0 as usize).cloned().unwrap_or_default()
    }
}
