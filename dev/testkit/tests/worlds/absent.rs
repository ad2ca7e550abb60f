//! Collectives with a missing participant end in the same way on one node and over several, and for all participants.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use phalanx_core::HostReply;
use phalanx_dvm::{AppSpec, FailurePolicy, JobRequest, Limits};
use phalanx_spec::{Rank, Status, keys};
use phalanx_testkit::wired::WiredServer;
use phalanx_testkit::{Op, RankAnswer, Script, Setup, Step, World};
use phalanx_wire::{Info, Nspace, ProcId};

const COLLECTIVES: [&str; 3] = ["fence", "connect", "group"];

fn rank(rank: u32) -> ProcId {
    ProcId::new(&Nspace::new("world@1").unwrap(), Rank(rank))
}

fn late(seconds: u64) -> Step {
    Step::Sleep(Duration::from_secs(seconds))
}

fn meet(kind: &str, limit: Option<i32>) -> Step {
    let info: Vec<Info> = limit.map(|seconds| Info::new(keys::TIMEOUT, seconds)).into_iter().collect();
    Step::Ask(match kind {
        "fence" => Op::FenceWith { info },
        "connect" => Op::Connect { info },
        _ => Op::Group { name: "some".to_owned(), info },
    })
}

/// Runs a job of this many ranks, `per_node` on each node; returns the results of all calls of each rank.
fn run(procs: u32, per_node: u32, script: impl Fn(u32) -> Vec<Step> + 'static) -> Vec<Vec<Status>> {
    run_noted(procs, per_node, script).0
}

/// The same, with the notes that the user got.
fn run_noted(
    procs: u32,
    per_node: u32,
    script: impl Fn(u32) -> Vec<Step> + 'static,
) -> (Vec<Vec<Status>>, Vec<String>) {
    let server = Box::new(|node| WiredServer::new(node, 9));
    let (limits, latency) = (Limits::default(), Duration::from_millis(1));
    let nodes = procs.div_ceil(per_node);
    let mut world = World::new(Setup { seed: 9, nodes, radix: 2, cores: per_node, limits, latency, server });
    world.script(move |proc| Script::new(script(proc.rank.0)));
    let app = AppSpec { argv: vec!["meets".into()], procs: Some(procs), ..AppSpec::default() };
    world.submit(JobRequest {
        apps: vec![app],
        on_failure: FailurePolicy::Continue,
        ..JobRequest::default()
    });
    world.run_until(Duration::from_secs(600), |world| world.user.ends.len() == 1);
    assert_eq!(world.user.complaints, Vec::<String>::new());
    let ended = |(_, answer): &(_, RankAnswer)| match answer {
        RankAnswer::Host(reply) => match &**reply {
            HostReply::Group(Ok(_)) => Status::SUCCESS,
            other => panic!("{other:?}"),
        },
        RankAnswer::Done(status) => *status,
        RankAnswer::Value(value) => panic!("{value:?}"),
    };
    let all = (0..procs).map(|number| world.procs[&rank(number)].answers.iter().map(ended).collect());
    (all.collect(), world.user.notes)
}

/// The ways in which a rank can stay away.
fn stays_away(how: &str) -> Vec<Step> {
    let init = || Step::Ask(Op::Init);
    match how {
        "ends before init" => vec![],
        "ends before init, later" => vec![late(5)],
        "finalizes" => vec![init(), Step::Ask(Op::Finalize), late(20)],
        "finalizes later" => vec![init(), late(5), Step::Ask(Op::Finalize), late(20)],
        "fails before init" => vec![Step::Exit(3)],
        "fails later" => vec![init(), late(5), Step::Exit(3)],
        _ => vec![init(), late(5), Step::Die(9)],
    }
}

const ABSENCES: [&str; 7] = [
    "ends before init",
    "ends before init, later",
    "finalizes",
    "finalizes later",
    "fails before init",
    "fails later",
    "is killed",
];

#[test]
fn collectives_without_an_ended_rank_fail_alike_anywhere() {
    for kind in COLLECTIVES {
        for how in ABSENCES {
            let script = move |number| match number {
                1 => stays_away(how),
                _ => vec![Step::Ask(Op::Init), late(1), meet(kind, None), Step::Ask(Op::Finalize)],
            };
            let missed = match kind {
                "group" => Status::GROUP_CONSTRUCT_ABORT,
                _ => Status::ERR_LOST_CONNECTION,
            };
            let expected = [Status::SUCCESS, missed, Status::SUCCESS];
            for (procs, per_node) in [(2, 2), (2, 1), (4, 2), (5, 1)] {
                let ended = run(procs, per_node, script);
                for number in (0..procs).filter(|number| *number != 1) {
                    let told = &ended[number as usize];
                    assert_eq!(told, &expected, "{kind}, {procs} by {per_node}: rank {number}, when 1 {how}");
                }
            }
        }
    }
}

/// The rank that has not come yet may be busy for hours.
#[test]
fn waiting_ranks_hear_at_once_of_a_rank_that_has_ended() {
    for kind in COLLECTIVES {
        for per_node in [1, 3] {
            let script = move |number| match number {
                0 => vec![Step::Ask(Op::Init), meet(kind, None), Step::Exit(0)],
                1 => vec![Step::Ask(Op::Init), Step::Ask(Op::Finalize)],
                _ => vec![Step::Ask(Op::Init), late(400), Step::Ask(Op::Finalize)],
            };
            let ended = run(3, per_node, script);
            assert_eq!(ended[0].len(), 2, "{kind}, {per_node} on a node: {ended:?}");
            assert!(!ended[0][1].is_success(), "{kind}, {per_node} on a node: {ended:?}");
        }
    }
}

/// MPI libraries only report a network failure then.
#[test]
fn the_rank_that_did_not_come_is_named() {
    for how in ["ends before init", "finalizes"] {
        let script = move |number| match number {
            1 => stays_away(how),
            _ => vec![Step::Ask(Op::Init), late(1), meet("fence", None), Step::Ask(Op::Finalize)],
        };
        let (_, notes) = run_noted(4, 1, script);
        let named =
            |note: &&String| note.contains("rank 1 (on ") && note.contains("without taking part in a fence");
        assert_eq!(notes.iter().filter(named).count(), 1, "{how}: {notes:?}");
    }
}

/// The late rank must take part neither in what has failed for the others, nor in what they do next.
#[test]
fn a_collective_that_times_out_does_so_for_all() {
    for kind in COLLECTIVES {
        for limit in [None, Some(2)] {
            let script = move |number| {
                let (wait, limit) = if number == 1 { (8, limit) } else { (0, Some(2)) };
                let then = [meet(kind, None), Step::Ask(Op::Finalize)];
                [Step::Ask(Op::Init), late(wait), meet(kind, limit)].into_iter().chain(then).collect()
            };
            let expected = [Status::SUCCESS, Status::ERR_TIMEOUT, Status::SUCCESS, Status::SUCCESS];
            for (procs, per_node) in [(2, 2), (2, 1), (4, 2), (5, 1)] {
                let ended = run(procs, per_node, script);
                for (number, told) in ended.iter().enumerate() {
                    assert_eq!(told, &expected, "{kind}, {procs} by {per_node}: rank {number}; 1: {limit:?}");
                }
            }
        }
    }
}

/// Rank 2 waits on the node of the missing rank, and has no limit of its own.
#[test]
fn one_ranks_time_limit_is_that_of_all() {
    for kind in COLLECTIVES {
        for per_node in [4, 2, 1] {
            let script = move |number| match number {
                3 => vec![Step::Ask(Op::Init), late(400), Step::Ask(Op::Finalize)],
                _ => {
                    let limit = Some(2).filter(|_| number == 0);
                    vec![Step::Ask(Op::Init), meet(kind, limit), Step::Ask(Op::Finalize)]
                }
            };
            let ended = run(4, per_node, script);
            for told in ended.iter().take(3) {
                let expected = [Status::SUCCESS, Status::ERR_TIMEOUT, Status::SUCCESS];
                assert_eq!(told, &expected, "{kind}, {per_node} on a node: {ended:?}");
            }
        }
    }
}
