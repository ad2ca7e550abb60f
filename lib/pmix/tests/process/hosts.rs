//! Host behaviour that servers must cope with: answering late, from another thread, or not at all; failing; driving
//! progress.

use std::collections::BTreeSet;
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, Weak};
use std::time::Instant;

use phalanx_core::GroupFormed;
use phalanx_core::job::JobNode;
use phalanx_spec::{Range, Status, keys};
use phalanx_wire::{Blob, Info, Nspace, Pdata, ProcId, Value};
use pmix::server::{
    AbortRequest, AllocateRequest, ConnectRequest, Credential, CredentialRequest, DirectModexRequest,
    EventsRequest, FabricRequest, FabricUpdateRequest, FenceRequest, GroupRequest, JobControlRequest,
    LogRequest, MonitorRequest, PublishRequest, PublishedRequest, PullEnded, PullRequest, QueryRequest,
    ResourceBlockRequest, SessionControlRequest, SpawnRequest, StdinRequest, ValidationRequest,
};
use pmix::{Done, Drive, Event, Host, JobInfo, Server, ServerOptions, Verdict};

use crate::server::{job, proc};
use crate::{PATIENCE, Stage};

fn serve(options: ServerOptions, info: JobInfo, local: &[u32], host: impl Host + 'static) -> Server {
    let server = Server::start(options, host).unwrap();
    server.register_job(info).unwrap();
    let uid = rustix::process::geteuid().as_raw();
    for rank in local {
        server.register_client(&proc(*rank), uid, uid).unwrap();
    }
    server
}

fn start(stage: &Stage, server: &Server, rank: u32) -> Child {
    stage.start_with(|command| server.setup_fork(&proc(rank), command).unwrap())
}

fn serve_all(stage: &Stage, host: impl Host + 'static) -> (Server, Vec<Child>) {
    serve_all_with(stage, ServerOptions::default(), host)
}

pub(crate) fn serve_all_with(
    stage: &Stage,
    options: ServerOptions,
    host: impl Host + 'static,
) -> (Server, Vec<Child>) {
    let ranks: Vec<u32> = (0..stage.size).collect();
    let server = serve(options, job(stage.size), &ranks, host);
    let children = ranks.iter().map(|rank| start(stage, &server, *rank)).collect();
    (server, children)
}

/// Two nodes of one job; their hosts meet in this process. One of them has a directory for files.
pub(crate) fn two_nodes(stage: Stage) {
    let hub = Arc::<Hub>::default();
    let dir = tempfile::tempdir().unwrap();
    let servers: Vec<Arc<Server>> = (0..2)
        .map(|node| {
            let hostname = Some(["east", "west"][node as usize].to_owned());
            let server_tmpdir = (node == 0).then(|| dir.path().to_str().unwrap().to_owned());
            let options = ServerOptions { hostname, server_tmpdir, ..ServerOptions::default() };
            let host = Node { hub: hub.clone(), node: node as usize };
            Arc::new(serve(options, spread(stage.size, node), &[node, node + 2], host))
        })
        .collect();
    *hub.servers.lock().unwrap() = servers.iter().map(Arc::downgrade).collect();
    let ranks: Vec<Child> =
        (0..stage.size).map(|rank| start(&stage, &servers[rank as usize % 2], rank)).collect();
    ranks.into_iter().for_each(|rank| stage.wait(rank));
}

fn spread(size: u32, here: u32) -> JobInfo {
    let mut info = job(size);
    let node = |(name, id): (&str, u32)| JobNode { name: name.into(), id, values: Vec::new() };
    info.nodes = [("east", 0), ("west", 1)].map(node).into();
    let procs = (0_u32..).zip(info.procs.iter()).map(|(rank, mut proc)| {
        proc.node = rank % 2;
        proc.local_rank = u16::try_from(rank / 2).unwrap();
        proc.node_rank = proc.local_rank;
        proc
    });
    info.procs = procs.collect();
    info.here = Some(here);
    info
}

#[derive(Default)]
struct Hub {
    servers: Mutex<Vec<Weak<Server>>>,
    fence: Mutex<Vec<(Blob, Done<Blob>)>>,
}

struct Node {
    hub: Arc<Hub>,
    node: usize,
}

impl Host for Node {
    /// The second to arrive answers both, with both contributions.
    fn fence(&mut self, request: FenceRequest, done: Done<Blob>) {
        let mut waiting = self.hub.fence.lock().unwrap();
        waiting.push((request.data, done));
        if waiting.len() == 2 {
            let bytes = waiting.iter().flat_map(|(data, _)| data.as_bytes().to_vec()).collect::<Vec<u8>>();
            let all = Blob::from(bytes);
            waiting.drain(..).for_each(|(_, done)| done.complete(all.clone()));
        }
    }

    fn direct_modex(&mut self, request: DirectModexRequest, done: Done<Blob>) {
        let other = self.hub.servers.lock().unwrap()[1 - self.node].upgrade().unwrap();
        other
            .dmodex_request_then(&request.proc, None, move |result| match result {
                Ok(blob) => done.complete(blob),
                Err(error) => done.refuse(error.status()),
            })
            .unwrap();
    }
}

/// Answers come in any order, from another thread; some never come.
pub(crate) fn late_host(stage: Stage) {
    let (to_answer, held) = channel();
    let (server, ranks) = serve_all(&stage, Late(to_answer));
    let answering = std::thread::spawn(move || answer_backwards(&held));
    ranks.into_iter().for_each(|rank| stage.wait(rank));
    drop(server);
    let too_late = answering.join().unwrap();
    // The server has gone: nothing happens.
    too_late.complete(Vec::new());
}

struct Late(Sender<(PublishedRequest, Done<Vec<Pdata>>)>);

impl Host for Late {
    fn lookup(&mut self, request: PublishedRequest, done: Done<Vec<Pdata>>) {
        match request.keys[0].as_str() {
            "dropped" => {}
            _ => self.0.send((request, done)).unwrap(),
        }
    }

    fn query(&mut self, _: QueryRequest, done: Done<Vec<Info>>) {
        let answer = vec![Info::new(keys::QUERY_NAMESPACES, "some")];
        done.complete_partly(Status::QUERY_PARTIAL_SUCCESS, answer);
    }
}

/// Waits for a lookup of each rank, answers the last first, and keeps one unanswered.
fn answer_backwards(held: &Receiver<(PublishedRequest, Done<Vec<Pdata>>)>) -> Done<Vec<Pdata>> {
    let (mut waiting, mut kept) = (Vec::new(), None);
    while waiting.len() < 2 || kept.is_none() {
        let (request, done) = held.recv_timeout(PATIENCE).unwrap();
        match request.keys[0].as_str() {
            "kept" => kept = Some(done),
            _ => waiting.push((request, done)),
        }
    }
    for (request, done) in waiting.into_iter().rev() {
        assert_eq!(done.operation(), "lookup");
        let value = Value::from(request.from.rank.0);
        done.complete(vec![Pdata { key: request.keys[0].clone(), proc: request.from, value }]);
    }
    kept.unwrap()
}

/// A host that panics ends its server, and nothing else.
pub(crate) fn host_panics(stage: Stage) {
    let (server, ranks) = serve_all(&stage, Panics);
    ranks.into_iter().for_each(|rank| stage.wait(rank));
    let began = Instant::now();
    while server.explain().is_ok() {
        assert!(began.elapsed() < PATIENCE);
        std::thread::yield_now();
    }
    assert!(matches!(server.register_job(job(1)), Err(pmix::Error::Ended)));
    server.finalize();
}

struct Panics;

impl Host for Panics {
    fn publish(&mut self, _: PublishRequest, _: Done<()>) {
        panic!("as wanted");
    }
}

/// The program makes progress for its server, and so does each rank for itself.
pub(crate) fn host_driven(stage: Stage) {
    let ranks: Vec<u32> = (0..stage.size).collect();
    let options = ServerOptions { drive: Drive::Host, ..ServerOptions::default() };
    let server = serve(options, job(stage.size), &ranks, Panics);
    let children: Vec<Child> = ranks.iter().map(|rank| start(&stage, &server, *rank)).collect();
    drive(&stage, &server, children);
    server.finalize();
}

/// The thread of the server ends while its clients start.
pub(crate) fn taken_over(stage: Stage) {
    let ranks: Vec<u32> = (0..stage.size).collect();
    let server = serve(ServerOptions::default(), job(stage.size), &ranks, Panics);
    let children: Vec<Child> = ranks.iter().map(|rank| start(&stage, &server, *rank)).collect();
    server.stop_progress_thread(true);
    drive(&stage, &server, children);
    server.finalize();
}

/// Makes progress until the ranks have ended.
fn drive(stage: &Stage, server: &Server, children: Vec<Child>) {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                server.progress();
                std::thread::yield_now();
            }
        });
        // Blocking calls make progress as well, beside the other thread.
        server.define_process_set("all", &[ProcId::all(&job(1).nspace)]).unwrap();
        children.into_iter().for_each(|child| stage.wait(child));
        over.store(true, Ordering::Relaxed);
    });
    assert_eq!(server.explain().unwrap().waiting, []);
}

/// The server's process gets, handles events and asks its own host.
pub(crate) fn own_process(stage: Stage) {
    let server = serve(ServerOptions::default(), job(1), &[0], Records::default());
    let (seen, events) = channel();
    let handler = move |event: &Event, _: &[Info]| {
        seen.send(event.clone()).unwrap();
        Verdict { status: Status::SUCCESS, results: Vec::new() }
    };
    let id = server.register_event_handler(&[], &[], handler).unwrap();
    assert_eq!(server.get(&ProcId::all(&job(1).nspace), keys::JOB_SIZE, &[]).unwrap(), Value::Uint32(1));
    let absent = server.get(&proc(0), "card", &[Info::new(keys::IMMEDIATE, true)]).unwrap_err();
    assert!(absent.is_not_found());

    let rank = start(&stage, &server, 0);
    // Waits until the rank has committed it, and then sees what it commits next.
    assert_eq!(server.get(&proc(0), "card", &[]).unwrap(), Value::Uint32(7));
    let source = server.proc().clone();
    let code = Status(-3001);
    let event = Event { code, source, range: Range::GLOBAL, info: Vec::new() };
    server.notify(event).unwrap();
    assert_eq!(events.recv_timeout(PATIENCE).unwrap().code, code, "our own event");
    let answer = events.recv_timeout(PATIENCE).unwrap();
    assert_eq!((answer.code, answer.source), (Status(-3002), proc(0)));
    assert_eq!(server.get(&proc(0), "card", &[]).unwrap(), Value::Uint32(8));
    let source = ProcId::new(&Nspace::new("elsewhere@1").unwrap(), proc(0).rank);
    let info = vec![Info::new(keys::EVENT_CUSTOM_RANGE, proc(0))];
    server.notify(Event { code: Status(-3003), source, range: Range::CUSTOM, info }).unwrap();

    let lost = events.recv_timeout(PATIENCE).unwrap();
    assert_eq!((lost.code, lost.source), (Status::ERR_LOST_CONNECTION, proc(0)));
    stage.wait(rank);
    server.deregister_event_handler(id).unwrap();
}

/// Every request that a client can make reaches its method, and the answer comes back.
pub(crate) fn every_upcall(stage: Stage) {
    let host = Records::default();
    let asked = host.asked.clone();
    let (server, ranks) = serve_all(&stage, host);
    ranks.into_iter().for_each(|rank| stage.wait(rank));
    server.deregister_nspace(&job(1).nspace).unwrap();
    let asked = asked.lock().unwrap().clone();
    let expected = BTreeSet::from(EXPECTED.map(str::to_owned));
    assert_eq!(asked, expected);
}

const EXPECTED: [&str; 29] = [
    "abort",
    "allocation request",
    "connect",
    "connection",
    "event deregistration",
    "direct modex",
    "disconnect",
    "end of a pull",
    "fabric registration",
    "fabric update",
    "fence",
    "finalize",
    "get credential",
    "group construct",
    "group destruct",
    "job control",
    "log",
    "lookup",
    "monitor",
    "notification",
    "publish",
    "pull of output",
    "push of input",
    "query",
    "resource block",
    "event registration",
    "session control",
    "spawn",
    "unpublish",
];

/// Records the requests, and grants them.
#[derive(Default)]
struct Records {
    asked: Arc<Mutex<BTreeSet<String>>>,
}

impl Records {
    fn note<T: pmix::server::Outcome>(&self, done: Done<T>, outcome: T) {
        self.asked.lock().unwrap().insert(done.operation().to_owned());
        done.complete(outcome);
    }
}

impl Host for Records {
    fn client_connected(&mut self, _: ProcId, done: Done<()>) {
        self.note(done, ());
    }
    fn client_finalized(&mut self, _: ProcId, done: Done<()>) {
        self.note(done, ());
    }
    fn abort(&mut self, _: AbortRequest, done: Done<()>) {
        self.note(done, ());
    }
    fn fence(&mut self, request: FenceRequest, done: Done<Blob>) {
        self.note(done, request.data);
    }
    fn direct_modex(&mut self, _: DirectModexRequest, done: Done<Blob>) {
        self.note(done, Blob::default());
    }
    fn publish(&mut self, _: PublishRequest, done: Done<()>) {
        self.note(done, ());
    }
    fn lookup(&mut self, request: PublishedRequest, done: Done<Vec<Pdata>>) {
        let key = request.keys[0].clone();
        self.note(done, vec![Pdata { proc: request.from, key, value: Value::from("found") }]);
    }
    fn unpublish(&mut self, _: PublishedRequest, done: Done<()>) {
        self.note(done, ());
    }
    fn spawn(&mut self, _: SpawnRequest, done: Done<Nspace>) {
        self.note(done, Nspace::new("child@1").unwrap());
    }
    fn connect(&mut self, _: ConnectRequest, done: Done<()>) {
        self.note(done, ());
    }
    fn disconnect(&mut self, _: ConnectRequest, done: Done<()>) {
        self.note(done, ());
    }
    fn register_events(&mut self, _: EventsRequest, done: Done<()>) {
        self.note(done, ());
    }
    fn deregister_events(&mut self, _: EventsRequest, done: Done<()>) {
        self.note(done, ());
    }
    fn notify(&mut self, _: Event, done: Done<()>) {
        self.note(done, ());
    }
    fn query(&mut self, _: QueryRequest, done: Done<Vec<Info>>) {
        self.note(done, vec![Info::new(keys::QUERY_NAMESPACES, "job@1")]);
    }
    fn log(&mut self, _: LogRequest, done: Done<()>) {
        self.note(done, ());
    }
    fn allocate(&mut self, request: AllocateRequest, done: Done<Vec<Info>>) {
        self.note(done, own_infos(request.request.info));
    }
    fn resource_block(&mut self, _: ResourceBlockRequest, done: Done<()>) {
        self.note(done, ());
    }
    fn job_control(&mut self, request: JobControlRequest, done: Done<Vec<Info>>) {
        self.note(done, own_infos(request.request.directives));
    }
    fn session_control(&mut self, request: SessionControlRequest, done: Done<Vec<Info>>) {
        self.note(done, own_infos(request.request.directives));
    }
    fn monitor(&mut self, request: MonitorRequest, done: Done<Vec<Info>>) {
        self.note(done, own_infos(request.request.directives));
    }
    fn get_credential(&mut self, _: CredentialRequest, done: Done<Credential>) {
        self.note(done, (Blob::from(b"proof".as_slice()), Vec::new()));
    }
    fn validate_credential(&mut self, request: ValidationRequest, done: Done<Vec<Info>>) {
        assert_eq!(request.credential.as_bytes(), b"proof");
        done.complete(Vec::new());
    }
    fn iof_pull(&mut self, _: PullRequest, done: Done<()>) {
        self.note(done, ());
    }
    fn iof_stop(&mut self, _: PullEnded, done: Done<()>) {
        self.note(done, ());
    }
    fn push_stdin(&mut self, _: StdinRequest, done: Done<()>) {
        self.note(done, ());
    }
    fn group_construct(&mut self, request: GroupRequest, done: Done<GroupFormed>) {
        self.note(done, GroupFormed { members: request.procs, context_id: Some(5), info: Vec::new() });
    }
    fn group_destruct(&mut self, _: GroupRequest, done: Done<GroupFormed>) {
        self.note(done, GroupFormed::default());
    }
    fn fabric_register(&mut self, _: FabricRequest, done: Done<Vec<Info>>) {
        self.note(done, Vec::new());
    }
    fn fabric_update(&mut self, _: FabricUpdateRequest, done: Done<Vec<Info>>) {
        self.note(done, Vec::new());
    }
}

/// The caller's own infos, without those that the server adds about the caller.
fn own_infos(info: Vec<Info>) -> Vec<Info> {
    info.into_iter().filter(|info| info.key != keys::USERID && info.key != keys::GRPID).collect()
}
