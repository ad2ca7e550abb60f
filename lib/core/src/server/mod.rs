//! The server role.

use phalanx_spec::{IofChannel, Status};
use phalanx_wire::{Blob, Key, Nspace, ProcId};

use crate::host::Event;
use crate::job::JobInfo;

/// How a server presents itself. Paths and addresses are the shell's; the server only repeats them to clients.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerConfig {
    /// The server's own identity.
    pub identity: ProcId,
    pub hostname: String,
    /// `tcp4://127.0.0.1:PORT`.
    pub address: String,
    pub server_tmpdir: String,
    pub system_tmpdir: String,
    /// Whose server this is: only this uid and root may connect.
    pub owner_uid: u32,
    pub tool_support: bool,
    /// Random bytes for what must not be guessed.
    pub seed: [u8; 32],
}

/// What the owner of a server (our daemon; a host through the C ABI) asks of it.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerCall {
    /// Answer: `Done`.
    RegisterNspace(Box<JobInfo>),
    /// Forgets the job and everything stored for it. Answer: `Done`.
    DeregisterNspace(Nspace),
    /// Answer: `Done`.
    RegisterClient { proc: ProcId, uid: u32, gid: u32 },
    /// Answer: `Done`.
    DeregisterClient(ProcId),
    /// What a process must find in its environment. Answer: `Environment`.
    SetupFork(ProcId),
    /// What a local process has committed, for another server. Waits until it has committed `key`, or anything at all.
    /// Answer: `Modex`.
    DirectModex { proc: ProcId, key: Option<Key> },
    /// An event from elsewhere, for those here. Answer: `Done`.
    Notify(Event),
    /// What a process has written, for those here who pulled that stream. No bytes: the stream has ended. Answer: `Done`.
    Output { source: ProcId, channel: IofChannel, data: Blob },
    /// Answer: `Done`.
    DefineProcessSet { name: String, members: Vec<ProcId> },
    /// Answer: `Done`.
    DeleteProcessSet { name: String },
}

#[derive(Clone, Debug, PartialEq)]
pub enum ServerReturn {
    Done(Status),
    Environment(Vec<(String, String)>),
    Modex(Result<Blob, Status>),
}
