//! Requests that only the host can answer; the library and its server pass them on.

use phalanx_core::{ClientCall, ClientReturn};
use phalanx_spec::{AllocDirective, ResourceBlockDirective};
use phalanx_wire::cmd::allocate::{Allocate, ResourceBlock};
use phalanx_wire::cmd::control::JobControl;
use phalanx_wire::cmd::credential::{GetCredential, ValidateCredential};
use phalanx_wire::cmd::fabric::{Register, Update};
use phalanx_wire::cmd::session::SessionControl;
use phalanx_wire::{Blob, Info, ProcId, ResourceUnit, Text};

use super::{Client, unexpected};
use crate::error::Error;

impl Client {
    /// Controls running processes, or sets what the host does when they end (`PMIx_Job_control`). No targets: the whole job.
    pub fn job_control(&self, targets: &[ProcId], directives: &[Info]) -> Result<Vec<Info>, Error> {
        let call = JobControl { targets: targets.to_vec(), directives: directives.to_vec() };
        self.infos(call.into(), || "job control".into())
    }

    /// Controls a session (`PMIx_Session_control`).
    pub fn session_control(&self, session: u32, directives: &[Info]) -> Result<Vec<Info>, Error> {
        let call = SessionControl { session, directives: directives.to_vec() };
        self.infos(call.into(), || format!("control of session {session}"))
    }

    /// Requests a change of the session's allocation (`PMIx_Allocation_request`).
    pub fn allocate(&self, directive: AllocDirective, info: &[Info]) -> Result<Vec<Info>, Error> {
        let call = Allocate { directive, info: info.to_vec() };
        self.infos(call.into(), || format!("allocation request {directive}"))
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
        let directive = ResourceBlockDirective(directive);
        let call = ResourceBlock { directive, block: Some(Text::from(block)), units, info };
        self.done(call.into(), || format!("change of resource block {block}"))
    }

    /// A proof of identity from the host, with infos about it (`PMIx_Get_credential`).
    pub fn get_credential(&self, info: &[Info]) -> Result<(Blob, Vec<Info>), Error> {
        match self.call(ClientCall::from(GetCredential { info: info.to_vec() }))? {
            ClientReturn::Credential(result) => {
                result.map_err(|status| Error::Failed { operation: "get of a credential".into(), status })
            }
            other => Err(unexpected("get of a credential", &other)),
        }
    }

    /// Validates a credential of another process; returns the host's infos about it (`PMIx_Validate_credential`).
    pub fn validate_credential(&self, credential: &Blob, info: &[Info]) -> Result<Vec<Info>, Error> {
        let call = ValidateCredential { credential: credential.clone(), info: info.to_vec() };
        self.infos(call.into(), || "validation of a credential".into())
    }

    /// Asks for the description of a fabric (`PMIx_Fabric_register`).
    pub fn fabric_register(&self, directives: &[Info]) -> Result<Vec<Info>, Error> {
        let call = Register { directives: directives.to_vec() };
        self.infos(call.into(), || "registration of a fabric".into())
    }

    /// Asks for a newer description of a registered fabric (`PMIx_Fabric_update`).
    pub fn fabric_update(&self, index: u64) -> Result<Vec<Info>, Error> {
        self.infos(Update { index }.into(), || format!("update of fabric {index}"))
    }
}
