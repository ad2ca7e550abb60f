//! RESOLVE_PEERS and RESOLVE_NODE (5.0 and later; 4.2 clients use GET with rank UNDEF).

use phalanx_spec::Status;

use super::Body;
use crate::codec::{DecodeError, Dialect, Reader, Writer};
use crate::name::{Nspace, ProcId};
use crate::text::Text;

/// No node: the requester's own. Empty namespace: all of them.
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

impl Body for Peers {
    fn write(&self, to: &mut Writer, _: Dialect) {
        to.put(&self.node).put(&self.nspace);
    }
    fn read(from: &mut Reader<'_>, _: Dialect) -> Result<Self, DecodeError> {
        Ok(Peers { node: from.get()?, nspace: from.get()? })
    }
}

impl Body for PeersReply {
    fn write(&self, to: &mut Writer, _: Dialect) {
        to.put(&self.status);
        if self.status.is_success() {
            to.put_list(&self.procs);
        }
    }
    fn read(from: &mut Reader<'_>, _: Dialect) -> Result<Self, DecodeError> {
        let status = from.get()?;
        let procs = if from.is_at_end() { Vec::new() } else { from.get_list()? };
        Ok(PeersReply { status, procs })
    }
}

impl Body for Node {
    fn write(&self, to: &mut Writer, _: Dialect) {
        to.put(&self.nspace);
    }
    fn read(from: &mut Reader<'_>, _: Dialect) -> Result<Self, DecodeError> {
        Ok(Node { nspace: from.get()? })
    }
}

impl Body for NodeReply {
    fn write(&self, to: &mut Writer, _: Dialect) {
        to.put(&self.status);
        if self.status.is_success() {
            to.put(&self.nodes);
        }
    }
    fn read(from: &mut Reader<'_>, _: Dialect) -> Result<Self, DecodeError> {
        let status = from.get()?;
        let nodes = if from.is_at_end() { None } else { from.get()? };
        Ok(NodeReply { status, nodes })
    }
}
