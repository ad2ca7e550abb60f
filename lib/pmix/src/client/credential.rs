//! Credentials: proof of who this process is.

use phalanx_core::{ClientCall, ClientReturn};
use phalanx_wire::{Blob, Info};

use super::{Client, unexpected};
use crate::error::Error;

impl Client {
    /// A proof of identity from the host, with infos about it (`PMIx_Get_credential`).
    pub fn get_credential(&self, info: &[Info]) -> Result<(Blob, Vec<Info>), Error> {
        match self.call(ClientCall::GetCredential { info: info.to_vec() })? {
            ClientReturn::Credential(result) => {
                result.map_err(|status| Error::Failed { operation: "get of a credential".into(), status })
            }
            other => Err(unexpected("get of a credential", &other)),
        }
    }

    /// What the host says of a credential that somebody has shown (`PMIx_Validate_credential`).
    pub fn validate_credential(&self, credential: &Blob, info: &[Info]) -> Result<Vec<Info>, Error> {
        let call = ClientCall::ValidateCredential { credential: credential.clone(), info: info.to_vec() };
        self.infos(call, || "validation of a credential".into())
    }
}
