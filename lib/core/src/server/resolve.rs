//! Resolve: which processes are on a node, and which nodes a job is on. Clients before 5.0 use gets instead.

use std::sync::Arc;

use phalanx_spec::Status;
use phalanx_wire::ProcId;
use phalanx_wire::cmd::Body;
use phalanx_wire::cmd::resolve::{Node, NodeReply, Peers, PeersReply};

use super::peer::Asker;
use super::registry::Job;
use super::turn::Cx;

pub(super) fn on_resolve_peers(cx: &mut Cx<'_>, from: Asker, request: &Peers) {
    let node = request.node.as_ref().and_then(|node| node.as_str()).filter(|node| !node.is_empty());
    let mut known = false;
    let mut procs = Vec::new();
    for job in cx.peers.jobs.iter() {
        if !request.nspace.is_none() && job.info().nspace != request.nspace {
            continue;
        }
        known = true;
        procs.extend(procs_on(job, node));
    }
    let status = if known { Status::SUCCESS } else { Status::ERR_INVALID_NAMESPACE };
    cx.reply(from, |dialect| PeersReply { status, procs }.encode(dialect));
}

/// The processes of a job on one node; without a name, on ours.
fn procs_on<'a>(job: &'a Job, node: Option<&str>) -> impl Iterator<Item = ProcId> + 'a {
    let index = match node {
        None => job.info().here,
        Some(name) => job.node_named(name).and_then(|i| u32::try_from(i).ok()),
    };
    index.into_iter().flat_map(|index| job.ranks_on(index)).map(|rank| ProcId::new(&job.info().nspace, rank))
}

pub(super) fn on_resolve_node(cx: &mut Cx<'_>, from: Asker, request: &Node) {
    let mut names: Vec<Arc<str>> = Vec::new();
    for job in cx.peers.jobs.iter() {
        if request.nspace.is_none() || job.info().nspace == request.nspace {
            names.extend(job.info().nodes.iter().map(|node| node.name));
        }
    }
    if request.nspace.is_none() {
        names.sort_unstable();
        names.dedup();
    }
    let status = if names.is_empty() { Status::ERR_INVALID_NAMESPACE } else { Status::SUCCESS };
    let nodes = (!names.is_empty()).then(|| names.join(",").into());
    cx.reply(from, |dialect| NodeReply { status, nodes }.encode(dialect));
}
