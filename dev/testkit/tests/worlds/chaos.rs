//! Hundreds of small worlds in which anything may fail at any time: every job ends, no byte of output is lost or
//! reordered, no fence is mistaken for another.

use std::time::Duration;

use phalanx_core::Time;
use phalanx_dvm::{AppSpec, FailurePolicy, JobRequest, JobVerdict, Limits, NodeId};
use phalanx_spec::{IofChannel, Rank, Status};
use phalanx_testkit::scripted::ScriptedServer;
use phalanx_testkit::wired::WiredServer;
use phalanx_testkit::{Op, Random, RankAnswer, RankServer, Script, Setup, Step, World};
use phalanx_wire::{Blob, ProcId};

use crate::seeds::each_seed;

/// How much goes wrong.
#[derive(Clone, Copy, PartialEq)]
enum Weather {
    /// Nothing.
    Fair,
    /// Processes fail.
    Rough,
    /// Daemons are lost, too.
    Storm,
}

fn card(rank: u32, round: u32) -> Vec<u8> {
    format!("{rank} in round {round}").into_bytes()
}

/// A random life; every rank of a job takes part in the same fences.
fn script(seed: u64, proc: &ProcId, size: u32, weather: Weather) -> Script {
    let job: u64 = proc.nspace.as_str().bytes().map(u64::from).sum();
    let mut shared = Random::new(seed ^ (job << 20));
    let mut own = Random::new(seed ^ (job << 20) ^ (u64::from(proc.rank.0) + 1) << 40);
    let rank = proc.rank.0;
    let mut steps = Vec::new();
    let uses_pmix = !shared.one_in(8);
    if uses_pmix {
        steps.push(Step::Ask(Op::Init));
    }
    for round in 0..shared.between(1, 6) as u32 {
        let collect = shared.one_in(2);
        // A subset that every rank computes in the same way; if it is empty, all ranks.
        let pattern = shared.number();
        let subset: Vec<Rank> = (0..size).filter(|r| pattern >> (r % 64) & 1 == 1).map(Rank).collect();
        let whole = shared.one_in(2) || subset.is_empty();
        let procs = if whole { Vec::new() } else { subset.clone() };
        let takes_part = whole || subset.contains(&proc.rank);
        if own.one_in(3) {
            steps.push(Step::Sleep(Duration::from_micros(own.between(1, 400_000))));
        }
        if own.one_in(2) {
            let bytes = (0..own.between(1, 40_000)).map(|i| (i ^ u64::from(rank)) as u8).collect();
            let channel = if own.one_in(3) { IofChannel::STDERR } else { IofChannel::STDOUT };
            steps.push(Step::Write(channel, bytes));
        }
        if weather != Weather::Fair && own.one_in(40) {
            steps.push(match own.between(0, 4) {
                0 => Step::Exit(7),
                1 => Step::Die(11),
                2 if uses_pmix => Step::Ask(Op::Abort { status: 9 }),
                _ => Step::Exit(0),
            });
        }
        if uses_pmix && takes_part {
            steps.push(Step::Ask(Op::Commit { key: format!("card{round}"), value: card(rank, round) }));
            steps.push(Step::Ask(Op::Fence { procs, collect }));
            let peers: Vec<u32> =
                if whole { (0..size).collect() } else { subset.iter().map(|r| r.0).collect() };
            if let Some(peer) = own.pick(&peers) {
                steps.push(Step::Ask(Op::Get { rank: Rank(*peer), key: format!("card{round}") }));
            }
        }
    }
    if uses_pmix {
        steps.push(Step::Ask(Op::Finalize));
    }
    Script {
        steps,
        ignores_term: own.one_in(5),
        lingers: Duration::from_millis(if own.one_in(20) { 10_000 } else { 0 }),
    }
}

fn live_through<S: RankServer>(seed: u64, weather: Weather, server: Box<dyn FnMut(NodeId) -> S>) {
    let mut random = Random::new(seed);
    let nodes = random.between(1, 14) as u32;
    let cores = random.between(1, 4) as u32;
    let limits = Limits {
        output_pool: random.between(4_000, 200_000) as usize,
        output_link: random.between(2_000, 60_000) as usize,
        ..Limits::default()
    };
    let radix = random.between(1, 4) as u32;
    let latency = Duration::from_micros([200, 20_000, 100_000][random.between(0, 3) as usize]);
    let mut world = World::new(Setup { seed, nodes, radix, cores, limits, latency, server });
    world.user.pace = Duration::from_micros(random.between(0, 3_000));
    let mut requests = Vec::new();
    let jobs = random.between(1, 4);
    let size = random.between(1, u64::from(nodes * cores) + 1) as u32;
    world.script(move |proc| script(seed, proc, size, weather));
    let policies = [FailurePolicy::KillJob, FailurePolicy::KillOnSignal, FailurePolicy::Continue];
    for _ in 0..jobs {
        let app = AppSpec { argv: vec!["chaos".into()], procs: Some(size), ..AppSpec::default() };
        let on_failure = random.pick(&policies).copied().unwrap_or_default();
        requests.push(world.submit(JobRequest { apps: vec![app], on_failure, ..JobRequest::default() }));
        world.run_for(Duration::from_millis(random.between(0, 400)));
    }
    let mut crashed = Vec::new();
    if weather == Weather::Storm {
        for _ in 0..random.between(0, 4) {
            let victim = NodeId(random.between(1, u64::from(nodes)) as u32);
            if victim.0 < nodes {
                crashed.push(victim);
                world.crash_at(Time(world.now.0 + random.between(0, 2_000_000_000)), victim);
            }
        }
    }
    world.run_until(Duration::from_secs(600), |w| w.user.ends.len() + w.user.refused.len() >= requests.len());
    world.run_for(Duration::from_secs(30));
    check(&world, weather, &crashed);
}

fn check<S: RankServer>(world: &World<S>, weather: Weather, crashed: &[NodeId]) {
    assert_eq!(world.user.complaints, Vec::<String>::new());
    if crashed.is_empty() {
        assert_eq!(world.user.refused.len(), 0, "{:?}", world.user.refused);
    }
    for (proc, fate) in &world.procs {
        assert!(fate.ended.is_some(), "{proc} outlives its job");
        for channel in [IofChannel::STDOUT, IofChannel::STDERR] {
            let wrote = fate.written.get(&channel).map_or(&[][..], Vec::as_slice);
            let seen = world.user.output(proc, channel);
            assert!(wrote.starts_with(seen), "{proc} on {:?}: output is not what it wrote", fate.node);
            if !crashed.contains(&fate.node) {
                assert_eq!(seen.len(), wrote.len(), "{proc} on {:?}: output is missing", fate.node);
            }
        }
        for (op, answer) in &fate.answers {
            match (op, answer) {
                (Op::Get { rank, key }, RankAnswer::Value(value)) => {
                    let Ok(round) = key.trim_start_matches("card").parse() else { panic!("{key}") };
                    assert_eq!(*value, Blob::from(card(rank.0, round)), "{proc} was given another's data");
                }
                (_, RankAnswer::Done(status)) if weather == Weather::Fair => {
                    assert_eq!(*status, Status::SUCCESS, "{proc} asked {op:?}");
                }
                _ => {}
            }
        }
    }
    for end in world.user.ends.values() {
        if weather == Weather::Fair {
            assert_eq!(end.verdict, JobVerdict::Success);
            assert!(end.procs.iter().all(|p| p.status.is_some_and(|s| s.is_success()) && !p.killed_by_us));
        }
        assert_eq!(end.exit_code == 0, end.verdict == JobVerdict::Success, "{:?}", end.verdict);
        for proc in &end.procs {
            let fate = world.procs.get(&proc.proc);
            if proc.status.is_some() {
                assert_eq!(proc.status, fate.and_then(|fate| fate.ended), "{proc:?}");
            }
        }
    }
}

fn many(weather: Weather, seeds: std::ops::Range<u64>) {
    each_seed(seeds, |seed| {
        if seed % 2 == 0 {
            live_through(seed, weather, Box::new(|_| ScriptedServer::default()));
        } else {
            live_through(seed, weather, Box::new(move |node| WiredServer::new(node, seed)));
        }
    });
}

#[test]
fn all_is_well_in_fair_weather() {
    many(Weather::Fair, 0..120);
}

#[test]
fn processes_may_fail() {
    many(Weather::Rough, 100_000..100_150);
}

#[test]
fn daemons_may_be_lost() {
    many(Weather::Storm, 200_000..200_200);
}
