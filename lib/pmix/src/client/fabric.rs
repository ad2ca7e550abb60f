//! Fabrics: their description, from the host.

use phalanx_core::ClientCall;
use phalanx_wire::Info;

use super::Client;
use crate::error::Error;

impl Client {
    /// Asks for the description of a fabric (`PMIx_Fabric_register`).
    pub fn fabric_register(&self, directives: &[Info]) -> Result<Vec<Info>, Error> {
        let call = ClientCall::FabricRegister { directives: directives.to_vec() };
        self.infos(call, || "registration of a fabric".into())
    }

    /// Asks for a newer description of a registered fabric (`PMIx_Fabric_update`).
    pub fn fabric_update(&self, index: u64) -> Result<Vec<Info>, Error> {
        self.infos(ClientCall::FabricUpdate { index }, || format!("update of fabric {index}"))
    }
}
