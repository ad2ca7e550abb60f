//! The client role: one process and its connection to the server of its node.
//!
//! Each call of the program is one [`ClientCall`] and ends in exactly one [`ClientReturn`], whatever becomes of the
//! connection. What stands between the two is a table of what is awaited (`pending.rs`), which can explain itself. One file
//! per verb; `handshake.rs` makes the connection and sorts what arrives on it. Values go to the [`Store`], from which the
//! program's threads answer most gets without coming here.

mod abort;
mod allocate;
mod alone;
mod call;
mod chain;
mod commit;
mod connect;
mod control;
mod credential;
mod debug;
mod event;
mod exchange;
mod fabric;
mod fence;
mod finalize;
mod get;
mod group;
mod handshake;
mod introduce;
mod invite;
mod iof;
mod log;
mod monitor;
mod pending;
mod publish;
mod query;
mod resolve;
mod session;
mod spawn;

pub use call::{ClientCall, ClientDelivery, ClientReturn, NewJob, Verdict};
pub use handshake::InitError;
pub use iof::{UNASKED, UNTOLD};

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use phalanx_wire::cmd::allocate::ResourceBlock;
use phalanx_wire::codec::Dialect;
use phalanx_wire::credential::Credential;
use phalanx_wire::frame::FrameReader;
use phalanx_wire::uri::ServerUri;
use phalanx_wire::{ProcId, Text};

use crate::explain::Waiting;
use crate::machine::{CallId, Input, Machine, Outbox, Time};
use crate::store::{OpenCollected, Store};
use crate::support::{self, OuterSupport};

use chain::Chains;
use get::SharedGets;
use handshake::Phase;
pub(crate) use introduce::Introduction;
use iof::Streams;
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
    /// This process's id, which servers since 6.1 want of their clients. A tool's introduction has it among its attributes.
    pub pid: Option<u32>,
    pub hostname: String,
    /// How to pack, and the release of the server, by which the layout of replies is chosen.
    pub dialect: Dialect,
    /// How long the server may take to let the process in. A debugger that holds it is not counted.
    pub patience: Duration,
    /// How files of the server are opened, if it names such to clients who say that they read them. A server of OpenPMIx
    /// does not.
    pub files: Option<Arc<dyn OpenCollected>>,
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
    shared_gets: SharedGets,
    chains: Chains,
    streams: Streams,
    /// Who is in the groups that this process has constructed; a server wants to hear it again when one ends.
    groups: BTreeMap<Text, Vec<ProcId>>,
    /// Whether what the server told is kept for the next get. Not when the server is in the same process: it knows better.
    remembers: bool,
    /// Whether the server has been asked for the events of which invitations are made.
    listens_for_groups: bool,
    introduction: Introduction,
    outer: &'static OuterSupport,
    /// As the server itself says who it is; only tools are told.
    server: Option<ProcId>,
}

impl Client {
    pub fn new(config: ClientConfig) -> Client {
        Client {
            store: Arc::new(Store::reading(config.proc.clone(), config.files.clone())),
            config,
            phase: Phase::Idle,
            starting: None,
            index: u32::MAX,
            frames: FrameReader::default(),
            pending: Table::default(),
            shared_gets: SharedGets::default(),
            chains: Chains::default(),
            streams: Streams::default(),
            groups: BTreeMap::new(),
            remembers: true,
            listens_for_groups: false,
            introduction: Introduction::Client,
            outer: support::NOTHING,
            server: None,
        }
    }

    /// A tool's connection to one server. All that it knows goes to `store`; without one it has no name yet, and no store
    /// before it has.
    pub(crate) fn of_tool(config: ClientConfig, tool: Introduction, store: Option<Arc<Store>>) -> Client {
        let mut client = Client { introduction: tool, ..Client::new(config) };
        client.store = store.unwrap_or(client.store);
        client
    }

    /// The machine of a library that honours some attributes itself.
    pub fn within(self, outer: &'static OuterSupport) -> Client {
        Client { outer, ..self }
    }

    /// The name of this process.
    pub(crate) fn proc(&self) -> &ProcId {
        &self.config.proc
    }

    /// A client in its server's own process: it is connected from the beginning.
    pub(crate) fn attached(config: ClientConfig) -> Client {
        Client { phase: Phase::Ready, remembers: false, ..Client::new(config) }
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
        all.extend(self.explain_handlers());
        all
    }

    /// Whether the server sends, unasked, what this client wants for itself.
    pub fn awaits_news(&self) -> bool {
        self.listens_for_groups
    }

    /// The events that handlers of this program have not finished with.
    pub(crate) fn explain_handlers(&self) -> impl Iterator<Item = Waiting> {
        self.chains.explain(&self.config.proc)
    }

    fn on_call(&mut self, now: Time, id: CallId, call: ClientCall, out: &mut Out) {
        match call {
            ClientCall::Init => self.on_init(now, id, out),
            ClientCall::Handled { delivery, verdict } => self.on_handled(now, delivery, verdict, out),
            ClientCall::Taken { delivery, held } => self.on_taken(delivery, held, out),
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
            ClientCall::Spawn { job, apps } => self.on_spawn(now, id, job, apps, out),
            ClientCall::Connect { procs, info } => self.on_connect(now, id, procs, info, out),
            ClientCall::Disconnect { procs, info } => self.on_disconnect(now, id, procs, info, out),
            ClientCall::GroupConstruct { id: name, procs, info } => {
                self.on_group_construct(now, id, name, procs, info, out);
            }
            ClientCall::GroupDestruct { id: name, info } => self.on_group_destruct(now, id, name, info, out),
            ClientCall::GroupInvite { id: name, procs, info } => {
                self.on_group_invite(now, id, name, &procs, &info, out);
            }
            ClientCall::GroupJoin { id: name, leader, accept, info } => {
                self.on_group_join(now, id, name, leader, accept, &info, out);
            }
            ClientCall::GroupLeave { id: name, info } => self.on_group_leave(now, id, name, info, out),
            ClientCall::IofPull { handler, sources, channels, directives } => {
                self.on_iof_pull(now, id, handler, sources, channels, directives, out);
            }
            ClientCall::IofDeregister { handler, directives } => {
                self.on_iof_deregister(now, id, handler, directives, out);
            }
            ClientCall::IofPush { targets, data, directives } => {
                self.on_iof_push(now, id, targets, data, directives, out);
            }
            ClientCall::Allocate { directive, info } => self.on_allocate(now, id, directive, info, out),
            ClientCall::ResourceBlock { directive, block, units, info } => {
                self.on_resource_block(
                    now,
                    id,
                    ResourceBlock { directive, block: Some(block), units, info },
                    out,
                );
            }
            ClientCall::SessionControl { session, directives } => {
                self.on_session_control(now, id, session, directives, out);
            }
            ClientCall::Monitor { what, error, directives } => {
                self.on_monitor(now, id, what, error, directives, out);
            }
            ClientCall::Heartbeat => self.on_heartbeat(id, out),
            ClientCall::GetCredential { info } => self.on_get_credential(now, id, info, out),
            ClientCall::ValidateCredential { credential, info } => {
                self.on_validate_credential(now, id, credential, info, out);
            }
            ClientCall::FabricRegister { directives } => self.on_fabric_register(now, id, directives, out),
            ClientCall::FabricUpdate { index } => self.on_fabric_update(now, id, index, out),
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
