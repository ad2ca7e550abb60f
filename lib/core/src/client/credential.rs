//! Credentials: proof of who this process is, to be shown to somebody else, and its examination.

use phalanx_wire::cmd::credential::{GetCredential, Reply, ValidateCredential};
use phalanx_wire::cmd::{Body, Request};
use phalanx_wire::codec::{DecodeError, Dialect};
use phalanx_wire::{Blob, Info};

use super::call::ClientReturn;
use super::link::Cx;
use super::pending::Awaited;
use crate::machine::CallId;

pub(super) fn on_get_credential(cx: &mut Cx<'_>, id: CallId, info: Vec<Info>) {
    let request = Request::GetCredential(GetCredential { info: info.clone() });
    cx.ask(Some(id), &request, Awaited::Credential, &info);
}

pub(super) fn on_validate_credential(cx: &mut Cx<'_>, id: CallId, credential: Blob, info: Vec<Info>) {
    let awaited = Awaited::Infos { operation: "validate credential", subject: String::new() };
    let request = Request::ValidateCredential(ValidateCredential { credential, info: info.clone() });
    cx.ask(Some(id), &request, awaited, &info);
}

pub(super) fn given(payload: &[u8], dialect: Dialect) -> Result<ClientReturn, DecodeError> {
    let Reply { status, credential, info } = Reply::decode(payload, dialect)?;
    let given = if status.is_success() { Ok((credential, info)) } else { Err(status) };
    Ok(ClientReturn::Credential(given))
}
