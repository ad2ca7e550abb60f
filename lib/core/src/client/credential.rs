//! Credentials: proof of this process's identity, to be shown to others.

use phalanx_wire::cmd::Body;
use phalanx_wire::cmd::credential::Reply;
use phalanx_wire::codec::{DecodeError, Dialect};

use super::call::ClientReturn;

pub(super) fn given(payload: &[u8], dialect: Dialect) -> Result<ClientReturn, DecodeError> {
    let Reply { status, credential, info } = Reply::decode(payload, dialect)?;
    let given = if status.is_success() { Ok((credential, info)) } else { Err(status) };
    Ok(ClientReturn::Credential(given))
}
