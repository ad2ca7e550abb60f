//! Fence: waits for other processes, and with `pmix.collect` has the servers exchange committed values.
//!
//! The values do not come with the reply. A get finds them in a file that our server names, otherwise at the server, which
//! has them by then.

use phalanx_wire::ProcId;
use phalanx_wire::cmd::fence::{Fence, Reply};
use phalanx_wire::cmd::{Body, Request};
use phalanx_wire::codec::DecodeError;

use super::call::ClientReturn;
use super::group::Groups;
use super::link::{Cx, Link, status};
use super::pending::Awaited;
use crate::machine::CallId;

pub(super) fn on_fence(cx: &mut Cx<'_>, groups: &Groups, id: CallId, fence: Fence) {
    let Fence { procs, info } = fence;
    let me = &cx.link.config.proc;
    if cx.is_alone() && procs.iter().all(|proc| proc.covers(me)) {
        return cx.done_alone(id);
    }
    let procs = if procs.is_empty() { vec![ProcId::all(&me.nspace)] } else { procs };
    let procs = groups.resolve(procs);
    let awaited = Awaited::Fence { procs: procs.clone() };
    let request = Request::Fence(Fence { procs, info: info.clone() });
    cx.ask(Some(id), &request, awaited, &info);
}

pub(super) fn fenced(link: &Link, payload: &[u8]) -> Result<ClientReturn, DecodeError> {
    if link.config.files.is_none() {
        return status(payload, link.config.dialect);
    }
    let reply = Reply::decode(payload, link.config.dialect)?;
    // The server names an older file again if it is still valid.
    link.store.set_collected(&reply.collected);
    Ok(ClientReturn::Done(reply.status))
}
