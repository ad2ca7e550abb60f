//! Allocation: asks the scheduler for more, for less, or for longer, and for named blocks of resources.

use phalanx_core::ClientCall;
use phalanx_spec::AllocDirective;
use phalanx_wire::{Info, ResourceUnit, Text};

use super::Client;
use crate::error::Error;

impl Client {
    /// Asks for a change of what this session may use (`PMIx_Allocation_request`).
    pub fn allocate(&self, directive: AllocDirective, info: &[Info]) -> Result<Vec<Info>, Error> {
        let call = ClientCall::Allocate { directive, info: info.to_vec() };
        self.infos(call, || format!("allocation request {directive}"))
    }
    /// Makes, changes or ends a named block of resources (`PMIx_Resource_block`).
    pub fn resource_block(
        &self,
        directive: u8,
        block: &str,
        units: &[ResourceUnit],
        info: &[Info],
    ) -> Result<(), Error> {
        let (units, info) = (units.to_vec(), info.to_vec());
        let call = ClientCall::ResourceBlock { directive, block: Text::from(block), units, info };
        self.done(call, || format!("change of resource block {block}"))
    }
}
