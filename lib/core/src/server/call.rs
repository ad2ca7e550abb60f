//! What the owner of a server asks of it, and what it is answered.

use std::time::Duration;

use phalanx_spec::{IofChannel, Rank, Status};
use phalanx_wire::codec::Format;
use phalanx_wire::{Blob, Info, Key, Nspace, ProcId};

use crate::explain::Waiting;
use crate::host::{CollectiveKind, Event};
use crate::job::JobInfo;

/// What the owner of a server (our daemon; a host through the C ABI) asks of it.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerCall {
    /// Answer: `Done`.
    RegisterNspace(Box<JobInfo>),
    /// Forgets the job and everything stored for it. Answer: `Done`.
    DeregisterNspace(Nspace),
    /// Answer: `Done`.
    RegisterClient { proc: ProcId, uid: u32, gid: u32 },
    /// Local processes of a job run, with these pids. Answer: `Done`.
    Started { nspace: Nspace, pids: Vec<(Rank, u32)> },
    /// The process has ended: who waits for it is told. What it committed stays until its job is deregistered.
    /// Answer: `Done`.
    DeregisterClient(ProcId),
    /// These are started again, wherever they were: what they had put is told to nobody any more, and clients that keep it are told
    /// so. Answer: `Done`.
    ForgetValues { nspace: Nspace, ranks: Vec<Rank> },
    /// A fence, connect, disconnect or group of these processes has failed elsewhere, and the host has not been asked for it here yet: those who wait here for others,
    /// and those who still come, are told so. Answer: `Done`.
    FailCollective { kind: CollectiveKind, id: String, procs: Vec<ProcId>, status: Status },
    /// What a process must find in its environment. Answer: `Environment`.
    SetupFork(ProcId),
    /// What a local process has committed, for another server. Waits until it has committed `key`, or anything at all.
    /// Answer: `Modex`.
    DirectModex { proc: ProcId, key: Option<Key> },
    /// An event from elsewhere, for those here. Answer: `Done`.
    Notify(Event),
    /// Something has happened to a job. It is told to those who asked for its code: tools, processes of the jobs in
    /// `concerned` (`None`: of all jobs), and processes that named what it affects; who connects later is told only in
    /// the last case. `number`: its place in the order in which things happened. `ago`: how long ago it happened, if it is told
    /// because somebody has asked late; what is known already is not told again. Answer: `Done`.
    Announce { event: Event, number: u64, concerned: Option<Vec<Nspace>>, ago: Option<Duration> },
    /// What a process has written, for those here who pulled that stream. No bytes: the stream has ended. Answer: `Done`, when
    /// every reader that must not lose anything has taken it from our transport; `PMIX_ERR_NOT_FOUND` if nobody has, nor will.
    Output { to: OutputTo, source: ProcId, channel: IofChannel, data: Blob, info: Vec<Info> },
    /// Values of the machine that all jobs are told. Answer: `Done`.
    RegisterResources(Vec<Info>),
    /// Takes values back by their keys. Answer: `Done`.
    DeregisterResources(Vec<Info>),
    /// What nodes have, for who asks. Answer: `Done`.
    DeliverInventory { info: Vec<Info>, directives: Vec<Info> },
    /// What is known of these nodes. Answer: `Infos`, an array for each of which something is.
    Inventory { hosts: Vec<String> },
    /// Which attributes the host honours in one of its functions. Answer: `Done`.
    RegisterAttributes { function: String, attributes: Vec<String> },
    /// What is known of these jobs and their ranks, packed for another server. Answer: `JobInfo`.
    CollectJobInfo { nspaces: Vec<Nspace>, format: Format },
    /// Answer: `Done`.
    DefineProcessSet { name: String, members: Vec<ProcId> },
    /// What does the server wait for? Answer: `Waiting`.
    Explain,
    /// Answer: `Done`.
    DeleteProcessSet { name: String },
}

#[derive(Clone, Debug, PartialEq)]
pub enum ServerReturn {
    Done(Status),
    /// Output was delivered, but of its stream, up to the end of what this call brought, so many of the last bytes are still
    /// held, and reach nobody if the reader dies. Only for readers that read instead of others.
    Held(usize),
    Environment(Vec<(String, String)>),
    Waiting(Vec<Waiting>),
    Modex(Result<Blob, Status>),
    Infos(Vec<Info>),
    /// One per job that is known.
    JobInfo(Vec<Blob>),
}

/// Whose output of a call of the host is meant for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputTo {
    /// Everybody who pulled the stream.
    All,
    /// What was asked for under this number.
    Pull(u64),
    /// This tool, which gets the output of what it spawned without asking.
    Parent(ProcId),
}
