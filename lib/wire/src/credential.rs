//! The credential of a connecting process (OpenPMIx calls the kinds psec modules).
//!
//! This file handles only bytes. The shell asks munge for a token or to check one, and compares a
//! claimed uid with what the kernel knows of the peer. `native` proves nothing by itself: any process can write any uid.

use crate::text::Blob;

pub const NATIVE: &str = "native";
pub const MUNGE: &str = "munge";
pub const NONE: &str = "none";

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credential {
    /// No claim. Accepted only by servers configured for it.
    None,
    /// The effective ids that the peer claims.
    Native { uid: u32, gid: u32 },
    /// A munge token, without the NUL that follows it on the wire.
    Munge(Vec<u8>),
    /// Of an unknown kind, or malformed.
    Other { module: String, bytes: Blob },
}

impl Credential {
    pub fn from_wire(module: &str, bytes: &[u8]) -> Credential {
        match (module, bytes) {
            (NONE, []) => Credential::None,
            // Host byte order: the peer runs on this machine, or on one like it.
            (NATIVE, &[u0, u1, u2, u3, g0, g1, g2, g3]) => Credential::Native {
                uid: u32::from_ne_bytes([u0, u1, u2, u3]),
                gid: u32::from_ne_bytes([g0, g1, g2, g3]),
            },
            (MUNGE, [token @ .., 0]) if !token.is_empty() && !token.contains(&0) => {
                Credential::Munge(token.to_vec())
            }
            _ => Credential::Other { module: module.to_owned(), bytes: bytes.into() },
        }
    }

    /// The name of its kind in the handshake.
    pub fn module(&self) -> &str {
        match self {
            Credential::None => NONE,
            Credential::Native { .. } => NATIVE,
            Credential::Munge(_) => MUNGE,
            Credential::Other { module, .. } => module,
        }
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Credential::None => Vec::new(),
            Credential::Native { uid, gid } => [uid.to_ne_bytes(), gid.to_ne_bytes()].concat(),
            Credential::Munge(token) => [token, &[0][..]].concat(),
            Credential::Other { bytes, .. } => bytes.as_bytes().to_vec(),
        }
    }
}
