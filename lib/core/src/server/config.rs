//! How a server presents itself, and which peers it serves.

use std::sync::Arc;
use std::time::Duration;

use phalanx_topo::Topology;
use phalanx_wire::{Info, ProcId};

/// How a server presents itself. Paths and addresses belong to the shell; the server only repeats them to clients.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerConfig {
    /// The server's own identity.
    pub identity: ProcId,
    pub hostname: String,
    /// `tcp4://127.0.0.1:PORT`.
    pub address: String,
    pub server_tmpdir: String,
    pub system_tmpdir: String,
    pub owner_uid: u32,
    pub tools_of: ToolsOf,
    /// A rank may have one connection at a time.
    pub refuse_clones: bool,
    /// The host takes part in every fence of several jobs, even if all of their processes are here.
    pub joins_fences_of_jobs: bool,
    /// None: tools on other nodes are refused.
    pub remote: Option<Remote>,
    /// Prefix of the paths of the files with data collected by fences, which clients of this node read; in a directory of
    /// the owner's. None: no such files.
    pub collections: Option<String>,
    /// How servers of the same jobs exchange committed values.
    pub modex: ModexForm,
    /// Wall time at time zero, since the beginning of 1970.
    pub clock: Duration,
    /// The hardware of this node, for local processes. None: they discover it themselves.
    pub topology: Option<Arc<Topology>>,
    /// The default style of output.
    pub output: Vec<Info>,
    /// Random bytes for what must not be guessed.
    pub seed: [u8; 32],
}

impl ServerConfig {
    /// A server for the ranks and the tools of its owner on this node, with its directories below `/tmp`.
    pub fn new(
        identity: ProcId,
        hostname: String,
        address: String,
        owner_uid: u32,
        seed: [u8; 32],
    ) -> ServerConfig {
        ServerConfig {
            identity,
            hostname,
            address,
            server_tmpdir: "/tmp".to_owned(),
            system_tmpdir: "/tmp".to_owned(),
            owner_uid,
            tools_of: ToolsOf::Owner,
            refuse_clones: false,
            joins_fences_of_jobs: false,
            remote: None,
            collections: None,
            modex: ModexForm::Compact,
            clock: Duration::ZERO,
            topology: None,
            output: Vec::new(),
            seed,
        }
    }
}

/// Which users' tools are served, if the host agrees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolsOf {
    Nobody,
    /// And root.
    Owner,
    /// All users of this node.
    Everybody,
}

/// How tools on other nodes connect.
#[derive(Clone, Debug, PartialEq)]
pub struct Remote {
    /// The server's address for them: `tcp4://ADDRESS:PORT`.
    pub address: String,
    /// The secret they must present, since the kernel here cannot identify them.
    pub secret: String,
}

/// The form in which servers exchange committed values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModexForm {
    /// Our own: all servers of a job are ours.
    Compact,
    /// That of OpenPMIx 4.2 and 5.0: the host may have servers of either kind.
    OpenPmix,
}
