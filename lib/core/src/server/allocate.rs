//! Allocation requests: a session wants more, less, or its resources for longer. The host's scheduler decides.

use phalanx_wire::cmd::allocate::Allocate;

use super::host::Then;
use super::peer::Asker;
use super::{Cx, Server};
use crate::host::HostOp;

impl Server {
    pub(super) fn on_allocate(&mut self, cx: &mut Cx<'_>, from: Asker, request: Allocate) {
        let mut info = request.info;
        info.extend(from.identity());
        let proc = from.proc.clone();
        let op = HostOp::Allocate { from: proc.clone(), directive: request.directive, info };
        self.call_host(cx, Some(&proc), op, Then::AnswerInfos(from));
    }
}
