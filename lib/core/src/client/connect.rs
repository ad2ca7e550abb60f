//! Connect and disconnect: bind processes of several jobs together (RFC0003). Each learns of the others' jobs.

use phalanx_wire::cmd::connect::{Connect, Reply};
use phalanx_wire::cmd::{Body, Request};
use phalanx_wire::codec::DecodeError;
use phalanx_wire::{Info, ProcId};

use super::call::ClientReturn;
use super::group::Groups;
use super::link::{Cx, Link};
use super::pending::{Awaited, list};
use crate::machine::CallId;

pub(super) fn on_connect(cx: &mut Cx<'_>, groups: &Groups, id: CallId, procs: Vec<ProcId>, info: Vec<Info>) {
    let procs = groups.resolve(procs);
    let awaited = Awaited::Connected { procs: procs.clone() };
    let request = Request::Connect(Connect { procs, info: info.clone(), endpoints: Vec::new() });
    cx.ask(Some(id), &request, awaited, &info);
}

pub(super) fn on_disconnect(
    cx: &mut Cx<'_>,
    groups: &Groups,
    id: CallId,
    procs: Vec<ProcId>,
    info: Vec<Info>,
) {
    let procs = groups.resolve(procs);
    let awaited = Awaited::Status { operation: "disconnect", subject: list(&procs) };
    let request = Request::Disconnect(Connect { procs, info: info.clone(), endpoints: Vec::new() });
    cx.ask(Some(id), &request, awaited, &info);
}

pub(super) fn connected(link: &Link, payload: &[u8]) -> Result<ClientReturn, DecodeError> {
    let Reply { status, jobs } = Reply::decode(payload, link.config.dialect)?;
    for job in jobs {
        link.store.load_job(job);
    }
    Ok(ClientReturn::Done(status))
}
