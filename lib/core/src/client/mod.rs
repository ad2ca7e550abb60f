//! The client role: one process and its connection to the server of its node.
//!
//! Each call of the program is one [`ClientCall`] and ends in exactly one [`ClientReturn`], whatever becomes of the
//! connection. What stands between the two is a table of what is awaited (`pending.rs`), which can explain itself. One file
//! per verb; `connect.rs` makes the connection and sorts what arrives on it. Values go to the [`Store`], from which the
//! program's threads answer most gets without coming here.

mod abort;
mod alone;
mod chain;
mod commit;
mod connect;
mod control;
mod debug;
mod event;
mod fence;
mod finalize;
mod get;
mod log;
mod pending;
mod publish;
mod query;
mod resolve;

pub use connect::InitError;

use std::sync::Arc;
use std::time::Duration;

use phalanx_spec::{Range, Scope, Status};
use phalanx_wire::codec::Dialect;
use phalanx_wire::credential::Credential;
use phalanx_wire::frame::FrameReader;
use phalanx_wire::uri::ServerUri;
use phalanx_wire::{Info, Key, Kval, Nspace, Pdata, ProcId, Query, Text, Value};

use crate::explain::Waiting;
use crate::host::Event;
use crate::machine::{CallId, DeliveryId, HandlerId, Input, Machine, Outbox, Time};
use crate::store::{LookupRequest, Store};

use chain::Chains;
use connect::Phase;
use pending::Table;

/// Who the process is and where its server is. All of it comes from the environment, see `pmix::environ`.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    pub proc: ProcId,
    /// None: nobody started this process; it is a job of its own.
    pub server: Option<ServerUri>,
    pub credential: Credential,
    /// The effective user.
    pub uid: u32,
    pub hostname: String,
    /// How to pack, and the release of the server, by which the layout of replies is chosen.
    pub dialect: Dialect,
    /// How long the server may take to let the process in. A debugger that holds it is not counted.
    pub patience: Duration,
}

/// What a program asks of its client. Infos may hold `pmix.timeout`, in seconds, for calls that wait.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientCall {
    /// Connect, shake hands, fetch the job data. The first call. Answer: `Init`.
    Init,
    /// What was put since the last commit, by scope. Answer: `Done`.
    Commit(Vec<(Scope, Vec<Kval>)>),
    /// `procs` empty: the whole job. Answer: `Done`.
    Fence { procs: Vec<ProcId>, info: Vec<Info> },
    /// Answer: `Value`.
    Get { request: LookupRequest, info: Vec<Info> },
    /// Data and directives stand mixed in `info`. Answer: `Done`.
    Publish { info: Vec<Info> },
    /// Answer: `Found`.
    Lookup { keys: Vec<Key>, info: Vec<Info> },
    /// `keys` empty: everything that this process has published. Answer: `Done`.
    Unpublish { keys: Vec<Key>, info: Vec<Info> },
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
    /// Answer: `Infos`.
    Query { queries: Vec<Query> },
    /// `timestamp`: seconds since the epoch, 0 for none. Answer: `Done`.
    Log { timestamp: u64, data: Vec<Info>, directives: Vec<Info> },
    /// `targets` empty: the whole job. Answer: `Infos`.
    JobControl { targets: Vec<ProcId>, directives: Vec<Info> },
    /// Who of a job is on a node; `node` absent: this one. Answer: `Peers`.
    ResolvePeers { node: Option<Text>, nspace: Nspace },
    /// The nodes of a job. Answer: `Nodes`.
    ResolveNodes { nspace: Nspace },
    /// Says goodbye. Everything that still waits ends first. Answer: `Done`.
    Finalize { info: Vec<Info> },
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
}

/// What is handed to a program's callback. It ends with [`ClientCall::Handled`].
#[derive(Clone, Debug, PartialEq)]
pub enum ClientDelivery {
    /// An event, and what earlier handlers of its chain made of it.
    Event { event: Event, results: Vec<Info> },
}

/// What a handler made of an event. `PMIX_EVENT_ACTION_COMPLETE` ends the chain.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    pub status: Status,
    pub results: Vec<Info>,
}

type Out = Outbox<ClientReturn, ClientDelivery>;

/// The state of one client.
#[derive(Debug)]
pub struct Client {
    config: ClientConfig,
    store: Arc<Store>,
    phase: Phase,
    /// Who called init, until it is answered.
    starting: Option<CallId>,
    /// The number that the server gave us.
    index: u32,
    frames: FrameReader,
    pending: Table,
    chains: Chains,
}

impl Client {
    pub fn new(config: ClientConfig) -> Client {
        Client {
            store: Arc::new(Store::new(config.proc.clone())),
            config,
            phase: Phase::Idle,
            starting: None,
            index: u32::MAX,
            frames: FrameReader::default(),
            pending: Table::default(),
            chains: Chains::default(),
        }
    }

    /// What this client knows, for lookups on other threads.
    pub fn store(&self) -> Arc<Store> {
        self.store.clone()
    }

    /// Everything that is awaited: from the server, and from handlers of this program.
    pub fn explain(&self) -> Vec<Waiting> {
        let me = &self.config.proc;
        let mut all: Vec<_> = self.phase.explain(me).into_iter().collect();
        all.extend(self.pending.explain(me));
        all.extend(self.chains.explain(me));
        all
    }

    fn on_call(&mut self, now: Time, id: CallId, call: ClientCall, out: &mut Out) {
        match call {
            ClientCall::Init => self.on_init(now, id, out),
            ClientCall::Handled { delivery, verdict } => self.on_handled(now, delivery, verdict, out),
            ClientCall::DeregisterEvents { handler } => self.on_deregister_events(id, handler, out),
            ClientCall::RegisterEvents { handler, codes, info } => {
                self.on_register_events(now, id, handler, codes, info, out);
            }
            ClientCall::Notify { code, range, info } => self.on_notify(now, id, code, range, info, out),
            ClientCall::Finalize { info } => self.on_finalize(now, id, &info, out),
            ClientCall::Commit(buckets) => self.on_commit(now, id, buckets, out),
            ClientCall::Fence { procs, info } => self.on_fence(now, id, procs, info, out),
            ClientCall::Get { request, info } => self.on_get(now, id, request, info, out),
            ClientCall::Publish { info } => self.on_publish(now, id, info, out),
            ClientCall::Lookup { keys, info } => self.on_lookup(now, id, keys, info, out),
            ClientCall::Unpublish { keys, info } => self.on_unpublish(now, id, keys, info, out),
            ClientCall::Abort { status, message, procs } => {
                self.on_abort(now, id, status, message, procs, out)
            }
            ClientCall::Query { queries } => self.on_query(now, id, queries, out),
            ClientCall::Log { timestamp, data, directives } => {
                self.on_log(now, id, timestamp, data, directives, out);
            }
            ClientCall::JobControl { targets, directives } => {
                self.on_job_control(now, id, targets, directives, out);
            }
            ClientCall::ResolvePeers { node, nspace } => self.on_resolve_peers(now, id, node, nspace, out),
            ClientCall::ResolveNodes { nspace } => self.on_resolve_nodes(now, id, nspace, out),
        }
    }
}

impl Machine for Client {
    type Call = ClientCall;
    type Return = ClientReturn;
    type Delivery = ClientDelivery;

    fn handle(&mut self, now: Time, input: Input<'_, ClientCall>, out: &mut Out) {
        match input {
            Input::Call { id, call } => self.on_call(now, id, call, out),
            Input::Opened { .. } => self.on_opened(out),
            Input::Bytes { data, .. } => self.on_bytes(now, data, out),
            Input::Closed { reason, .. } => self.on_closed(now, reason, out),
            // A client has few requests under way and no host.
            Input::Writable { .. } | Input::Host { .. } | Input::Tick => {}
        }
        self.on_time(now, out);
    }

    fn deadline(&self) -> Option<Time> {
        [self.phase.deadline(), self.pending.deadline()].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests;
