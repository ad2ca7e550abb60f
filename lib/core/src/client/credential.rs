//! Credentials: proof of who this process is, to be shown to somebody else, and its examination.

use phalanx_wire::cmd::credential::{GetCredential, Reply, ValidateCredential};
use phalanx_wire::cmd::{Body, Request};
use phalanx_wire::codec::{DecodeError, Dialect};
use phalanx_wire::{Blob, Info};

use super::pending::Awaited;
use super::{Client, ClientReturn, Out};
use crate::machine::{CallId, Time};

impl Client {
    pub(super) fn on_get_credential(&mut self, now: Time, id: CallId, info: Vec<Info>, out: &mut Out) {
        let request = Request::GetCredential(GetCredential { info: info.clone() });
        self.ask(now, Some(id), &request, Awaited::Credential, &info, out);
    }

    pub(super) fn on_validate_credential(
        &mut self,
        now: Time,
        id: CallId,
        credential: Blob,
        info: Vec<Info>,
        out: &mut Out,
    ) {
        let awaited = Awaited::Infos { operation: "validate credential", subject: String::new() };
        let request = Request::ValidateCredential(ValidateCredential { credential, info: info.clone() });
        self.ask(now, Some(id), &request, awaited, &info, out);
    }
}

pub(super) fn given(payload: &[u8], dialect: Dialect) -> Result<ClientReturn, DecodeError> {
    let Reply { status, credential, info } = Reply::decode(payload, dialect)?;
    let given = if status.is_success() { Ok((credential, info)) } else { Err(status) };
    Ok(ClientReturn::Credential(given))
}
