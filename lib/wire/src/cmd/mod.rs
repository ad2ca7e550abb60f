//! The body of every command of the client protocol: the request and its reply, side by side, one file per verb.
//!
//! `Request` is what a client or tool sends; each verb's `Reply` is what comes back on the same tag. A failed request is
//! answered by its status alone, so every reply carries one first and leaves the rest at its default.

pub mod abort;
pub mod allocate;
pub mod commit;
pub mod connect;
pub mod control;
pub mod credential;
pub mod event;
pub mod fabric;
pub mod fence;
pub mod get;
pub mod group;
pub mod iof;
pub mod job_data;
pub mod log;
pub mod monitor;
pub mod publish;
pub mod query;
pub mod resolve;
pub mod session;
pub mod spawn;

use phalanx_spec::Status;

use crate::info::Info;
use crate::text::Text;

/// Everything that a client or tool can ask of a server.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// The job data of the asker's own namespace: REQ.
    JobData,
    /// The same again, after the asker could not use the named store: GDS_FALLBACK.
    JobDataFallback {
        store: Option<Text>,
    },
    Abort(abort::Abort),
    Commit(commit::Commit),
    Fence(fence::Fence),
    Get(get::Get),
    RefreshCache(get::RefreshCache),
    Finalize,
    Publish(publish::Publish),
    Lookup(publish::Lookup),
    Unpublish(publish::Unpublish),
    Spawn(spawn::Spawn),
    Connect(connect::Connect),
    Disconnect(connect::Connect),
    Notify(event::Notify),
    RegisterEvents(event::RegisterEvents),
    DeregisterEvents(event::DeregisterEvents),
    Query(query::QueryRequest),
    Log(log::Log),
    Allocate(allocate::Allocate),
    ResourceBlock(allocate::ResourceBlock),
    JobControl(control::JobControl),
    SessionControl(session::SessionControl),
    Monitor(monitor::Monitor),
    GetCredential(credential::GetCredential),
    ValidateCredential(credential::ValidateCredential),
    IofPull(iof::Pull),
    IofPush(iof::Push),
    IofDeregister(iof::Deregister),
    GroupConstruct(group::Construct),
    GroupDestruct(group::Destruct),
    GroupLeave(group::Leave),
    FabricRegister(fabric::Register),
    FabricUpdate(fabric::Update),
    DeviceDistances(fabric::DeviceDistances),
    ResolvePeers(resolve::Peers),
    ResolveNode(resolve::Node),
}

/// A reply of a status alone: ABORT, COMMIT, FENCE, FINALIZE, PUBLISH, UNPUBLISH, NOTIFY, LOG, IOF_PUSH ...
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusReply(pub Status);

/// A reply of a status and infos: QUERY, ALLOC, JOB_CONTROL, MONITOR, VALIDATE_CRED, SESSION_CTRL, FABRIC_*.
#[derive(Clone, Debug, PartialEq)]
pub struct InfoReply {
    pub status: Status,
    pub info: Vec<Info>,
}
