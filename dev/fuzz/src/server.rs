//! A server with clients and tools that send anything, in any order, and a host that answers anything at any time.
//!
//! When all peers have left, nothing may remain: no waiting operation, no timer, no request.

use std::sync::Arc;
use std::time::Duration;

use phalanx_core::host::{FenceRequest, GroupRequest, ToolRequest};
use phalanx_core::server::OutputTo;
use phalanx_core::{
    CallId, CloseReason, ConnId, GroupFormed, HostCall, HostOp, HostReply, Input, JobApp, JobInfo, JobNode,
    JobProc, Machine, Outbox, Output, PeerCred, Server, ServerCall, ServerConfig, Time,
};
use phalanx_spec::{IofChannel, Rank, Status};
use phalanx_wire::codec::{Format, Generation};
use phalanx_wire::credential::Credential;
use phalanx_wire::frame::{FIRST_REQUEST_TAG, encode_frame};
use phalanx_wire::hello::{Flavor, Hello};
use phalanx_wire::{Blob, Info, Key, Nspace, ProcId};

use crate::script::{MOST_STEPS, Script};

pub(crate) fn session(input: &[u8]) {
    let mut script = Script::new(input);
    let mut world = World::new();
    for _ in 0..MOST_STEPS {
        let Some(what) = script.byte() else { break };
        world.step(what, &mut script);
    }
    world.end();
}

const UID: u32 = 1000;
const LOCAL: u32 = 3;
const CONNECTIONS: usize = 4;

struct World {
    server: Server,
    now: Time,
    out: Outbox<phalanx_core::ServerReturn, ()>,
    conns: [Option<ConnId>; CONNECTIONS],
    asked: Vec<(HostCall, HostOp)>,
    last_conn: u64,
    last_tag: u32,
    calls: u64,
}

impl World {
    fn new() -> World {
        let mut world = World {
            server: Server::new(config()),
            now: Time(0),
            out: Outbox::default(),
            conns: [None; CONNECTIONS],
            asked: Vec::new(),
            last_conn: 0,
            last_tag: FIRST_REQUEST_TAG,
            calls: 0,
        };
        world.register();
        world
    }

    fn register(&mut self) {
        self.call(ServerCall::RegisterNspace(Box::new(job())));
        for rank in 0..LOCAL {
            self.call(ServerCall::RegisterClient { proc: proc(rank), uid: UID, gid: UID });
        }
    }

    /// The upper half of `what` selects the peer, the lower half the event.
    fn step(&mut self, what: u8, script: &mut Script<'_>) {
        let which = usize::from(what >> 4) % CONNECTIONS;
        match what & 15 {
            0 => {
                // The last one is a clone of the first.
                let rank = which as u32 % LOCAL;
                let hello = hello(Flavor::Client, proc(rank), script.below(2) == 1);
                self.connect(which, &hello.encode());
            }
            1 => {
                let flavor = Flavor::ALL[script.below(Flavor::ALL.len())];
                let hello = hello(flavor, ProcId::new(&name("tool"), Rank(which as u32)), false);
                self.connect(which, &hello.encode());
            }
            2 => self.connect(which, script.piece()),
            3..=6 => self.frame(which, script.piece()),
            7 => self.bytes(which, script.piece()),
            8 => {
                if let Some(conn) = self.conns[which].take() {
                    self.input(Input::Closed { conn, reason: CloseReason::Eof });
                }
            }
            9 | 10 => self.host(script.below(256), script.below(3)),
            11 => {
                self.now = self.now.after(Duration::from_secs(script.below(60) as u64));
                self.input(Input::Tick);
            }
            12 => {
                let to = match script.below(3) {
                    0 => OutputTo::All,
                    1 => OutputTo::Pull(script.below(4) as u64),
                    _ => OutputTo::Parent(ProcId::new(&name("tool"), Rank(which as u32))),
                };
                let channel = [IofChannel::STDOUT, IofChannel::STDERR][script.below(2)];
                let data = Blob::from(script.piece().to_vec());
                let source = proc(which as u32);
                self.call(ServerCall::Output { to, source, channel, data, info: Vec::new() });
            }
            13 => {
                let key = std::str::from_utf8(script.piece()).ok().and_then(|key| Key::new(key).ok());
                self.call(ServerCall::DirectModex { proc: proc(which as u32), key });
            }
            14 => {
                let queued = script.below(256) << 19;
                if let Some(conn) = self.conns[which] {
                    self.input(Input::Writable { conn, queued });
                }
            }
            _ => self.call(ServerCall::DeregisterClient(proc(which as u32))),
        }
    }

    fn connect(&mut self, which: usize, greeting: &[u8]) {
        if self.conns[which].is_some() {
            return;
        }
        self.last_conn += 1;
        let conn = ConnId(self.last_conn);
        self.conns[which] = Some(conn);
        let peer = PeerCred { uid: UID, gid: UID, pid: Some(100 + which as u32) };
        self.input(Input::Opened { conn, peer: Some(peer) });
        self.bytes(which, greeting);
    }

    /// A message that is at least complete, since most of the interesting code is behind that check.
    fn frame(&mut self, which: usize, payload: &[u8]) {
        self.last_tag += 1;
        self.bytes(which, &encode_frame(0, self.last_tag, payload));
    }

    fn bytes(&mut self, which: usize, data: &[u8]) {
        if let Some(conn) = self.conns[which] {
            self.input(Input::Bytes { conn, data });
        }
    }

    fn host(&mut self, which: usize, how: usize) {
        if self.asked.is_empty() {
            return;
        }
        let (call, op) = self.asked.remove(which % self.asked.len());
        let reply = match (how, op) {
            (0, _) => HostReply::Done(Status::ERR_NOT_SUPPORTED),
            (_, HostOp::Fence(FenceRequest { data, .. })) => HostReply::Modex(Ok(data)),
            (_, HostOp::DirectModex(_)) => HostReply::Modex(Ok(Blob::default())),
            (_, HostOp::ToolConnected(ToolRequest { claims, .. })) => {
                let named = claims.unwrap_or_else(|| ProcId::new(&name("tool"), Rank(which as u32)));
                HostReply::ToolAdmitted(Ok(named))
            }
            (_, HostOp::GroupConstruct(GroupRequest { procs, .. })) => {
                HostReply::Group(Ok(GroupFormed { members: procs, context_id: Some(7), info: Vec::new() }))
            }
            (_, HostOp::Spawn(_)) => HostReply::Spawned(Ok(name("spawned"))),
            (_, HostOp::Query(_) | HostOp::Asked(_)) => {
                HostReply::Infos(Status::SUCCESS, vec![Info::new("some.key", 1u32)])
            }
            (1, _) => HostReply::Infos(Status::SUCCESS, Vec::new()),
            _ => HostReply::Done(Status::SUCCESS),
        };
        self.input(Input::Host { call, reply });
    }

    fn call(&mut self, call: ServerCall) {
        self.calls += 1;
        self.input(Input::Call { id: CallId(self.calls), call });
    }

    fn input(&mut self, input: Input<'_, ServerCall>) {
        self.server.handle(self.now, input, &mut self.out);
        while let Some(output) = self.out.pop() {
            match output {
                Output::Close { conn } => {
                    let gone = self.conns.iter_mut().find(|known| **known == Some(conn));
                    if let Some(gone) = gone {
                        *gone = None;
                    }
                }
                // The host admits clients at once; otherwise no session would get any further.
                Output::CallHost { call, op: HostOp::ClientConnected(_) } => {
                    let reply = HostReply::Done(Status::SUCCESS);
                    self.server.handle(self.now, Input::Host { call, reply }, &mut self.out);
                }
                Output::CallHost { call, op } => self.asked.push((call, op)),
                Output::Send { .. }
                | Output::Return { .. }
                | Output::WriteFile { .. }
                | Output::RemoveFile { .. }
                | Output::LookAt { .. } => {}
                Output::Connect { .. } | Output::Deliver { .. } => panic!("a server does neither"),
            }
        }
    }

    fn end(mut self) {
        for which in 0..CONNECTIONS {
            if let Some(conn) = self.conns[which].take() {
                self.input(Input::Closed { conn, reason: CloseReason::Error });
            }
        }
        while !self.asked.is_empty() {
            self.host(0, 2);
        }
        for rank in 0..LOCAL {
            self.call(ServerCall::DeregisterClient(proc(rank)));
        }
        while !self.asked.is_empty() {
            self.host(0, 2);
        }
        self.call(ServerCall::DeregisterNspace(name("job")));
        // Entries that are kept only for a while, such as events for latecomers.
        for _ in 0..4 {
            let Some(next) = self.server.deadline() else { break };
            self.now = next.max(self.now).after(Duration::from_secs(3600));
            self.input(Input::Tick);
        }
        let left = self.server.explain();
        assert!(left.is_empty(), "{left:?}");
        assert_eq!(self.server.deadline(), None);
    }
}

fn hello(flavor: Flavor, proc: ProcId, described: bool) -> Hello {
    Hello {
        flavor,
        credential: Credential::Native { uid: UID, gid: UID },
        uid: UID,
        gid: UID,
        proc: Some(proc),
        version: "4.2.2".into(),
        format: Format { generation: Generation::V41, described },
        store: "hash".into(),
        info: Vec::new(),
    }
}

fn config() -> ServerConfig {
    let identity = ProcId::new(&name("phalanx"), Rank(0));
    let address = "tcp4://127.0.0.1:4711".to_owned();
    ServerConfig {
        collections: Some("/tmp/px/collected".into()),
        ..ServerConfig::new(identity, "node0".to_owned(), address, UID, [7; 32])
    }
}

/// Two nodes with the same number of ranks; we are the first.
fn job() -> JobInfo {
    let placed = |rank: u32| JobProc::new(Rank(rank), rank / LOCAL, (rank % LOCAL) as u16);
    JobInfo {
        nspace: name("job"),
        job: Arc::from([]),
        session: Arc::from([]),
        allocated: Vec::new().into(),
        nodes: (0..2)
            .map(|id| JobNode { name: format!("node{id}").into(), id, values: Vec::new() })
            .collect(),
        apps: Arc::from([JobApp::default()]),
        procs: (0..2 * LOCAL).map(placed).collect::<Vec<_>>().into(),
        here: Some(0),
    }
}

fn proc(rank: u32) -> ProcId {
    ProcId::new(&name("job"), Rank(rank))
}

fn name(name: &str) -> Nspace {
    Nspace::new(name).expect("a name")
}
