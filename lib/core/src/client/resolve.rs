//! Resolve peers and nodes: who of a job is on a node, which nodes a job has.
//!
//! For jobs whose data are here the store knows. Servers before 5.0 have no command for it and never answer a get for a job
//! that they do not know, so they are not asked.

use phalanx_spec::{Rank, Status, keys};
use phalanx_wire::cmd::resolve::{Node, NodeReply, Peers, PeersReply};
use phalanx_wire::cmd::{Body, Request};
use phalanx_wire::codec::{DecodeError, Dialect};
use phalanx_wire::{Key, Nspace, ProcId, Text};

use super::pending::Awaited;
use super::{Client, ClientReturn, Out};
use crate::machine::{CallId, Output, Time};
use crate::store::{LookupRequest, Realm};

impl Client {
    pub(super) fn on_resolve_peers(
        &mut self,
        now: Time,
        id: CallId,
        node: Option<Text>,
        nspace: Nspace,
        out: &mut Out,
    ) {
        let known = self.known_peers(node.as_ref(), &nspace);
        if known.is_some() || !self.has_resolve_commands() {
            let result = ClientReturn::Peers(known.ok_or(Status::ERR_NOT_FOUND));
            return out.push(Output::Return { id, result });
        }
        let subject = node.as_ref().map_or_else(|| "this node".into(), Text::to_string_lossy);
        let request = Request::ResolvePeers(Peers { node, nspace });
        self.ask(now, Some(id), &request, Awaited::Peers { node: subject }, &[], out);
    }

    pub(super) fn on_resolve_nodes(&mut self, now: Time, id: CallId, nspace: Nspace, out: &mut Out) {
        let known = self.store.node_names(&nspace);
        if !known.is_empty() || !self.has_resolve_commands() {
            let known = if known.is_empty() { Err(Status::ERR_NOT_FOUND) } else { Ok(known) };
            return out.push(Output::Return { id, result: ClientReturn::Nodes(known) });
        }
        let awaited = Awaited::Nodes { nspace: nspace.to_string() };
        self.ask(now, Some(id), &Request::ResolveNode(Node { nspace }), awaited, &[], out);
    }

    fn known_peers(&self, node: Option<&Text>, nspace: &Nspace) -> Option<Vec<ProcId>> {
        let name = match node {
            Some(node) => Some(node.as_str()?.to_owned()),
            None => None,
        };
        let peers = self.store.known(&LookupRequest {
            proc: ProcId::all(nspace),
            key: Some(Key::of(keys::LOCAL_PEERS)),
            realm: Realm::Node { name, id: None },
            optional: true,
            refresh: false,
            scoped: false,
            qualified: None,
        })?;
        let ranks = peers.as_str()?.split(',').map(|rank| rank.trim().parse().map(Rank));
        // PRRTE lists them in the order in which it placed them.
        let mut procs =
            ranks.map(|rank| Some(ProcId::new(nspace, rank.ok()?))).collect::<Option<Vec<_>>>()?;
        procs.sort_unstable();
        Some(procs)
    }

    fn has_resolve_commands(&self) -> bool {
        !self.is_alone() && self.config.dialect.release.major >= 5
    }
}

pub(super) fn peers(payload: &[u8], dialect: Dialect) -> Result<ClientReturn, DecodeError> {
    let PeersReply { status, procs } = PeersReply::decode(payload, dialect)?;
    Ok(ClientReturn::Peers(if status.is_success() { Ok(procs) } else { Err(status) }))
}

pub(super) fn nodes(payload: &[u8], dialect: Dialect) -> Result<ClientReturn, DecodeError> {
    let NodeReply { status, nodes } = NodeReply::decode(payload, dialect)?;
    let names = nodes.map(|nodes| nodes.to_string_lossy()).unwrap_or_default();
    let names = names.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
    Ok(ClientReturn::Nodes(if status.is_success() { Ok(names) } else { Err(status) }))
}
