//! Our server machine on a socket, with a host that grants what it is asked. One node, one job.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use phalanx_core::job::{JobApp, JobNode, JobProc};
use phalanx_core::server::{Server, ServerCall, ServerConfig, ServerReturn};
use phalanx_core::{
    CallId, CloseReason, ConnId, GroupFormed, HostOp, HostReply, Input, JobInfo, Machine, Outbox, Output,
    PeerCred, Time,
};
use phalanx_spec::{Rank, Status, keys};
use phalanx_wire::{Info, Key, Kval, Nspace, Pdata, ProcId, Value};

use crate::PATIENCE;

pub(crate) struct TestServer {
    to_owner: Sender<Message>,
    history: Arc<History>,
}

/// What the host was asked, and whether a fence waits for more participants.
#[derive(Default)]
struct History {
    state: Mutex<(Vec<HostOp>, bool)>,
    changed: Condvar,
}

enum Message {
    Opened(ConnId, TcpStream),
    Bytes(ConnId, Vec<u8>),
    Closed(ConnId),
    Environment(u32, Sender<Vec<(String, String)>>),
    Die,
}

impl TestServer {
    pub(crate) fn start(size: u32) -> TestServer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("tcp4://{}", listener.local_addr().unwrap());
        let (to_owner, messages) = channel();
        let history = Arc::<History>::default();
        let owner = Owner {
            machine: Server::new(config(address)),
            began: Instant::now(),
            streams: BTreeMap::new(),
            published: BTreeMap::new(),
            environment: None,
            history: history.clone(),
        };
        std::thread::spawn(move || owner.run(size, &messages));
        let acceptor = to_owner.clone();
        std::thread::spawn(move || accept(&listener, &acceptor));
        TestServer { to_owner, history }
    }

    pub(crate) fn environment(&self, rank: u32) -> Vec<(String, String)> {
        let (answer, environment) = channel();
        self.to_owner.send(Message::Environment(rank, answer)).unwrap();
        environment.recv().unwrap()
    }

    /// Closes all connections and accepts no more.
    pub(crate) fn die(&self) {
        self.to_owner.send(Message::Die).unwrap();
    }

    pub(crate) fn until(&self, mut condition: impl FnMut(&[HostOp]) -> bool) {
        self.wait(|(host, _)| condition(host));
    }

    pub(crate) fn until_fence_waits(&self) {
        self.wait(|(_, fence_waits)| *fence_waits);
    }

    fn wait(&self, mut condition: impl FnMut(&(Vec<HostOp>, bool)) -> bool) {
        let state = self.history.state.lock().unwrap();
        let (_state, timeout) =
            self.history.changed.wait_timeout_while(state, PATIENCE, |state| !condition(state)).unwrap();
        assert!(!timeout.timed_out(), "it does not happen");
    }
}

struct Owner {
    machine: Server,
    began: Instant,
    streams: BTreeMap<ConnId, TcpStream>,
    published: BTreeMap<Key, (ProcId, Value)>,
    environment: Option<Vec<(String, String)>>,
    history: Arc<History>,
}

impl Owner {
    fn run(mut self, size: u32, messages: &Receiver<Message>) {
        self.call(ServerCall::RegisterNspace(Box::new(job(size))));
        for rank in 0..size {
            let uid = rustix::process::geteuid().as_raw();
            self.call(ServerCall::RegisterClient { proc: proc(rank), uid, gid: uid });
        }
        loop {
            let now = self.now();
            let wait = self.machine.deadline().map_or(PATIENCE, |deadline| deadline.since(now));
            match messages.recv_timeout(wait) {
                Ok(Message::Opened(conn, stream)) => {
                    self.streams.insert(conn, stream);
                    let uid = rustix::process::geteuid().as_raw();
                    let peer = Some(PeerCred { uid, gid: uid, pid: None });
                    self.feed(Input::Opened { conn, peer });
                }
                Ok(Message::Bytes(conn, data)) => self.feed(Input::Bytes { conn, data: &data }),
                Ok(Message::Closed(conn)) => {
                    self.streams.remove(&conn);
                    self.feed(Input::Closed { conn, reason: CloseReason::Eof });
                }
                Ok(Message::Environment(rank, answer)) => {
                    self.call(ServerCall::SetupFork(proc(rank)));
                    answer.send(self.environment.take().unwrap()).unwrap();
                }
                Ok(Message::Die) => return self.streams.values().for_each(hang_up),
                Err(RecvTimeoutError::Timeout) => self.feed(Input::Tick),
                Err(RecvTimeoutError::Disconnected) => return,
            }
            let fence_waits = self.machine.explain().iter().any(|waiting| waiting.operation == "fence");
            self.history.state.lock().unwrap().1 = fence_waits;
            self.history.changed.notify_all();
        }
    }

    fn call(&mut self, call: ServerCall) {
        self.feed(Input::Call { id: CallId(0), call });
    }

    fn feed(&mut self, input: Input<'_, ServerCall>) {
        let mut out = Outbox::default();
        self.machine.handle(self.now(), input, &mut out);
        while let Some(output) = out.pop() {
            match output {
                Output::Send { conn, frame } => {
                    if let Some(mut stream) = self.streams.get(&conn) {
                        // A peer that has gone is reported by its reader.
                        let _ = stream.write_all(&frame);
                    }
                }
                Output::Close { conn } => self.streams.get(&conn).into_iter().for_each(hang_up),
                Output::Return { result: ServerReturn::Environment(it), .. } => self.environment = Some(it),
                Output::Return { .. } => {}
                Output::CallHost { id, op } => {
                    let reply = self.host(op.clone());
                    self.history.state.lock().unwrap().0.push(op);
                    self.machine.handle(self.now(), Input::Host { id, reply }, &mut out);
                }
                Output::Connect { .. } | Output::Deliver { .. } => panic!("a server does neither"),
            }
        }
    }

    fn host(&mut self, op: HostOp) -> HostReply {
        match op {
            HostOp::Publish { from, data, .. } => {
                let data = data.into_iter().map(|Info { key, value, .. }| (key, (from.clone(), value)));
                self.published.extend(data);
                HostReply::Done(Status::SUCCESS)
            }
            HostOp::Lookup { keys, .. } => {
                let found = keys.into_iter().filter_map(|key| {
                    let (proc, value) = self.published.get(&key)?.clone();
                    Some(Pdata { proc, key, value })
                });
                HostReply::Lookup(Ok(found.collect()))
            }
            HostOp::Unpublish { keys, .. } => {
                keys.iter().for_each(|key| {
                    self.published.remove(key);
                });
                HostReply::Done(Status::SUCCESS)
            }
            HostOp::Query { .. } => {
                HostReply::Infos(Status::SUCCESS, vec![Info::new(keys::QUERY_NAMESPACES, "job@1")])
            }
            HostOp::JobControl { directives, .. } => HostReply::Infos(Status::SUCCESS, directives),
            HostOp::GroupConstruct { procs, .. } => {
                let formed = GroupFormed { members: procs, context_id: Some(7), info: Vec::new() };
                HostReply::Group(Ok(formed))
            }
            HostOp::DirectModex { .. } => HostReply::Modex(Err(Status::ERR_NOT_FOUND)),
            _ => HostReply::Done(Status::SUCCESS),
        }
    }

    fn now(&self) -> Time {
        Time::default().after(self.began.elapsed() + Duration::from_secs(1))
    }
}

fn accept(listener: &TcpListener, to_owner: &Sender<Message>) {
    for (number, stream) in listener.incoming().enumerate() {
        let mut stream = stream.unwrap();
        let conn = ConnId(number as u64);
        stream.set_nodelay(true).unwrap();
        if to_owner.send(Message::Opened(conn, stream.try_clone().unwrap())).is_err() {
            return;
        }
        let to_owner = to_owner.clone();
        std::thread::spawn(move || {
            let mut buffer = [0; 8192];
            while let Ok(count @ 1..) = stream.read(&mut buffer) {
                let _ = to_owner.send(Message::Bytes(conn, buffer[..count].to_vec()));
            }
            let _ = to_owner.send(Message::Closed(conn));
        });
    }
}

fn hang_up(stream: &TcpStream) {
    let _ = stream.shutdown(Shutdown::Both);
}

fn proc(rank: u32) -> ProcId {
    ProcId::new(&Nspace::new("job@1").unwrap(), Rank(rank))
}

fn config(address: String) -> ServerConfig {
    ServerConfig {
        identity: ProcId::new(&Nspace::new("px").unwrap(), Rank(0)),
        hostname: "here".into(),
        address,
        server_tmpdir: "/tmp".into(),
        system_tmpdir: "/tmp".into(),
        owner_uid: rustix::process::geteuid().as_raw(),
        tool_support: false,
        seed: [7; 32],
    }
}

fn job(size: u32) -> JobInfo {
    let proc = |rank: u32| JobProc {
        node: 0,
        app: 0,
        app_rank: Rank(rank),
        local_rank: u16::try_from(rank).unwrap(),
        node_rank: u16::try_from(rank).unwrap(),
        package_rank: None,
        cpuset: None,
        locality: None,
        reincarnation: 0,
        values: None,
    };
    JobInfo {
        nspace: Nspace::new("job@1").unwrap(),
        job: Arc::from([Kval::new(keys::JOBID, "1")]),
        session: Arc::from([]),
        nodes: Arc::from([JobNode { name: "here".into(), id: 0, values: Vec::new() }]),
        apps: Arc::from([JobApp::default()]),
        procs: (0..size).map(proc).collect(),
        here: Some(0),
    }
}
