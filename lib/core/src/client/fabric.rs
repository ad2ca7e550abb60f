//! Fabrics: their description, from the host.

use phalanx_wire::Info;
use phalanx_wire::cmd::Request;
use phalanx_wire::cmd::fabric::{Register, Update};

use super::link::Cx;
use super::pending::Awaited;
use crate::machine::CallId;

pub(super) fn on_fabric_register(cx: &mut Cx<'_>, id: CallId, directives: Vec<Info>) {
    let awaited = Awaited::Infos { operation: "fabric registration", subject: String::new() };
    let request = Request::FabricRegister(Register { directives: directives.clone() });
    cx.ask(Some(id), &request, awaited, &directives);
}

pub(super) fn on_fabric_update(cx: &mut Cx<'_>, id: CallId, index: u64) {
    let awaited = Awaited::Infos { operation: "fabric update", subject: index.to_string() };
    cx.ask(Some(id), &Request::FabricUpdate(Update { index }), awaited, &[]);
}
