//! Allocation: asks the scheduler for more, for less, or for longer, and for named blocks of resources.

use phalanx_spec::AllocDirective;
use phalanx_wire::cmd::Request;
use phalanx_wire::cmd::allocate::{Allocate, ResourceBlock};
use phalanx_wire::{Info, Text};

use super::pending::Awaited;
use super::{Client, Out};
use crate::machine::{CallId, Time};

impl Client {
    pub(super) fn on_allocate(
        &mut self,
        now: Time,
        id: CallId,
        directive: AllocDirective,
        info: Vec<Info>,
        out: &mut Out,
    ) {
        let awaited = Awaited::Infos { operation: "allocation request", subject: directive.to_string() };
        let request = Request::Allocate(Allocate { directive, info: info.clone() });
        self.ask(now, Some(id), &request, awaited, &info, out);
    }
    /// Servers before 6.1 have no command for it.
    pub(super) fn on_resource_block(&mut self, now: Time, id: CallId, block: ResourceBlock, out: &mut Out) {
        let subject = block.block.as_ref().map_or_else(String::new, Text::to_string_lossy);
        let awaited = Awaited::Status { operation: "resource block", subject };
        let info = block.info.clone();
        self.ask(now, Some(id), &Request::ResourceBlock(block), awaited, &info, out);
    }
}
