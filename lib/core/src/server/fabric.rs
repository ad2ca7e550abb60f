//! Fabric registration: the host knows the fabrics.

use phalanx_wire::cmd::fabric::{Register, Update};

use super::host::Then;
use super::peer::Asker;
use super::{Cx, Server};
use crate::host::HostOp;

impl Server {
    pub(super) fn on_fabric_register(&mut self, cx: &mut Cx<'_>, from: Asker, request: Register) {
        let proc = from.proc.clone();
        let op = HostOp::FabricRegister { from: proc.clone(), directives: request.directives };
        self.call_host(cx, Some(&proc), op, Then::AnswerInfos(from));
    }

    pub(super) fn on_fabric_update(&mut self, cx: &mut Cx<'_>, from: Asker, request: &Update) {
        let proc = from.proc.clone();
        let op = HostOp::FabricUpdate { from: proc.clone(), index: request.index };
        self.call_host(cx, Some(&proc), op, Then::AnswerInfos(from));
    }
}
