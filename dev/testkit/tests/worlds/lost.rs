//! Waits for ranks of a lost host end with the status that `docs/guide/many-hosts.md` names for their kind.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use phalanx_core::Time;
use phalanx_dvm::{AppSpec, FailurePolicy, JobRequest, Limits, NodeId};
use phalanx_spec::{Rank, Status, keys};
use phalanx_testkit::wired::WiredServer;
use phalanx_testkit::{Op, RankAnswer, Script, Setup, Step, World};
use phalanx_wire::{Info, Nspace, ProcId};

const WAITS: [(&str, Status); 7] = [
    ("fence", Status::ERR_LOST_CONNECTION),
    ("connect", Status::ERR_LOST_CONNECTION),
    ("disconnect", Status::ERR_LOST_CONNECTION),
    ("group", Status::GROUP_CONSTRUCT_ABORT),
    ("group of leaders", Status::GROUP_CONSTRUCT_ABORT),
    ("end of a group", Status::ERR_LOST_CONNECTION),
    ("get", Status::ERR_PROC_TERM_WO_SYNC),
];

/// The lost ranks are 4 and 5, on the last of three nodes.
const NODES: u32 = 3;

fn group(info: Vec<Info>) -> Op {
    Op::Group { name: "some".to_owned(), info }
}

/// What all ranks have done before the loss.
fn before(kind: &str) -> Vec<Op> {
    match kind {
        "disconnect" => vec![Op::Connect { info: Vec::new() }],
        "end of a group" => vec![group(Vec::new())],
        _ => Vec::new(),
    }
}

/// What the survivors wait in.
fn wait(kind: &str) -> Op {
    let info = Vec::new();
    match kind {
        "fence" => Op::FenceWith { info },
        "connect" => Op::Connect { info },
        "disconnect" => Op::Disconnect { info },
        "group" => group(info),
        "group of leaders" => group(vec![Info::new(keys::GROUP_BOOTSTRAP, 4u32)]),
        "end of a group" => Op::Ungroup { name: "some".to_owned(), info },
        _ => Op::Get { rank: Rank(4), key: "never.put".to_owned() },
    }
}

/// The status of the wait for each survivor. `begins`: how many seconds after the start; the host is lost after 10.
fn ended(kind: &'static str, crashes: bool, begins: u64) -> Vec<Status> {
    let server = Box::new(|node| WiredServer::new(node, 3));
    let (limits, latency) = (Limits::default(), Duration::from_millis(1));
    let mut world = World::new(Setup { seed: 3, nodes: NODES, radix: 2, cores: 2, limits, latency, server });
    world.script(move |proc| {
        let first = [Op::Init].into_iter().chain(before(kind)).map(Step::Ask);
        let sleep = |seconds| Step::Sleep(Duration::from_secs(seconds));
        let then = match proc.rank.0 {
            0..4 => vec![sleep(begins), Step::Ask(wait(kind)), Step::Ask(Op::Finalize)],
            _ => vec![sleep(5000)],
        };
        Script::new(first.chain(then).collect())
    });
    let app = AppSpec { argv: vec!["waits".into()], procs: Some(2 * NODES), ..AppSpec::default() };
    let on_failure = FailurePolicy::Continue;
    world.submit(JobRequest { apps: vec![app], on_failure, ..JobRequest::default() });
    let lost_at = Time::default().after(Duration::from_secs(10));
    world.run_until(Duration::from_secs(60), |world| world.now >= lost_at);
    match crashes {
        true => world.crash_at(world.now, NodeId(2)),
        false => world.cut_off([NodeId(2)]),
    }
    world.run_until(Duration::from_secs(3000), |world| world.user.ends.len() == 1);
    let status = |(_, answer): &(_, RankAnswer)| match answer {
        RankAnswer::Host(reply) => reply.status(),
        RankAnswer::Done(status) => *status,
        RankAnswer::Value(value) => panic!("{value:?}"),
    };
    let ended = (0..4).map(|number| {
        let rank = ProcId::new(&Nspace::new("world@1").unwrap(), Rank(number));
        let mut all: Vec<Status> = world.procs[&rank].answers.iter().map(status).collect();
        assert_eq!(all.pop(), Some(Status::SUCCESS), "{kind}: finalize of rank {number}");
        all.pop().unwrap()
    });
    ended.collect()
}

#[test]
fn each_wait_for_a_lost_host_ends_with_the_status_of_its_kind() {
    for (kind, status) in WAITS {
        for crashes in [true, false] {
            for begins in [1, 600] {
                let how = format!("{kind}, begun after {begins} s, crash: {crashes}");
                assert_eq!(ended(kind, crashes, begins), [status; 4], "{how}");
            }
        }
    }
}
