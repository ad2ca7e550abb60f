//! Clients and servers of several nodes, a host that connects the servers, and all events in random order.
//!
//! Bytes travel in pieces of random length; calls and answers of the host are queued. Time stands still while anything can
//! happen and then jumps to the next deadline. A seed determines the whole course of events.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use phalanx_core::host::{Asked, ClientLost, DirectModexRequest, FenceRequest};
use phalanx_core::job::{JobApp, JobNode, JobProc, Table};
use phalanx_core::server::{Server, ServerCall, ServerConfig, ServerReturn};
use phalanx_core::{
    CallId, Client, ClientCall, ClientConfig, ClientDelivery, ClientReturn, CloseReason, ConnId, Event,
    HandlerId, HostCall, HostOp, HostReply, Input, JobInfo, Machine, Outbox, Output, PeerCred, Store, Time,
    Verdict,
};
use phalanx_spec::{Rank, Scope, Status};
use phalanx_wire::cmd::publish::Published;
use phalanx_wire::codec::{Dialect, Format, Generation, Release};
use phalanx_wire::credential::Credential;
use phalanx_wire::uri::ServerUri;
use phalanx_wire::{Blob, Info, Key, Kval, Nspace, Pdata, ProcId, Value};

use super::files::Files;

pub(crate) const UID: u32 = 1000;
pub(crate) const SIZE: u32 = NODES * PER_NODE;
const NODES: u32 = 3;
const PER_NODE: u32 = 2;

pub(crate) fn proc(rank: u32) -> ProcId {
    ProcId::new(&Nspace::new("job@1").unwrap(), Rank(rank))
}

/// One step of a process's script.
pub(crate) enum Step {
    Put(Scope, &'static str, Value),
    Commit,
    Call(ClientCall),
    /// Disappears without finalize.
    Vanish,
}

pub(crate) struct World {
    seed: u64,
    random: u64,
    pub(crate) now: Time,
    pub(crate) clients: Vec<TestClient>,
    servers: Vec<TestServer>,
    host: Host,
}

pub(crate) struct TestClient {
    pub(crate) machine: Client,
    pub(crate) store: Arc<Store>,
    script: VecDeque<Step>,
    calls: u64,
    waits: bool,
    /// The results of the calls, init first.
    pub(crate) ends: Vec<ClientReturn>,
    pub(crate) events: Vec<Event>,
    open: bool,
    to_server: VecDeque<u8>,
    from_server: VecDeque<u8>,
}

struct TestServer {
    machine: Server,
    files: Files,
    calls: u64,
    /// Direct modex calls to this server, and where the answer goes.
    modex_for: BTreeMap<CallId, (usize, HostCall)>,
}

type Contribution = (usize, HostCall, Vec<u8>);

#[derive(Default)]
struct Host {
    asked: VecDeque<(usize, HostCall, HostOp)>,
    /// The fence requests by participants, with their contributions.
    fences: BTreeMap<Vec<ProcId>, Vec<Contribution>>,
    published: BTreeMap<Key, (ProcId, Value)>,
}

impl World {
    /// Each process begins with init and then runs its rank's `script`.
    pub(crate) fn new(seed: u64, mut script: impl FnMut(u32) -> Vec<Step>) -> World {
        let dialect = Dialect {
            format: Format { generation: Generation::V41, described: seed % 2 == 1 },
            release: Release::new(5, 0, 11),
        };
        let files: Vec<Files> = (0..NODES).map(|_| Files::default()).collect();
        let client = |rank: u32| {
            let node = rank / PER_NODE;
            let machine = Client::new(ClientConfig {
                proc: proc(rank),
                server: Some(
                    ServerUri::parse(&format!("px.{node};tcp4://127.0.0.1:{}", 1000 + node)).unwrap(),
                ),
                credential: Credential::Native { uid: UID, gid: UID },
                uid: UID,
                pid: None,
                hostname: format!("node{node}"),
                dialect,
                patience: Duration::from_secs(10),
                files: reads_files(seed, rank).then(|| Arc::new(files[node as usize].clone()) as _),
            });
            let mut steps = vec![Step::Call(ClientCall::Init)];
            steps.extend(script(rank));
            TestClient {
                store: machine.store(),
                machine,
                script: steps.into(),
                calls: 0,
                waits: false,
                ends: Vec::new(),
                events: Vec::new(),
                open: false,
                to_server: VecDeque::new(),
                from_server: VecDeque::new(),
            }
        };
        let mut world = World {
            seed,
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            now: Time(0),
            clients: (0..SIZE).map(client).collect(),
            servers: (0..NODES)
                .zip(files.clone())
                .map(|(node, files)| TestServer::new(node, files))
                .collect(),
            host: Host::default(),
        };
        for node in 0..NODES {
            world.call_server(node as usize, ServerCall::RegisterNspace(Box::new(job(node))));
            for rank in node * PER_NODE..(node + 1) * PER_NODE {
                let call = ServerCall::RegisterClient { proc: proc(rank), uid: UID, gid: UID };
                world.call_server(node as usize, call);
            }
        }
        world
    }

    /// Runs until nothing more happens, not even by waiting.
    pub(crate) fn run(&mut self) {
        for _ in 0..200_000 {
            if !self.step() {
                let deadlines = self.clients.iter().map(|client| client.machine.deadline());
                let deadlines = deadlines.chain(self.servers.iter().map(|server| server.machine.deadline()));
                let Some(next) = deadlines.flatten().min() else { return };
                self.now = next.max(self.now);
                (0..self.clients.len()).for_each(|rank| self.feed_client(rank, Input::Tick));
                (0..self.servers.len()).for_each(|node| self.feed_server(node, Input::Tick));
            }
        }
        panic!("no end: {:?}", self.explain());
    }

    /// Whether a process can read what its server writes.
    pub(crate) fn reads_files(&self, rank: u32) -> bool {
        reads_files(self.seed, rank)
    }

    pub(crate) fn explain(&self) -> Vec<String> {
        let clients = self.clients.iter().flat_map(|client| client.machine.explain());
        let all = clients.chain(self.servers.iter().flat_map(|server| server.machine.explain()));
        all.map(|waiting| format!("{waiting:?}")).collect()
    }

    pub(crate) fn end_of(&self, rank: u32, call: usize) -> &ClientReturn {
        &self.clients[rank as usize].ends[call]
    }

    /// One possible event, chosen at random.
    fn step(&mut self) -> bool {
        let mut possible = Vec::new();
        for (rank, client) in self.clients.iter().enumerate() {
            if !client.to_server.is_empty() {
                possible.push((rank, 0));
            }
            if !client.from_server.is_empty() {
                possible.push((rank, 1));
            }
            if !client.waits && !client.script.is_empty() {
                possible.push((rank, 2));
            }
        }
        if !self.host.asked.is_empty() {
            possible.push((0, 3));
        }
        if possible.is_empty() {
            return false;
        }
        match possible[self.below(possible.len())] {
            (rank, 0) => {
                let data = self.piece(rank, |client| &mut client.to_server);
                self.feed_server(node_of(rank), Input::Bytes { conn: conn(rank), data: &data });
            }
            (rank, 1) => {
                let data = self.piece(rank, |client| &mut client.from_server);
                self.feed_client(rank, Input::Bytes { conn: ConnId(0), data: &data });
            }
            (rank, 2) => self.go_on(rank),
            _ => {
                let at = self.below(self.host.asked.len());
                let (node, id, op) = self.host.asked.remove(at).unwrap();
                self.host_answers(node, id, op);
            }
        }
        true
    }

    fn piece(&mut self, rank: usize, pipe: fn(&mut TestClient) -> &mut VecDeque<u8>) -> Vec<u8> {
        let most = pipe(&mut self.clients[rank]).len();
        let count = 1 + self.below(most);
        pipe(&mut self.clients[rank]).drain(..count).collect()
    }

    fn below(&mut self, n: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random % n as u64) as usize
    }

    fn go_on(&mut self, rank: usize) {
        let client = &mut self.clients[rank];
        let call = match client.script.pop_front() {
            None => return,
            Some(Step::Put(scope, key, value)) => {
                return client.store.put(scope, Kval { key: Key::new(key).unwrap(), value });
            }
            Some(Step::Vanish) => return self.close(rank),
            Some(Step::Commit) => ClientCall::Commit(client.store.take_staged()),
            Some(Step::Call(call)) => call,
        };
        client.calls += 1;
        client.waits = true;
        let id = CallId(client.calls);
        self.feed_client(rank, Input::Call { id, call });
    }

    fn close(&mut self, rank: usize) {
        let client = &mut self.clients[rank];
        if std::mem::replace(&mut client.open, false) {
            client.to_server.clear();
            client.from_server.clear();
            self.feed_server(node_of(rank), Input::Closed { conn: conn(rank), reason: CloseReason::Eof });
        }
    }

    fn feed_client(&mut self, rank: usize, input: Input<'_, ClientCall>) {
        let mut out = Outbox::default();
        self.clients[rank].machine.handle(self.now, input, &mut out);
        while let Some(output) = out.pop() {
            let client = &mut self.clients[rank];
            match output {
                Output::Connect { .. } => {
                    client.open = true;
                    let peer = Some(PeerCred { uid: UID, gid: UID, pid: None });
                    self.feed_server(node_of(rank), Input::Opened { conn: conn(rank), peer });
                    self.feed_client(rank, Input::Opened { conn: ConnId(0), peer: None });
                }
                Output::Send { frame, .. } if client.open => client.to_server.extend(frame),
                Output::Send { .. } => {}
                Output::Close { .. } => {
                    // What was sent before still arrives.
                    let data: Vec<u8> = client.to_server.drain(..).collect();
                    if !data.is_empty() {
                        self.feed_server(node_of(rank), Input::Bytes { conn: conn(rank), data: &data });
                    }
                    self.close(rank);
                }
                Output::Return { id, result } => {
                    assert_eq!(id, CallId(client.calls), "one call at a time");
                    client.waits = false;
                    client.ends.push(result);
                }
                Output::Deliver { id, what: ClientDelivery::Event { event, .. }, .. } => {
                    client.events.push(event);
                    let verdict = Verdict { status: Status::SUCCESS, results: Vec::new() };
                    let call = ClientCall::Handled { delivery: id, verdict };
                    client.machine.handle(self.now, Input::Call { id: CallId(0), call }, &mut out);
                }
                Output::Deliver { .. }
                | Output::CallHost { .. }
                | Output::WriteFile { .. }
                | Output::RemoveFile { .. }
                | Output::LookAt { .. } => panic!("nobody asked for that"),
            }
        }
    }

    fn call_server(&mut self, node: usize, call: ServerCall) -> CallId {
        self.servers[node].calls += 1;
        let id = CallId(self.servers[node].calls);
        self.feed_server(node, Input::Call { id, call });
        id
    }

    fn feed_server(&mut self, node: usize, input: Input<'_, ServerCall>) {
        let mut out = Outbox::default();
        self.servers[node].machine.handle(self.now, input, &mut out);
        while let Some(output) = out.pop() {
            match output {
                Output::Send { conn, frame } => {
                    let client = &mut self.clients[conn.0 as usize];
                    if client.open {
                        client.from_server.extend(frame);
                    }
                }
                Output::Close { conn } => {
                    let rank = conn.0 as usize;
                    if std::mem::replace(&mut self.clients[rank].open, false) {
                        let data: Vec<u8> = self.clients[rank].from_server.drain(..).collect();
                        self.feed_client(rank, Input::Bytes { conn: ConnId(0), data: &data });
                        self.feed_client(rank, Input::Closed { conn: ConnId(0), reason: CloseReason::Eof });
                    }
                }
                Output::Return { id, result } => self.on_server_return(node, id, result),
                Output::CallHost { call, op } => self.host.asked.push_back((node, call, op)),
                Output::WriteFile { path, at, bytes } => self.servers[node].files.write(path, at, &bytes),
                Output::RemoveFile { path } => self.servers[node].files.remove(&path),
                Output::LookAt { .. } => panic!("nobody watches files"),
                Output::Connect { .. } | Output::Deliver { .. } => panic!("a server does neither"),
            }
        }
    }

    fn on_server_return(&mut self, node: usize, id: CallId, result: ServerReturn) {
        let asked = self.servers[node].modex_for.remove(&id);
        match (asked, result) {
            (Some((to, call)), ServerReturn::Modex(found)) => {
                self.feed_server(to, Input::Host { call, reply: HostReply::Modex(found) });
            }
            (None, ServerReturn::Done(status)) => assert!(status.is_success(), "{status}"),
            other => panic!("{other:?}"),
        }
    }

    fn host_answers(&mut self, node: usize, call: HostCall, op: HostOp) {
        let reply = match op {
            HostOp::Fence(FenceRequest { procs, data, .. }) => {
                let so_far = self.host.fences.entry(procs.clone()).or_default();
                so_far.push((node, call, data.as_bytes().to_vec()));
                if so_far.len() < nodes_of(&procs) {
                    return;
                }
                let all = self.host.fences.remove(&procs).unwrap();
                let union: Vec<u8> = all.iter().flat_map(|(_, _, data)| data.clone()).collect();
                for (node, call, _) in all {
                    let reply = HostReply::Modex(Ok(Blob::from(union.clone())));
                    self.feed_server(node, Input::Host { call, reply });
                }
                return;
            }
            HostOp::DirectModex(DirectModexRequest { proc, info }) => {
                let owner = node_of(proc.rank.0 as usize);
                let wanted = info.iter().find(|info| info.key == *phalanx_spec::keys::REQUIRED_KEY);
                let key = wanted.and_then(|info| info.value.as_str()).map(|key| Key::new(key).unwrap());
                // The answer may come within the call.
                let id = CallId(self.servers[owner].calls + 1);
                self.servers[owner].modex_for.insert(id, (node, call));
                assert_eq!(self.call_server(owner, ServerCall::DirectModex { proc, key }), id);
                return;
            }
            HostOp::Publish(Asked { from, request }) => {
                let published = request.data().cloned();
                let published = published.map(|Info { key, value, .. }| (key, (from.clone(), value)));
                self.host.published.extend(published);
                HostReply::Done(Status::SUCCESS)
            }
            HostOp::Lookup(Asked { request: Published { keys, .. }, .. }) => HostReply::Lookup(Ok(keys
                .into_iter()
                .filter_map(|key| {
                    let (proc, value) = self.host.published.get(&key)?.clone();
                    Some(Pdata { proc, key, value })
                })
                .collect())),
            HostOp::Unpublish(Asked { request: Published { keys, .. }, .. }) => {
                keys.iter().for_each(|key| {
                    self.host.published.remove(key);
                });
                HostReply::Done(Status::SUCCESS)
            }
            HostOp::Notify(event) => {
                (0..self.servers.len()).filter(|other| *other != node).for_each(|other| {
                    self.call_server(other, ServerCall::Notify(event.clone()));
                });
                HostReply::Done(Status::SUCCESS)
            }
            HostOp::ClientLost(ClientLost { proc, .. }) => {
                self.call_server(node, ServerCall::DeregisterClient(proc));
                HostReply::Done(Status::SUCCESS)
            }
            HostOp::Query(_) => HostReply::Infos(Status::ERR_NOT_SUPPORTED, Vec::new()),
            _ => HostReply::Done(Status::SUCCESS),
        };
        self.feed_server(node, Input::Host { call, reply });
    }
}

impl TestServer {
    fn new(node: u32, files: Files) -> TestServer {
        let identity = ProcId::new(&Nspace::new("px").unwrap(), Rank(node));
        let address = format!("tcp4://127.0.0.1:{}", 1000 + node);
        let machine = Server::new(ServerConfig {
            collections: Some("/tmp/px/collected".into()),
            ..ServerConfig::new(identity, format!("node{node}"), address, UID, [7; 32])
        });
        TestServer { machine, files, calls: 0, modex_for: BTreeMap::new() }
    }
}

fn job(here: u32) -> JobInfo {
    let procs: Vec<_> =
        (0..SIZE).map(|rank| JobProc::new(Rank(rank), rank / PER_NODE, (rank % PER_NODE) as u16)).collect();
    let node = |id: u32| JobNode { name: format!("node{id}").into(), id, values: Vec::new() };
    JobInfo {
        nspace: proc(0).nspace,
        job: Arc::from([]),
        session: Arc::from([]),
        allocated: Table::from([]),
        nodes: (0..NODES).map(node).collect(),
        apps: Arc::from([JobApp::default()]),
        procs: procs.into(),
        here: Some(here),
    }
}

/// One of each pair.
fn reads_files(seed: u64, rank: u32) -> bool {
    (seed / 2 + u64::from(rank)).is_multiple_of(2)
}

fn node_of(rank: usize) -> usize {
    rank / PER_NODE as usize
}

fn nodes_of(procs: &[ProcId]) -> usize {
    let on = |node: u32| {
        let mut here = node * PER_NODE..(node + 1) * PER_NODE;
        here.any(|rank| procs.iter().any(|named| named.covers(&proc(rank))))
    };
    (0..NODES).filter(|node| on(*node)).count()
}

/// A connection has the number of its client's rank.
fn conn(rank: usize) -> ConnId {
    ConnId(rank as u64)
}

pub(crate) fn register(codes: &[Status]) -> Step {
    let (handler, codes) = (HandlerId(0), codes.to_vec());
    Step::Call(ClientCall::RegisterEvents { handler, codes, info: Vec::new() })
}
