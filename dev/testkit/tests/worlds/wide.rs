//! A machine of 4,096 nodes, in an ordinary test, and of 16,384: boot, launch, fence, publish, lose a rank and an inner
//! daemon, end.

use std::time::Duration;

use phalanx_core::Time;
use phalanx_dvm::hosts::HostEntry;
use phalanx_dvm::{AppSpec, FailurePolicy, JobRequest, JobVerdict, Limits, NodeId};
use phalanx_spec::{IofChannel, Range, Rank, Status};
use phalanx_testkit::scripted::ScriptedServer;
use phalanx_testkit::{Op, RankAnswer, Script, Setup, Shelf, Step, World};
use phalanx_wire::{Blob, ProcId};

const RADIX: u32 = 32;
/// A child of the root, with children of its own.
const VICTIM: NodeId = NodeId(1);

fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

fn commit(proc: &ProcId) -> Op {
    Op::Commit { key: "card".to_owned(), value: format!("card of {}", proc.rank.0).into_bytes() }
}

fn get(rank: u32) -> Op {
    Op::Get { rank: Rank(rank), key: "card".to_owned() }
}

fn fence(collect: bool) -> Op {
    Op::Fence { procs: Vec::new(), collect }
}

fn card(rank: u32) -> RankAnswer {
    RankAnswer::Value(Blob::from(format!("card of {rank}").into_bytes()))
}

#[test]
fn four_thousand_nodes() {
    run(4096);
}

#[test]
#[ignore = "takes half a minute: --ignored sixteen"]
fn sixteen_thousand_nodes() {
    run(16_384);
}

fn run(nodes: u32) {
    // A fence brings the same data to every server; in one process, separate copies would be too much.
    let shelf = Shelf::default();
    let server = Box::new(move |_| ScriptedServer::sharing(&shelf));
    let (limits, latency) = (Limits::default(), Duration::from_micros(200));
    let mut world = World::new(Setup { seed: 4096, nodes, radix: RADIX, cores: 2, limits, latency, server });

    // The first job is everywhere, with two ranks per node, and tolerates losses.
    let size = 2 * nodes;
    let everywhere = AppSpec { argv: vec!["wide".into()], procs: Some(size), ..AppSpec::default() };
    let everywhere =
        JobRequest { apps: vec![everywhere], on_failure: FailurePolicy::Continue, ..JobRequest::default() };
    // The second is only below the daemon that will be lost, and must not notice.
    let below = (0..nodes).filter(|n| *n > VICTIM.0 && (*n - 1) / RADIX == VICTIM.0);
    let below: Vec<u32> = below.flat_map(|n| (n * RADIX + 1..=n * RADIX + RADIX).chain([n])).collect();
    let hosts = below.iter().filter(|n| **n < nodes).map(|n| HostEntry::named(format!("n{n}"))).collect();
    let under = AppSpec { argv: vec!["under".into()], procs: Some(1000), hosts, ..AppSpec::default() };
    let under = JobRequest { apps: vec![under], ..JobRequest::default() };

    world.script(move |proc| {
        let rank = proc.rank.0;
        let mut steps = vec![Step::Ask(Op::Init), Step::Ask(commit(proc))];
        if proc.nspace == "world@2" {
            steps.extend([
                Step::Ask(fence(true)),
                Step::Ask(get((rank + 500) % 1000)),
                // Some come early, some late; the loss happens while they wait.
                Step::Sleep(Duration::from_millis(u64::from(rank) * 4)),
                Step::Ask(fence(true)),
                Step::Ask(fence(false)),
                Step::Write(IofChannel::STDOUT, format!("{rank} through\n").into_bytes()),
                Step::Ask(Op::Finalize),
            ]);
            return Script::new(steps);
        }
        steps.extend([
            Step::Ask(fence(true)),
            Step::Ask(get((rank + size / 2) % size)),
            Step::Ask(fence(false)),
        ]);
        match rank {
            0 => {
                let value = "4711".to_owned();
                steps.push(Step::Ask(Op::Publish { key: "port".to_owned(), value, range: Range::SESSION }));
            }
            8000 => steps.push(Step::Ask(Op::Lookup { key: "port".to_owned(), wait: true, timeout: None })),
            4000 => steps.extend([Step::Sleep(seconds(5)), Step::Die(11)]),
            _ => {}
        }
        steps.extend([
            Step::Sleep(seconds(20)),
            Step::Write(IofChannel::STDOUT, format!("{rank} ends\n").into_bytes()),
            Step::Ask(Op::Finalize),
        ]);
        Script::new(steps)
    });
    let first = world.submit(everywhere);
    world.run_until(seconds(60), |w| w.user.accepted.contains_key(&first));
    let wide = world.user.accepted[&first].clone();
    world.run_until(seconds(60), |w| w.user.progress.get(&(wide.clone(), "starting")) == Some(&(size, size)));
    let second = world.submit(under);
    world.crash_at(Time(world.now.0 + 3_000_000_000), VICTIM);
    world.run_until(seconds(300), |w| w.user.ends.len() == 2);
    assert_eq!(world.user.complaints, Vec::<String>::new());

    let narrow = &world.user.ends[&world.user.accepted[&second]];
    assert_eq!(narrow.verdict, JobVerdict::Success);
    for rank in 0..1000 {
        let proc = ProcId::new(&narrow.nspace, Rank(rank));
        let fate = &world.procs[&proc];
        assert_eq!(fate.answers[3].1, card((rank + 500) % 1000));
        assert!(
            fate.answers.iter().all(|(_, answer)| *answer != RankAnswer::Done(Status::ERR_LOST_CONNECTION))
        );
        assert_eq!(fate.answers.len(), 7);
        assert_eq!(world.user.output(&proc, IofChannel::STDOUT), format!("{rank} through\n").as_bytes());
    }

    let wide = &world.user.ends[&wide];
    let JobVerdict::Failed { first } = &wide.verdict else { panic!("{:?}", wide.verdict) };
    let lost: Vec<u32> =
        wide.procs.iter().filter(|end| end.status.is_none()).map(|end| end.proc.rank.0).collect();
    assert_eq!(lost, [2, 3]);
    assert!(first.proc.rank.0 == 4000 || lost.contains(&first.proc.rank.0), "{first:?}");
    for end in &wide.procs {
        let rank = end.proc.rank.0;
        let fate = &world.procs[&end.proc];
        if rank == 4000 || lost.contains(&rank) {
            continue;
        }
        assert!(end.status.is_some_and(|status| status.is_success()), "{end:?}");
        assert_eq!(fate.answers[3].1, card((rank + size / 2) % size));
        assert_eq!(world.user.output(&end.proc, IofChannel::STDOUT), format!("{rank} ends\n").as_bytes());
    }
    let looked_up = &world.procs[&ProcId::new(&wide.nspace, Rank(8000))].answers[5].1;
    assert_eq!(*looked_up, RankAnswer::Value(Blob::from(&b"4711"[..])));
    println!("{} messages, {} events, {:?} simulated", world.messages(), world.steps(), world.now);
}
