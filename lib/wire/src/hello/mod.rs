//! The handshake: one message of the connecting side, one answer.
//!
//! `client.rs` holds the message of every connecting process, `server.rs` the answer to clients, `tool.rs` the longer answer
//! to tools, launchers and schedulers. Both sides decode piecewise and reject as early as the bytes allow. `phalanx-core`
//! decides which peers are admitted.

mod client;
mod server;
mod tool;

use std::fmt;

pub use client::{Hello, HelloReader, MAX_HELLO};
pub use server::ClientWelcome;
pub use tool::ToolWelcome;

use crate::codec::{DecodeError, Release};
use phalanx_spec::Status;

/// What a connecting process is, and how it was started (OpenPMIx: the process flag).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flavor {
    /// Started by this server's host.
    Client,
    /// Of a release before 3.0; the server names it.
    LegacyTool,
    /// Of a release before 3.0; the server names it.
    LegacyLauncher,
    /// The server names it.
    Tool,
    /// Brings its own name.
    NamedTool,
    /// Started as a client of some server.
    ClientTool,
    /// The server names it.
    Launcher,
    /// Brings its own name (PRRTE's `prun`).
    NamedLauncher,
    /// Started as a client of some server.
    ClientLauncher,
    /// A client without a launcher.
    Singleton,
    Scheduler,
}

impl Flavor {
    pub const ALL: [Flavor; 11] = [
        Flavor::Client,
        Flavor::LegacyTool,
        Flavor::LegacyLauncher,
        Flavor::Tool,
        Flavor::NamedTool,
        Flavor::ClientTool,
        Flavor::Launcher,
        Flavor::NamedLauncher,
        Flavor::ClientLauncher,
        Flavor::Singleton,
        Flavor::Scheduler,
    ];

    pub fn flag(self) -> u8 {
        self as u8
    }

    pub fn from_flag(flag: u8) -> Option<Flavor> {
        Flavor::ALL.get(usize::from(flag)).copied()
    }

    /// All but plain clients state uid and gid beside the credential.
    pub fn states_ids(self) -> bool {
        self != Flavor::Client
    }

    /// Whether the peer brings a namespace and rank.
    pub fn has_name(self) -> bool {
        !matches!(self, Flavor::LegacyTool | Flavor::LegacyLauncher | Flavor::Tool | Flavor::Launcher)
    }

    /// Whether the answer contains a namespace and rank for the peer. Legacy ones have no name and get none.
    pub fn is_given_name(self) -> bool {
        matches!(self, Flavor::Tool | Flavor::Launcher)
    }

    /// Whether the answer is a [`ClientWelcome`] rather than a [`ToolWelcome`]. `server`: the server's release.
    pub fn is_welcomed_as_client(self, server: Release) -> bool {
        match self {
            Flavor::Client => true,
            Flavor::Singleton => server.major >= 5,
            _ => false,
        }
    }
}

/// The server's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HelloAnswer<W> {
    Welcome(W),
    /// The server closes the connection behind this. Clients are never given the reason.
    Refused(Status),
}

/// Why a handshake failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HelloError {
    /// The first bytes are not those of a PMIx handshake.
    NotPmix,
    TooLong {
        claimed: u32,
        limit: usize,
    },
    /// The message ends inside the named field.
    Truncated(&'static str),
    /// The named field holds an invalid value.
    Malformed(&'static str),
    UnknownFlavor(u8),
    /// The peer uses packing rules that we do not have.
    UnknownCodec(String),
    /// The attributes at the end cannot be read.
    Info(DecodeError),
}

impl fmt::Display for HelloError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HelloError::NotPmix => f.write_str("the peer does not speak PMIx"),
            HelloError::TooLong { claimed, limit } => {
                write!(f, "a handshake of {claimed} bytes where at most {limit} are accepted")
            }
            HelloError::Truncated(field) => write!(f, "the handshake ends inside {field}"),
            HelloError::Malformed(field) => write!(f, "{field} is malformed"),
            HelloError::UnknownFlavor(flag) => write!(f, "process flag {flag} is not known"),
            HelloError::UnknownCodec(name) => {
                write!(f, "the peer packs by `{name}`, which is not known here")
            }
            HelloError::Info(error) => write!(f, "the attributes cannot be read: {error}"),
        }
    }
}

impl std::error::Error for HelloError {}

/// An attribute of a tool on another node: the server's secret, from its rendezvous file.
pub const SECRET: &str = "phalanx.tool.secret";

/// An attribute of a client of ours at a server of ours: it reads collected fence data from the files
/// ([`crate::collected`]) that replies to fences name.
pub const COLLECTED: &str = "phalanx.client.collected";

#[cfg(test)]
mod tests;
