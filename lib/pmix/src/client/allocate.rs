//! Allocate: asks the scheduler for more, for less, or for longer.

use phalanx_core::ClientCall;
use phalanx_spec::AllocDirective;
use phalanx_wire::Info;

use super::Client;
use crate::error::Error;

impl Client {
    /// Asks for a change of what this session may use (`PMIx_Allocation_request`).
    pub fn allocate(&self, directive: AllocDirective, info: &[Info]) -> Result<Vec<Info>, Error> {
        let call = ClientCall::Allocate { directive, info: info.to_vec() };
        self.infos(call, || format!("allocation request {directive}"))
    }
}
