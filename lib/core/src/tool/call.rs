//! Calls of a program to its tool, and their results.

use std::sync::Arc;
use std::time::Duration;

use phalanx_spec::Status;
use phalanx_wire::ProcId;
use phalanx_wire::codec::Dialect;
use phalanx_wire::uri::ServerUri;

use crate::client::{ClientCall, ClientReturn, InitError};
use crate::store::Store;

#[derive(Debug)]
pub enum ToolCall {
    /// Runs without a server: the tool must have a name. Answer: `Attached`.
    Alone,
    /// Asks one more server to admit the tool. It does not belong to the tool before it is taken. Answer: `Asked`.
    Ask {
        attempt: Attempt,
        uri: ServerUri,
        dialect: Dialect,
        /// How long the server may take to admit the tool.
        patience: Duration,
        /// The secret that a server on another node requires.
        secret: Option<String>,
    },
    /// Takes a server that has admitted the tool. It becomes the primary one if it is the first, or if requested. Answer:
    /// `Attached`.
    Take { attempt: Attempt, primary: bool },
    /// Leaves a server that was asked and is not taken. If it has not answered, `Asked` ends as overdue. Answer: `Done`.
    Forgo(Attempt),
    /// Leaves a server. Answer: `Done`.
    Detach(ProcId),
    /// Sets the server that requests go to from now on. With `wait`, the server may be attached later, without a limit or until
    /// `timeout`. Answer: `Done`.
    SetServer { server: ProcId, wait: bool, timeout: Option<Duration> },
    /// Answer: `Servers`.
    Servers,
    /// Goes to the primary server. Answer: `Client`.
    Client(ClientCall),
}

/// The caller's number for one server that is asked, unique among those under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt(pub u64);

#[derive(Debug)]
pub enum ToolReturn {
    Asked(Result<(), InitError>),
    Attached(Result<Attached, InitError>),
    Done(Status),
    /// The primary one first, the others in the order in which they were attached.
    Servers(Vec<AttachedServer>),
    Client(ClientReturn),
}

/// What a tool gets when it has been admitted.
#[derive(Clone, Debug)]
pub struct Attached {
    /// The tool's own name, the same for all servers.
    pub me: ProcId,
    /// None: it runs alone.
    pub server: Option<ProcId>,
    /// The tool's values, for lookups on other threads.
    pub store: Arc<Store>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct AttachedServer {
    pub server: ProcId,
    pub uri: ServerUri,
}
