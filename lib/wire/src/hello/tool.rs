//! The answer to tools, launchers and schedulers: their name and the server's.
//!
//! Names occupy fields of 256 bytes; the bytes that OpenPMIx leaves behind the NUL are meaningless.

use phalanx_spec::{Rank, Status};

use super::{Flavor, HelloAnswer, HelloError};
use crate::name::{Nspace, ProcId};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolWelcome {
    /// For peers that came without a name ([`Flavor::is_given_name`]).
    pub assigned: Option<ProcId>,
    pub server: ProcId,
    /// The result of checking the credential. Unless it is success, the server closes behind this.
    pub security: Status,
}

impl HelloAnswer<ToolWelcome> {
    pub fn encode(&self) -> Vec<u8> {
        let welcome = match self {
            HelloAnswer::Welcome(welcome) => welcome,
            HelloAnswer::Refused(status) => return status.0.to_be_bytes().to_vec(),
        };
        let mut bytes = Status::SUCCESS.0.to_be_bytes().to_vec();
        for proc in welcome.assigned.iter().chain([&welcome.server]) {
            let mut name = [0; NAME_LEN];
            name.iter_mut().zip(proc.nspace.as_str().bytes()).for_each(|(to, from)| *to = from);
            bytes.extend_from_slice(&name);
            bytes.extend_from_slice(&proc.rank.0.to_be_bytes());
        }
        bytes.extend_from_slice(&welcome.security.0.to_be_bytes());
        bytes
    }

    /// The answer to a peer of this flavor at the start of `bytes` and its length. `None`: more bytes are needed.
    pub fn decode(
        bytes: &[u8],
        flavor: Flavor,
    ) -> Result<Option<(HelloAnswer<ToolWelcome>, usize)>, HelloError> {
        let Some((status, mut rest)) = bytes.split_first_chunk::<4>() else { return Ok(None) };
        let status = Status(i32::from_be_bytes(*status));
        if status != Status::SUCCESS {
            return Ok(Some((HelloAnswer::Refused(status), 4)));
        }
        let names = if flavor.is_given_name() { 2 } else { 1 };
        let length = 4 + names * (NAME_LEN + 4) + 4;
        if bytes.len() < length {
            return Ok(None);
        }
        let assigned = if flavor.is_given_name() { take_name(&mut rest)? } else { None };
        let server = take_name(&mut rest)?.ok_or(HelloError::Truncated("the server's name"))?;
        let security = rest.first_chunk::<4>().ok_or(HelloError::Truncated("the security status"))?;
        let security = Status(i32::from_be_bytes(*security));
        Ok(Some((HelloAnswer::Welcome(ToolWelcome { assigned, server, security }), length)))
    }
}

fn take_name(bytes: &mut &[u8]) -> Result<Option<ProcId>, HelloError> {
    let Some((name, rest)) = bytes.split_first_chunk::<NAME_LEN>() else { return Ok(None) };
    let Some((rank, rest)) = rest.split_first_chunk::<4>() else { return Ok(None) };
    *bytes = rest;
    let malformed = HelloError::Malformed("a namespace in the server's answer");
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    let nspace = std::str::from_utf8(name).ok().and_then(|name| Nspace::new(name).ok()).ok_or(malformed)?;
    Ok(Some(ProcId { nspace, rank: Rank(u32::from_be_bytes(*rank)) }))
}

const NAME_LEN: usize = 256;
