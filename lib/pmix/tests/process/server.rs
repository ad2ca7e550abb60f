//! Our server with a host that grants all requests. One node, one job.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

use phalanx_core::job::{JobApp, JobNode, JobProc, Table};
use phalanx_core::{GroupFormed, JobInfo};
use phalanx_spec::{Rank, keys};
use phalanx_wire::{Info, Key, Kval, Nspace, Pdata, ProcId, Value};
use pmix::server::{
    AbortRequest, ConnectRequest, GroupRequest, JobControlRequest, LogRequest, PublishRequest,
    PublishedRequest, QueryRequest,
};
use pmix::{Done, Host, Server, ServerOptions};

use crate::PATIENCE;

pub(crate) struct TestServer {
    server: Server,
    history: Arc<History>,
}

/// Requests to the host.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Call {
    Finalized,
    Lost,
    Abort(AbortRequest),
}

#[derive(Default)]
struct History {
    asked: Mutex<Vec<Call>>,
    changed: Condvar,
}

impl TestServer {
    pub(crate) fn start(size: u32) -> TestServer {
        let history = Arc::<History>::default();
        let host = Grants { published: BTreeMap::new(), history: history.clone() };
        let server = Server::start(options(), host).unwrap();
        server.register_job(job(size)).unwrap();
        let uid = rustix::process::geteuid().as_raw();
        for rank in 0..size {
            server.register_client(&proc(rank), uid, uid).unwrap();
        }
        TestServer { server, history }
    }

    pub(crate) fn setup_fork(&self, rank: u32, command: &mut Command) {
        self.server.setup_fork(&proc(rank), command).unwrap();
    }

    /// Closes all connections and accepts no more.
    pub(crate) fn die(&self) {
        self.server.close();
    }

    pub(crate) fn until(&self, mut condition: impl FnMut(&[Call]) -> bool) {
        let asked = self.history.asked.lock().unwrap();
        let (_asked, timeout) =
            self.history.changed.wait_timeout_while(asked, PATIENCE, |asked| !condition(asked)).unwrap();
        assert!(!timeout.timed_out(), "it does not happen");
    }

    pub(crate) fn until_fence_waits(&self) {
        let began = Instant::now();
        while !self.server.explain().unwrap().waiting.iter().any(|waiting| waiting.operation == "fence") {
            assert!(began.elapsed() < PATIENCE, "no fence waits");
            std::thread::yield_now();
        }
    }
}

/// Grants the clients' requests.
struct Grants {
    published: BTreeMap<Key, (ProcId, Value)>,
    history: Arc<History>,
}

impl Grants {
    fn note(&self, asked: Call) {
        self.history.asked.lock().unwrap().push(asked);
        self.history.changed.notify_all();
    }
}

impl Host for Grants {
    fn client_finalized(&mut self, _: ProcId, done: Done<()>) {
        self.note(Call::Finalized);
        done.complete(());
    }

    fn client_lost(&mut self, _: ProcId, done: Done<()>) {
        self.note(Call::Lost);
        done.complete(());
    }

    fn abort(&mut self, request: AbortRequest, done: Done<()>) {
        self.note(Call::Abort(request));
        done.complete(());
    }

    fn publish(&mut self, request: PublishRequest, done: Done<()>) {
        let data = request.data().cloned();
        let data = data.map(|Info { key, value, .. }| (key, (request.from.clone(), value)));
        self.published.extend(data);
        done.complete(());
    }

    fn lookup(&mut self, request: PublishedRequest, done: Done<Vec<Pdata>>) {
        let found = request.keys.iter().filter_map(|key| {
            let (proc, value) = self.published.get(key)?.clone();
            Some(Pdata { proc, key: key.clone(), value })
        });
        done.complete(found.collect());
    }

    fn unpublish(&mut self, request: PublishedRequest, done: Done<()>) {
        self.published.retain(|key, _| !request.keys.contains(key));
        done.complete(());
    }

    fn connect(&mut self, _: ConnectRequest, done: Done<()>) {
        done.complete(());
    }

    fn disconnect(&mut self, _: ConnectRequest, done: Done<()>) {
        done.complete(());
    }

    fn notify(&mut self, _: pmix::Event, done: Done<()>) {
        done.complete(());
    }

    fn query(&mut self, _: QueryRequest, done: Done<Vec<Info>>) {
        done.complete(vec![Info::new(keys::QUERY_NAMESPACES, "job@1")]);
    }

    fn log(&mut self, _: LogRequest, done: Done<()>) {
        done.complete(());
    }

    fn job_control(&mut self, request: JobControlRequest, done: Done<Vec<Info>>) {
        done.complete(request.request.directives);
    }

    fn group_construct(&mut self, request: GroupRequest, done: Done<GroupFormed>) {
        done.complete(GroupFormed { members: request.procs, context_id: Some(7), info: Vec::new() });
    }

    fn group_destruct(&mut self, _: GroupRequest, done: Done<GroupFormed>) {
        done.complete(GroupFormed::default());
    }
}

fn options() -> ServerOptions {
    let identity = ProcId::new(&Nspace::new("px").unwrap(), Rank(0));
    ServerOptions { identity: Some(identity), ..ServerOptions::default() }
}

pub(crate) fn proc(rank: u32) -> ProcId {
    ProcId::new(&Nspace::new("job@1").unwrap(), Rank(rank))
}

pub(crate) fn job(size: u32) -> JobInfo {
    let proc = |rank: u32| JobProc::new(Rank(rank), 0, u16::try_from(rank).unwrap());
    JobInfo {
        nspace: Nspace::new("job@1").unwrap(),
        job: Arc::from([Kval::new(keys::JOBID, "1")]),
        session: Arc::from([]),
        allocated: Table::from([]),
        nodes: Table::from([JobNode { name: "here".into(), id: 0, values: Vec::new() }]),
        apps: Arc::from([JobApp::default()]),
        procs: (0..size).map(proc).collect(),
        here: Some(0),
    }
}
