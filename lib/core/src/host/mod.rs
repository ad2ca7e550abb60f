//! Upcalls to the host (the resource manager, our own `dvm`) as data: each is answered exactly once.
//!
//! One variant per entry of the standard's `pmix_server_module_t`. The server machine emits
//! `Output::CallHost { call, op }`; the host answers `Input::Host { call, reply }`, in any order, at any time.

mod request;

use phalanx_spec::{Range, Status, functions};
use phalanx_wire::cmd::HostRequest;
use phalanx_wire::{Blob, Info, Nspace, Pdata, ProcId};

use request::Upcall;
pub use request::{
    AbortRequest, Asked, ClientFinalized, ClientLost, ClientRefused, CollectiveKind, CommitRefused,
    ConnectRequest, DirectModexRequest, EventsRequest, FenceRequest, GroupRequest, LogRequest, MemberMissing,
    MonitorRequest, OverdueCall, PublishRequest, PublishedRequest, PullEnded, PullRequest, QueryRequest,
    SpawnRequest, StdinRequest, ToolRequest,
};

macro_rules! host_ops {
    ($($(#[$doc:meta])* $variant:ident($request:ty) = $operation:literal $(, $function:expr)?;)+) => {
        /// A request to the host.
        #[derive(Clone, Debug, PartialEq)]
        pub enum HostOp {
            $($(#[$doc])* $variant($request),)+
            /// A client's request that only the host can answer, unchanged, with the asker's identity. Answer: as given by
            /// [`HostRequest::answer`].
            Asked(Asked<HostRequest>),
        }

        impl HostOp {
            fn upcall(&self) -> &dyn Upcall {
                match self {
                    $(HostOp::$variant(request) => request,)+
                    HostOp::Asked(asked) => asked,
                }
            }

            fn upcall_mut(&mut self) -> &mut dyn Upcall {
                match self {
                    $(HostOp::$variant(request) => request,)+
                    HostOp::Asked(asked) => asked,
                }
            }

            /// The name in messages.
            pub fn operation(&self) -> &'static str {
                match self {
                    $(HostOp::$variant(_) => $operation,)+
                    HostOp::Asked(asked) => asked.operation(),
                }
            }

            /// The function that a client or tool has called; `None` for requests of the server itself.
            pub fn function(&self) -> Option<&'static str> {
                match self {
                    $(HostOp::$variant(_) => None$(.or(Some($function)))?,)+
                    HostOp::Asked(asked) => Some(asked.function()),
                }
            }
        }
    };
}

host_ops! {
    /// A client passed the handshake; it is admitted when the host has answered. Further connections of the same rank are
    /// admitted without asking as long as one of them goes on. Answer: `Done`.
    ClientConnected(ProcId) = "connection";
    /// Answer: `Done`.
    ClientFinalized(ClientFinalized) = "finalize";
    /// Answer: `Done`.
    ClientLost(ClientLost) = "lost connection";
    /// Answer: `Done`.
    ClientRefused(ClientRefused) = "refused connection";
    /// Answer: `Done`.
    CommitRefused(CommitRefused) = "refused commit";
    /// Answer: `Done`.
    MemberMissing(MemberMissing) = "missing member";
    /// Answer: `Done`.
    Abort(AbortRequest) = "abort";
    /// The next fence of the same set follows when this one has been answered (or with the report that a later one failed).
    /// Never called when every participant is local. Answer: `Modex` with all contributions concatenated.
    Fence(FenceRequest) = "fence", functions::FENCE;
    /// Answer: `Modex`.
    DirectModex(DirectModexRequest) = "direct modex";
    /// Answer: `Done`.
    Publish(PublishRequest) = "publish", functions::PUBLISH;
    /// Answer: `Lookup`.
    Lookup(PublishedRequest) = "lookup", functions::LOOKUP;
    /// Answer: `Done`.
    Unpublish(PublishedRequest) = "unpublish", functions::UNPUBLISH;
    /// Answer: `Spawned`.
    Spawn(SpawnRequest) = "spawn", functions::SPAWN;
    /// All local participants have arrived. May report a local failure as `Fence` does. Answer: `Done`.
    Connect(ConnectRequest) = "connect", functions::CONNECT;
    /// Answer: `Done`.
    Disconnect(ConnectRequest) = "disconnect", functions::DISCONNECT;
    /// A local process now wants these events. Answer: `Done`.
    RegisterEvents(EventsRequest) = "event registration", functions::REGISTER_EVENT_HANDLER;
    /// No local process wants them any more. Answer: `Done`.
    DeregisterEvents(EventsRequest) = "event deregistration";
    /// A local process raised an event that concerns other nodes. Local processes have got it: it must not be passed back to
    /// this server. Answer: `Done`.
    Notify(Event) = "notification", functions::NOTIFY_EVENT;
    /// Answer: `Infos`.
    Query(QueryRequest) = "query", functions::QUERY_INFO;
    /// Answer: `ToolAdmitted`.
    ToolConnected(ToolRequest) = "connection of a tool";
    /// Answer: `Done`.
    Log(LogRequest) = "log", functions::LOG;
    /// All but heartbeats, which the server counts itself. Answer: `Infos`.
    Monitor(MonitorRequest) = "monitor", functions::PROCESS_MONITOR;
    /// A local process wants these streams. Answer: `Done`; then the streams arrive by `ServerCall::Output`.
    IofPull(PullRequest) = "pull of output", functions::IOF_PULL;
    /// Answer: `Done`.
    IofStop(PullEnded) = "end of a pull", functions::IOF_DEREGISTER;
    /// Answer: `Done`.
    PushStdin(StdinRequest) = "push of input", functions::IOF_PUSH;
    /// May report a local failure as `Fence` does. Processes that members add (`PMIX_GROUP_ADD_MEMBERS`) send their own requests.
    /// With `from` the host answers when all leaders and all processes they named have arrived, and returns the members. Answer:
    /// `Group`.
    GroupConstruct(GroupRequest) = "group construct", functions::GROUP_CONSTRUCT;
    /// Answer: `Group`.
    GroupDestruct(GroupRequest) = "group destruct", functions::GROUP_DESTRUCT;
    /// The time limit of the local participants has passed while the host has their fence, connect, disconnect or group. Answer: `Done`. With success
    /// the host ends it for all participants alike, on all nodes, and answers the original call itself, perhaps with an outcome that came meanwhile;
    /// otherwise the server ends it for the local ones.
    Overdue(OverdueCall) = "time limit";
}

impl HostOp {
    /// The asking process, if it asks for itself alone.
    pub fn asked_by(&self) -> Option<&ProcId> {
        self.upcall().asked_by()
    }

    /// The subject, where it helps to distinguish two of them.
    pub fn subject(&self) -> String {
        self.upcall().subject()
    }

    /// The directives from the caller of [`function`](HostOp::function).
    pub fn directives_mut(&mut self) -> Vec<&mut Info> {
        self.upcall_mut().directives_mut()
    }
}

impl<T: Into<HostRequest>> From<Asked<T>> for HostOp {
    fn from(asked: Asked<T>) -> HostOp {
        HostOp::Asked(Asked { from: asked.from, request: asked.request.into() })
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
    /// `context_id` if one was requested; `info`: the members' contributions.
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
    /// The status, whatever else it holds.
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

/// The local members that a group operation continues without, in requests to the host (`PMIX_GROUP_FT_COLLECTIVE`).
pub const LOST_MEMBERS: &str = "phalanx.group.lost";
