//! Resolve peers and nodes: where the processes of a job are.

use phalanx_core::{ClientCall, ClientReturn};
use phalanx_wire::{Nspace, ProcId, Text};

use super::{Client, unexpected};
use crate::error::Error;

impl Client {
    /// The processes of a job on a node (`PMIx_Resolve_peers`); no node: this one.
    pub fn resolve_peers(&self, node: Option<&str>, nspace: &Nspace) -> Result<Vec<ProcId>, Error> {
        let call = ClientCall::ResolvePeers { node: node.map(Text::from), nspace: nspace.clone() };
        let operation = || format!("resolution of the processes of {nspace}");
        match self.call(call)? {
            ClientReturn::Peers(result) => {
                result.map_err(|status| Error::Failed { operation: operation(), status })
            }
            other => Err(unexpected(&operation(), &other)),
        }
    }

    /// The host names of a job's nodes (`PMIx_Resolve_nodes`).
    pub fn resolve_nodes(&self, nspace: &Nspace) -> Result<Vec<String>, Error> {
        let operation = || format!("resolution of the nodes of {nspace}");
        match self.call(ClientCall::ResolveNodes { nspace: nspace.clone() })? {
            ClientReturn::Nodes(result) => {
                result.map_err(|status| Error::Failed { operation: operation(), status })
            }
            other => Err(unexpected(&operation(), &other)),
        }
    }
}
