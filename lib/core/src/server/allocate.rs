//! Allocation: a session wants more, less, or its resources for longer, or names a part of them. The host's scheduler decides.

use phalanx_spec::{ResourceBlockDirective, Status};
use phalanx_wire::cmd::allocate::{Allocate, ResourceBlock};

use super::host::Then;
use super::peer::Asker;
use super::turn::Cx;
use crate::host::HostOp;

pub(super) fn on_allocate(cx: &mut Cx<'_>, from: Asker, request: Allocate) {
    let mut info = request.info;
    info.extend(from.identity());
    let proc = from.proc.clone();
    let op = HostOp::Allocate { from: proc.clone(), directive: request.directive, info };
    cx.ask(Some(&proc), op, Then::AnswerInfos(from));
}

pub(super) fn on_resource_block(cx: &mut Cx<'_>, from: Asker, request: ResourceBlock) {
    let Some(block) = request.block.as_ref().and_then(|block| block.as_str()) else {
        return cx.answer(&from, Status::ERR_BAD_PARAM);
    };
    let mut info = request.info;
    info.extend(from.identity());
    let proc = from.proc.clone();
    let op = HostOp::ResourceBlock {
        from: proc.clone(),
        directive: ResourceBlockDirective(request.directive),
        block: block.to_owned(),
        units: request.units,
        info,
    };
    cx.ask(Some(&proc), op, Then::Answer(from));
}
