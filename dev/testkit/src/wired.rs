//! A real PMIx server, and its processes as real clients: every request travels as bytes, in pieces of random length.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use phalanx_core::client::{Client, ClientCall, ClientConfig, ClientDelivery, ClientReturn, Verdict};
use phalanx_core::server::{Server, ServerCall, ServerConfig, ServerReturn};
use phalanx_core::{
    CallId, CloseReason, ConnId, Event, HandlerId, HostReply, Input, LookupRequest, Machine, Outbox, Output,
    PeerCred, Time, Waiting,
};
use phalanx_dvm::NodeId;
use phalanx_spec::{Rank, Scope, Status, keys};
use phalanx_wire::cmd::connect::Connect;
use phalanx_wire::cmd::control::JobControl;
use phalanx_wire::cmd::fence::Fence;
use phalanx_wire::cmd::group::Construct;
use phalanx_wire::cmd::publish::{Publish, Published};
use phalanx_wire::codec::{Dialect, Format, Generation, Release};
use phalanx_wire::credential::Credential;
use phalanx_wire::uri::ServerUri;
use phalanx_wire::{Blob, Info, Key, Kval, Nspace, ProcId, Value};

use crate::files::Files;
use crate::random::Random;
use crate::script::{Op, RankAnswer, RankServer};

/// The user of all simulated jobs.
pub const UID: u32 = 1000;

#[derive(Debug)]
pub struct WiredServer {
    server: Server,
    /// Events that handlers of the processes have received.
    pub events: Vec<(ProcId, Event)>,
    clients: BTreeMap<ProcId, Wired>,
    conns: BTreeMap<ConnId, ProcId>,
    last_conn: u64,
    random: Random,
    files: Files,
    /// Input that is still to reach the server, in order.
    to_server: VecDeque<Wire>,
    asked: VecDeque<(ProcId, Op)>,
    answers: Vec<(ProcId, RankAnswer)>,
}

#[derive(Debug)]
struct Wired {
    client: Client,
    conn: Option<ConnId>,
}

#[derive(Debug)]
enum Wire {
    Opened(ConnId),
    Bytes(ConnId, Vec<u8>),
    Closed(ConnId),
}

type ClientOut = Outbox<ClientReturn, ClientDelivery>;

impl WiredServer {
    pub fn new(node: NodeId, seed: u64) -> WiredServer {
        let nspace = Nspace::new("phalanx").unwrap_or(Nspace::none());
        let identity = ProcId { nspace, rank: Rank(node.0) };
        let address = "tcp4://127.0.0.1:4711".to_owned();
        let server = Server::new(ServerConfig {
            server_tmpdir: "/scratch".to_owned(),
            joins_fences_of_jobs: true,
            collections: Some("/scratch/collected".to_owned()),
            ..ServerConfig::new(identity, format!("n{}", node.0), address, UID, [7; 32])
        });
        WiredServer {
            server,
            events: Vec::new(),
            clients: BTreeMap::new(),
            conns: BTreeMap::new(),
            last_conn: 0,
            random: Random::new(seed ^ u64::from(node.0)),
            files: Files::default(),
            to_server: VecDeque::new(),
            asked: VecDeque::new(),
            answers: Vec::new(),
        }
    }

    pub fn explain(&self) -> Vec<Waiting> {
        self.server.explain()
    }

    /// Carries bytes between server and clients until nothing moves.
    fn settle(
        &mut self,
        now: Time,
        inner: &mut Outbox<ServerReturn, ()>,
        out: &mut Outbox<ServerReturn, ()>,
    ) {
        loop {
            while let Some(output) = inner.pop() {
                match output {
                    Output::Send { conn, frame } => {
                        self.receive(now, conn, &frame);
                        self.server.handle(now, Input::Writable { conn, queued: 0 }, inner);
                    }
                    Output::Close { conn } => {
                        if let Some(proc) = self.conns.remove(&conn) {
                            self.with_client(now, &proc, Input::Closed { conn, reason: CloseReason::Eof });
                        }
                    }
                    Output::WriteFile { path, at, bytes } => self.files.write(path, at, &bytes),
                    Output::RemoveFile { path } => self.files.remove(&path),
                    other => out.push(other),
                }
            }
            if let Some((proc, op)) = self.asked.pop_front() {
                self.begin(now, &proc, op);
                continue;
            }
            match self.to_server.pop_front() {
                None => return,
                Some(Wire::Opened(conn)) => {
                    let peer = Some(PeerCred { uid: UID, gid: UID, pid: Some(1) });
                    self.server.handle(now, Input::Opened { conn, peer }, inner);
                }
                Some(Wire::Bytes(conn, data)) => {
                    let mut rest = data.as_slice();
                    while !rest.is_empty() {
                        let (piece, after) = rest.split_at(self.piece(rest.len()));
                        self.server.handle(now, Input::Bytes { conn, data: piece }, inner);
                        rest = after;
                    }
                }
                Some(Wire::Closed(conn)) => {
                    self.conns.remove(&conn);
                    self.server.handle(now, Input::Closed { conn, reason: CloseReason::Eof }, inner);
                }
            }
        }
    }

    fn piece(&mut self, most: usize) -> usize {
        if self.random.one_in(2) { most } else { self.random.between(1, most as u64 + 1) as usize }
    }

    fn receive(&mut self, now: Time, conn: ConnId, frame: &[u8]) {
        let Some(proc) = self.conns.get(&conn).cloned() else { return };
        let mut rest = frame;
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(self.piece(rest.len()));
            self.with_client(now, &proc, Input::Bytes { conn, data: piece });
            rest = after;
        }
    }

    fn with_client(&mut self, now: Time, proc: &ProcId, input: Input<'_, ClientCall>) {
        let Some(wired) = self.clients.get_mut(proc) else { return };
        let mut out = ClientOut::default();
        wired.client.handle(now, input, &mut out);
        while let Some(output) = out.pop() {
            let Some(wired) = self.clients.get_mut(proc) else { return };
            match output {
                Output::Connect { .. } => {
                    self.last_conn += 1;
                    let conn = ConnId(self.last_conn);
                    self.conns.insert(conn, proc.clone());
                    wired.conn = Some(conn);
                    self.to_server.push_back(Wire::Opened(conn));
                    wired.client.handle(now, Input::Opened { conn, peer: None }, &mut out);
                }
                Output::Send { frame, .. } => {
                    self.to_server.extend(wired.conn.map(|conn| Wire::Bytes(conn, frame)));
                }
                Output::Close { .. } => self.to_server.extend(wired.conn.take().map(Wire::Closed)),
                Output::Return { result, .. } => self.answers.push((proc.clone(), answer(result))),
                Output::Deliver { id, what: ClientDelivery::Event { event, .. }, .. } => {
                    self.events.push((proc.clone(), event));
                    let verdict = Verdict { status: Status::SUCCESS, results: Vec::new() };
                    let call = ClientCall::Handled { delivery: id, verdict };
                    wired.client.handle(now, Input::Call { id: CallId(0), call }, &mut out);
                }
                // Processes here pull no streams, and clients have no host.
                Output::Deliver { .. }
                | Output::CallHost { .. }
                | Output::WriteFile { .. }
                | Output::RemoveFile { .. }
                | Output::LookAt { .. } => {}
            }
        }
    }

    fn begin(&mut self, now: Time, proc: &ProcId, op: Op) {
        let key = |name: &str| Key::new(name).ok();
        let call = match op {
            Op::Init => ClientCall::Init,
            Op::Finalize => ClientCall::Finalize { info: Vec::new() },
            Op::Commit { key: name, value } => {
                let value = Value::ByteObject(value.into());
                let kvals = key(&name).map(|key| Kval { key, value }).into_iter().collect();
                ClientCall::Commit(vec![(Scope::GLOBAL, kvals)])
            }
            Op::Fence { procs, collect } => ClientCall::Fence(Fence {
                procs: procs.into_iter().map(|rank| ProcId::new(&proc.nspace, rank)).collect(),
                info: vec![Info::new(keys::COLLECT_DATA, collect)],
            }),
            Op::FenceWith { info } => ClientCall::Fence(Fence { procs: Vec::new(), info }),
            Op::Connect { info } => {
                let procs = vec![ProcId::all(&proc.nspace)];
                ClientCall::Connect(Connect { procs, info, endpoints: Vec::new() })
            }
            Op::Disconnect { info } => {
                let procs = vec![ProcId::all(&proc.nspace)];
                ClientCall::Disconnect(Connect { procs, info, endpoints: Vec::new() })
            }
            Op::Get { rank, key: name } => {
                let of = ProcId::new(&proc.nspace, rank);
                ClientCall::Get { request: LookupRequest::new(of, key(&name), &[]), info: Vec::new() }
            }
            Op::Publish { key: name, value, range } => {
                let datum =
                    key(&name).map(|key| Info { key, flags: Default::default(), value: value.into() });
                let info = datum.into_iter().chain([Info::new(keys::RANGE, range)]).collect();
                ClientCall::Publish(Publish { uid: 0, info })
            }
            Op::Lookup { key: name, wait, timeout } => {
                let mut info = Vec::new();
                if wait {
                    info.push(Info::new(keys::WAIT, 0i32));
                }
                info.extend(timeout.map(|seconds| Info::new(keys::TIMEOUT, seconds as i32)));
                ClientCall::Lookup(Published { uid: 0, keys: key(&name).into_iter().collect(), info })
            }
            Op::Unpublish { key: name } => ClientCall::Unpublish(Published {
                uid: 0,
                keys: key(&name).into_iter().collect(),
                info: Vec::new(),
            }),
            Op::Abort { status } => ClientCall::Abort {
                status: Status(status),
                message: Some("as the script says".into()),
                procs: Vec::new(),
            },
            // Clients cannot make upcalls.
            Op::Host(_) => {
                return self.answers.push((proc.clone(), RankAnswer::Done(Status::ERR_NOT_SUPPORTED)));
            }
            Op::Control { targets, directives } => ClientCall::from(JobControl {
                targets: targets.into_iter().map(|rank| ProcId::new(&proc.nspace, rank)).collect(),
                directives,
            }),
            Op::Listen { codes } => {
                ClientCall::RegisterEvents { handler: HandlerId(1), codes, info: Vec::new() }
            }
            Op::Group { name, info } => {
                let procs = vec![ProcId::all(&proc.nspace)];
                ClientCall::GroupConstruct(Construct { id: name.as_str().into(), procs, info })
            }
            Op::Ungroup { name, info } => ClientCall::GroupDestruct { id: name.as_str().into(), info },
            Op::Notify { code, range } => ClientCall::Notify { code, range, info: Vec::new() },
        };
        self.with_client(now, proc, Input::Call { id: CallId(1), call });
    }
}

impl Machine for WiredServer {
    type Call = ServerCall;
    type Return = ServerReturn;
    type Delivery = ();

    fn handle(&mut self, now: Time, input: Input<'_, ServerCall>, out: &mut Outbox<ServerReturn, ()>) {
        let mut inner = Outbox::default();
        if matches!(input, Input::Tick) {
            let due = |wired: &Wired| wired.client.deadline().is_some_and(|at| at <= now);
            let due: Vec<ProcId> =
                self.clients.iter().filter(|(_, wired)| due(wired)).map(|(proc, _)| proc.clone()).collect();
            due.iter().for_each(|proc| self.with_client(now, proc, Input::Tick));
        }
        self.server.handle(now, input, &mut inner);
        self.settle(now, &mut inner, out);
    }

    fn deadline(&self) -> Option<Time> {
        let clients = self.clients.values().filter_map(|wired| wired.client.deadline());
        clients.chain(self.server.deadline()).min()
    }

    fn is_full(&self, conn: ConnId) -> bool {
        self.server.is_full(conn)
    }
}

impl RankServer for WiredServer {
    fn ask(&mut self, proc: &ProcId, op: Op) {
        self.asked.push_back((proc.clone(), op));
    }

    fn leave(&mut self, proc: &ProcId) {
        let conn = self.clients.remove(proc).and_then(|wired| wired.conn);
        self.asked.retain(|(asker, _)| asker != proc);
        self.to_server.extend(conn.map(Wire::Closed));
    }

    fn answers(&mut self) -> Vec<(ProcId, RankAnswer)> {
        std::mem::take(&mut self.answers)
    }

    fn started(&mut self, proc: &ProcId, env: &BTreeMap<Vec<u8>, Vec<u8>>) {
        let uri = env.get(&b"PMIX_SERVER_URI41"[..]).and_then(|uri| std::str::from_utf8(uri).ok());
        let config = ClientConfig {
            proc: proc.clone(),
            server: uri.and_then(|uri| ServerUri::parse(uri).ok()),
            credential: Credential::Native { uid: UID, gid: UID },
            uid: UID,
            pid: None,
            hostname: "simulated".to_owned(),
            dialect: Dialect {
                format: Format { generation: Generation::V41, described: false },
                release: Release::new(5, 0, 11),
            },
            patience: Duration::from_secs(60),
            files: Some(Arc::new(self.files.clone())),
        };
        self.clients.insert(proc.clone(), Wired { client: Client::new(config), conn: None });
    }
}

fn answer(result: ClientReturn) -> RankAnswer {
    match result {
        ClientReturn::Init(Ok(())) => RankAnswer::Done(Status::SUCCESS),
        ClientReturn::Init(Err(_)) => RankAnswer::Done(Status::ERR_UNREACH),
        ClientReturn::Done(status) | ClientReturn::Infos(status, _) => RankAnswer::Done(status),
        ClientReturn::Value(Ok(Value::ByteObject(blob))) => RankAnswer::Value(blob),
        ClientReturn::Value(Ok(other)) => RankAnswer::Value(Blob::from(format!("{other:?}").into_bytes())),
        ClientReturn::Value(Err(status)) => RankAnswer::Done(status),
        ClientReturn::Found(status, found) => match found.first().map(|pdata| &pdata.value) {
            Some(Value::String(text)) => RankAnswer::Value(Blob::from(text.as_bytes())),
            _ if status.is_success() => RankAnswer::Done(Status::ERR_NOT_FOUND),
            _ => RankAnswer::Done(status),
        },
        ClientReturn::Peers(Err(status)) | ClientReturn::Nodes(Err(status)) => RankAnswer::Done(status),
        ClientReturn::Spawned(Err(status)) | ClientReturn::Group(Err(status)) => RankAnswer::Done(status),
        ClientReturn::Credential(Err(status)) | ClientReturn::Pulled(Err(status)) => RankAnswer::Done(status),
        ClientReturn::Peers(Ok(_)) | ClientReturn::Nodes(Ok(_)) | ClientReturn::Spawned(Ok(_)) => {
            RankAnswer::Done(Status::SUCCESS)
        }
        ClientReturn::Group(Ok(formed)) => RankAnswer::Host(Box::new(HostReply::Group(Ok(formed)))),
        ClientReturn::Credential(Ok(_)) | ClientReturn::Pulled(Ok(_)) => RankAnswer::Done(Status::SUCCESS),
    }
}
