//! A server, its clients, and a host that answers by rule or by hand.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use phalanx_spec::{Rank, Scope, Status, keys};
use phalanx_wire::cmd::commit::Commit;
use phalanx_wire::cmd::event::Notification;
use phalanx_wire::cmd::fence::Fence;
use phalanx_wire::cmd::get::{Get, Reply};
use phalanx_wire::cmd::{Body, Request, StatusReply};
use phalanx_wire::codec::{Dialect, Format, Generation, Release};
use phalanx_wire::credential::Credential;
use phalanx_wire::frame::{FIRST_REQUEST_TAG, FrameReader, TAG_EVENT, encode_frame};
use phalanx_wire::hello::{ClientWelcome, Flavor, Hello, HelloAnswer};
use phalanx_wire::{Blob, Info, Key, Kval, Nspace, ProcId, Value};

use crate::host::{HostOp, HostReply};
use crate::job::{JobApp, JobInfo, JobNode, JobProc, Table};
use crate::machine::{CallId, CloseReason, ConnId, HostCall, Input, Machine, Outbox, Output, PeerCred, Time};
use crate::server::{Server, ServerCall, ServerConfig, ServerReturn};

pub(super) const UID: u32 = 1000;

pub(super) struct World {
    pub(super) server: Server,
    pub(super) now: Time,
    out: Outbox<ServerReturn, ()>,
    pub(super) clients: BTreeMap<ConnId, TestClient>,
    pub(super) closed: BTreeSet<ConnId>,
    /// Open upcalls.
    pub(super) asked: Vec<(HostCall, HostOp)>,
    /// All upcalls so far.
    pub(super) history: Vec<HostOp>,
    pub(super) returns: BTreeMap<CallId, ServerReturn>,
    pub(super) files: BTreeMap<String, Vec<u8>>,
    /// Files that are to be looked at.
    pub(super) looks: Vec<(u64, String)>,
    /// Answers upcalls that only report at once.
    pub(super) obliging: bool,
    last_conn: u64,
    last_call: u64,
}

/// What one connection has received.
pub(super) struct TestClient {
    pub(super) dialect: Dialect,
    /// Bytes before the end of the handshake.
    greeting: Vec<u8>,
    pub(super) welcomed: bool,
    reader: FrameReader,
    pub(super) replies: BTreeMap<u32, Vec<u8>>,
    pub(super) events: Vec<Notification>,
    /// Messages with other tags than replies and events.
    pub(super) others: Vec<(u32, Vec<u8>)>,
    /// Tags in the order of their arrival.
    pub(super) order: Vec<u32>,
    last_tag: u32,
}

pub(super) fn ns(name: &str) -> Nspace {
    Nspace::new(name).unwrap()
}

pub(super) fn proc(name: &str, rank: u32) -> ProcId {
    ProcId::new(&ns(name), Rank(rank))
}

pub(super) fn key(name: &str) -> Key {
    Key::new(name).unwrap()
}

pub(super) fn v41() -> Dialect {
    dialect(4, 2, 2)
}

pub(super) fn dialect(major: u16, minor: u16, patch: u16) -> Dialect {
    let format = Format { generation: Generation::V41, described: false };
    Dialect { format, release: Release::new(major, minor, patch) }
}

pub(super) fn config() -> ServerConfig {
    let address = "tcp4://127.0.0.1:4711".to_owned();
    let config = ServerConfig::new(proc("phalanx", 0), "node0".to_owned(), address, UID, [7; 32]);
    ServerConfig { server_tmpdir: "/tmp/px".to_owned(), ..config }
}

/// `nodes` nodes with `per_node` ranks each, by node. The server is on the first.
pub(super) fn job(name: &str, nodes: u32, per_node: u32) -> JobInfo {
    let procs: Vec<JobProc> = (0..nodes * per_node)
        .map(|rank| JobProc {
            package_rank: Some(0),
            cpuset: Some("0-3".into()),
            locality: Some("hwloc:NM0".into()),
            ..JobProc::new(Rank(rank), rank / per_node, (rank % per_node) as u16)
        })
        .collect();
    JobInfo {
        nspace: ns(name),
        job: Arc::from([Kval::new(keys::MAPBY, "slot")]),
        session: Arc::from([Kval::new(keys::SESSION_ID, 17u32)]),
        allocated: Table::from(["node0".into(), "spare".into()]),
        nodes: (0..nodes)
            .map(|id| JobNode {
                name: format!("node{id}").into(),
                id: 100 + id,
                values: vec![Kval::new(keys::NSDIR, "/tmp/px/job")],
            })
            .collect(),
        apps: Arc::from([JobApp { values: vec![Kval::new(keys::WDIR, "/home/u")] }]),
        procs: procs.into(),
        here: Some(0),
    }
}

pub(super) fn hello(proc: &ProcId) -> Hello {
    Hello {
        flavor: Flavor::Client,
        credential: Credential::Native { uid: 0, gid: 0 },
        uid: 0,
        gid: 0,
        proc: Some(proc.clone()),
        version: "4.2.2".into(),
        format: v41().format,
        store: "hash".into(),
        info: Vec::new(),
    }
}

pub(super) fn global(key_: &str, value: impl Into<Value>) -> Commit {
    let kval = Kval { key: key(key_), value: value.into() };
    Commit { buckets: vec![(Scope::LOCAL, vec![kval.clone()]), (Scope::REMOTE, vec![kval])] }
}

pub(super) fn get(of: &ProcId, key_: &str, info: Vec<Info>) -> Request {
    Request::Get(Get { nspace: of.nspace.clone(), rank: of.rank, info, key: Some(key(key_)) })
}

/// All ranks of the usual job.
pub(super) fn all() -> Vec<ProcId> {
    vec![ProcId::all(&ns("job"))]
}

pub(super) fn collect() -> Vec<Info> {
    vec![Info::new(keys::COLLECT_DATA, true)]
}

pub(super) fn fence(procs: Vec<ProcId>, info: Vec<Info>) -> Request {
    Request::Fence(Fence { procs, info })
}

impl World {
    pub(super) fn new() -> World {
        World::of(config())
    }

    /// A world with one job and this server configuration.
    pub(super) fn configured(config: ServerConfig) -> World {
        let mut world = World::of(config);
        world.register(job("job", 1, 1));
        world
    }

    fn of(config: ServerConfig) -> World {
        World {
            server: Server::new(config),
            now: Time(0),
            out: Outbox::default(),
            clients: BTreeMap::new(),
            closed: BTreeSet::new(),
            asked: Vec::new(),
            history: Vec::new(),
            returns: BTreeMap::new(),
            files: BTreeMap::new(),
            looks: Vec::new(),
            obliging: true,
            last_conn: 0,
            last_call: 0,
        }
    }

    /// A world with one job, with its local ranks registered.
    pub(super) fn with_job(nodes: u32, per_node: u32) -> World {
        let mut world = World::new();
        world.register(job("job", nodes, per_node));
        world
    }

    pub(super) fn register(&mut self, info: JobInfo) {
        let nspace = info.nspace.clone();
        let here = info.here.unwrap();
        let local: Vec<u32> =
            info.procs.iter().zip(0..).filter(|(p, _)| p.node == here).map(|(_, rank)| rank).collect();
        assert_eq!(
            self.call(ServerCall::RegisterNspace(Box::new(info))),
            ServerReturn::Done(Status::SUCCESS)
        );
        for rank in local {
            let proc = ProcId::new(&nspace, Rank(rank));
            let call = ServerCall::RegisterClient { proc, uid: UID, gid: UID };
            assert_eq!(self.call(call), ServerReturn::Done(Status::SUCCESS));
        }
    }

    pub(super) fn input(&mut self, input: Input<'_, ServerCall>) {
        self.server.handle(self.now, input, &mut self.out);
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(output) = self.out.pop() {
            match output {
                Output::Send { conn, frame } => self.clients.get_mut(&conn).unwrap().receive(&frame),
                Output::Close { conn } => {
                    assert!(self.closed.insert(conn), "closed twice");
                }
                Output::Return { id, result } => assert!(self.returns.insert(id, result).is_none()),
                Output::CallHost { call, op } => {
                    self.history.push(op.clone());
                    if self.obliging && is_report(&op) {
                        let reply = HostReply::Done(Status::SUCCESS);
                        self.server.handle(self.now, Input::Host { call, reply }, &mut self.out);
                    } else {
                        self.asked.push((call, op));
                    }
                }
                Output::WriteFile { path, at, bytes } => {
                    let file = self.files.entry(path).or_default();
                    assert_eq!(file.len() as u64, at);
                    file.extend(bytes);
                }
                Output::RemoveFile { path } => assert!(self.files.remove(&path).is_some()),
                Output::LookAt { look, path, .. } => self.looks.push((look, path)),
                Output::Connect { .. } | Output::Deliver { .. } => panic!("not a server's output"),
            }
        }
    }

    /// The result of a call, if it returns at once.
    pub(super) fn try_call(&mut self, call: ServerCall) -> (CallId, Option<ServerReturn>) {
        self.last_call += 1;
        let id = CallId(self.last_call);
        self.input(Input::Call { id, call });
        (id, self.returns.remove(&id))
    }

    pub(super) fn call(&mut self, call: ServerCall) -> ServerReturn {
        self.try_call(call).1.expect("the call returns at once")
    }

    pub(super) fn open(&mut self, peer: Option<PeerCred>) -> ConnId {
        self.last_conn += 1;
        let conn = ConnId(self.last_conn);
        self.clients.insert(conn, TestClient::new(v41()));
        self.input(Input::Opened { conn, peer });
        conn
    }

    pub(super) fn open_as(&mut self, uid: u32) -> ConnId {
        self.open(Some(PeerCred { uid, gid: uid, pid: Some(1) }))
    }

    pub(super) fn bytes(&mut self, conn: ConnId, data: &[u8]) {
        self.input(Input::Bytes { conn, data });
    }

    /// Connects a rank of `job`, with handshake.
    pub(super) fn connect(&mut self, rank: u32) -> ConnId {
        self.connect_as(&proc("job", rank), v41())
    }

    pub(super) fn connect_as(&mut self, proc: &ProcId, dialect: Dialect) -> ConnId {
        let conn = self.open_as(UID);
        let mut hello = hello(proc);
        let Release { major, minor, patch } = dialect.release;
        hello.version = format!("{major}.{minor}.{patch}");
        hello.format = dialect.format;
        self.clients.get_mut(&conn).unwrap().dialect = dialect;
        self.bytes(conn, &hello.encode());
        assert!(self.client(conn).welcomed, "{proc} is let in");
        conn
    }

    /// Connects a tool that has a name.
    pub(super) fn connect_tool(&mut self, name: &ProcId) -> ConnId {
        let conn = self.open_as(UID);
        let hello = Hello { flavor: Flavor::NamedTool, ..hello(name) };
        self.bytes(conn, &hello.encode());
        let (call, _) = self.take_upcall();
        self.answer(call, HostReply::ToolAdmitted(Ok(name.clone())));
        let client = self.clients.get_mut(&conn).unwrap();
        assert!(client.welcomed, "{name} is let in");
        // A tool's welcome is longer than a client's.
        client.reader = FrameReader::default();
        conn
    }

    /// Rank 0 can connect whatever `conn` did, unless `conn` became rank 0.
    pub(super) fn connect_after(&mut self, conn: ConnId) {
        if !self.client(conn).welcomed {
            self.connect(0);
        }
    }

    pub(super) fn client(&self, conn: ConnId) -> &TestClient {
        &self.clients[&conn]
    }

    pub(super) fn send(&mut self, conn: ConnId, request: &Request) -> u32 {
        let client = self.clients.get_mut(&conn).unwrap();
        client.last_tag += 1;
        let tag = client.last_tag;
        let payload = request.encode(client.dialect);
        self.bytes(conn, &encode_frame(0, tag, &payload));
        tag
    }

    pub(super) fn raw(&mut self, conn: ConnId, payload: &[u8]) -> u32 {
        let client = self.clients.get_mut(&conn).unwrap();
        client.last_tag += 1;
        let tag = client.last_tag;
        self.bytes(conn, &encode_frame(0, tag, payload));
        tag
    }

    pub(super) fn has_reply(&self, conn: ConnId, tag: u32) -> bool {
        self.client(conn).replies.contains_key(&tag)
    }

    pub(super) fn reply<T: Body>(&self, conn: ConnId, tag: u32) -> T {
        let client = self.client(conn);
        T::decode(&client.replies[&tag], client.dialect).unwrap()
    }

    pub(super) fn status(&self, conn: ConnId, tag: u32) -> Status {
        self.reply::<StatusReply>(conn, tag).0
    }

    /// Sends a request that is answered at once.
    pub(super) fn ask<T: Body>(&mut self, conn: ConnId, request: &Request) -> T {
        let tag = self.send(conn, request);
        assert!(self.has_reply(conn, tag), "{request:?} is answered at once");
        self.reply(conn, tag)
    }

    pub(super) fn ask_status(&mut self, conn: ConnId, request: &Request) -> Status {
        self.ask::<StatusReply>(conn, request).0
    }

    /// The value of a key in an answered get.
    pub(super) fn value(&self, conn: ConnId, tag: u32, name: &str) -> Option<Value> {
        let reply: Reply = self.reply(conn, tag);
        let mut values = reply.data.into_iter().flat_map(|owner| owner.values);
        values.find(|kval| kval.key == name).map(|kval| kval.value)
    }

    pub(super) fn close(&mut self, conn: ConnId) {
        self.input(Input::Closed { conn, reason: CloseReason::Eof });
    }

    pub(super) fn advance(&mut self, wait: Duration) {
        self.now = self.now.after(wait);
        self.input(Input::Tick);
    }

    /// The only open upcall.
    pub(super) fn take_upcall(&mut self) -> (HostCall, HostOp) {
        assert_eq!(self.asked.len(), 1, "one open upcall: {:?}", self.asked);
        self.asked.remove(0)
    }

    pub(super) fn answer(&mut self, call: HostCall, reply: HostReply) {
        self.input(Input::Host { call, reply });
    }

    pub(super) fn answer_modex(&mut self, call: HostCall, blob: Blob) {
        self.answer(call, HostReply::Modex(Ok(blob)));
    }
}

impl TestClient {
    fn new(dialect: Dialect) -> TestClient {
        TestClient {
            dialect,
            greeting: Vec::new(),
            welcomed: false,
            reader: FrameReader::default(),
            replies: BTreeMap::new(),
            events: Vec::new(),
            others: Vec::new(),
            order: Vec::new(),
            last_tag: FIRST_REQUEST_TAG,
        }
    }

    fn receive(&mut self, bytes: &[u8]) {
        if !self.welcomed {
            self.greeting.extend_from_slice(bytes);
            let Some((HelloAnswer::Welcome(_), used)) = HelloAnswer::<ClientWelcome>::decode(&self.greeting)
            else {
                return;
            };
            // A tool's welcome is longer; tests of tools look at the bytes themselves.
            self.welcomed = true;
            let rest = self.greeting.split_off(used);
            return self.reader.feed(&rest);
        }
        self.reader.feed(bytes);
        while let Some(frame) = self.reader.next_frame().unwrap() {
            self.order.push(frame.tag);
            match frame.tag {
                TAG_EVENT => self.events.push(Notification::decode(&frame.payload, self.dialect).unwrap()),
                tag if tag >= FIRST_REQUEST_TAG => {
                    assert!(self.replies.insert(tag, frame.payload).is_none(), "answered twice");
                }
                tag => self.others.push((tag, frame.payload)),
            }
        }
    }

    pub(super) fn greeting(&self) -> &[u8] {
        &self.greeting
    }
}

/// Upcalls that only notify the host.
fn is_report(op: &HostOp) -> bool {
    matches!(
        op,
        HostOp::ClientConnected(_)
            | HostOp::ClientFinalized(_)
            | HostOp::ClientLost(_)
            | HostOp::ClientRefused(_)
            | HostOp::CommitRefused(_)
            | HostOp::MemberMissing(_)
            | HostOp::RegisterEvents(_)
            | HostOp::DeregisterEvents(_)
            | HostOp::Notify(_)
    )
}
