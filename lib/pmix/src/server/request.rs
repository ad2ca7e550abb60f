//! What a host is asked, one struct per request. They own their data: a host may keep them for as long as it likes.

use phalanx_spec::{AllocDirective, IofChannel, Persistence, Range, ResourceBlockDirective, Status};
use phalanx_wire::{App, Blob, Info, Key, ProcId, Query, ResourceUnit};

/// `procs` empty: the caller's whole job.
#[derive(Clone, Debug, PartialEq)]
pub struct AbortRequest {
    pub from: ProcId,
    pub status: Status,
    pub message: String,
    pub procs: Vec<ProcId>,
}

/// All local participants are in; `data` is what this server contributes. `procs` is sorted: the same set, in whatever order
/// it was given, is the same fence; the next fence of the same set is the next request. With `pmix.loc.col.st` in `info` the
/// fence has failed here with that status: it must fail everywhere, and the answer is ignored.
#[derive(Clone, Debug, PartialEq)]
pub struct FenceRequest {
    pub procs: Vec<ProcId>,
    pub info: Vec<Info>,
    pub data: Blob,
}

/// The values that `proc`, a process of another node, has committed are wanted; `pmix.req.key` names the one that is missing.
/// That node's host has them from [`Server::dmodex_request`](crate::Server::dmodex_request). Rank WILDCARD, or a namespace
/// that was not registered here: the host registers it before it answers, and may then answer without bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct DirectModexRequest {
    pub proc: ProcId,
    pub info: Vec<Info>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct PublishRequest {
    pub from: ProcId,
    pub uid: u32,
    pub data: Vec<Info>,
    pub range: Range,
    pub persistence: Persistence,
    pub info: Vec<Info>,
}

/// The host waits if asked to (`pmix.wait`), within `pmix.timeout`.
#[derive(Clone, Debug, PartialEq)]
pub struct LookupRequested {
    pub from: ProcId,
    pub uid: u32,
    pub keys: Vec<Key>,
    pub range: Range,
    pub info: Vec<Info>,
}

/// `keys` empty: all that `from` has published.
#[derive(Clone, Debug, PartialEq)]
pub struct UnpublishRequest {
    pub from: ProcId,
    pub uid: u32,
    pub keys: Vec<Key>,
    pub range: Range,
    pub info: Vec<Info>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct SpawnRequest {
    pub from: ProcId,
    pub job: Vec<Info>,
    pub apps: Vec<App>,
}

/// Connect or disconnect. The host registers all jobs that take part before it grants a connect, so that each process learns
/// of the others' jobs.
#[derive(Clone, Debug, PartialEq)]
pub struct ConnectRequest {
    pub procs: Vec<ProcId>,
    pub info: Vec<Info>,
}

/// No codes: all events.
#[derive(Clone, Debug, PartialEq)]
pub struct EventsRequest {
    pub codes: Vec<Status>,
    pub info: Vec<Info>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct QueryRequest {
    pub from: ProcId,
    pub queries: Vec<Query>,
}

/// `claims`: the name that the tool says it has; without one the host gives it a name.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolRequest {
    pub uid: u32,
    pub gid: u32,
    pub claims: Option<ProcId>,
    pub info: Vec<Info>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct LogRequest {
    pub from: ProcId,
    pub data: Vec<Info>,
    pub directives: Vec<Info>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct AllocateRequest {
    pub from: ProcId,
    pub directive: AllocDirective,
    pub info: Vec<Info>,
}

/// A named block of resources is to be made, changed or ended.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceBlockRequest {
    pub from: ProcId,
    pub directive: ResourceBlockDirective,
    pub block: String,
    pub units: Vec<ResourceUnit>,
    pub info: Vec<Info>,
}

/// `targets` empty: the caller's whole job.
#[derive(Clone, Debug, PartialEq)]
pub struct JobControlRequest {
    pub from: ProcId,
    pub targets: Vec<ProcId>,
    pub directives: Vec<Info>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct SessionControlRequest {
    pub from: ProcId,
    pub session: u32,
    pub directives: Vec<Info>,
}

/// `error`: the event to raise.
#[derive(Clone, Debug, PartialEq)]
pub struct MonitorRequest {
    pub from: ProcId,
    pub what: Info,
    pub error: Status,
    pub directives: Vec<Info>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CredentialRequest {
    pub from: ProcId,
    pub info: Vec<Info>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ValidationRequest {
    pub from: ProcId,
    pub credential: Blob,
    pub info: Vec<Info>,
}

/// `handle`: the server's number for the registration. What arrives is given to
/// [`Server::iof_deliver`](crate::Server::iof_deliver).
#[derive(Clone, Debug, PartialEq)]
pub struct PullRequest {
    pub from: ProcId,
    pub sources: Vec<ProcId>,
    pub channels: IofChannel,
    pub directives: Vec<Info>,
    pub handle: u64,
}

/// The registration `handle` has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct PullEnded {
    pub from: ProcId,
    pub handle: u64,
    pub directives: Vec<Info>,
}

/// No bytes: end of file.
#[derive(Clone, Debug, PartialEq)]
pub struct StdinRequest {
    pub from: ProcId,
    pub targets: Vec<ProcId>,
    pub directives: Vec<Info>,
    pub data: Blob,
}

/// All local members are in; `info` holds what each of them gave.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupRequest {
    /// Only this one is in, of a group whose members do not all know of each other: it is a leader
    /// (`PMIX_GROUP_BOOTSTRAP`), or, without `procs`, one whom a leader brings (`PMIX_GROUP_ADD_MEMBERS`).
    pub from: Option<ProcId>,
    pub id: String,
    pub procs: Vec<ProcId>,
    pub info: Vec<Info>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct FabricRequest {
    pub from: ProcId,
    pub directives: Vec<Info>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct FabricUpdateRequest {
    pub from: ProcId,
    pub index: u64,
}
