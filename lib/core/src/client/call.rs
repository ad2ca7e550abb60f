//! What a program asks of its client, and what it is told.

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

/// What a program asks of its client: as it goes to the server, where the client adds nothing. Infos may hold `pmix.timeout`, in seconds, for calls that wait.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientCall {
    /// Connect, shake hands, fetch the job data. The first call. Answer: `Init`.
    Init,
    /// What was put since the last commit, by scope. Answer: `Done`.
    Commit(Vec<(Scope, Vec<Kval>)>),
    /// `procs` empty: the whole job. Answer: `Done`.
    Fence(Fence),
    /// Answer: `Value`.
    Get { request: LookupRequest, info: Vec<Info> },
    /// The client says who asks. Answer: `Done`.
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
    /// The program has done with output what it wants to, but for so many of the last bytes of that stream, which it holds.
    /// Not answered.
    Taken { delivery: DeliveryId, held: usize },
    /// Answer: `Infos`.
    Query(Queries),
    /// Answer: `Done`.
    Log(Log),
    /// Who of a job is on a node; `node` absent: this one. Answer: `Peers`.
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
    /// Asks these processes into a group; they answer by `GroupJoin`. Answer: `Group`.
    GroupInvite { id: Text, procs: Vec<ProcId>, info: Vec<Info> },
    /// Takes an invitation up, or declines it. Without the leader's name everybody is told. Answer: `Group`.
    GroupJoin { id: Text, leader: Option<ProcId>, accept: bool, info: Vec<Info> },
    /// Answer: `Done`.
    GroupLeave(Leave),
    /// Asks for what other processes write. `handler` is the caller's own number for its callback, and the client's handle for the
    /// pull. Answer: `Pulled`.
    IofPull { handler: HandlerId, pull: Pull },
    /// Answer: `Done`.
    IofDeregister { handler: HandlerId, directives: Vec<Info> },
    /// Writes to the standard input of other processes; no data: its end. Answer: `Done`.
    IofPush(Push),
    /// Has processes watched; `error` is the event to raise when they fall silent. Answer: `Infos`.
    Monitor(Monitor),
    /// A sign of life for who watches this process. Answer: `Done`.
    Heartbeat,
    /// What only the host can answer. Answer: as [`HostRequest::answer`] says.
    Host(HostRequest),
    /// Says goodbye. What still waits ends with it. Answer: `Done`.
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
    /// What was said before of the form of its output, if that is given here.
    pub style: Vec<Info>,
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientReturn {
    Init(Result<(), InitError>),
    Done(Status),
    Value(Result<Value, Status>),
    /// Some keys may be missing; the status then says so.
    Found(Status, Vec<Pdata>),
    Infos(Status, Vec<Info>),
    Peers(Result<Vec<ProcId>, Status>),
    /// Host names.
    Nodes(Result<Vec<String>, Status>),
    Spawned(Result<NewJob, Status>),
    Group(Result<GroupFormed, Status>),
    /// How the output is to look, if the reader gives it its form itself.
    Pulled(Result<Vec<Info>, Status>),
    Credential(Result<(Blob, Vec<Info>), Status>),
}

/// What is handed to a program's callback.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientDelivery {
    /// An event, and what earlier handlers of its chain made of it. The callback's end is a [`ClientCall::Handled`].
    Event { event: Event, results: Vec<Info> },
    /// What a process has written; no data: it will write no more. When the program has taken it for good, it says so by a
    /// [`ClientCall::Taken`].
    Output { source: ProcId, channel: IofChannel, data: Blob, info: Vec<Info> },
}

/// What a handler made of an event. `PMIX_EVENT_ACTION_COMPLETE` ends the chain.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    pub status: Status,
    pub results: Vec<Info>,
}
