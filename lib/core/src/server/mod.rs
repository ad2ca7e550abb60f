//! The server role: what happens to everything that clients and tools send, that the host answers, and that the owner calls.
//!
//! This file owns the [`Server`] and hands each input to the file of its verb; the tables of a verb live in that file. Nothing
//! here reads a clock or touches a socket, and no peer can make it panic or hold more than `limits` allows. Requests that
//! the server cannot answer go to the host as [`HostOp`](crate::HostOp)s; `host` takes the answers back to who asked.

mod abort;
mod accept;
mod allocate;
mod attributes;
mod clones;
mod collected;
mod collective;
mod commit;
mod connect;
mod control;
mod credential;
mod directive;
mod ended;
mod event;
mod fabric;
mod fence;
mod finalize;
mod get;
mod group;
mod host;
mod iof;
mod job_data;
mod limits;
mod log;
mod modex;
mod monitor;
mod own;
mod peer;
mod pset;
mod publish;
mod query;
mod registry;
mod resolve;
mod resources;
mod setup;
mod spawn;
mod timers;
mod topology;

#[cfg(test)]
mod tests;

pub use setup::{OURS, VERSION};

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use phalanx_spec::{Command, IofChannel, Status};
use phalanx_topo::Topology;
use phalanx_wire::cmd::iof::Taken;
use phalanx_wire::cmd::{Body, Request};
use phalanx_wire::codec::{DecodeError, Format, Reader};
use phalanx_wire::frame::{FIRST_REQUEST_TAG, Frame, TAG_HEARTBEAT, TAG_IOF};
use phalanx_wire::{Blob, Info, Key, Nspace, ProcId};
use tracing::{debug, warn};

use crate::explain::Waiting;
use crate::host::Event;
use crate::job::JobInfo;
use crate::machine::{CallId, CloseReason, ConnId, Input, Machine, Outbox, Output, Time};
use crate::support::{self, OuterSupport};
pub use iof::{OUTPUT_DEFAULTS, OutputTo};
pub use modex::ModexForm;
pub use own::OWN;
use peer::{Asker, Conn, Peer};
use timers::Timer;

/// How a server presents itself. Paths and addresses are the shell's; the server only repeats them to clients.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerConfig {
    /// The server's own identity.
    pub identity: ProcId,
    pub hostname: String,
    /// `tcp4://127.0.0.1:PORT`.
    pub address: String,
    pub server_tmpdir: String,
    pub system_tmpdir: String,
    pub owner_uid: u32,
    pub tools_of: ToolsOf,
    /// A rank may have one connection at a time.
    pub refuse_clones: bool,
    /// None: tools on other nodes are refused.
    pub remote: Option<Remote>,
    /// How the paths of files begin that clients of this node read what fences have collected from, in a directory that is
    /// the owner's. None: no such files.
    pub collections: Option<String>,
    /// How it tells other servers of the same jobs what was committed here.
    pub modex: ModexForm,
    /// What time it was at time zero, since the beginning of 1970.
    pub clock: Duration,
    /// The hardware of this node, for local processes. None: they look for it themselves.
    pub topology: Option<Arc<Topology>>,
    /// How output looks for those who say nothing else.
    pub output: Vec<Info>,
    /// Random bytes for what must not be guessed.
    pub seed: [u8; 32],
}

impl ServerConfig {
    /// A server for the ranks and the tools of its owner on this node, with its directories below `/tmp`.
    pub fn new(
        identity: ProcId,
        hostname: String,
        address: String,
        owner_uid: u32,
        seed: [u8; 32],
    ) -> ServerConfig {
        ServerConfig {
            identity,
            hostname,
            address,
            server_tmpdir: "/tmp".to_owned(),
            system_tmpdir: "/tmp".to_owned(),
            owner_uid,
            tools_of: ToolsOf::Owner,
            refuse_clones: false,
            remote: None,
            collections: None,
            modex: ModexForm::Compact,
            clock: Duration::ZERO,
            topology: None,
            output: Vec::new(),
            seed,
        }
    }
}

/// Whose tools are served, if the host agrees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolsOf {
    Nobody,
    /// Those of root as well.
    Owner,
    /// Of every user of this node.
    Everybody,
}

/// How tools on other nodes come in.
#[derive(Clone, Debug, PartialEq)]
pub struct Remote {
    /// Where they reach the server: `tcp4://ADDRESS:PORT`.
    pub address: String,
    /// What they must show, since the kernel here cannot name them.
    pub secret: String,
}

/// What the owner of a server (our daemon; a host through the C ABI) asks of it.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerCall {
    /// Answer: `Done`.
    RegisterNspace(Box<JobInfo>),
    /// Forgets the job and everything stored for it. Answer: `Done`.
    DeregisterNspace(Nspace),
    /// Answer: `Done`.
    RegisterClient { proc: ProcId, uid: u32, gid: u32 },
    /// The process has ended: who waits for it is told. What it committed stays until its job is deregistered.
    /// Answer: `Done`.
    DeregisterClient(ProcId),
    /// What a process must find in its environment. Answer: `Environment`.
    SetupFork(ProcId),
    /// What a local process has committed, for another server. Waits until it has committed `key`, or anything at all.
    /// Answer: `Modex`.
    DirectModex { proc: ProcId, key: Option<Key> },
    /// An event from elsewhere, for those here. Answer: `Done`.
    Notify(Event),
    /// Something has happened to a job. It is told to those who asked for its code: tools, processes of the jobs in
    /// `concerned` (`None`: of all jobs), and processes that named what it affects; who connects later is told only in
    /// the last case. Answer: `Done`.
    Announce { event: Event, concerned: Option<Vec<Nspace>> },
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

/// The server machine.
#[derive(Debug)]
pub struct Server {
    config: ServerConfig,
    keys: job_data::Keys,
    conns: peer::Connections,
    timers: timers::Timers,
    upcalls: host::Upcalls,
    jobs: BTreeMap<Nspace, registry::Job>,
    early_clients: registry::EarlyClients,
    resources: resources::Resources,
    host_attributes: attributes::HostAttributes,
    modex: modex::Modex,
    collections: collected::Collections,
    gets: get::Gets,
    collectives: collective::Collectives,
    groups: group::Groups,
    outer: &'static OuterSupport,
    events: event::Events,
    streams: iof::Streams,
    monitors: monitor::Monitors,
    psets: BTreeMap<String, Vec<ProcId>>,
    topology: topology::NodeTopology,
}

/// One turn: when it happens and where its outputs go.
struct Cx<'a> {
    now: Time,
    out: &'a mut Outbox<ServerReturn, ()>,
}

impl Server {
    /// The machine of a library that honours some attributes itself.
    pub fn within(self, outer: &'static OuterSupport) -> Server {
        Server { outer, ..self }
    }

    pub fn new(config: ServerConfig) -> Server {
        Server {
            config,
            keys: job_data::Keys::default(),
            conns: peer::Connections::default(),
            timers: timers::Timers::default(),
            upcalls: host::Upcalls::default(),
            jobs: BTreeMap::new(),
            early_clients: registry::EarlyClients::default(),
            resources: resources::Resources::default(),
            host_attributes: attributes::HostAttributes::default(),
            modex: modex::Modex::default(),
            collections: collected::Collections::default(),
            gets: get::Gets::default(),
            collectives: collective::Collectives::default(),
            groups: group::Groups::default(),
            outer: support::NOTHING,
            events: event::Events::default(),
            streams: iof::Streams::default(),
            monitors: monitor::Monitors::default(),
            psets: BTreeMap::new(),
            topology: topology::NodeTopology::default(),
        }
    }

    /// Everything that has not ended: gets, collectives, and what the host has been asked.
    pub fn explain(&self) -> Vec<Waiting> {
        let mut waiting = Vec::new();
        self.explain_collectives(&mut waiting);
        self.explain_gets(&mut waiting);
        self.explain_upcalls(&mut waiting);
        waiting
    }

    fn on_call(&mut self, cx: &mut Cx<'_>, id: CallId, call: ServerCall) {
        let status = match call {
            ServerCall::RegisterNspace(info) => self.register_nspace(cx, *info),
            ServerCall::DeregisterNspace(nspace) => self.deregister_nspace(cx, &nspace),
            ServerCall::RegisterClient { proc, uid, gid } => self.register_client(&proc, uid, gid),
            ServerCall::DeregisterClient(proc) => self.deregister_client(cx, &proc),
            ServerCall::SetupFork(proc) => {
                let result = ServerReturn::Environment(self.setup_fork(&proc));
                return cx.out.push(Output::Return { id, result });
            }
            ServerCall::Explain => {
                let result = ServerReturn::Waiting(self.explain());
                return cx.out.push(Output::Return { id, result });
            }
            ServerCall::DirectModex { proc, key } => return self.on_direct_modex(cx, id, proc, key),
            ServerCall::Notify(event) => self.on_event_from_host(cx, event),
            ServerCall::Announce { event, concerned } => self.on_announcement(cx, &event, concerned),
            ServerCall::Output { to, source, channel, data, info } => {
                return self.on_output(cx, id, &to, &source, channel, &data, &info);
            }
            ServerCall::RegisterResources(info) => self.register_resources(info),
            ServerCall::DeregisterResources(info) => self.deregister_resources(&info),
            ServerCall::DeliverInventory { info, directives } => self.deliver_inventory(info, &directives),
            ServerCall::Inventory { hosts } => {
                let result = ServerReturn::Infos(self.inventory_of(hosts));
                return cx.out.push(Output::Return { id, result });
            }
            ServerCall::RegisterAttributes { function, attributes } => {
                self.register_attributes(&function, attributes)
            }
            ServerCall::CollectJobInfo { nspaces, format } => {
                let result = ServerReturn::JobInfo(self.collect_job_info(&nspaces, format));
                return cx.out.push(Output::Return { id, result });
            }
            ServerCall::DefineProcessSet { name, members } => self.define_process_set(cx, name, members),
            ServerCall::DeleteProcessSet { name } => self.delete_process_set(cx, &name),
        };
        cx.out.push(Output::Return { id, result: ServerReturn::Done(status) });
    }

    fn on_bytes(&mut self, cx: &mut Cx<'_>, conn: ConnId, data: &[u8]) {
        match self.conns.get_mut(conn) {
            None => return,
            Some(Conn::Shaking(_)) => return self.on_hello_bytes(cx, conn, data),
            Some(Conn::Up(peer)) => peer.reader.feed(data),
        }
        self.read_frames(cx, conn);
    }

    /// Handles the messages that have arrived whole, as far as their sender reads the answers and others read what it pushes.
    fn read_frames(&mut self, cx: &mut Cx<'_>, conn: ConnId) {
        let can_go_on = |peer: &&mut Peer| !peer.is_full() && !peer.is_ahead();
        while let Some(peer) = self.conns.peer_mut(conn).filter(can_go_on) {
            match peer.reader.next_frame() {
                Ok(Some(frame)) => self.on_frame(cx, conn, &frame),
                Ok(None) => break,
                Err(error) => {
                    warn!(proc = %peer.proc, %error, "message cannot be framed: closing the connection");
                    return self.drop_connection(cx, conn);
                }
            }
        }
        if self.together(conn, limits::MAX_INCOMPLETE, Peer::incomplete) > limits::MAX_INCOMPLETE {
            warn!(
                conn = conn.0,
                limit = limits::MAX_INCOMPLETE,
                "too much of its rank is incomplete: closing the connection"
            );
            self.drop_connection(cx, conn);
        }
    }

    fn on_frame(&mut self, cx: &mut Cx<'_>, conn: ConnId, frame: &Frame) {
        let Some(peer) = self.conns.peer_mut(conn) else { return };
        if frame.tag == TAG_HEARTBEAT {
            return self.on_heartbeat(cx, conn);
        }
        if frame.tag == TAG_IOF {
            return match Taken::decode(&frame.payload, peer.dialect) {
                Ok(taken) => self.on_taken(cx, conn, &taken),
                Err(error) => debug!(proc = %peer.proc, %error, "what was taken cannot be read: ignored"),
            };
        }
        if frame.tag < FIRST_REQUEST_TAG {
            return debug!(proc = %peer.proc, tag = frame.tag, "message on a reserved tag: ignored");
        }
        let dialect = peer.dialect;
        let from = Asker { conn, tag: frame.tag, proc: peer.proc.clone(), uid: peer.uid, gid: peer.gid };
        let is_full = self.together(conn, limits::MAX_REQUESTS, Peer::requests) >= limits::MAX_REQUESTS;
        let command = Reader::new(dialect.format, &frame.payload).get::<Command>();
        let request = Request::decode(&frame.payload, dialect);
        if command == Ok(Command::DEREGEVENTS) {
            if let Ok(Request::DeregisterEvents(events)) = request {
                self.on_deregister_events(cx, conn, &events.codes);
            }
            return;
        }
        let Some(peer) = self.conns.peer_mut(conn) else { return };
        if is_full {
            warn!(proc = %peer.proc, limit = limits::MAX_REQUESTS, "too many requests without an answer: refused");
            peer.requests += 1;
            return self.answer(cx, &from, Status::ERR_OUT_OF_RESOURCE);
        }
        peer.requests += 1;
        if !matches!(request, Ok(Request::Get(_))) {
            peer.sweep = get::Sweep::default();
        }
        match request {
            Ok(Request::Finalize) => self.on_finalize(cx, from),
            Ok(_) if peer.finalized => self.answer(cx, &from, Status::ERR_INIT),
            Ok(request) => self.on_request(cx, from, request),
            Err(DecodeError::UnknownCommand { code }) => {
                debug!(proc = %from.proc, code, "unknown command");
                self.answer(cx, &from, Status::ERR_NOT_SUPPORTED);
            }
            Err(error) => {
                warn!(proc = %from.proc, ?command, %error, "request cannot be decoded");
                self.answer(cx, &from, Status::ERR_UNPACK_FAILURE);
            }
        }
    }

    fn on_request(&mut self, cx: &mut Cx<'_>, from: Asker, request: Request) {
        match request {
            Request::JobData | Request::JobDataFallback { .. } => self.on_job_data(cx, &from),
            Request::Abort(r) => self.on_abort(cx, from, r),
            Request::Commit(r) => self.on_commit(cx, &from, r),
            Request::Fence(r) => self.on_fence(cx, from, r),
            Request::Get(r) => self.on_get(cx, from, r),
            Request::RefreshCache(r) => self.on_refresh_cache(cx, &from, &r),
            Request::Publish(r) => self.on_publish(cx, from, r),
            Request::Lookup(r) => self.on_lookup(cx, from, r),
            Request::Unpublish(r) => self.on_unpublish(cx, from, r),
            Request::Spawn(r) => self.on_spawn(cx, from, r),
            Request::Connect(r) => self.on_connect(cx, from, r),
            Request::Disconnect(r) => self.on_disconnect(cx, from, r),
            Request::Notify(r) => self.on_notify(cx, from, r),
            Request::RegisterEvents(r) => self.on_register_events(cx, from, r),
            Request::Query(r) => self.on_query(cx, from, r),
            Request::Log(r) => self.on_log(cx, from, r),
            Request::Allocate(r) => self.on_allocate(cx, from, r),
            Request::ResourceBlock(r) => self.on_resource_block(cx, from, r),
            Request::JobControl(r) => self.on_job_control(cx, from, r),
            Request::SessionControl(r) => self.on_session_control(cx, from, r),
            Request::Monitor(r) => self.on_monitor(cx, from, r),
            Request::GetCredential(r) => self.on_get_credential(cx, from, r),
            Request::ValidateCredential(r) => self.on_validate_credential(cx, from, r),
            Request::IofPull(r) => self.on_iof_pull(cx, from, r),
            Request::IofPush(r) => self.on_iof_push(cx, from, r),
            Request::IofDeregister(r) => self.on_iof_deregister(cx, from, &r),
            Request::GroupConstruct(r) => self.on_group_construct(cx, from, r),
            Request::GroupDestruct(r) => self.on_group_destruct(cx, from, r),
            Request::GroupLeave(r) => self.on_group_leave(cx, &from, &r),
            Request::FabricRegister(r) => self.on_fabric_register(cx, from, r),
            Request::FabricUpdate(r) => self.on_fabric_update(cx, from, &r),
            Request::ResolvePeers(r) => self.on_resolve_peers(cx, &from, &r),
            Request::ResolveNode(r) => self.on_resolve_node(cx, &from, &r),
            // Distances need the topology, which only the host has.
            Request::DeviceDistances(_) => self.answer(cx, &from, Status::ERR_NOT_SUPPORTED),
            // Handled before, since they are legal in states in which nothing else is.
            Request::Finalize | Request::DeregisterEvents(_) => {}
        }
    }

    fn on_closed(&mut self, cx: &mut Cx<'_>, conn: ConnId, reason: CloseReason) {
        match self.conns.remove(conn) {
            None => {}
            Some(Conn::Shaking(shaking)) => self.timers.cancel(Some(shaking.timer)),
            Some(Conn::Up(peer)) => self.on_peer_gone(cx, conn, *peer, reason),
        }
    }

    fn on_timer(&mut self, cx: &mut Cx<'_>, timer: Timer) {
        match timer {
            Timer::Hello(conn) => self.on_hello_overdue(cx, conn),
            Timer::Get(id) => self.on_get_overdue(cx, id),
            Timer::Collective(id) => self.on_collective_overdue(cx, id),
            Timer::Heartbeat(id) => self.on_heartbeat_overdue(cx, id),
            Timer::Format(pull) => self.on_format_due(cx, pull),
        }
    }
}

impl Machine for Server {
    type Call = ServerCall;
    type Return = ServerReturn;
    type Delivery = ();

    fn handle(&mut self, now: Time, input: Input<'_, ServerCall>, out: &mut Outbox<ServerReturn, ()>) {
        let cx = &mut Cx { now, out };
        while let Some(timer) = self.timers.take_due(now) {
            self.on_timer(cx, timer);
        }
        match input {
            Input::Opened { conn, peer } => self.on_opened(cx, conn, peer),
            Input::Bytes { conn, data } => self.on_bytes(cx, conn, data),
            Input::Writable { conn, queued } => self.on_writable(cx, conn, queued),
            Input::Closed { conn, reason } => self.on_closed(cx, conn, reason),
            Input::Call { id, call } => self.on_call(cx, id, call),
            Input::Host { id, reply } => self.on_host(cx, id, reply),
            Input::Tick => {}
        }
        self.give_up_overdue(cx);
    }

    fn deadline(&self) -> Option<Time> {
        self.timers.next()
    }

    fn is_full(&self, conn: ConnId) -> bool {
        self.conns.peer(conn).is_some_and(Peer::is_ahead)
    }
}
