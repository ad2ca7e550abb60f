//! Who a client is, and where its server is.

use std::sync::Arc;
use std::time::Duration;

use phalanx_wire::ProcId;
use phalanx_wire::codec::Dialect;
use phalanx_wire::credential::Credential;
use phalanx_wire::uri::ServerUri;

use crate::store::OpenCollected;

/// Who the process is and where its server is. All of it comes from the environment, see `pmix::environ`.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    pub proc: ProcId,
    /// None: nobody started this process; it is a job of its own.
    pub server: Option<ServerUri>,
    pub credential: Credential,
    /// The effective user.
    pub uid: u32,
    /// This process's id, which servers since 6.1 want of their clients. A tool's introduction has it among its attributes.
    pub pid: Option<u32>,
    pub hostname: String,
    /// How to pack, and the release of the server, by which the layout of replies is chosen.
    pub dialect: Dialect,
    /// How long the server may take to let the process in. A debugger that holds it is not counted.
    pub patience: Duration,
    /// How files of the server are opened, if it names such to clients who say that they read them. A server of OpenPMIx
    /// does not.
    pub files: Option<Arc<dyn OpenCollected>>,
}
