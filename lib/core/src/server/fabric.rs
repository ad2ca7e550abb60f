//! Fabric registration: the host knows the fabrics.

use phalanx_wire::cmd::fabric::{Register, Update};

use super::host::Then;
use super::peer::Asker;
use super::turn::Cx;
use crate::host::HostOp;

pub(super) fn on_fabric_register(cx: &mut Cx<'_>, from: Asker, request: Register) {
    let proc = from.proc.clone();
    let op = HostOp::FabricRegister { from: proc.clone(), directives: request.directives };
    cx.ask(Some(&proc), op, Then::AnswerInfos(from));
}

pub(super) fn on_fabric_update(cx: &mut Cx<'_>, from: Asker, request: &Update) {
    let proc = from.proc.clone();
    let op = HostOp::FabricUpdate { from: proc.clone(), index: request.index };
    cx.ask(Some(&proc), op, Then::AnswerInfos(from));
}
