//! Paths that processes register for removal: which daemons learn of them, and when they are removed.

use std::time::Duration;

use phalanx_dvm::{
    AppSpec, Cleanup, DirectoryRules, FailurePolicy, JobEnd, JobRequest, JobVerdict, Limits, NodeId,
};
use phalanx_spec::{Rank, Status, keys};
use phalanx_testkit::scripted::ScriptedServer;
use phalanx_testkit::wired::WiredServer;
use phalanx_testkit::{Op, RankAnswer, RankServer, Script, Setup, Step, World};
use phalanx_wire::{Info, ProcId, Text, Value};

const LATENCY: Duration = Duration::from_micros(200);
const ALL: Cleanup =
    Cleanup::Directory(DirectoryRules { recursive: true, only_empty: false, leave_top: false });

fn wired(nodes: u32, cores: u32) -> World<WiredServer> {
    let server = Box::new(|node| WiredServer::new(node, 11));
    World::new(Setup {
        seed: 11,
        nodes,
        radix: 2,
        cores,
        limits: Limits::default(),
        latency: LATENCY,
        server,
    })
}

fn job(procs: u32) -> JobRequest {
    let app = AppSpec { argv: vec!["program".into()], procs: Some(procs), ..AppSpec::default() };
    JobRequest { apps: vec![app], ..JobRequest::default() }
}

fn run<S: RankServer>(world: &mut World<S>, job: JobRequest) -> JobEnd {
    let request = world.submit(job);
    world.run_until(Duration::from_secs(120), |w| {
        w.user.accepted.get(&request).is_some_and(|nspace| w.user.ends.contains_key(nspace))
    });
    // Daemons forget a job when its end has been reported.
    assert!(world.registered.values().all(|what| *what == Cleanup::Ignored), "{:?}", world.registered);
    world.user.ends[&world.user.accepted[&request]].clone()
}

fn ask(targets: &[u32], directives: Vec<Info>) -> Step {
    Step::Ask(Op::Control { targets: targets.iter().map(|rank| Rank(*rank)).collect(), directives })
}

fn file(path: &str) -> Vec<Info> {
    vec![Info::new(keys::REGISTER_CLEANUP, path)]
}

fn dir(path: &str) -> Vec<Info> {
    // In the form that Open MPI sends.
    let recursive = Info { value: Value::Undef, ..Info::new(keys::CLEANUP_RECURSIVE, true) };
    vec![Info::new(keys::REGISTER_CLEANUP_DIR, path), recursive]
}

fn init() -> Step {
    Step::Ask(Op::Init)
}

fn until(seconds: u64) -> Step {
    Step::Sleep(Duration::from_secs(seconds))
}

fn finalize() -> Step {
    Step::Ask(Op::Finalize)
}

/// The answers to a rank's control requests.
fn answers<S: RankServer>(world: &World<S>, end: &JobEnd, rank: u32) -> Vec<Status> {
    let fate = &world.procs[&ProcId::new(&end.nspace, Rank(rank))];
    let asked = fate.answers.iter().filter(|(op, _)| matches!(op, Op::Control { .. }));
    let status = |answer: &RankAnswer| match answer {
        RankAnswer::Done(status) => *status,
        other => panic!("{other:?}"),
    };
    asked.map(|(_, answer)| status(answer)).collect()
}

#[test]
fn files_go_with_the_process_directories_with_the_last() {
    let mut world = wired(2, 2);
    world.script(|proc| {
        let rank = proc.rank.0;
        let mine = ask(&[rank], file(&format!("/dev/shm/segment.{rank}")));
        let ours = ask(&[rank], dir("/tmp/session"));
        Script::new(vec![init(), ours, mine, until(1 + u64::from(rank)), finalize()])
    });
    let request = world.submit(job(4));
    let has = |w: &World<WiredServer>, node: u32, path: &str| {
        let nspace = &w.user.accepted[&request];
        w.registered.get(&(NodeId(node), nspace.clone(), Text::from(path))).copied()
    };
    let gone = |w: &World<WiredServer>, count: usize| w.removed.len() == count;
    world.run_until(Duration::from_secs(60), |w| w.registered.len() == 6);
    for (node, rank) in [(0, 0), (0, 1), (1, 2), (1, 3)] {
        assert_eq!(has(&world, node, &format!("/dev/shm/segment.{rank}")), Some(Cleanup::File));
        assert_eq!(has(&world, node, "/tmp/session"), Some(ALL));
    }
    world.run_until(Duration::from_secs(60), |w| gone(w, 1));
    assert_eq!(world.removed, [(NodeId(0), "/dev/shm/segment.0".into())]);
    assert_eq!(has(&world, 0, "/tmp/session"), Some(ALL));
    // Before the others have ended.
    world.run_until(Duration::from_secs(60), |w| gone(w, 3));
    assert_eq!(
        world.removed[1..],
        [(NodeId(0), "/dev/shm/segment.1".into()), (NodeId(0), "/tmp/session".into())]
    );
    assert!(world.user.ends.is_empty());
    world.run_until(Duration::from_secs(60), |w| !w.user.ends.is_empty());
    assert_eq!(world.removed.len(), 6);
    assert!(world.registered.is_empty());
}

#[test]
fn the_ends_that_nobody_wants_clean_up_too() {
    for (how, code) in [(Step::Die(11), 139), (Step::Exit(3), 3), (Step::Ask(Op::Abort { status: 7 }), 7)] {
        let mut world = wired(2, 2);
        world.script(move |proc| {
            let rank = proc.rank.0;
            let mine = ask(&[rank], file(&format!("/dev/shm/segment.{rank}")));
            let mut steps = vec![init(), mine, ask(&[rank], dir("/tmp/session")), until(1)];
            steps.push(if rank == 2 { how.clone() } else { Step::Hang });
            Script::new(steps)
        });
        let end = run(&mut world, job(4));
        assert_eq!(end.exit_code, code);
        assert_eq!(world.removed.len(), 6);
    }
}

#[test]
fn a_shared_file_goes_with_the_last_that_keeps_it() {
    let mut world = wired(1, 4);
    world.script(|proc| {
        let rank = proc.rank.0;
        let mut steps = vec![init()];
        match rank {
            0 => steps.extend([ask(&[0], file("/a/shared")), ask(&[1], file("/a/others,/a/both"))]),
            2 => steps.push(ask(&[2], file("/a/shared,/a/both"))),
            // Its target has ended by then.
            3 => steps.extend([until(2), ask(&[1], file("/a/late"))]),
            _ => {}
        }
        steps.extend([until(u64::from(1 + rank)), finalize()]);
        Script::new(steps)
    });
    run(&mut world, JobRequest { on_failure: FailurePolicy::Continue, ..job(4) });
    let order: Vec<String> = world.removed.iter().map(|(_, path)| path.to_string()).collect();
    let at = |path: &str| order.iter().position(|other| other == path).unwrap();
    assert_eq!(order.len(), 4);
    // Rank 1 has ended at 2 s, rank 2 at 3 s, rank 3 asks at 2 s at the earliest.
    assert!(at("/a/others") < at("/a/both") && at("/a/others") < at("/a/shared"), "{order:?}");
    assert!(at("/a/others") < at("/a/late"), "{order:?}");
}

#[test]
fn requests_for_processes_elsewhere_reach_their_daemons() {
    let mut world = wired(5, 2);
    world.script(|proc| {
        let mut steps = vec![init()];
        match proc.rank.0 {
            // To the other side of the tree, to all ranks, and to one that does not exist.
            9 => steps.extend([
                ask(&[0, 4], file("/a/few")),
                ask(&[], dir("/a/all")),
                ask(&[10], file("/a/nobody")),
            ]),
            // It contradicts what rank 9 registers, on this node only.
            4 => steps.push(ask(&[4], vec![Info::new(keys::CLEANUP_IGNORE, "/a/refused")])),
            _ => {}
        }
        steps.push(until(2));
        if proc.rank.0 == 9 {
            steps.push(ask(&[0, 4], file("/a/refused")));
        }
        steps.extend([until(1), finalize()]);
        Script::new(steps)
    });
    let end = run(&mut world, job(10));
    assert_eq!(end.exit_code, 0);
    let refused = Status::ERR_CONFLICTING_CLEANUP_DIRECTIVES;
    // There is no rank 10.
    assert_eq!(answers(&world, &end, 9), [Status::SUCCESS, Status::SUCCESS, Status::ERR_BAD_PARAM, refused]);
    let removed = |path: &str| {
        let mut nodes: Vec<u32> =
            world.removed.iter().filter(|(_, other)| *other == path).map(|(node, _)| node.0).collect();
        nodes.sort_unstable();
        nodes
    };
    assert_eq!(removed("/a/few"), [0, 2]);
    assert_eq!(removed("/a/all"), [0, 1, 2, 3, 4]);
    assert_eq!(removed("/a/nobody"), [0; 0]);
}

#[test]
fn everybody_may_register_for_everybody() {
    let server = Box::new(|_| ScriptedServer::default());
    let mut world = World::new(Setup {
        seed: 3,
        nodes: 100,
        radix: 8,
        cores: 8,
        limits: Limits::default(),
        latency: LATENCY,
        server,
    });
    world.script(|_| Script::new(vec![init(), ask(&[], dir("/a/dir")), finalize()]));
    let end = run(&mut world, job(800));
    assert_eq!(end.exit_code, 0);
    assert!((0..800).all(|rank| answers(&world, &end, rank) == [Status::SUCCESS]));
    assert_eq!(world.removed.len(), 100);
    // One request per rank goes up and one answer comes down; registering took the tree once, or a few times.
    assert!(world.messages() < 800 * 2 * 3 + 20_000, "{}", world.messages());
}

#[test]
fn a_lost_daemon_does_not_keep_anybody_waiting() {
    let mut world = wired(4, 1);
    world.script(|proc| match proc.rank.0 {
        0 => Script::new(vec![init(), until(2), ask(&[1, 2], file("/a/file")), finalize()]),
        _ => Script::new(vec![init(), until(60), finalize()]),
    });
    let at = world.now.after(Duration::from_millis(2_000));
    world.crash_at(at, NodeId(1));
    let request = world.submit(JobRequest { on_failure: FailurePolicy::Continue, ..job(4) });
    world.run_until(Duration::from_secs(200), |w| {
        w.user.accepted.get(&request).is_some_and(|nspace| w.user.ends.contains_key(nspace))
    });
    let end = world.user.ends[&world.user.accepted[&request]].clone();
    assert!(!matches!(end.verdict, JobVerdict::Success));
    assert_eq!(answers(&world, &end, 0).len(), 1);
}
