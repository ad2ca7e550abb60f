//! RESOLVE_PEERS and RESOLVE_NODE (5.0 and later; 4.2 clients use GET with rank UNDEF).

use phalanx_spec::Status;

use crate::name::{Nspace, ProcId};
use crate::text::Text;

/// Absent node: the asker's own. Empty namespace: all of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Peers {
    pub node: Option<Text>,
    pub nspace: Nspace,
}

#[derive(Clone, Debug, PartialEq)]
pub struct PeersReply {
    pub status: Status,
    pub procs: Vec<ProcId>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    pub nspace: Nspace,
}

/// `nodes`: host names, comma separated.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeReply {
    pub status: Status,
    pub nodes: Option<Text>,
}
