//! What a program asks of its tool, and what it is told.

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
    /// Goes on without a server: the tool must have a name. Answer: `Attached`.
    Alone,
    /// Asks one more server to let the tool in. It is none of the tool's before it is taken. Answer: `Asked`.
    Ask {
        attempt: Attempt,
        uri: ServerUri,
        dialect: Dialect,
        /// How long the server may take to let the tool in.
        patience: Duration,
        /// What the server wants to be shown if it is on another node.
        secret: Option<String>,
    },
    /// Makes a server that has let the tool in one of its own, the first one, or if so wanted, the primary one. Answer: `Attached`.
    Take { attempt: Attempt, primary: bool },
    /// Leaves a server that has been asked and is not taken. If it has not answered, `Asked` ends as overdue. Answer: `Done`.
    Forgo(Attempt),
    /// Leaves a server. Answer: `Done`.
    Detach(ProcId),
    /// Whom requests go to from now on. With `wait`, for as long as it takes or until `timeout`, the server may still be on its
    /// way. Answer: `Done`.
    SetServer { server: ProcId, wait: bool, timeout: Option<Duration> },
    /// Answer: `Servers`.
    Servers,
    /// Goes to the primary server. Answer: `Client`.
    Client(ClientCall),
}

/// The caller's name for one server that is asked, of which no other that is asked has the like.
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

/// What a tool is told when it has been let in.
#[derive(Clone, Debug)]
pub struct Attached {
    /// The tool's own name, the same for all servers.
    pub me: ProcId,
    /// None: it goes on alone.
    pub server: Option<ProcId>,
    /// What the tool knows, for lookups on other threads.
    pub store: Arc<Store>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct AttachedServer {
    pub server: ProcId,
    pub uri: ServerUri,
}
