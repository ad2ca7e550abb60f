//! DVMs whose root starts the other daemons, by commands that fail in every way, and that lose daemons, commands and links during
//! the start and afterwards. Every operation ends exactly once, and at the end nothing waits and nothing runs.

use std::time::Duration;

use phalanx_core::Time;
use phalanx_core::host::{Asked, ConnectRequest, GroupRequest, HostOp};
use phalanx_dvm::{AppSpec, FailurePolicy, JobRequest, Limits, NodeId};
use phalanx_spec::{IofChannel, Range, Rank, keys};
use phalanx_testkit::scripted::ScriptedServer;
use phalanx_testkit::{Agents, Mishap, Op, Random, Script, Setup, Shelf, Step, World};
use phalanx_wire::cmd::iof::Pull;
use phalanx_wire::cmd::log::Log;
use phalanx_wire::cmd::query::Queries;
use phalanx_wire::cmd::spawn::Spawn;
use phalanx_wire::{App, Info, ProcId, Query};

use crate::seeds::each_seed;

type Starting = World<ScriptedServer>;

/// What happens in a world.
#[derive(Clone, Copy)]
struct Course {
    hosts: u64,
    /// One host in this many fails to start; 0: none.
    bad: u64,
    skip_bad: bool,
    /// How many daemons, commands and links are lost or stalled, during the start and afterwards.
    early: u64,
    late: u64,
}

fn begin(seed: u64, random: &mut Random, course: Course) -> Starting {
    let mut left = course.hosts as usize;
    // One command per host, or one for many.
    let most = if random.one_in(3) { left as u64 } else { 1 };
    let mut hosts = Vec::new();
    while left > 0 {
        let some = (random.between(1, most + 1) as usize).min(left);
        hosts.push(some);
        left -= some;
    }
    let shelf = Shelf::default();
    let server = Box::new(move |_| ScriptedServer::sharing(&shelf));
    let radix = if course.hosts > 60 { 32 } else { random.between(1, 5) as u32 };
    let latency = Duration::from_micros([200, 20_000, 100_000][random.between(0, 3) as usize]);
    let (nodes, cores, limits) = (0, 2, Limits::default());
    let mut luck = Random::new(seed ^ 0x5eed);
    let mishap = Box::new(move |_| match course.bad > 0 && luck.one_in(course.bad) {
        true => *luck.pick(&MISHAPS).unwrap_or(&Mishap::None),
        false => Mishap::None,
    });
    let agents = Agents { hosts, skip_bad: course.skip_bad, mishap };
    World::starting(Setup { seed, nodes, radix, cores, limits, latency, server }, agents)
}

const MISHAPS: [Mishap; 8] = [
    Mishap::NoCommand,
    Mishap::Refused,
    Mishap::Silent,
    Mishap::Stranger,
    Mishap::Fails,
    Mishap::Stuck,
    Mishap::Lonely,
    Mishap::Short,
];

/// Loses or stalls a daemon, command or link, within this time from now.
fn trouble(world: &mut Starting, random: &mut Random, course: Course, within: u64) {
    let at = Time(world.now.0 + random.between(0, within));
    let node = NodeId(random.between(1, course.hosts + 1) as u32);
    // Most links are between a daemon and its parent; if there is none, nothing happens.
    let above = NodeId(random.between(0, u64::from(node.0)) as u32);
    let parent = if random.one_in(2) { NodeId::ROOT } else { above };
    match random.between(0, 4) {
        0 => world.crash_at(at, node),
        1 => world.kill_agent(at, node.0 - 1),
        2 => world.cut_at(at, parent, node),
        _ => {
            let span = Duration::from_millis(random.between(1, 30_000));
            world.stall_at(at, parent, node, span);
        }
    }
}

/// One rank on each node, which makes all kinds of requests.
fn script(seed: u64, proc: &ProcId, size: u32) -> Script {
    if !proc.nspace.as_str().ends_with("@1") {
        return Script::new(vec![
            Step::Sleep(Duration::from_secs(2)),
            Step::Exit(i32::from(proc.rank.0 == 1)),
        ]);
    }
    let (mut shared, mut own) = (Random::new(seed), Random::new(seed ^ (u64::from(proc.rank.0) + 1) << 20));
    let from = || proc.clone();
    let everybody = || vec![ProcId::all(&proc.nspace)];
    let ask = |op: HostOp| Step::Ask(Op::Host(Box::new(op)));
    let rank = proc.rank.0;
    let card = Op::Commit { key: "card".to_owned(), value: format!("card of {rank}").into_bytes() };
    let mut steps = vec![Step::Ask(Op::Init), Step::Ask(card)];
    for round in 0..shared.between(2, 7) {
        let together = match shared.between(0, 4) {
            0 => Step::Ask(Op::Fence { procs: Vec::new(), collect: true }),
            1 => Step::Ask(Op::Fence { procs: Vec::new(), collect: false }),
            2 => ask(HostOp::Connect(ConnectRequest { procs: everybody(), info: Vec::new() })),
            _ => {
                let info = vec![Info::new(keys::GROUP_FT_COLLECTIVE, shared.one_in(2))];
                let id = format!("g{round}");
                ask(HostOp::GroupConstruct(GroupRequest { from: None, id, procs: everybody(), info }))
            }
        };
        let length = own.between(1, 60_000) as usize;
        let alone = match own.between(0, 9) {
            0 => Step::Write(IofChannel::STDOUT, vec![rank as u8; length]),
            1 => {
                let app = App {
                    cmd: Some("child".into()),
                    argv: vec!["child".into()],
                    max_procs: 2,
                    ..App::default()
                };
                ask(HostOp::Spawn(Asked {
                    from: from(),
                    request: Spawn { job: Vec::new(), apps: vec![app] },
                }))
            }
            2 => {
                let queries = vec![Query {
                    keys: vec!["phalanx.waits".into(), "phalanx.ranks".into()],
                    qualifiers: Vec::new(),
                }];
                ask(HostOp::Query(Asked { from: from(), request: Queries { queries } }))
            }
            3 => {
                let directives = vec![Info::new(keys::JOB_CTRL_SIGNAL, 10i32)];
                let targets = vec![Rank(own.between(0, size.into()) as u32)];
                Step::Ask(Op::Control { targets, directives })
            }
            4 => Step::Ask(Op::Publish {
                key: format!("k{rank}-{round}"),
                value: "here".to_owned(),
                range: Range::SESSION,
            }),
            5 => {
                let of = own.between(0, size.into());
                Step::Ask(Op::Lookup { key: format!("k{of}-{round}"), wait: true, timeout: Some(20) })
            }
            6 => {
                Step::Ask(Op::Get { rank: Rank(own.between(0, size.into()) as u32), key: "card".to_owned() })
            }
            7 => {
                let data = vec![Info::new(keys::LOG_STDERR, "words")];
                let request = Log { timestamp: 0, data, directives: Vec::new() };
                ask(HostOp::Log(Asked { from: from(), request }))
            }
            _ => {
                let handle = 100 * (round + 1) + u64::from(rank);
                let (sources, channels, directives) = (everybody(), IofChannel::STDOUT, Vec::new());
                let request = Pull { sources, directives, channels, handle };
                ask(HostOp::IofPull(Asked { from: from(), request }))
            }
        };
        steps.extend([Step::Sleep(Duration::from_millis(own.between(1, 3_000))), alone, together]);
        if own.one_in(60) {
            steps.push(if own.one_in(2) { Step::Exit(3) } else { Step::Die(11) });
        }
    }
    steps.push(Step::Ask(Op::Finalize));
    Script { steps, ignores_term: own.one_in(5), lingers: Duration::ZERO }
}

fn live_through(seed: u64, course: Course) {
    let mut random = Random::new(seed);
    let mut world = begin(seed, &mut random, course);
    for _ in 0..course.early {
        trouble(&mut world, &mut random, course, 1_000_000_000);
    }
    let size = course.hosts as u32 + 1;
    world.script(move |proc| script(seed, proc, size));
    let on_failure = if random.one_in(2) { FailurePolicy::Continue } else { FailurePolicy::KillJob };
    let app = AppSpec { argv: vec!["asks".into()], ..AppSpec::default() };
    let policy =
        phalanx_dvm::map::Policy { map: "ppr:1:node".parse().unwrap_or_default(), ..Default::default() };
    let request = world.submit(JobRequest { apps: vec![app], on_failure, policy, ..JobRequest::default() });
    let told = |world: &Starting| {
        world.user.accepted.contains_key(&request) || world.user.refused.contains_key(&request)
    };
    world.run_until(Duration::from_secs(300), told);
    assert_eq!(world.user.starts.len(), 1, "{:?}", world.user.starts);
    assert_eq!(world.user.starts[0].is_ok(), world.user.accepted.contains_key(&request));
    if course.skip_bad {
        assert_eq!(world.user.starts[0], Ok(()));
    }
    for _ in 0..course.late {
        trouble(&mut world, &mut random, course, 10_000_000_000);
    }
    let jobs = |world: &Starting| world.user.accepted.len() + world.user.spawned.len();
    world.run_until(Duration::from_secs(900), |world| world.user.ends.len() == jobs(world));
    // Cuts and stalls may only be noticed now.
    world.run_for(Duration::from_secs(120));
    assert_eq!(world.explain(), "", "{:?}", world.user.starts);
    for node in (0..size).filter_map(|node| world.node(NodeId(node))) {
        assert_eq!(node.server().unanswered(), []);
    }
    end(&mut world, size);
}

/// Nothing must be left of a DVM after its shutdown.
fn end(world: &mut Starting, size: u32) {
    world.shut_down();
    world.run_for(Duration::from_secs(120));
    assert_eq!(world.user.complaints, Vec::<String>::new());
    let living = (0..size).filter(|node| world.is_alive(NodeId(*node))).collect::<Vec<_>>();
    assert_eq!(living, Vec::<u32>::new(), "daemons outlive their DVM\n{}", world.explain());
    assert_eq!(world.living_agents(), 0, "commands outlive their DVM");
    for (proc, fate) in &world.procs {
        assert!(fate.ended.is_some(), "{proc} outlives its job");
    }
    assert_eq!(world.user.starts.len(), 1, "{:?}", world.user.starts);
}

fn many(seeds: std::ops::Range<u64>, course: impl Fn(&mut Random) -> Course) {
    each_seed(seeds, |seed| live_through(seed, course(&mut Random::new(seed ^ 0xc0))));
}

#[test]
fn daemons_start_by_commands_and_end_with_their_dvm() {
    many(0..40, |random| Course { hosts: random.between(1, 40), bad: 0, skip_bad: false, early: 0, late: 0 });
}

#[test]
fn bad_hosts_are_left_out_or_end_the_start() {
    many(300_000..300_120, |random| Course {
        hosts: random.between(1, 40),
        bad: random.between(2, 12),
        skip_bad: random.one_in(2),
        early: 0,
        late: 0,
    });
}

#[test]
fn losses_while_daemons_start_leave_nothing_open() {
    many(400_000..400_120, |random| Course {
        hosts: random.between(1, 40),
        bad: if random.one_in(2) { 20 } else { 0 },
        skip_bad: true,
        early: random.between(1, 8),
        late: 0,
    });
}

#[test]
fn losses_after_the_start_leave_nothing_open() {
    many(500_000..500_120, |random| Course {
        hosts: random.between(2, 30),
        bad: 0,
        skip_bad: true,
        early: 0,
        late: random.between(1, 8),
    });
}

#[test]
fn a_thousand_daemons_start_with_failures_and_losses() {
    many(600_000..600_001, |_| Course { hosts: 1_000, bad: 50, skip_bad: true, early: 20, late: 20 });
}

/// Commands that are stopped during the start leave nothing behind, whenever that happens.
#[test]
fn a_start_that_is_ended_at_any_moment_leaves_nothing() {
    each_seed(700_000..700_150, |seed| {
        let mut random = Random::new(seed);
        let bad = if random.one_in(2) { 6 } else { 0 };
        let course = Course { hosts: random.between(1, 100), bad, skip_bad: true, early: 0, late: 0 };
        let mut world = begin(seed, &mut random, course);
        world.run_for(Duration::from_millis(random.between(0, 1_200)));
        world.shut_down();
        world.run_for(Duration::from_secs(30));
        let living: Vec<u32> =
            (0..=course.hosts as u32).filter(|node| world.is_alive(NodeId(*node))).collect();
        assert_eq!(living, Vec::<u32>::new());
        assert_eq!(world.living_agents(), 0);
        assert_eq!(world.user.complaints, Vec::<String>::new());
    });
}
