//! Upcalls to the host (the resource manager, our own `dvm`) as data: each is answered exactly once.
//!
//! One variant per entry of the standard's `pmix_server_module_t`. The server machine emits
//! `Output::CallHost { call, op }`; the host answers `Input::Host { call, reply }`, in any order, at any time.

use phalanx_spec::{AllocDirective, IofChannel, Persistence, Range, ResourceBlockDirective, Status};
use phalanx_wire::{App, Blob, Info, Key, Nspace, Pdata, ProcId, Query, ResourceUnit};

/// A request to the host.
#[derive(Clone, Debug, PartialEq)]
pub enum HostOp {
    /// A client passed the handshake; it is let in when the host has answered. Further connections of the same rank are let
    /// in without asking as long as one of them goes on. Answer: `Done`.
    ClientConnected { proc: ProcId },
    /// A client called finalize; it is answered when the host has. `others`: further connections of the same rank go on, so
    /// that the rank has not finalized yet. Answer: `Done`.
    ClientFinalized { proc: ProcId, others: bool },
    /// A client's connection closed without finalize, and no other connection of the rank goes on or has finalized. Whoever waits
    /// for it is told when the host has answered, which may find out before that the process has died. `cut_off`: the server has
    /// closed it, for this reason. Answer: `Done`.
    ClientLost { proc: ProcId, cut_off: Option<String> },
    /// `procs` empty: the caller's whole job. Answer: `Done`.
    Abort { from: ProcId, status: Status, message: String, procs: Vec<ProcId> },
    /// All local participants are in; `data` is what this server contributes. `procs` is sorted: the same set, in whatever
    /// order it was given, is the same fence; the next fence of the same set is the next call, which comes when this one has been
    /// answered (or with the word that a later one has failed). With `pmix.loc.col.st` in
    /// `info` the fence has failed here with that status (a participant died, time ran out): it must fail everywhere, and the
    /// answer is ignored. Never called when every participant is local. Answer: `Modex` with all contributions concatenated.
    Fence { procs: Vec<ProcId>, info: Vec<Info>, data: Blob },
    /// Give the values that `proc`, a process of another node, has committed; `pmix.req.key` names the one that is wanted.
    /// Rank WILDCARD, or a namespace that was not registered here: the host registers the job with the server before it
    /// answers, and may then answer without bytes. Answer: `Modex`.
    DirectModex { proc: ProcId, info: Vec<Info> },
    /// Answer: `Done`.
    Publish {
        from: ProcId,
        uid: u32,
        data: Vec<Info>,
        range: Range,
        persistence: Persistence,
        info: Vec<Info>,
    },
    /// Answer: `Lookup`. The host waits if asked to (`pmix.wait`), within `pmix.timeout`.
    Lookup { from: ProcId, uid: u32, keys: Vec<Key>, range: Range, info: Vec<Info> },
    /// `keys` empty: all that `from` has published. Answer: `Done`.
    Unpublish { from: ProcId, uid: u32, keys: Vec<Key>, range: Range, info: Vec<Info> },
    /// Answer: `Spawned`.
    Spawn { from: ProcId, job: Vec<Info>, apps: Vec<App> },
    /// All local participants are in. May report a local failure as `Fence` does. The host registers all jobs that take part
    /// with the server before it answers, so that each process learns of the others' jobs. Answer: `Done`.
    Connect { procs: Vec<ProcId>, info: Vec<Info> },
    /// Answer: `Done`.
    Disconnect { procs: Vec<ProcId>, info: Vec<Info> },
    /// Somebody here now wants these events; empty: all of them. Answer: `Done`.
    RegisterEvents { codes: Vec<Status>, info: Vec<Info> },
    /// Answer: `Done`.
    DeregisterEvents { codes: Vec<Status> },
    /// A local process raised an event that concerns others than local ones. Those here have been told: it must not be handed
    /// back to this server. Answer: `Done`.
    Notify { event: Event },
    /// What the server itself could not answer. Answer: `Infos`.
    Query { from: ProcId, queries: Vec<Query> },
    /// Answer: `ToolAdmitted`.
    ToolConnected { uid: u32, gid: u32, claims: Option<ProcId>, info: Vec<Info> },
    /// Answer: `Done`.
    Log { from: ProcId, data: Vec<Info>, directives: Vec<Info> },
    /// Answer: `Infos`.
    Allocate { from: ProcId, directive: AllocDirective, info: Vec<Info> },
    /// Make, change or end a named block of resources. Answer: `Done`.
    ResourceBlock {
        from: ProcId,
        directive: ResourceBlockDirective,
        block: String,
        units: Vec<ResourceUnit>,
        info: Vec<Info>,
    },
    /// Answer: `Infos`.
    JobControl { from: ProcId, targets: Vec<ProcId>, directives: Vec<Info> },
    /// Answer: `Infos`.
    SessionControl { from: ProcId, session: u32, directives: Vec<Info> },
    /// Answer: `Infos`.
    Monitor { from: ProcId, what: Info, error: Status, directives: Vec<Info> },
    /// Answer: `Credential`.
    GetCredential { from: ProcId, info: Vec<Info> },
    /// Answer: `Infos`.
    ValidateCredential { from: ProcId, credential: Blob, info: Vec<Info> },
    /// Somebody here wants these streams. `handle` is the server's number for the registration. Answer: `Done`; then the
    /// streams arrive by `ServerCall::Output`.
    IofPull { from: ProcId, sources: Vec<ProcId>, channels: IofChannel, directives: Vec<Info>, handle: u64 },
    /// The registration `handle` has ended. `died`: with its reader, so that what it held (`ServerReturn::Held`) is for
    /// somebody else. Answer: `Done`.
    IofStop { from: ProcId, handle: u64, directives: Vec<Info>, died: bool },
    /// Answer: `Done`. No bytes: end of file.
    PushStdin { from: ProcId, targets: Vec<ProcId>, directives: Vec<Info>, data: Blob },
    /// All local members are in; `info` holds what each of them gave. May report a local failure as `Fence` does. Those whom
    /// members add (`PMIX_GROUP_ADD_MEMBERS`) come by `GroupAssemble`. Answer: `Group`.
    GroupConstruct { id: String, procs: Vec<ProcId>, info: Vec<Info> },
    /// One of a group whose members do not all know of each other. A leader says how many of them there are
    /// (`PMIX_GROUP_BOOTSTRAP`), and whom it brings (`PMIX_GROUP_ADD_MEMBERS`); those who are brought have no `procs`.
    /// The host answers when all leaders and all whom they have named are there, and says who they are. Answer: `Group`.
    GroupAssemble { from: ProcId, id: String, procs: Vec<ProcId>, info: Vec<Info> },
    /// Answer: `Group`.
    GroupDestruct { id: String, procs: Vec<ProcId>, info: Vec<Info> },
    /// Answer: `Infos`.
    FabricRegister { from: ProcId, directives: Vec<Info> },
    /// Answer: `Infos`.
    FabricUpdate { from: ProcId, index: u64 },
}

impl HostOp {
    /// The process that has asked, if it is one that asks for itself alone.
    pub fn asked_by(&self) -> Option<&ProcId> {
        match self {
            HostOp::Abort { from, .. }
            | HostOp::Publish { from, .. }
            | HostOp::Lookup { from, .. }
            | HostOp::Unpublish { from, .. }
            | HostOp::Spawn { from, .. }
            | HostOp::Query { from, .. }
            | HostOp::Log { from, .. }
            | HostOp::Allocate { from, .. }
            | HostOp::ResourceBlock { from, .. }
            | HostOp::JobControl { from, .. }
            | HostOp::SessionControl { from, .. }
            | HostOp::Monitor { from, .. }
            | HostOp::GetCredential { from, .. }
            | HostOp::ValidateCredential { from, .. }
            | HostOp::IofPull { from, .. }
            | HostOp::IofStop { from, .. }
            | HostOp::PushStdin { from, .. }
            | HostOp::GroupAssemble { from, .. }
            | HostOp::FabricRegister { from, .. }
            | HostOp::FabricUpdate { from, .. } => Some(from),
            HostOp::Notify { event } => Some(&event.source),
            HostOp::ClientConnected { .. }
            | HostOp::ClientFinalized { .. }
            | HostOp::ClientLost { .. }
            | HostOp::Fence { .. }
            | HostOp::DirectModex { .. }
            | HostOp::Connect { .. }
            | HostOp::Disconnect { .. }
            | HostOp::RegisterEvents { .. }
            | HostOp::DeregisterEvents { .. }
            | HostOp::ToolConnected { .. }
            | HostOp::GroupConstruct { .. }
            | HostOp::GroupDestruct { .. } => None,
        }
    }

    /// The function that a client or tool has called; `None` for what the server itself has to tell.
    pub fn function(&self) -> Option<&'static str> {
        Some(match self {
            HostOp::Fence { .. } => "PMIx_Fence",
            HostOp::Publish { .. } => "PMIx_Publish",
            HostOp::Lookup { .. } => "PMIx_Lookup",
            HostOp::Unpublish { .. } => "PMIx_Unpublish",
            HostOp::Spawn { .. } => "PMIx_Spawn",
            HostOp::Connect { .. } => "PMIx_Connect",
            HostOp::Disconnect { .. } => "PMIx_Disconnect",
            HostOp::RegisterEvents { .. } => "PMIx_Register_event_handler",
            HostOp::Notify { .. } => "PMIx_Notify_event",
            HostOp::Query { .. } => "PMIx_Query_info",
            HostOp::Log { .. } => "PMIx_Log",
            HostOp::Allocate { .. } => "PMIx_Allocation_request",
            HostOp::ResourceBlock { .. } => "PMIx_Resource_block",
            HostOp::JobControl { .. } => "PMIx_Job_control",
            HostOp::SessionControl { .. } => "PMIx_Session_control",
            HostOp::Monitor { .. } => "PMIx_Process_monitor",
            HostOp::GetCredential { .. } => "PMIx_Get_credential",
            HostOp::ValidateCredential { .. } => "PMIx_Validate_credential",
            HostOp::IofPull { .. } => "PMIx_IOF_pull",
            HostOp::IofStop { .. } => "PMIx_IOF_deregister",
            HostOp::PushStdin { .. } => "PMIx_IOF_push",
            HostOp::GroupConstruct { .. } | HostOp::GroupAssemble { .. } => "PMIx_Group_construct",
            HostOp::GroupDestruct { .. } => "PMIx_Group_destruct",
            HostOp::FabricRegister { .. } => "PMIx_Fabric_register",
            HostOp::ClientConnected { .. }
            | HostOp::ClientFinalized { .. }
            | HostOp::ClientLost { .. }
            | HostOp::Abort { .. }
            | HostOp::DirectModex { .. }
            | HostOp::DeregisterEvents { .. }
            | HostOp::ToolConnected { .. }
            | HostOp::FabricUpdate { .. } => return None,
        })
    }

    /// What the caller of [`function`](HostOp::function) has said about how it is to be done.
    pub fn directives_mut(&mut self) -> Vec<&mut Info> {
        match self {
            HostOp::Spawn { job, apps, .. } => {
                job.iter_mut().chain(apps.iter_mut().flat_map(|app| &mut app.info)).collect()
            }
            HostOp::Query { queries, .. } => queries.iter_mut().flat_map(|q| &mut q.qualifiers).collect(),
            HostOp::Fence { info, .. }
            | HostOp::Publish { info, .. }
            | HostOp::Lookup { info, .. }
            | HostOp::Unpublish { info, .. }
            | HostOp::Connect { info, .. }
            | HostOp::Disconnect { info, .. }
            | HostOp::RegisterEvents { info, .. }
            | HostOp::Notify { event: Event { info, .. } }
            | HostOp::Allocate { info, .. }
            | HostOp::ResourceBlock { info, .. }
            | HostOp::GetCredential { info, .. }
            | HostOp::ValidateCredential { info, .. }
            | HostOp::GroupConstruct { info, .. }
            | HostOp::GroupAssemble { info, .. }
            | HostOp::GroupDestruct { info, .. }
            | HostOp::Log { directives: info, .. }
            | HostOp::JobControl { directives: info, .. }
            | HostOp::SessionControl { directives: info, .. }
            | HostOp::Monitor { directives: info, .. }
            | HostOp::IofPull { directives: info, .. }
            | HostOp::IofStop { directives: info, .. }
            | HostOp::PushStdin { directives: info, .. }
            | HostOp::FabricRegister { directives: info, .. } => info.iter_mut().collect(),
            HostOp::ClientConnected { .. }
            | HostOp::ClientFinalized { .. }
            | HostOp::ClientLost { .. }
            | HostOp::Abort { .. }
            | HostOp::DirectModex { .. }
            | HostOp::DeregisterEvents { .. }
            | HostOp::ToolConnected { .. }
            | HostOp::FabricUpdate { .. } => Vec::new(),
        }
    }
}

/// The host's answer. `Done` with an error refuses any request.
#[derive(Clone, Debug, PartialEq)]
pub enum HostReply {
    Done(Status),
    Modex(Result<Blob, Status>),
    Lookup(Result<Vec<Pdata>, Status>),
    Spawned(Result<Nspace, Status>),
    Infos(Status, Vec<Info>),
    Credential(Result<(Blob, Vec<Info>), Status>),
    ToolAdmitted(Result<ProcId, Status>),
    /// `context_id` when one was asked for; `info` what members contributed.
    Group(Result<GroupFormed, Status>),
}

#[derive(Clone, Debug, PartialEq, Default)]
pub struct GroupFormed {
    pub members: Vec<ProcId>,
    pub context_id: Option<u64>,
    pub info: Vec<Info>,
}

/// Something that happened and that processes may have registered for.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    pub code: Status,
    pub source: ProcId,
    pub range: Range,
    pub info: Vec<Info>,
}

impl HostReply {
    /// How it went, whatever else it holds.
    pub fn status(&self) -> Status {
        match self {
            HostReply::Done(status) | HostReply::Infos(status, _) => *status,
            HostReply::Modex(result) => as_status(result),
            HostReply::Lookup(result) => as_status(result),
            HostReply::Spawned(result) => as_status(result),
            HostReply::Credential(result) => as_status(result),
            HostReply::ToolAdmitted(result) => as_status(result),
            HostReply::Group(result) => as_status(result),
        }
    }
}

fn as_status<T>(result: &Result<T, Status>) -> Status {
    match result {
        Ok(_) => Status::SUCCESS,
        Err(status) => *status,
    }
}

/// Members of this node that a group operation goes on without, in what the host is told (`PMIX_GROUP_FT_COLLECTIVE`).
pub const LOST_MEMBERS: &str = "phalanx.group.lost";
