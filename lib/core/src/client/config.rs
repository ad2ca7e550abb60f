//! The identity of a client, and its server's address.

use std::sync::Arc;
use std::time::Duration;

use phalanx_wire::ProcId;
use phalanx_wire::codec::Dialect;
use phalanx_wire::credential::Credential;
use phalanx_wire::uri::ServerUri;

use crate::store::OpenCollected;

/// The identity of the process and its server's address. All of it comes from the environment, see `pmix::environ`.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    pub proc: ProcId,
    /// None: no launcher started this process; it is a job of its own.
    pub server: Option<ServerUri>,
    pub credential: Credential,
    /// The effective user.
    pub uid: u32,
    /// This process's id, which servers since 6.1 require. A tool sends it among its attributes.
    pub pid: Option<u32>,
    pub hostname: String,
    /// How to pack, and the server's release, which decides the layout of replies.
    pub dialect: Dialect,
    /// How long the server may take to admit the process. Time in which a debugger holds it does not count.
    pub patience: Duration,
    /// Opens the server's files with collected data. A client that can read them declares so in its handshake; a server of
    /// OpenPMIx has none.
    pub files: Option<Arc<dyn OpenCollected>>,
}
