//! Allocation: asks the scheduler for more, for less, or for longer, and for named blocks of resources.

use phalanx_spec::AllocDirective;
use phalanx_wire::cmd::Request;
use phalanx_wire::cmd::allocate::{Allocate, ResourceBlock};
use phalanx_wire::{Info, Text};

use super::link::Cx;
use super::pending::Awaited;
use crate::machine::CallId;

pub(super) fn on_allocate(cx: &mut Cx<'_>, id: CallId, directive: AllocDirective, info: Vec<Info>) {
    let awaited = Awaited::Infos { operation: "allocation request", subject: directive.to_string() };
    let request = Request::Allocate(Allocate { directive, info: info.clone() });
    cx.ask(Some(id), &request, awaited, &info);
}
/// Servers before 6.1 have no command for it.
pub(super) fn on_resource_block(cx: &mut Cx<'_>, id: CallId, block: ResourceBlock) {
    let subject = block.block.as_ref().map_or_else(String::new, Text::to_string_lossy);
    let awaited = Awaited::Status { operation: "resource block", subject };
    let info = block.info.clone();
    cx.ask(Some(id), &Request::ResourceBlock(block), awaited, &info);
}
