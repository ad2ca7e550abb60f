//! Calls of a server's owner, and their results.

use std::time::Duration;

use phalanx_spec::{IofChannel, Rank, Status};
use phalanx_wire::codec::Format;
use phalanx_wire::{Blob, Info, Key, Nspace, ProcId};

use crate::explain::Waiting;
use crate::host::{CollectiveKind, Event};
use crate::job::JobInfo;

/// A call from the owner of a server (our daemon, or a host through the C ABI).
#[derive(Clone, Debug, PartialEq)]
pub enum ServerCall {
    /// Answer: `Done`.
    RegisterNspace(Box<JobInfo>),
    /// Forgets the job and everything stored for it. Answer: `Done`.
    DeregisterNspace(Nspace),
    /// Answer: `Done`.
    RegisterClient { proc: ProcId, uid: u32, gid: u32 },
    /// Local processes of a job were started with these pids. Answer: `Done`.
    Started { nspace: Nspace, pids: Vec<(Rank, u32)> },
    /// These processes of a job are paused, or go on: a pause is no silence. Answer: `Done`.
    Paused { nspace: Nspace, ranks: Vec<Rank>, is_paused: bool },
    /// The process has ended: requests that wait for it fail. Its committed values stay until its job is deregistered.
    /// Answer: `Done`.
    DeregisterClient(ProcId),
    /// These ranks are restarted, on any node: their values are no longer handed out, clients that cache them are notified, and
    /// collectives that failed because of them begin anew.
    /// Answer: `Done`.
    ForgetValues { nspace: Nspace, ranks: Vec<Rank> },
    /// These processes have failed or are being restarted, on any node: collectives of theirs for which the host was not asked
    /// yet fail. Answer: `Done`.
    FailCollectivesOf { nspace: Nspace, ranks: Vec<Rank> },
    /// A fence, connect, disconnect or group of these processes has failed elsewhere before this server asked the host for it: local participants,
    /// present and late, are answered with `status`. Answer: `Done`.
    FailCollective { kind: CollectiveKind, id: String, procs: Vec<ProcId>, status: Status },
    /// The environment variables that a process needs. Answer: `Environment`.
    SetupFork(ProcId),
    /// The committed values of a local process, for another server. Waits until the process has committed `key`, or anything
    /// at all. Answer: `Modex`.
    DirectModex { proc: ProcId, key: Option<Key> },
    /// Delivers an event from another node to local processes. Answer: `Done`.
    Notify(Event),
    /// Something happened to a job. The event goes to peers that registered for its code: tools, processes of the jobs in
    /// `concerned` (`None`: of all jobs), and processes that named what it affects; peers that connect later get it only in
    /// the last case. `number`: its position in the order of events. `ago`: how long ago it happened, if it is repeated for
    /// a late registration; an event that is known already is not delivered again. Answer: `Done`.
    Announce { event: Event, number: u64, concerned: Option<Vec<Nspace>>, ago: Option<Duration> },
    /// Output of a process, for local readers that pulled the stream. No bytes: the stream has ended. Answer: `Done`, when our
    /// transport has delivered it to every reader that must not lose anything; `PMIX_ERR_NOT_FOUND` if no reader exists or
    /// will.
    Output { to: OutputTo, source: ProcId, channel: IofChannel, data: Blob, info: Vec<Info> },
    /// Values of the machine that all jobs get. Answer: `Done`.
    RegisterResources(Vec<Info>),
    /// Removes values by their keys. Answer: `Done`.
    DeregisterResources(Vec<Info>),
    /// Inventories of nodes, kept for queries. Answer: `Done`.
    DeliverInventory { info: Vec<Info>, directives: Vec<Info> },
    /// The known inventory of these nodes. Answer: `Infos`, one array per node that has any.
    Inventory { hosts: Vec<String> },
    /// Attributes that the host honours in one of its functions. Answer: `Done`.
    RegisterAttributes { function: String, attributes: Vec<String> },
    /// What is known of these jobs and their ranks, packed for another server. Answer: `JobInfo`.
    CollectJobInfo { nspaces: Vec<Nspace>, format: Format },
    /// Answer: `Done`.
    DefineProcessSet { name: String, members: Vec<ProcId> },
    /// Lists what the server is waiting for. Answer: `Waiting`.
    Explain,
    /// Answer: `Done`.
    DeleteProcessSet { name: String },
}

#[derive(Clone, Debug, PartialEq)]
pub enum ServerReturn {
    Done(Status),
    /// Output was delivered, but this many of the last bytes of its stream are still held, and are lost if the reader dies.
    /// Only for readers that read instead of others.
    Held(usize),
    Environment(Vec<(String, String)>),
    Waiting(Vec<Waiting>),
    Modex(Result<Blob, Status>),
    Infos(Vec<Info>),
    /// One per job that is known.
    JobInfo(Vec<Blob>),
}

/// The readers that a piece of the host's output is meant for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputTo {
    /// All readers that pulled the stream.
    All,
    /// The reader that asked under this number.
    Pull(u64),
    /// This tool, which gets the output of the jobs it spawned without asking.
    Parent(ProcId),
}
