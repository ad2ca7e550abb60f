//! Restarted ranks, on nodes with real servers: which processes are notified, and that all continue together.

#![allow(clippy::unwrap_used)]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use phalanx_core::HostReply;
use phalanx_dvm::{AppSpec, FailurePolicy, JobRequest, JobVerdict, Limits, NodeId};
use phalanx_spec::{Rank, Status, keys};
use phalanx_testkit::wired::WiredServer;
use phalanx_testkit::{Op, RankAnswer, Script, Setup, Step, World};
use phalanx_wire::{Info, InfoList, Nspace, ProcId, Value};

/// Two ranks on each of these nodes.
fn world(seed: u64, nodes: u32) -> World<WiredServer> {
    let server = Box::new(move |node| WiredServer::new(node, seed));
    let (limits, latency) = (Limits::default(), Duration::from_millis(1));
    World::new(Setup { seed, nodes, radix: 2, cores: 6_u32.div_ceil(nodes).max(2), limits, latency, server })
}

fn run(world: &mut World<WiredServer>, on_failure: FailurePolicy, procs: u32) -> JobVerdict {
    let app = AppSpec { argv: vec!["again".into()], procs: Some(procs), ..AppSpec::default() };
    world.submit(JobRequest { apps: vec![app], on_failure, ..JobRequest::default() });
    world.run_until(Duration::from_secs(300), |world| world.user.ends.len() == 1);
    world.user.ends.values().next().unwrap().verdict.clone()
}

/// The steps of each rank in its first, second ... life; the last is repeated.
fn script(world: &mut World<WiredServer>, steps: impl Fn(u32, usize) -> Vec<Step> + 'static) {
    let lives: RefCell<BTreeMap<u32, usize>> = RefCell::default();
    world.script(move |proc| {
        let mut lives = lives.borrow_mut();
        let life = lives.entry(proc.rank.0).or_default();
        *life += 1;
        Script::new(steps(proc.rank.0, *life))
    });
}

fn ask(op: Op) -> Step {
    Step::Ask(op)
}

fn fence() -> Step {
    ask(Op::Fence { procs: Vec::new(), collect: true })
}

fn late(seconds: u64) -> Step {
    Step::Sleep(Duration::from_secs(seconds))
}

fn rank(rank: u32) -> ProcId {
    ProcId::new(&Nspace::new("world@1").unwrap(), Rank(rank))
}

fn statuses(world: &World<WiredServer>, number: u32) -> Vec<Status> {
    let given = world.procs[&rank(number)].answers.iter();
    let status = |answer: &RankAnswer| match answer {
        RankAnswer::Done(status) => *status,
        RankAnswer::Host(reply) => match &**reply {
            HostReply::Infos(status, _) => *status,
            other => panic!("{other:?}"),
        },
        RankAnswer::Value(value) => panic!("{value:?}"),
    };
    given.map(|(_, answer)| status(answer)).collect()
}

/// The ranks that this rank was notified have restarted.
fn heard(world: &World<WiredServer>, nodes: u32, number: u32) -> Vec<u32> {
    let servers = (0..nodes).filter_map(|node| world.node(NodeId(node)));
    let events = servers.flat_map(|node| &node.server().events);
    let affected = |info: &Vec<Info>| match info.find(keys::EVENT_AFFECTED_PROC) {
        Some(Value::Proc(proc)) => proc.rank.0,
        other => panic!("{other:?}"),
    };
    let of_restarts = events.filter(|(_, event)| event.code == Status::ERR_PROC_RESTART);
    let mut heard: Vec<u32> =
        of_restarts.filter(|(to, _)| *to == rank(number)).map(|(_, event)| affected(&event.info)).collect();
    heard.sort_unstable();
    heard
}

#[test]
fn ranks_that_wait_for_a_failed_rank_meet_the_restarted_one() {
    for seed in 1..=20 {
        let mut world = world(seed, 3);
        script(&mut world, |rank, life| match (rank, life) {
            (3, 1) => vec![ask(Op::Init), fence(), late(2), Step::Exit(3)],
            (3, _) => vec![ask(Op::Init), fence(), ask(Op::Finalize)],
            _ => vec![
                ask(Op::Init),
                ask(Op::Listen { codes: vec![Status::ERR_PROC_RESTART] }),
                fence(),
                // It waits for the rank that fails.
                fence(),
                late(30),
                fence(),
                ask(Op::Finalize),
            ],
        });
        let verdict = run(&mut world, FailurePolicy::Restart { most: 1 }, 6);
        assert_eq!(verdict, JobVerdict::Success, "seed {seed}: {:?}", world.user.notes);
        let (done, gone) = (Status::SUCCESS, Status::ERR_LOST_CONNECTION);
        for other in [0, 1, 2, 4, 5] {
            assert_eq!(statuses(&world, other), [done, done, done, gone, done, done], "seed {seed}");
            assert_eq!(heard(&world, 3, other), [3], "seed {seed}");
        }
        assert_eq!(statuses(&world, 3), [done; 3]);
        assert!(world.user.notes.iter().any(|note| note.contains("(1 of 1)")), "{:?}", world.user.notes);
    }
}

/// Rank 3 waits in a fence when it is restarted, and fences again if it still can. Rank 4 may wait there, too, and fences again
/// later, when that has failed. The others come after the restart.
fn fences_around_a_restart(seed: u64, nodes: u32, other_waits: bool) -> World<WiredServer> {
    let mut world = world(seed, nodes);
    script(&mut world, move |rank, life| {
        let directives = vec![Info::new(keys::JOB_CTRL_RESTART, Value::NullString)];
        let steps = match (rank, life) {
            (0, _) => {
                vec![late(5), ask(Op::Control { targets: vec![Rank(3)], directives }), late(5), fence()]
            }
            (3, 1) => vec![fence(); 50],
            (3, _) => vec![fence()],
            (4, _) if other_waits => vec![fence(), late(10), fence()],
            _ => vec![late(10), fence()],
        };
        [vec![ask(Op::Init)], steps, vec![ask(Op::Finalize)]].concat()
    });
    let verdict = run(&mut world, FailurePolicy::KillJob, 6);
    assert_eq!(verdict, JobVerdict::Success, "seed {seed}: {:?}", world.user.notes);
    assert!(world.user.notes.is_empty(), "seed {seed}: {:?}", world.user.notes);
    world
}

#[test]
fn a_rank_restarted_in_a_fence_meets_those_that_come_later() {
    for (seed, nodes) in (1..=20).flat_map(|seed| [(seed, 1), (seed, 3)]) {
        let world = fences_around_a_restart(seed, nodes, false);
        for rank in 0..6 {
            let all = statuses(&world, rank);
            assert!(all.iter().all(|status| status.is_success()), "{seed}, {nodes}: {rank} {all:?}");
        }
    }
}

#[test]
fn ranks_that_waited_with_a_restarted_one_fence_anew() {
    for (seed, nodes) in (1..=20).flat_map(|seed| [(seed, 1), (seed, 3)]) {
        let world = fences_around_a_restart(seed, nodes, true);
        let (done, gone) = (Status::SUCCESS, Status::ERR_LOST_CONNECTION);
        for rank in 0..6 {
            let expected = if rank == 4 {
                vec![done, gone, done, done]
            } else {
                vec![done; statuses(&world, rank).len()]
            };
            assert_eq!(statuses(&world, rank), expected, "seed {seed}, {nodes} nodes, rank {rank}");
        }
    }
}

#[test]
fn ranks_of_several_nodes_are_started_again_at_once() {
    for seed in 1..=20 {
        let mut world = world(seed, 4);
        script(&mut world, |rank, life| match (rank, life) {
            (0, _) => {
                let targets = [3, 4, 7].map(Rank).to_vec();
                let directives = vec![Info::new(keys::JOB_CTRL_RESTART, "night")];
                let restart = ask(Op::Control { targets, directives });
                vec![ask(Op::Init), fence(), late(5), restart, fence(), ask(Op::Finalize)]
            }
            (3 | 4 | 7, 1) => vec![ask(Op::Init), fence(), Step::Hang],
            (3 | 4 | 7, _) => vec![ask(Op::Init), fence(), ask(Op::Finalize)],
            _ => vec![ask(Op::Init), fence(), late(30), fence(), ask(Op::Finalize)],
        });
        let verdict = run(&mut world, FailurePolicy::KillJob, 8);
        assert_eq!(verdict, JobVerdict::Success, "seed {seed}: {:?}", world.user.notes);
        for rank in 0..8 {
            assert!(statuses(&world, rank).iter().all(|status| status.is_success()), "seed {seed}");
        }
        let told = |rank: &ProcId, name: &[u8]| world.procs[rank].env.get(name).cloned();
        assert_eq!(told(&rank(7), b"PHALANX_RESTART_FROM"), Some(b"night".to_vec()));
        assert_eq!(told(&rank(7), b"PHALANX_RESTARTS"), Some(b"1".to_vec()));
        assert_eq!(told(&rank(6), b"PHALANX_RESTARTS"), None);
    }
}

/// The results of a rank's gets, in order; empty for values that were not found.
fn told_values(world: &World<WiredServer>, number: u32) -> Vec<String> {
    let given = world.procs[&rank(number)].answers.iter();
    let gets = given.filter(|(op, _)| matches!(op, Op::Get { .. }));
    let told = gets.map(|(_, answer)| match answer {
        RankAnswer::Value(value) => String::from_utf8_lossy(value.as_bytes()).into_owned(),
        _ => String::new(),
    });
    told.collect()
}

#[test]
fn values_of_a_rank_are_gone_when_it_is_started_again() {
    for seed in 1..=20 {
        let (collect, mut world) = (seed % 2 == 0, world(seed, 3));
        let get = |key: &str| ask(Op::Get { rank: Rank(5), key: key.into() });
        let put = |key: &str, value: &str| ask(Op::Commit { key: key.into(), value: value.into() });
        let meet = move || ask(Op::Fence { procs: Vec::new(), collect });
        script(&mut world, move |rank, life| {
            let again = vec![get("kept"), get("gone")];
            let meets = vec![meet(), get("kept"), get("gone"), ask(Op::Finalize)];
            let steps = match (rank, life) {
                (5, 1) => vec![put("kept", "old"), put("gone", "old"), meet(), Step::Hang],
                (5, _) => [vec![late(1), put("kept", "new")], meets].concat(),
                // It asks again immediately after the restart.
                (0, _) => {
                    let directives = vec![Info::new(keys::JOB_CTRL_RESTART, Value::NullString)];
                    let restart = ask(Op::Control { targets: vec![Rank(5)], directives });
                    [vec![meet(), get("kept"), late(5), restart], again, meets].concat()
                }
                (2, _) => [vec![meet(), get("kept"), get("gone"), late(60)], again, meets].concat(),
                // These ranks, one of them on the same node, have not asked before.
                (1 | 4, _) => [vec![meet(), late(60)], again, meets].concat(),
                _ => [vec![meet(), get("kept"), late(60)], meets].concat(),
            };
            [vec![ask(Op::Init)], steps].concat()
        });
        let verdict = run(&mut world, FailurePolicy::KillJob, 6);
        assert_eq!(verdict, JobVerdict::Success, "seed {seed}: {:?}", world.user.notes);
        let expected: [&[&str]; 6] = [
            &["old", "new", "", "new", ""],
            &["new", "", "new", ""],
            &["old", "old", "new", "", "new", ""],
            &["old", "new", ""],
            &["new", "", "new", ""],
            &["new", ""],
        ];
        for (rank, expected) in (0..).zip(expected) {
            assert_eq!(told_values(&world, rank), expected, "seed {seed}, rank {rank}");
        }
    }
}

#[test]
fn a_rank_that_keeps_failing_ends_its_job() {
    let mut world = world(7, 2);
    script(&mut world, |rank, _| match rank {
        2 => vec![ask(Op::Init), late(1), Step::Exit(9)],
        _ => vec![ask(Op::Init), Step::Hang],
    });
    let verdict = run(&mut world, FailurePolicy::Restart { most: 3 }, 4);
    assert!(matches!(verdict, JobVerdict::Failed { first } if first.proc == rank(2)));
    let again = world.user.notes.iter().filter(|note| note.contains("it is started again"));
    assert_eq!(again.count(), 3, "{:?}", world.user.notes);
    assert!(world.user.notes.iter().any(|note| note.contains("3 times, and is given up")));
}

#[test]
fn a_lost_node_ends_a_restart_and_its_job() {
    for seed in 1..=20 {
        let mut world = world(seed, 3);
        script(&mut world, |rank, _| match rank {
            0 => {
                let directives = vec![Info::new(keys::JOB_CTRL_RESTART, "night")];
                vec![ask(Op::Init), late(5), ask(Op::Control { targets: Vec::new(), directives }), Step::Hang]
            }
            _ => vec![ask(Op::Init), Step::Hang],
        });
        let app = AppSpec { argv: vec!["again".into()], procs: Some(6), ..AppSpec::default() };
        world.submit(JobRequest { apps: vec![app], ..JobRequest::default() });
        world.run_until(Duration::from_secs(60), |world| world.explain().contains("started again"));
        world.cut_off([NodeId(2)]);
        world.run_until(Duration::from_secs(600), |world| world.user.ends.len() == 1);
        assert!(world.user.ends.values().all(|end| end.verdict != JobVerdict::Success), "seed {seed}");
        assert!(!world.explain().contains("restart"), "seed {seed}: {}", world.explain());
    }
}
