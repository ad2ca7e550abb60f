//! Resolve peers and nodes: the processes of a job on a node, the nodes of a job.
//!
//! The store answers for jobs whose data are here. Servers before 5.0 have no command for it and never answer a get for a
//! job that they do not know, so they are not asked.

use phalanx_spec::{Rank, Status, keys};
use phalanx_wire::cmd::resolve::{Node, NodeReply, Peers, PeersReply};
use phalanx_wire::cmd::{Body, Request};
use phalanx_wire::codec::{DecodeError, Dialect};
use phalanx_wire::{Key, Nspace, ProcId, Text};

use super::call::ClientReturn;
use super::link::Cx;
use super::pending::Awaited;
use crate::machine::{CallId, Output};
use crate::store::{LookupRequest, Realm};

pub(super) fn on_resolve_peers(cx: &mut Cx<'_>, id: CallId, node: Option<Text>, nspace: Nspace) {
    let known = known_peers(cx, node.as_ref(), &nspace);
    if known.is_some() || !has_resolve_commands(cx) {
        let result = ClientReturn::Peers(known.ok_or(Status::ERR_NOT_FOUND));
        return cx.out.push(Output::Return { id, result });
    }
    let subject = node.as_ref().map_or_else(|| "this node".into(), Text::to_string_lossy);
    let request = Request::ResolvePeers(Peers { node, nspace });
    cx.ask(Some(id), &request, Awaited::Peers { node: subject }, &[]);
}

pub(super) fn on_resolve_nodes(cx: &mut Cx<'_>, id: CallId, nspace: Nspace) {
    let known = cx.link.store.node_names(&nspace);
    if !known.is_empty() || !has_resolve_commands(cx) {
        let known = if known.is_empty() { Err(Status::ERR_NOT_FOUND) } else { Ok(known) };
        return cx.out.push(Output::Return { id, result: ClientReturn::Nodes(known) });
    }
    let awaited = Awaited::Nodes { nspace: nspace.to_string() };
    cx.ask(Some(id), &Request::ResolveNode(Node { nspace }), awaited, &[]);
}

fn known_peers(cx: &Cx<'_>, node: Option<&Text>, nspace: &Nspace) -> Option<Vec<ProcId>> {
    let name = match node {
        Some(node) => Some(node.as_str()?.to_owned()),
        None => None,
    };
    let peers = cx.link.store.known(&LookupRequest {
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
    let mut procs = ranks.map(|rank| Some(ProcId::new(nspace, rank.ok()?))).collect::<Option<Vec<_>>>()?;
    procs.sort_unstable();
    Some(procs)
}

fn has_resolve_commands(cx: &Cx<'_>) -> bool {
    !cx.is_alone() && cx.link.config.dialect.release.major >= 5
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
