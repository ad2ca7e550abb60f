//! The root alone: tests give it inputs and check its outputs. No tree, no processes, no servers.

use std::collections::BTreeSet;
use std::time::Duration;

use phalanx_core::host::{Asked, EventsRequest};
use phalanx_core::{HostOp, HostReply};
use phalanx_spec::{IofChannel, Persistence, Rank, Status, functions, keys};
use phalanx_topo::Topology;
use phalanx_wire::cmd::control::JobControl;
use phalanx_wire::cmd::iof::{FORWARDED, Pull};
use phalanx_wire::cmd::publish::{Publish, Published};
use phalanx_wire::cmd::query::Queries;
use phalanx_wire::cmd::session::SessionControl;
use phalanx_wire::cmd::spawn::Spawn;
use phalanx_wire::{Info, Key, ProcId, Query, Text, Value};

use super::*;
use crate::config::Limits;
use crate::hosts::Slots;
use crate::job::{AppSpec, JobVerdict};
use crate::map::Policy;
use crate::msg::{
    Down, EndGroup, Ends, ExitStatus, FailurePolicy, OpId, ProcEnd, Programs, Results, SpawnFailure,
    SpawnStep, Task,
};
use crate::report::Placed;

mod control;
mod debug;
mod fate;
mod invitations;
mod last_look;
mod lifecycle;
mod lives;
mod logged;
mod logging;
mod nodes;
mod restarts;
mod slots;
mod stdin;

const FUNCTIONS: &[Honoured] = &[(functions::SPAWN, &[crate::spawn::JOB, crate::spawn::KEPT])];

struct RootScene {
    root: Root,
    now: Time,
    /// Its outputs that the test has not checked yet.
    wishes: VecDeque<FromRoot>,
    requests: u64,
}

fn report(node: u32, topology: &Topology) -> (NodeId, NodeReport) {
    let signature = topology.signature().into();
    let hostname = format!("n{node}").into();
    (NodeId(node), NodeReport { hostname, slots: Slots::Stated(4), max_slots: None, signature })
}

fn topology() -> Topology {
    Topology::synthetic(1, 1, 1, 4, 1)
}

impl RootScene {
    /// A root of so many nodes, none of which has reported.
    fn new(size: u32) -> RootScene {
        let config = NodeConfig { slots: Slots::Stated(4), ..NodeConfig::for_test(0, size, topology()) };
        let root = Root::new(config, FUNCTIONS);
        let mut scene = RootScene { root, now: Time(0), wishes: VecDeque::new(), requests: 0 };
        scene.tell(ToRoot::Begin);
        scene
    }

    /// All nodes have come up.
    fn up(size: u32) -> RootScene {
        let mut scene = RootScene::new(size);
        scene.tell(ToRoot::Reports((0..size).map(|node| report(node, &topology())).collect()));
        scene.wishes.clear();
        scene
    }

    fn tell(&mut self, what: ToRoot) {
        self.root.handle(self.now, what, &mut self.wishes);
        while self.root.go_on(self.now, &mut self.wishes) {}
    }

    fn post(&mut self, origin: u32, up: Up) {
        self.tell(ToRoot::Post { origin: NodeId(origin), up: Arc::new(up) });
    }

    /// Sends an upcall from some node; returns its request number.
    fn ask(&mut self, origin: u32, op: HostOp) -> u64 {
        self.requests += 1;
        let request = self.requests;
        self.post(origin, Up::Host { request, op });
        request
    }

    /// Launches a job of so many processes; returns its name.
    fn launch(&mut self, job: JobRequest, procs: u32) -> Nspace {
        let apps =
            vec![AppSpec { argv: vec![Text::from("program")], procs: Some(procs), ..AppSpec::default() }];
        self.tell(ToRoot::Submit { request: 7, job: Box::new(JobRequest { apps, ..job }) });
        let accepted = |wish: &FromRoot| match wish {
            FromRoot::Report(Report::Accepted { request: 7, nspace, .. }) => Some(nspace.clone()),
            _ => None,
        };
        let nspace = self.wishes.iter().find_map(accepted).expect("the job is accepted");
        self.wishes.clear();
        nspace
    }

    /// A tool on the root's node spawns a job of one process, with a time limit in seconds; returns the request.
    fn spawn_by_tool(&mut self, limit: Option<u32>) -> u64 {
        let tool = tool();
        self.connect_tool();
        let app = phalanx_wire::App { argv: vec!["program".into()], max_procs: 1, ..Default::default() };
        let job = limit.map(|seconds| Info::new(keys::TIMEOUT, seconds)).into_iter().collect();
        self.ask(0, HostOp::Spawn(Asked { from: tool, request: Spawn { job, apps: vec![app] } }))
    }

    /// Connects the tool on the root's node, once.
    fn connect_tool(&mut self) {
        if !self.root.dvm.is_tool(&tool()) {
            let claims = Some(tool());
            let connected = phalanx_core::host::ToolRequest {
                uid: 0,
                gid: 0,
                pid: Some(4711),
                claims,
                info: vec![Info::new(keys::CMD_LINE, "tool -x")],
            };
            self.ask(0, HostOp::ToolConnected(connected));
        }
    }

    fn gathered(&mut self, op: OpId, part: Part) {
        let among = Ranges::first(2);
        self.tell(ToRoot::Gathered { op: Arc::new(op), among, missing: Ranges::new(), part });
    }

    /// All processes of the job end like this, and every node forgets it.
    fn end(&mut self, nspace: &Nspace, ranks: u32, status: ExitStatus) {
        let end = EndGroup {
            ranks: Ranges::first(ranks),
            status: Some(status),
            killed_by_us: false,
            lost_connection: false,
            connected: true,
            after: Duration::ZERO,
        };
        self.gathered(
            OpId::Ended(nspace.clone()),
            Part::Ends(Box::new(Ends { groups: vec![end], ..Ends::default() })),
        );
        assert!(self.casts().iter().any(|(_, body)| matches!(body, Down::Forget { .. })));
        self.tell(ToRoot::Forgotten(nspace.clone()));
    }

    fn wait(&mut self, seconds: u64) {
        self.now = self.now.after(Duration::from_secs(seconds));
        while self.root.deadline().is_some_and(|due| due <= self.now) {
            self.tell(ToRoot::Tick);
        }
    }

    fn casts(&self) -> Vec<(&Ranges, &Down)> {
        let casts = self.wishes.iter().filter_map(|wish| match wish {
            FromRoot::Cast(to, body) => Some((to, body)),
            _ => None,
        });
        casts.collect()
    }

    /// The one task that daemons were given: the daemons, its operation, and the task.
    fn task(&self) -> (Ranges, OpId, Arc<Task>) {
        let [(to, Down::Task { id, task })] = self.casts()[..] else { panic!("{:?}", self.wishes) };
        (to.clone(), OpId::Task(id.clone()), task.clone())
    }

    /// The last task.
    fn task_among(&self) -> (Ranges, OpId, Arc<Task>) {
        let mut tasks = self.casts().into_iter().rev().filter_map(|(to, body)| match body {
            Down::Task { id, task } => Some((to.clone(), OpId::Task(id.clone()), task.clone())),
            _ => None,
        });
        tasks.next().unwrap_or_else(|| panic!("{:?}", self.wishes))
    }

    /// All tasks.
    fn tasks(&self) -> Vec<(OpId, Arc<Task>)> {
        let tasks = self.casts().into_iter().filter_map(|(_, body)| match body {
            Down::Task { id, task } => Some((OpId::Task(id.clone()), task.clone())),
            _ => None,
        });
        tasks.collect()
    }

    fn reports(&self) -> Vec<&Report> {
        let reports = self.wishes.iter().filter_map(|wish| match wish {
            FromRoot::Report(report) => Some(report),
            _ => None,
        });
        reports.collect()
    }

    fn answer(&self, request: u64) -> Option<&HostReply> {
        self.casts().into_iter().find_map(|(_, body)| match body {
            Down::Reply { request: to, reply } if *to == request => Some(reply),
            _ => None,
        })
    }

    fn verdict(&self) -> Option<&JobVerdict> {
        self.reports().into_iter().find_map(|report| match report {
            Report::Ended(end) => Some(&end.verdict),
            _ => None,
        })
    }
}

fn tool() -> ProcId {
    ProcId::new(&Nspace::new("tool").unwrap(), Rank(0))
}

fn proc(nspace: &Nspace, rank: u32) -> ProcId {
    ProcId::new(nspace, Rank(rank))
}

fn failed(nspace: &Nspace, rank: u32) -> Up {
    Up::Failed(ProcEnd {
        proc: proc(nspace, rank),
        node: "n0".into(),
        pid: Some(1),
        status: Some(ExitStatus::Code(3)),
        after: Duration::ZERO,
        killed_by_us: false,
        lost_connection: false,
    })
}

#[test]
fn jobs_wait_until_all_nodes_have_come_up() {
    let mut scene = RootScene::new(3);
    let apps = vec![AppSpec { argv: vec![Text::from("program")], procs: Some(2), ..AppSpec::default() }];
    scene.tell(ToRoot::Submit { request: 7, job: Box::new(JobRequest { apps, ..JobRequest::default() }) });
    scene.tell(ToRoot::Reports(vec![report(0, &topology()), report(2, &topology())]));
    assert!(scene.wishes.is_empty());
    scene.tell(ToRoot::Reports(vec![report(1, &topology())]));
    let bodies: Vec<_> = scene.casts().into_iter().map(|(_, body)| body).collect();
    assert!(matches!(bodies[..], [Down::Table(_), Down::Start(_)]), "{bodies:?}");
    assert!(matches!(scene.reports()[..], [Report::Ready, Report::Accepted { request: 7, .. }]));
}

#[test]
fn each_kind_of_node_is_asked_for_its_topology_once() {
    let mut scene = RootScene::new(4);
    let other = Topology::synthetic(2, 1, 1, 4, 1);
    let reports = [(0, &topology()), (1, &other), (2, &other), (3, &other)].map(|(n, t)| report(n, t));
    scene.tell(ToRoot::Reports(reports.to_vec()));
    let asked: Vec<_> = scene.casts().into_iter().map(|(to, _)| to.clone()).collect();
    assert_eq!(asked, [Ranges::single(1)]);
    scene.wishes.clear();
    scene.post(1, Up::Topology { signature: other.signature(), encoded: other.encode() });
    assert!(matches!(scene.casts()[..], [(_, Down::Table(_))]));
}

#[test]
fn a_boot_that_takes_too_long_refuses_what_waits_for_it() {
    let mut scene = RootScene::new(2);
    scene.tell(ToRoot::Submit { request: 7, job: Box::default() });
    scene.tell(ToRoot::Reports(vec![report(0, &topology())]));
    scene.wait(Limits::default().boot.as_secs());
    let [Report::Refused { request: 7, error }, Report::NotReady { .. }] = scene.reports()[..] else {
        panic!("{:?}", scene.wishes)
    };
    assert!(error.contains("1 of 2 have not reported") && error.ends_with(": 1"), "{error}");
}

#[test]
fn the_first_failure_decides_and_ends_the_job() {
    let mut scene = RootScene::up(2);
    let nspace = scene.launch(JobRequest::default(), 8);
    scene.gathered(
        OpId::Started(nspace.clone()),
        Part::Started {
            pids: (0..8).map(|r| (r, r)).collect(),
            programs: Programs::default(),
            failed: false,
            after: Duration::ZERO,
        },
    );
    scene.wishes.clear();
    scene.post(1, failed(&nspace, 5));
    scene.post(0, failed(&nspace, 0));
    let terminated =
        |body: &Down| matches!(body, Down::Control { ranks: None, action: Control::Terminate { .. }, .. });
    assert_eq!(scene.casts().iter().filter(|(_, body)| terminated(body)).count(), 1);
    scene.end(&nspace, 8, ExitStatus::Code(3));
    assert!(matches!(scene.verdict(), Some(JobVerdict::Failed { first }) if first.proc.rank == Rank(5)));
}

#[test]
fn a_continuing_job_announces_its_failed_ranks() {
    let mut scene = RootScene::up(2);
    let nspace = scene.launch(JobRequest { on_failure: FailurePolicy::Continue, ..JobRequest::default() }, 2);
    scene.post(0, failed(&nspace, 1));
    let [(_, Down::Dead { ranks, .. })] = scene.casts()[..] else { panic!("{:?}", scene.wishes) };
    assert_eq!(*ranks, Ranges::single(1));
}

#[test]
fn a_thousand_jobs_end_with_the_dvm() {
    let mut scene = RootScene::up(2);
    // Oversubscribed.
    let policy = || crate::map::Policy { map: ":oversubscribe".parse().unwrap(), ..Default::default() };
    let launch =
        |scene: &mut RootScene| scene.launch(JobRequest { policy: policy(), ..JobRequest::default() }, 1);
    let jobs: Vec<Nspace> = (0..1000).map(|_| launch(&mut scene)).collect();
    assert_eq!(jobs.iter().collect::<BTreeSet<_>>().len(), 1000);
    scene.tell(ToRoot::Shutdown);
    assert_eq!(scene.casts().len(), 1000);
    scene.wishes.clear();
    for nspace in &jobs {
        assert!(!scene.casts().iter().any(|(_, body)| matches!(body, Down::Stop)));
        scene.wishes.clear();
        scene.end(nspace, 1, ExitStatus::Code(0));
        assert!(matches!(scene.verdict(), Some(JobVerdict::DvmStopped { by: None })));
    }
    assert!(scene.casts().iter().any(|(_, body)| matches!(body, Down::Stop)));
}

#[test]
fn a_lookup_waits_for_what_is_published() {
    let mut scene = RootScene::up(2);
    let nspace = scene.launch(JobRequest::default(), 8);
    let lookup = |rank, timeout: u32| {
        let info = vec![Info::new(keys::WAIT, 0u32), Info::new(keys::TIMEOUT, timeout)];
        let request = Published { uid: 1000, keys: vec![Key::of("port")], info };
        HostOp::Lookup(Asked { from: proc(&nspace, rank), request })
    };
    let (early, patient) = (scene.ask(1, lookup(5, 3)), scene.ask(1, lookup(6, 60)));
    assert_eq!(scene.root.explain().len(), 2);
    scene.wait(4);
    assert_eq!(scene.answer(early), Some(&HostReply::Lookup(Err(Status::ERR_TIMEOUT))));
    assert_eq!(scene.answer(patient), None);
    let info = vec![Info::new("port", 7u32), Info::new(keys::PERSISTENCE, Persistence::SESSION)];
    let request = Publish { uid: 1000, info };
    scene.ask(0, HostOp::Publish(Asked { from: proc(&nspace, 0), request }));
    let Some(HostReply::Lookup(Ok(found))) = scene.answer(patient) else { panic!("{:?}", scene.wishes) };
    assert_eq!(found[0].value.as_u32(), Some(7));
}

#[test]
fn output_is_taken_when_the_user_has_taken_it() {
    let mut scene = RootScene::up(2);
    let nspace = scene.launch(JobRequest::default(), 1);
    let piece = |data: &[u8]| OutputPiece {
        proc: proc(&nspace, 0),
        pid: Some(1),
        channel: IofChannel::STDOUT,
        data: data.into(),
    };
    scene.tell(ToRoot::Output { landing: Landing(1), piece: piece(b"hello") });
    scene.tell(ToRoot::Output { landing: Landing(2), piece: piece(b"world") });
    assert_eq!(scene.reports().len(), 2);
    let taken = |scene: &RootScene| -> Vec<u64> {
        let landing = |wish: &FromRoot| match wish {
            FromRoot::Taken(Landing(number)) => Some(*number),
            _ => None,
        };
        scene.wishes.iter().filter_map(landing).collect()
    };
    assert_eq!(taken(&scene), []);
    scene.tell(ToRoot::OutputTaken { bytes: 7 });
    assert_eq!(taken(&scene), [1]);
    scene.tell(ToRoot::OutputTaken { bytes: 3 });
    assert_eq!(taken(&scene), [1, 2]);
    assert!(matches!(scene.wishes.back(), Some(FromRoot::TellTaken { at_once: true })));
}

#[test]
fn a_spawn_is_answered_when_its_processes_run_or_never_will() {
    let mut scene = RootScene::up(2);
    let parent = scene.launch(JobRequest::default(), 1);
    let spawn = || {
        HostOp::Spawn(Asked {
            from: proc(&parent, 0),
            request: Spawn {
                job: Vec::new(),
                apps: vec![phalanx_wire::App {
                    argv: vec![Text::from("program")],
                    max_procs: 1,
                    ..Default::default()
                }],
            },
        })
    };
    let (first, second) = (scene.ask(0, spawn()), scene.ask(0, spawn()));
    let started = |scene: &RootScene| -> Vec<Nspace> {
        let name = |body: &Down| match body {
            Down::Start(desc) => Some(desc.nspace.clone()),
            _ => None,
        };
        scene.casts().into_iter().filter_map(|(_, body)| name(body)).collect()
    };
    let [runs, fails] = &started(&scene)[..] else { panic!("{:?}", scene.wishes) };
    assert_eq!((scene.answer(first), scene.answer(second)), (None, None));
    scene.gathered(
        OpId::Started(runs.clone()),
        Part::Started {
            pids: vec![(0, 9)],
            programs: Programs::default(),
            failed: false,
            after: Duration::ZERO,
        },
    );
    assert_eq!(scene.answer(first), Some(&HostReply::Spawned(Ok(runs.clone()))));
    let failure = SpawnFailure { step: SpawnStep::Find, subject: "program".into(), errno: 2 };
    scene.post(0, Up::StartFailed { proc: proc(fails, 0), failure });
    scene.gathered(
        OpId::Started(fails.clone()),
        Part::Started {
            pids: Vec::new(),
            programs: Programs::default(),
            failed: true,
            after: Duration::ZERO,
        },
    );
    let refused = HostReply::Spawned(Err(Status::ERR_JOB_EXE_NOT_FOUND));
    assert_eq!(scene.answer(second), Some(&refused));
}

#[test]
fn spawn_of_a_negative_number_of_processes_is_refused() {
    let mut scene = RootScene::up(2);
    let parent = scene.launch(JobRequest::default(), 1);
    for (max_procs, refused) in
        [(-1, Some(Status::ERR_BAD_PARAM)), (i32::MIN, Some(Status::ERR_BAD_PARAM)), (0, None)]
    {
        let app = phalanx_wire::App { argv: vec!["program".into()], max_procs, ..Default::default() };
        let spawn = scene.ask(
            0,
            HostOp::Spawn(Asked {
                from: proc(&parent, 0),
                request: Spawn { job: Vec::new(), apps: vec![app] },
            }),
        );
        assert_eq!(scene.answer(spawn).map(HostReply::status), refused, "{max_procs}");
    }
    // One rank for each slot that is left.
    let started = scene.casts().into_iter().find_map(|(_, body)| match body {
        Down::Start(desc) => Some(desc.size),
        _ => None,
    });
    assert_eq!(started, Some(7));
}

/// The root's answer to where this job's ranks are.
fn map_of(scene: &mut RootScene, nspace: &Nspace) -> Placed {
    let qualifiers = vec![Info::new(keys::NSPACE, nspace.as_str())];
    let query = Query { keys: vec![query::names::MAP.into()], qualifiers };
    let request = Queries { queries: vec![query] };
    let asked = scene.ask(1, HostOp::Query(Asked { from: proc(nspace, 0), request }));
    match scene.answer(asked) {
        Some(HostReply::Infos(Status::SUCCESS, infos)) => match &infos[0].value {
            Value::ByteObject(bytes) => Placed::from_bytes(bytes.as_bytes()).unwrap(),
            other => panic!("{other}"),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_map_of_a_job_is_reported_as_it_was_made() {
    let mut scene = RootScene::up(2);
    let request = || JobRequest {
        apps: vec![AppSpec { argv: vec![Text::from("program")], procs: Some(3), ..AppSpec::default() }],
        policy: Policy { map: "core".parse().unwrap(), bind: "core".parse().unwrap(), ..Policy::default() },
        ..JobRequest::default()
    };
    let mut placed = Vec::new();
    for _ in 0..2 {
        scene.tell(ToRoot::Submit { request: 7, job: Box::new(request()) });
        placed.extend(scene.wishes.drain(..).find_map(|wish| match wish {
            FromRoot::Report(Report::Accepted { nspace, placed, .. }) => Some((nspace, placed)),
            _ => None,
        }));
    }
    let (first, second) = (placed[0].clone(), placed[1].clone());
    assert_ne!(first.1, second.1);
    scene.end(&first.0, 3, ExitStatus::Code(0));
    for (nspace, placed) in [first, second] {
        assert_eq!(map_of(&mut scene, &nspace), *placed);
    }
}

#[test]
fn a_query_of_a_job_that_ends_meanwhile_is_answered() {
    let mut scene = RootScene::up(2);
    let nspace = scene.launch(JobRequest::default(), 4);
    let query = Query {
        keys: vec![keys::QUERY_PROC_TABLE.into()],
        qualifiers: vec![Info::new(keys::NSPACE, nspace.as_str())],
    };
    let request = scene.ask(
        0,
        HostOp::Query(Asked { from: proc(&nspace, 0), request: Queries { queries: vec![query.clone()] } }),
    );
    let other = scene.launch(JobRequest::default(), 4);
    let asked = scene
        .ask(0, HostOp::Query(Asked { from: proc(&other, 0), request: Queries { queries: vec![query] } }));
    assert_eq!((scene.answer(request), scene.answer(asked)), (None, None));
    scene.end(&nspace, 4, ExitStatus::Code(0));
    assert_eq!(scene.answer(request).map(HostReply::status), Some(Status::ERR_LOST_CONNECTION));
    assert_eq!(scene.answer(asked).map(HostReply::status), Some(Status::SUCCESS));
}

#[test]
fn a_lookup_that_nobody_serves_ends_in_time() {
    let mut scene = RootScene::up(1);
    let nspace = scene.launch(JobRequest::default(), 1);
    let info = vec![Info::new(keys::WAIT, 0), Info::new(keys::TIMEOUT, 5)];
    let (from, keys) = (proc(&nspace, 0), vec![Key::new("port").unwrap()]);
    let request = Published { uid: 1000, keys, info };
    let request = scene.ask(0, HostOp::Lookup(Asked { from, request }));
    assert_eq!((scene.answer(request), &*scene.root.explain()[0].subject), (None, "port"));
    scene.wait(6);
    assert_eq!(scene.answer(request), Some(&HostReply::Lookup(Err(Status::ERR_TIMEOUT))));
    assert!(scene.root.explain().is_empty());
}

#[test]
fn spawned_jobs_may_share_slots_as_their_parent_may() {
    for (policy, fits) in [(":oversubscribe", true), ("slot", false)] {
        let mut scene = RootScene::up(2);
        let policy = crate::map::Policy { map: policy.parse().unwrap(), ..Default::default() };
        let parent = scene.launch(JobRequest { policy, ..JobRequest::default() }, 8);
        let app = phalanx_wire::App { argv: vec!["program".into()], max_procs: 2, ..Default::default() };
        let (from, request) = (proc(&parent, 0), Spawn { job: Vec::new(), apps: vec![app] });
        scene.wishes.clear();
        scene.ask(0, HostOp::Spawn(Asked { from, request }));
        let begins = scene.casts().iter().any(|(_, body)| matches!(body, Down::Start(_)));
        assert_eq!(begins, fits, "{:?}", scene.wishes);
    }
}

#[test]
fn spawns_name_the_host_of_the_root_as_command_lines_do() {
    for (host, is_known) in [
        ("localhost", true),
        ("127.0.0.1", true),
        ("::1", true),
        ("10.7.0.1", true),
        ("n0", true),
        ("n0.cluster.org", true),
        ("10.7.0.2", false),
    ] {
        let mut scene = RootScene::up(2);
        scene.root.dvm.config.addresses = vec!["10.7.0.1".parse().unwrap()];
        let parent = scene.launch(JobRequest::default(), 1);
        let app = phalanx_wire::App { argv: vec!["program".into()], max_procs: 1, ..Default::default() };
        let (from, job) = (proc(&parent, 0), vec![Info::new(keys::HOST, host)]);
        scene.wishes.clear();
        scene.ask(0, HostOp::Spawn(Asked { from, request: Spawn { job, apps: vec![app] } }));
        let started = scene.casts().into_iter().find_map(|(_, body)| match body {
            Down::Start(desc) => desc.node_of(Rank(0)),
            _ => None,
        });
        assert_eq!(started, is_known.then_some(NodeId::ROOT), "{host}: {:?}", scene.wishes);
    }
}

#[test]
fn pulls_of_channels_that_are_not_forwarded_are_refused() {
    let mut scene = RootScene::up(2);
    let parent = scene.launch(JobRequest::default(), 1);
    let app = phalanx_wire::App { argv: vec!["program".into()], max_procs: 1, ..Default::default() };
    let job = vec![Info::new(keys::FWD_STDOUT, true)];
    scene.ask(0, HostOp::Spawn(Asked { from: proc(&parent, 0), request: Spawn { job, apps: vec![app] } }));
    let child = scene.casts().into_iter().find_map(|(_, body)| match body {
        Down::Start(desc) => Some(desc.nspace.clone()),
        _ => None,
    });
    let sources = vec![ProcId::all(&child.expect("it starts"))];
    let both = IofChannel(IofChannel::STDOUT.0 | IofChannel::STDERR.0);
    for (handle, channels, status) in [
        (1, IofChannel::STDERR, Status::ERR_NOT_AVAILABLE),
        (2, both, Status::ERR_NOT_AVAILABLE),
        (3, IofChannel::STDOUT, Status::SUCCESS),
        (4, IofChannel::ALL, Status::SUCCESS),
    ] {
        let request = Pull { sources: sources.clone(), channels, directives: Vec::new(), handle };
        let asked = scene.ask(0, HostOp::IofPull(Asked { from: proc(&parent, 0), request }));
        let Some(answer) = scene.answer(asked) else { panic!("{:?}", scene.wishes) };
        assert_eq!(answer.clone().status(), status, "{channels:?}");
        if let HostReply::Infos(_, infos) = answer {
            let there = infos.iter().find(|info| info.key == *FORWARDED).and_then(|info| info.value.as_u64());
            assert_eq!(there, Some(u64::from(IofChannel::STDOUT.0)), "{channels:?}");
        }
    }
}

#[test]
fn unread_output_of_large_jobs_is_bounded_with_their_journals() {
    let mut scene = RootScene::up(2);
    let parent = scene.launch(JobRequest::default(), 1);
    let spawned: Vec<Nspace> = (0..3)
        .map(|_| {
            let app = phalanx_wire::App {
                argv: vec![Text::from("program")],
                env: vec![Text::from(format!("LARGE={}", "x".repeat(5 << 20)))],
                max_procs: 3,
                ..Default::default()
            };
            let job = vec![Info::new(keys::MAPBY, "slot:oversubscribe"), Info::new(keys::FWD_STDOUT, true)];
            scene.wishes.clear();
            scene.ask(
                0,
                HostOp::Spawn(Asked { from: proc(&parent, 0), request: Spawn { job, apps: vec![app] } }),
            );
            let child = scene.casts().into_iter().find_map(|(_, body)| match body {
                Down::Start(desc) => Some(desc.nspace.clone()),
                _ => None,
            });
            let child = child.unwrap_or_else(|| panic!("{:?}", scene.wishes));
            let (proc, channel) = (proc(&child, 0), IofChannel::STDOUT);
            for data in [&b"written"[..], b""] {
                let piece = OutputPiece { proc: proc.clone(), pid: Some(1), channel, data: data.into() };
                scene.tell(ToRoot::Output { landing: Landing(1), piece });
            }
            scene.end(&child, 3, ExitStatus::Code(0));
            child
        })
        .collect();
    let is_kept = |scene: &mut RootScene, child: &Nspace| {
        scene.wishes.clear();
        let (from, sources) = (proc(&parent, 0), vec![ProcId::all(child)]);
        let (channels, directives) = (IofChannel::STDOUT, Vec::new());
        scene.ask(
            0,
            HostOp::IofPull(Asked { from, request: Pull { sources, channels, directives, handle: 1 } }),
        );
        scene
            .casts()
            .iter()
            .any(|(_, body)| matches!(body, Down::Output(piece) if &*piece.data == b"written"))
    };
    let kept: Vec<bool> = spawned.iter().map(|child| is_kept(&mut scene, child)).collect();
    assert_eq!(kept, [false, false, true]);
}

#[test]
fn the_start_of_a_job_is_announced_to_registered_nodes() {
    let mut scene = RootScene::up(2);
    scene.ask(
        1,
        HostOp::RegisterEvents(EventsRequest { codes: vec![Status::EVENT_JOB_START], info: Vec::new() }),
    );
    for (pids, expected) in [(vec![(0, 9)], 1), (Vec::new(), 0)] {
        let nspace = scene.launch(JobRequest::default(), 1);
        let failed = pids.is_empty();
        scene.gathered(
            OpId::Started(nspace.clone()),
            Part::Started { pids, programs: Programs::default(), failed, after: Duration::ZERO },
        );
        let of_start = |(to, body): &(&Ranges, &Down)| {
            matches!(body, Down::Announce { event, .. } if event.code == Status::EVENT_JOB_START
                && event.source == ProcId::all(&nspace))
                && **to == Ranges::single(1)
        };
        assert_eq!(scene.casts().iter().filter(|cast| of_start(cast)).count(), expected);
    }
}

#[test]
fn past_events_are_replayed_to_listeners_that_may_get_them() {
    let mut scene = RootScene::up(2);
    let other = scene.launch(JobRequest::default(), 8);
    // Oversubscribed, as all slots are taken.
    let crowd = crate::map::Policy { map: ":oversubscribe".parse().unwrap(), ..Default::default() };
    let gone = scene.launch(
        JobRequest { on_failure: FailurePolicy::Continue, policy: crowd, ..JobRequest::default() },
        1,
    );
    let started = Part::Started {
        pids: vec![(0, 9)],
        programs: Programs::default(),
        failed: false,
        after: Duration::ZERO,
    };
    scene.gathered(OpId::Started(gone.clone()), started);
    scene.post(0, failed(&gone, 0));
    scene.end(&gone, 1, ExitStatus::Code(3));
    scene.wait(5);
    let late = |scene: &mut RootScene, node: u32, info: Vec<Info>| -> Vec<(Status, u64, usize)> {
        scene.wishes.clear();
        let codes = vec![Status::EVENT_JOB_END, Status::EVENT_PROC_TERMINATED, Status::EVENT_JOB_START];
        scene.ask(node, HostOp::RegisterEvents(EventsRequest { codes: codes.clone(), info }));
        assert!(matches!(scene.casts().last(), Some((_, Down::Reply { .. }))), "the answer comes last");
        let announced = scene.casts().into_iter().filter_map(|(to, body)| match body {
            Down::Announce { event, concerned: Some(concerned), ago: Some(ago), .. } => {
                assert_eq!((to, &event.source.nspace), (&Ranges::single(node), &gone));
                Some((event.code, ago.as_secs(), concerned.len()))
            }
            _ => None,
        });
        let announced = announced.collect();
        scene.ask(node, HostOp::DeregisterEvents(EventsRequest { codes, info: Vec::new() }));
        announced
    };
    let all = [Status::EVENT_JOB_START, Status::EVENT_PROC_TERMINATED, Status::EVENT_JOB_END];
    let all = all.map(|code| (code, 5, 1));
    assert_eq!(late(&mut scene, 1, Vec::new()), [], "{other} is a stranger");
    let name = |nspace: &Nspace| vec![Info::new(keys::EVENT_AFFECTED_PROC, ProcId::all(nspace))];
    assert_eq!(late(&mut scene, 1, name(&other)), []);
    assert_eq!(late(&mut scene, 1, name(&gone)), all);
    // Other clients there may be registered for the same codes already.
    let codes = all.map(|(code, ..)| code).to_vec();
    scene.ask(1, HostOp::RegisterEvents(EventsRequest { codes, info: Vec::new() }));
    assert_eq!(late(&mut scene, 1, name(&other)), []);
    assert_eq!(late(&mut scene, 1, name(&gone)), all);
    scene.wait(200);
    assert_eq!(late(&mut scene, 1, name(&gone)), [], "that is too long ago");
}
