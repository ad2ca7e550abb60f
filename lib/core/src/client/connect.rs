//! Connect and disconnect: bind processes of several jobs together (RFC0003). Each gets the data of the others' jobs.

use phalanx_wire::cmd::connect::{Connect, Reply};
use phalanx_wire::cmd::{Body, Request};
use phalanx_wire::codec::DecodeError;

use super::call::ClientReturn;
use super::group::Groups;
use super::link::{Cx, Link};
use super::pending::{Awaited, list};
use crate::machine::CallId;

pub(super) fn on_connect(cx: &mut Cx<'_>, groups: &Groups, id: CallId, mut connect: Connect) {
    connect.procs = groups.resolve(connect.procs);
    let (awaited, info) = (Awaited::Connected { procs: connect.procs.clone() }, connect.info.clone());
    cx.ask(Some(id), &Request::Connect(connect), awaited, &info);
}

pub(super) fn on_disconnect(cx: &mut Cx<'_>, groups: &Groups, id: CallId, mut connect: Connect) {
    connect.procs = groups.resolve(connect.procs);
    let awaited = Awaited::Status { operation: "disconnect", subject: list(&connect.procs) };
    let info = connect.info.clone();
    cx.ask(Some(id), &Request::Disconnect(connect), awaited, &info);
}

pub(super) fn connected(link: &Link, payload: &[u8]) -> Result<ClientReturn, DecodeError> {
    let Reply { status, jobs } = Reply::decode(payload, link.config.dialect)?;
    for job in jobs {
        link.store.load_job(job);
    }
    Ok(ClientReturn::Done(status))
}
