//! Calls of a program to its client, and their results.

use phalanx_spec::{IofChannel, Range, Scope, Status};
use phalanx_wire::cmd::HostRequest;
use phalanx_wire::cmd::connect::Connect;
use phalanx_wire::cmd::fence::Fence;
use phalanx_wire::cmd::group::{Construct, Leave};
use phalanx_wire::cmd::iof::{Pull, Push};
use phalanx_wire::cmd::log::Log;
use phalanx_wire::cmd::monitor::Monitor;
use phalanx_wire::cmd::publish::{Publish, Published};
use phalanx_wire::cmd::query::Queries;
use phalanx_wire::cmd::spawn::Spawn;
use phalanx_wire::{Blob, Info, Kval, Nspace, Pdata, ProcId, Text, Value};

use super::phase::InitError;
use crate::host::{Event, GroupFormed};
use crate::machine::{DeliveryId, HandlerId};
use crate::store::LookupRequest;

/// A call of a program to its client, in the form in which it goes to the server, where the client adds nothing. Infos may hold `pmix.timeout`, in
/// seconds, for calls that wait.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientCall {
    /// Connect, shake hands, fetch the job data. The first call. Answer: `Init`.
    Init,
    /// Values put since the last commit, by scope. Answer: `Done`.
    Commit(Vec<(Scope, Vec<Kval>)>),
    /// `procs` empty: the whole job. Answer: `Done`.
    Fence(Fence),
    /// Answer: `Value`.
    Get { request: LookupRequest, info: Vec<Info> },
    /// The client adds the caller's identity. Answer: `Done`.
    Publish(Publish),
    /// Answer: `Found`.
    Lookup(Published),
    /// `keys` empty: everything that this process has published. Answer: `Done`.
    Unpublish(Published),
    /// `procs` empty: the whole job. Answer: `Done`, if this process lives to see it.
    Abort { status: Status, message: Option<Text>, procs: Vec<ProcId> },
    /// Raises an event; handlers of this process run as well. Answer: `Done`.
    Notify { code: Status, range: Range, info: Vec<Info> },
    /// `handler` is the caller's own number for its callback; `codes` empty: a default handler. Answer: `Done`.
    RegisterEvents { handler: HandlerId, codes: Vec<Status>, info: Vec<Info> },
    /// Answer: `Done`.
    DeregisterEvents { handler: HandlerId },
    /// A handler has finished with what was delivered to it. Not answered.
    Handled { delivery: DeliveryId, verdict: Verdict },
    /// The program is done with delivered output, except for `held` bytes at the end, which it still holds. Not answered.
    Taken { delivery: DeliveryId, held: usize },
    /// Answer: `Infos`.
    Query(Queries),
    /// Answer: `Done`.
    Log(Log),
    /// The processes of a job on a node; `node` absent: this one. Answer: `Peers`.
    ResolvePeers { node: Option<Text>, nspace: Nspace },
    /// The nodes of a job. Answer: `Nodes`.
    ResolveNodes { nspace: Nspace },
    /// Starts another job. Answer: `Spawned`.
    Spawn(Spawn),
    /// Binds processes of several jobs together; all of them call it. Answer: `Done`.
    Connect(Connect),
    /// Answer: `Done`.
    Disconnect(Connect),
    /// All members call it. Answer: `Group`.
    GroupConstruct(Construct),
    /// All members call it. Answer: `Done`.
    GroupDestruct { id: Text, info: Vec<Info> },
    /// Invites these processes into a group; they answer by `GroupJoin`. Answer: `Group`.
    GroupInvite { id: Text, procs: Vec<ProcId>, info: Vec<Info> },
    /// Accepts or declines an invitation. Without a leader's name the answer goes to all processes. Answer: `Group`.
    GroupJoin { id: Text, leader: Option<ProcId>, accept: bool, info: Vec<Info> },
    /// Answer: `Done`.
    GroupLeave(Leave),
    /// Asks for the output of other processes. `handler` is the caller's own number for its callback, and the client's handle for
    /// the pull. Answer: `Pulled`.
    IofPull { handler: HandlerId, pull: Pull },
    /// Answer: `Done`.
    IofDeregister { handler: HandlerId, directives: Vec<Info> },
    /// Writes to the standard input of other processes; no data: its end. Answer: `Done`.
    IofPush(Push),
    /// Has processes monitored; `error` is the event to raise when signs of life stop. Answer: `Infos`.
    Monitor(Monitor),
    /// A sign of life for the monitors of this process. Answer: `Done`.
    Heartbeat,
    /// A request that only the host can answer. Answer: as given by [`HostRequest::answer`].
    Host(HostRequest),
    /// Finalizes. Calls that still wait end with it. Answer: `Done`.
    Finalize { info: Vec<Info> },
}

impl<T: Into<HostRequest>> From<T> for ClientCall {
    fn from(request: T) -> ClientCall {
        ClientCall::Host(request.into())
    }
}

/// A job that was started.
#[derive(Clone, Debug, PartialEq)]
pub struct NewJob {
    pub nspace: Nspace,
    /// The earlier levels of the output's style, if this library formats it.
    pub style: Vec<Info>,
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientReturn {
    Init(Result<(), InitError>),
    Done(Status),
    Value(Result<Value, Status>),
    /// Some keys may be missing; the status then shows it.
    Found(Status, Vec<Pdata>),
    Infos(Status, Vec<Info>),
    Peers(Result<Vec<ProcId>, Status>),
    /// Host names.
    Nodes(Result<Vec<String>, Status>),
    Spawned(Result<NewJob, Status>),
    Group(Result<GroupFormed, Status>),
    /// The style of the output, if the reader formats it itself.
    Pulled(Result<Vec<Info>, Status>),
    Credential(Result<(Blob, Vec<Info>), Status>),
}

/// What is passed to a program's callback.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientDelivery {
    /// An event, and the results of earlier handlers of its chain. The callback ends with a [`ClientCall::Handled`].
    Event { event: Event, results: Vec<Info> },
    /// Output of a process; no data: the stream has ended. When the program has taken it for good, it calls
    /// [`ClientCall::Taken`].
    Output { source: ProcId, channel: IofChannel, data: Blob, info: Vec<Info> },
}

/// A handler's result for an event. `PMIX_EVENT_ACTION_COMPLETE` ends the chain.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    pub status: Status,
    pub results: Vec<Info>,
}
