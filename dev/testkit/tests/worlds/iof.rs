//! Pulled output in the simulated world: every byte reaches all its receivers, whatever readers do.

// A test that cannot continue prints why and stops.
#![allow(clippy::expect_used)]

use std::collections::BTreeMap;
use std::time::Duration;

use phalanx_core::host::{Asked, EventsRequest, PullEnded};
use phalanx_core::{Event, HostOp, HostReply, Time};
use phalanx_dvm::{AppSpec, FailurePolicy, JobRequest, Limits, NodeId};
use phalanx_spec::{IofChannel, Rank, Status, keys};
use phalanx_testkit::scripted::{ScriptedServer, Tap};
use phalanx_testkit::{Op, Random, RankAnswer, Script, Setup, Step, World};
use phalanx_wire::cmd::iof::{Pull, Push};
use phalanx_wire::cmd::spawn::Spawn;
use phalanx_wire::{App, Info, InfoList, Nspace, ProcId, Value};

fn spawning(from: ProcId, job: Vec<Info>, app: App) -> HostOp {
    HostOp::Spawn(Asked { from, request: Spawn { job, apps: vec![app] } })
}

fn pulling(
    from: ProcId,
    sources: Vec<ProcId>,
    channels: IofChannel,
    directives: Vec<Info>,
    handle: u64,
) -> HostOp {
    HostOp::IofPull(Asked { from, request: Pull { sources, channels, directives, handle } })
}

fn world(seed: u64, nodes: u32, limits: Limits) -> World<ScriptedServer> {
    let server = Box::new(|_| ScriptedServer::default());
    World::new(Setup { seed, nodes, radix: 2, cores: 2, limits, latency: Duration::from_millis(1), server })
}

fn job(procs: u32) -> JobRequest {
    let app = AppSpec { argv: vec!["job".into()], procs: Some(procs), ..AppSpec::default() };
    JobRequest { apps: vec![app], on_failure: FailurePolicy::Continue, ..JobRequest::default() }
}

fn ask(op: HostOp) -> Step {
    Step::Ask(Op::Host(Box::new(op)))
}

fn nspace(number: u32) -> Nspace {
    Nspace::new(&format!("world@{number}")).expect("a name")
}

fn answers(world: &World<ScriptedServer>, proc: &ProcId) -> Vec<HostReply> {
    let given = world.procs[proc].answers.iter();
    given
        .filter_map(|(_, a)| if let RankAnswer::Host(reply) = a { Some((**reply).clone()) } else { None })
        .collect()
}

fn tap(world: &World<ScriptedServer>, node: NodeId, handle: u64) -> Option<&Tap> {
    world.node(node)?.server().taps.get(&handle)
}

/// Bytes that depend on their position.
fn text(rank: u32, channel: IofChannel, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|n| ((n * 7919 + rank as usize * 31 + channel.0 as usize) >> 3) as u8).collect()
}

fn writer(random: &mut Random, rank: u32) -> Script {
    let mut rest: BTreeMap<IofChannel, Vec<u8>> = BTreeMap::new();
    for channel in [IofChannel::STDOUT, IofChannel::STDERR] {
        rest.insert(channel, text(rank, channel, random.between(0, 60_000) as usize));
    }
    let mut steps = vec![Step::Sleep(Duration::from_millis(random.between(0, 300)))];
    while let Some(channel) = random.pick(&rest.keys().copied().collect::<Vec<_>>()).copied() {
        let most = [8, 300, 9_000][random.between(0, 3) as usize];
        let bytes = rest.get_mut(&channel).expect("it was picked");
        let piece: Vec<u8> = bytes.drain(..(random.between(1, most) as usize).min(bytes.len())).collect();
        if bytes.is_empty() {
            rest.remove(&channel);
        }
        steps.push(Step::Write(channel, piece));
        if random.one_in(20) {
            steps.push(Step::Sleep(Duration::from_millis(random.between(0, 50))));
        }
    }
    Script::new(steps)
}

/// The behaviour of a reader.
#[derive(Clone)]
struct Reading {
    sources: Vec<ProcId>,
    channels: IofChannel,
    copy: bool,
    stops: bool,
    dies_after: Option<usize>,
    holds: usize,
    pace: Duration,
}

fn reading(random: &mut Random, size: u32) -> Reading {
    let writers = nspace(1);
    let one = |random: &mut Random| ProcId::new(&writers, Rank(random.between(0, u64::from(size)) as u32));
    let stops = random.one_in(4);
    Reading {
        sources: if random.one_in(2) { vec![ProcId::all(&writers)] } else { vec![one(random), one(random)] },
        channels: [IofChannel::STDOUT, IofChannel::STDERR, IofChannel::ALL][random.between(0, 3) as usize],
        copy: !random.one_in(3),
        stops,
        dies_after: random.one_in(3).then(|| random.between(1, 40_000) as usize),
        // A reader that stops in good order also gets the bytes held for it.
        holds: if stops || random.one_in(2) { 0 } else { random.between(1, 20_000) as usize },
        pace: Duration::from_micros(random.between(0, 3_000)),
    }
}

#[test]
fn every_byte_reaches_everybody_whatever_readers_do() {
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let nodes = random.between(1, 6) as u32;
        let limits = Limits {
            output_pool: random.between(4_000, 400_000) as usize,
            output_link: random.between(2_000, 60_000) as usize,
            ..Limits::default()
        };
        let mut world = world(seed, nodes, limits);
        world.user.pace = Duration::from_micros(random.between(0, 1_000));
        let (size, tools) =
            (random.between(1, u64::from(nodes) + 1) as u32, random.between(1, u64::from(nodes) + 1) as u32);
        let readings: Vec<Reading> = (0..tools).map(|_| reading(&mut random, size)).collect();
        let scripted = readings.clone();
        let mut scripts = random.clone();
        world.script(move |proc| {
            if proc.nspace == nspace(1) {
                return writer(&mut scripts, proc.rank.0);
            }
            let Reading { sources, channels, copy, stops, .. } = scripted[proc.rank.0 as usize].clone();
            let directives = vec![Info::new(keys::IOF_COPY, copy)];
            let handle = u64::from(proc.rank.0) + 1;
            let from = proc.clone();
            let mut steps = vec![
                Step::Sleep(Duration::from_millis(scripts.between(0, 300))),
                ask(pulling(from.clone(), sources, channels, directives, handle)),
            ];
            if stops {
                steps.push(Step::Sleep(Duration::from_millis(scripts.between(0, 300))));
                steps.push(ask(HostOp::IofStop(PullEnded {
                    from,
                    handle,
                    directives: Vec::new(),
                    died: false,
                })));
            }
            Script::new(steps)
        });
        world.submit(job(size));
        world.submit(job(tools));
        for node in 0..nodes {
            for (reading, handle) in readings.iter().zip(1..) {
                let Reading { pace, dies_after, holds, .. } = *reading;
                let taps = &mut world.node_mut(NodeId(node)).expect("it lives").server_mut().taps;
                taps.insert(handle, Tap::new(pace, dies_after).holding(holds));
            }
        }
        world.run_until(Duration::from_secs(600), |w| w.user.ends.len() == 2);
        world.run_for(Duration::from_secs(20));
        assert_eq!(world.user.complaints, Vec::<String>::new());
        check(&world, seed, &readings);
    }
}

fn check(world: &World<ScriptedServer>, seed: u64, readings: &[Reading]) {
    for (proc, fate) in world.procs.iter().filter(|(proc, _)| proc.nspace == nspace(1)) {
        for channel in [IofChannel::STDOUT, IofChannel::STDERR] {
            let wrote = fate.written.get(&channel).map_or(&[][..], Vec::as_slice);
            let by_user = world.user.output(proc, channel);
            let mut redirected = Vec::new();
            for (reading, rank) in readings.iter().zip(0..) {
                let tool = ProcId::new(&nspace(2), Rank(rank));
                let wanted =
                    reading.channels.intersects(channel) && reading.sources.iter().any(|s| s.covers(proc));
                let node = world.procs[&tool].node;
                let tap = tap(world, node, u64::from(rank) + 1).expect("it was entered");
                assert!(tap.most_waiting <= (512 << 10) + (256 << 10), "seed {seed}: {}", tap.most_waiting);
                let got = tap.streams.get(&(proc.clone(), channel)).map_or(&[][..], Vec::as_slice);
                assert!(wanted || got.is_empty(), "seed {seed}: {tool} got what it did not want");
                assert!(
                    got.is_empty() || wrote.windows(got.len()).any(|part| part == got),
                    "seed {seed}: {tool} got something else"
                );
                let accepted = answers(world, &tool).first() == Some(&HostReply::Done(Status::SUCCESS));
                if wanted && accepted && !reading.stops && !tap.is_dead() {
                    assert!(wrote.ends_with(got), "seed {seed}: {tool} misses the end of {proc}");
                    assert!(
                        tap.ended.contains(&(proc.clone(), channel)) || got.is_empty(),
                        "seed {seed}: {tool} was not told the end"
                    );
                }
                if !reading.copy && wanted {
                    redirected.push(got);
                }
            }
            match redirected.as_slice() {
                [] => assert!(by_user == wrote, "seed {seed}: the user misses output of {proc}"),
                [got] => {
                    // The redirected part is missing in one place, and nothing else is.
                    let fits = |at: usize| {
                        wrote[..at] == by_user[..at]
                            && wrote[at..].starts_with(got)
                            && wrote[at + got.len()..] == by_user[at..]
                    };
                    assert!(
                        wrote.len() == by_user.len() + got.len(),
                        "seed {seed}: {} is not {} and {}",
                        wrote.len(),
                        by_user.len(),
                        got.len()
                    );
                    assert!((0..=by_user.len()).any(fits), "seed {seed}: output of {proc} is torn");
                }
                // Bytes that two dying readers held may come twice.
                _ => {
                    let held: usize = readings.iter().map(|reading| reading.holds).sum();
                    assert!(by_user.len() <= wrote.len() + held, "seed {seed}");
                }
            }
        }
    }
}

#[test]
fn earlier_output_is_kept_within_bounds_and_gaps_are_counted() {
    let cases: [(&str, bool, usize); 2] =
        [(keys::IOF_DROP_NEWEST, false, 0), (keys::IOF_DROP_OLDEST, true, 34_000)];
    for (policy, _, first) in cases {
        let mut world = world(3, 2, Limits::default());
        let stdout = IofChannel::STDOUT;
        world.script(move |proc| match proc.nspace.as_str() {
            "world@1" => {
                let app = App { cmd: Some("child".into()), max_procs: 1, ..App::default() };
                let job = vec![
                    Info::new(keys::FWD_STDOUT, true),
                    Info::new(keys::IOF_CACHE_SIZE, 16_000u32),
                    Info::new(policy, true),
                ];
                let pull = |channels, handle| {
                    let sources = vec![ProcId::all(&nspace(2))];
                    ask(pulling(proc.clone(), sources, channels, Vec::new(), handle))
                };
                Script::new(vec![
                    ask(spawning(proc.clone(), job, app)),
                    Step::Sleep(Duration::from_secs(1)),
                    pull(IofChannel::STDERR, 8),
                    pull(IofChannel::STDOUT, 9),
                ])
            }
            _ => Script::new(vec![
                Step::Write(stdout, text(0, stdout, 50_000)),
                Step::Sleep(Duration::from_secs(2)),
                Step::Write(stdout, b"live".to_vec()),
            ]),
        });
        world.submit(job(1));
        world.run_until(Duration::from_secs(60), |w| w.user.ends.len() == 2);
        let parent = ProcId::new(&nspace(1), Rank(0));
        let given = answers(&world, &parent);
        assert_eq!(given[1], HostReply::Done(Status::ERR_NOT_AVAILABLE), "standard error was not asked for");
        assert_eq!(given[2].status(), Status::SUCCESS);
        let tap = tap(&world, world.procs[&parent].node, 9).expect("it reads");
        let stream = (ProcId::new(&nspace(2), Rank(0)), stdout);
        let mut expected = text(0, stdout, 50_000)[first..first + 16_000].to_vec();
        expected.extend_from_slice(b"live");
        assert!(tap.streams[&stream] == expected, "{policy}");
        assert_eq!((tap.lost[&stream], tap.ended.contains(&stream)), (34_000, true), "{policy}");
    }
}

#[test]
fn a_pull_brings_only_the_streams_that_are_forwarded() {
    let mut world = world(6, 2, Limits::default());
    let (stdout, stderr) = (IofChannel::STDOUT, IofChannel::STDERR);
    let all = IofChannel::ALL;
    world.script(move |proc| match proc.nspace.as_str() {
        "world@1" => {
            let app = App { cmd: Some("child".into()), max_procs: 1, ..App::default() };
            let job = vec![Info::new(keys::FWD_STDOUT, true), Info::new(keys::IOF_CACHE_SIZE, 16_000u32)];
            let pull = |handle, cached: u32| {
                let (sources, directives) =
                    (vec![ProcId::all(&nspace(2))], vec![Info::new(keys::IOF_CACHE_SIZE, cached)]);
                ask(pulling(proc.clone(), sources, all, directives, handle))
            };
            let pause = Step::Sleep(Duration::from_secs(1));
            let spawn = ask(spawning(proc.clone(), job, app));
            Script::new(vec![spawn, pause.clone(), pull(8, 16_000), pause])
        }
        _ => Script::new(vec![
            Step::Write(stdout, b"early ".to_vec()),
            Step::Write(stderr, b"error ".to_vec()),
            Step::Sleep(Duration::from_secs(3)),
            Step::Write(stdout, b"late".to_vec()),
            Step::Write(stderr, b"late".to_vec()),
        ]),
    });
    world.submit(job(1));
    world.run_until(Duration::from_secs(60), |w| w.user.ends.len() == 2);
    let parent = ProcId::new(&nspace(1), Rank(0));
    let child = ProcId::new(&nspace(2), Rank(0));
    let tap = tap(&world, world.procs[&parent].node, 8).expect("it reads");
    assert_eq!(tap.streams.get(&(child.clone(), stdout)).map(Vec::as_slice), Some(&b"early late"[..]));
    assert_eq!(tap.streams.get(&(child.clone(), stderr)), None, "it was not forwarded");
    assert!(!tap.ended.contains(&(child.clone(), stderr)));
    assert_eq!(world.user.streams[&(child, stderr)].bytes, b"error late", "it stays the user's");
}

#[test]
fn output_of_a_finished_job_is_kept_for_its_spawner() {
    let mut world = world(4, 2, Limits::default());
    let stdout = IofChannel::STDOUT;
    world.script(move |proc| match proc.nspace.as_str() {
        "world@1" => {
            let app = App { cmd: Some("child".into()), max_procs: 1, ..App::default() };
            let job = vec![Info::new(keys::FWD_STDOUT, true), Info::new(keys::FWD_STDERR, true)];
            let pull = |channels, handle| {
                let (sources, directives) = (vec![ProcId::all(&nspace(2))], Vec::new());
                ask(pulling(proc.clone(), sources, channels, directives, handle))
            };
            let wait = Step::Sleep(Duration::from_secs(5));
            let spawn = ask(spawning(proc.clone(), job, app));
            Script::new(match proc.rank.0 {
                0 => vec![spawn, wait, pull(IofChannel::STDERR, 7), pull(stdout, 9), pull(stdout, 10)],
                _ => vec![wait, pull(stdout, 8)],
            })
        }
        _ => Script::new(vec![Step::Write(stdout, b"early".to_vec())]),
    });
    world.submit(job(2));
    world.run_until(Duration::from_secs(60), |w| w.user.ends.len() == 2);
    let [parent, other] = [0, 1].map(|rank| ProcId::new(&nspace(1), Rank(rank)));
    let statuses = |proc| answers(&world, proc).iter().map(HostReply::status).collect::<Vec<Status>>();
    let (yes, no) = (Status::SUCCESS, Status::ERR_NOT_FOUND);
    assert_eq!(statuses(&parent)[1..], [yes, yes, no], "it is read once");
    assert_eq!(statuses(&other), [no], "it is its spawner's");
    let stream = (ProcId::new(&nspace(2), Rank(0)), stdout);
    let tap = tap(&world, world.procs[&parent].node, 9).expect("it reads");
    assert_eq!((&*tap.streams[&stream], tap.ended.contains(&stream)), (&b"early"[..], true));
}

#[test]
fn idle_reader_stops_only_its_rank_until_the_kill() {
    let mut world = world(5, 3, Limits::default());
    world.script(|proc| match proc.nspace.as_str() {
        "world@1" => Script::new(vec![
            Step::Sleep(Duration::from_secs(1)),
            Step::Write(IofChannel::STDOUT, text(proc.rank.0, IofChannel::STDOUT, 3_000_000)),
        ]),
        _ => {
            let sources = vec![ProcId::new(&nspace(1), Rank(1))];
            let directives = vec![Info::new(keys::IOF_COPY, true)];
            let channels = IofChannel::STDOUT;
            Script::new(vec![ask(pulling(proc.clone(), sources, channels, directives, 1))])
        }
    });
    world.submit(job(3));
    world.submit(job(1));
    for node in 0..3 {
        let taps = &mut world.node_mut(NodeId(node)).expect("it lives").server_mut().taps;
        taps.insert(1, Tap::new(Duration::from_secs(100_000), None));
    }
    let all = |world: &World<ScriptedServer>, rank: u32| {
        world.user.output(&ProcId::new(&nspace(1), Rank(rank)), IofChannel::STDOUT).len()
    };
    world.run_until(Duration::from_secs(600), |w| all(w, 0) == 3_000_000 && all(w, 2) == 3_000_000);
    world.run_for(Duration::from_secs(60));
    assert!(all(&world, 1) < 1_000_000, "its reader has not taken more: {}", all(&world, 1));
    assert!(!world.user.ends.contains_key(&nspace(1)));
    world.control(&nspace(1), phalanx_dvm::Control::Kill);
    world.run_until(Duration::from_secs(60), |w| w.user.ends.contains_key(&nspace(1)));
}

#[test]
fn idle_reader_does_not_keep_an_ending_job() {
    let limits = Limits::default();
    let (mut world, grace) = (world(7, 2, limits.clone()), limits.kill_grace);
    let stdout = IofChannel::STDOUT;
    world.script(move |proc| match proc.nspace.as_str() {
        "world@1" => Script::new(vec![
            Step::Sleep(Duration::from_secs(1)),
            Step::Write(stdout, text(0, stdout, 3_000_000)),
        ]),
        _ => {
            let (from, sources) = (proc.clone(), vec![ProcId::new(&nspace(1), Rank(0))]);
            let directives = Vec::new();
            Script::new(vec![ask(pulling(from, sources, stdout, directives, 1))])
        }
    });
    world.submit(job(1));
    world.submit(job(1));
    for node in 0..2 {
        let tap = Tap::new(Duration::from_secs(100_000), None);
        world.node_mut(NodeId(node)).expect("it lives").server_mut().taps.insert(1, tap);
    }
    world.run_for(Duration::from_secs(100));
    let writer = ProcId::new(&nspace(1), Rank(0));
    assert_eq!(world.user.output(&writer, stdout), b"");
    world.control(&nspace(1), phalanx_dvm::Control::Terminate { signal: 15 });
    world.run_for(grace / 2);
    assert!(!world.user.ends.contains_key(&nspace(1)), "its reader has some time");
    world.run_until(grace * 2, |w| w.user.ends.contains_key(&nspace(1)));
}

#[test]
fn user_gets_the_killed_jobs_output_that_a_reader_missed() {
    let mut world = world(5, 2, Limits::default());
    let stdout = IofChannel::STDOUT;
    world.script(move |proc| match proc.nspace.as_str() {
        "world@1" => Script::new(vec![
            Step::Sleep(Duration::from_secs(1)),
            Step::Write(stdout, text(0, stdout, 3_000_000)),
        ]),
        _ => {
            let (from, sources) = (proc.clone(), vec![ProcId::new(&nspace(1), Rank(0))]);
            let codes = vec![Status::ERR_IOF_FAILURE];
            let events = ask(HostOp::RegisterEvents(EventsRequest { codes, info: Vec::new() }));
            Script::new(vec![events, ask(pulling(from, sources, stdout, Vec::new(), 1))])
        }
    });
    world.submit(job(1));
    world.submit(job(1));
    for node in 0..2 {
        let tap = Tap::new(Duration::from_secs(1_000), None);
        world.node_mut(NodeId(node)).expect("it lives").server_mut().taps.insert(1, tap);
    }
    world.run_for(Duration::from_secs(100));
    let writer = ProcId::new(&nspace(1), Rank(0));
    assert_eq!(world.user.output(&writer, stdout), b"");
    let node = world.procs[&ProcId::new(&nspace(2), Rank(0))].node;
    let failures = |world: &World<ScriptedServer>| -> Vec<(Option<Value>, Option<Value>)> {
        let events = world.node(node).expect("it lives").server().events.iter();
        let failed = events.filter(|event| event.code == Status::ERR_IOF_FAILURE);
        let said = |event: &Event, key| event.info.find(key).cloned();
        failed.map(|e| (said(e, keys::EVENT_AFFECTED_PROC), said(e, "phalanx.iof.channel"))).collect()
    };
    assert_eq!(failures(&world), []);
    world.control(&nspace(1), phalanx_dvm::Control::Kill);
    world.run_until(Duration::from_secs(60), |w| w.user.ends.contains_key(&nspace(1)));
    let wrote = &world.procs[&writer].written[&stdout];
    let seen = world.user.output(&writer, stdout);
    assert_eq!(failures(&world), [(Some(Value::from(writer)), Some(Value::Uint16(stdout.0)))]);
    assert!(!seen.is_empty() && wrote.windows(seen.len()).any(|part| part == seen), "{}", seen.len());
    assert_eq!(world.user.complaints, Vec::<String>::new());
}

#[test]
fn end_and_loss_of_streams_are_events_for_registrants() {
    let mut world = world(3, 3, Limits::default());
    world.script(|proc| match proc.rank.0 {
        0 => {
            let codes = vec![Status::ERR_IOF_COMPLETE, Status::ERR_IOF_FAILURE];
            let ask = ask(HostOp::RegisterEvents(EventsRequest { codes, info: Vec::new() }));
            Script::new(vec![ask, Step::Sleep(Duration::from_secs(100))])
        }
        // MPI libraries register for all errors, and abort on any: the end of a stream must not be one.
        4 => {
            let ask = ask(HostOp::RegisterEvents(EventsRequest { codes: Vec::new(), info: Vec::new() }));
            Script::new(vec![ask, Step::Sleep(Duration::from_secs(100))])
        }
        1 => Script::new(vec![Step::Sleep(Duration::from_secs(5))]),
        _ => Script::new(vec![Step::Sleep(Duration::from_secs(1_000))]),
    });
    world.submit(job(5));
    world.run_until(Duration::from_secs(60), |world| !world.procs.is_empty());
    world.run_for(Duration::from_secs(20));
    let node = |rank| world.procs.get(&ProcId::new(&nspace(1), Rank(rank))).map(|fate| fate.node);
    let [asker, other, doomed] = [0, 4, 2].map(|rank| node(rank).expect("it runs"));
    assert!(asker != doomed && asker != other);
    let heard = &world.node(other).expect("it lives").server().events;
    assert!(heard.iter().all(|event| event.code != Status::ERR_IOF_COMPLETE), "{heard:?}");
    world.crash_at(world.now, doomed);
    world.run_for(Duration::from_secs(60));
    let events = &world.node(asker).expect("it lives").server().events;
    let told = |code: Status, rank: u32| -> u16 {
        let proc = ProcId::new(&nspace(1), Rank(rank));
        // The source of the event is the job, since an event is not delivered to its source.
        assert!(events.iter().filter(|event| event.code == code).all(|event| event.source != proc));
        let proc = Value::from(proc);
        let affected = |event: &Event| event.info.find(keys::EVENT_AFFECTED_PROC) == Some(&proc);
        let of = events.iter().filter(|event| event.code == code && affected(event));
        let channel = |event: &Event| match event.info.find("phalanx.iof.channel") {
            Some(Value::Uint16(channel)) => *channel,
            other => panic!("{other:?}"),
        };
        assert!(of.clone().all(|event| event.info.is_set(keys::EVENT_NON_DEFAULT)));
        of.map(channel).fold(0, |all, one| all | one)
    };
    let both = IofChannel::STDOUT.0 | IofChannel::STDERR.0;
    assert_eq!((told(Status::ERR_IOF_COMPLETE, 1), told(Status::ERR_IOF_FAILURE, 1)), (both, 0));
    assert_eq!((told(Status::ERR_IOF_COMPLETE, 2), told(Status::ERR_IOF_FAILURE, 2)), (0, both));
}

#[test]
fn output_form_of_a_spawn_reaches_user_and_readers() {
    for by_tool in [false, true] {
        let mut world = world(11, 2, Limits::default());
        world.script(move |proc| {
            let from = proc.clone();
            match (proc.nspace.as_str(), proc.rank.0) {
                ("world@1", 0) => {
                    let app = App { cmd: Some("child".into()), max_procs: 2, ..App::default() };
                    let mut job = vec![
                        Info::new(keys::FWD_STDOUT, true),
                        Info::new(keys::IOF_TAG_DETAILED_OUTPUT, true),
                        Info::new(keys::IOF_OUTPUT_TO_FILE, "out"),
                    ];
                    job.extend(by_tool.then(|| Info::new(keys::REQUESTOR_IS_TOOL, true)));
                    Script::new(vec![ask(spawning(from, job, app))])
                }
                ("world@1", _) => Script::new(vec![
                    Step::Sleep(Duration::from_secs(1)),
                    ask(HostOp::IofPull(Asked {
                        from,
                        request: Pull {
                            sources: vec![ProcId::all(&nspace(2))],
                            channels: IofChannel::STDOUT,
                            directives: vec![Info::new(keys::IOF_COPY, true)],
                            handle: 1,
                        },
                    })),
                ]),
                _ => Script::new(vec![
                    Step::Sleep(Duration::from_secs(2)),
                    Step::Write(IofChannel::STDOUT, b"line\n".to_vec()),
                ]),
            }
        });
        world.submit(job(2));
        for node in 0..2 {
            let taps = &mut world.node_mut(NodeId(node)).expect("it lives").server_mut().taps;
            taps.insert(1, Tap::new(Duration::ZERO, None));
        }
        world.run_until(Duration::from_secs(600), |w| w.user.ends.len() == 2);
        let (said, elsewhere) = &world.user.spawned[&nspace(2)];
        assert!(said.is_set(keys::IOF_TAG_DETAILED_OUTPUT) && *elsewhere == by_tool);
        // The user's side writes the files.
        assert_eq!(world.user.output(&ProcId::new(&nspace(2), Rank(1)), IofChannel::STDOUT), b"line\n");
        let pulled = answers(&world, &ProcId::new(&nspace(1), Rank(1)));
        let HostReply::Infos(Status::SUCCESS, style) = &pulled[0] else { panic!("{pulled:?}") };
        assert!(style.is_set(keys::IOF_TAG_DETAILED_OUTPUT), "{style:?}");
        let tap = [NodeId(0), NodeId(1)]
            .into_iter()
            .find_map(|node| tap(&world, node, 1).filter(|t| !t.info.is_empty()));
        let info = &tap.expect("output came").info;
        assert!(info.find(keys::PROC_PID).is_some() && info.find(keys::HOSTNAME).is_some(), "{info:?}");
    }
}

/// A parent spawns readers, pushes to some of them, and ends their input.
fn pushed(seed: u64, readers: u32, dying: bool) -> (World<ScriptedServer>, Vec<Vec<u8>>) {
    let mut world = world(seed, 3, Limits::default());
    let mut random = Random::new(seed);
    let mut expected = vec![Vec::new(); readers as usize];
    let child = |rank| ProcId::new(&nspace(2), rank);
    let mut pushes = Vec::new();
    for n in 0..random.between(1, 30) {
        let data = text(n as u32, IofChannel::STDIN, random.between(1, 100_000) as usize);
        let rank = Rank(random.between(0, u64::from(readers)) as u32);
        let targets = match random.between(0, 3) {
            0 => vec![ProcId::all(&nspace(2))],
            1 => vec![child(rank)],
            _ => vec![child(rank), child(Rank(0))],
        };
        for (rank, bytes) in expected.iter_mut().enumerate() {
            if targets.iter().any(|target| target.covers(&child(Rank(rank as u32)))) {
                bytes.extend_from_slice(&data);
            }
        }
        pushes.push((targets, data));
    }
    world.script(move |proc| match proc.nspace.as_str() {
        "world@1" => {
            let from = proc.clone();
            let app = App { cmd: Some("child".into()), max_procs: readers as i32, ..App::default() };
            let job = vec![Info::new(keys::FWD_STDIN, Rank::WILDCARD)];
            let push = |targets: Vec<ProcId>, data: Vec<u8>| {
                ask(HostOp::PushStdin(Asked {
                    from: from.clone(),
                    request: Push { targets, directives: Vec::new(), data: data.into() },
                }))
            };
            let mut steps = vec![ask(spawning(from.clone(), job, app))];
            steps.extend(pushes.iter().map(|(targets, data)| push(targets.clone(), data.clone())));
            let all = vec![ProcId::all(&nspace(2))];
            steps.extend([push(all.clone(), Vec::new()), push(all, b"late".to_vec())]);
            Script::new(steps)
        }
        _ if dying && proc.rank == Rank(0) => Script::new(vec![Step::Sleep(Duration::from_millis(50))]),
        _ => {
            Script::new(vec![Step::Sleep(Duration::from_millis(u64::from(proc.rank.0) * 400)), Step::ReadAll])
        }
    });
    world.submit(job(1));
    world.run_until(Duration::from_secs(600), |w| w.user.ends.len() == 2);
    (world, expected)
}

#[test]
fn pushed_input_arrives_whole_at_all_its_targets_and_ends_once() {
    for seed in 0..30 {
        let readers = 1 + (seed % 4) as u32;
        for dying in [false, true] {
            let (world, expected) = pushed(seed, readers, dying && readers > 1);
            for (rank, expected) in expected.iter().enumerate().skip(usize::from(dying && readers > 1)) {
                let fate = &world.procs[&ProcId::new(&nspace(2), Rank(rank as u32))];
                assert!(fate.stdin_ended && fate.read == *expected, "seed {seed}: rank {rank} misses input");
            }
            let given = answers(&world, &ProcId::new(&nspace(1), Rank(0)));
            let (late, rest) = given.split_last().expect("answers");
            // The readers have reached their end of input, or have all ended.
            let refused = [Status::ERR_IOF_COMPLETE, Status::ERR_NOT_FOUND];
            assert!(refused.contains(&late.status()), "seed {seed}: {late:?}");
            let fine = |reply: &HostReply| {
                reply.status().is_success() || (dying && reply.status() == Status::ERR_IOF_COMPLETE)
            };
            assert!(rest.iter().all(fine), "seed {seed}: {rest:?}");
        }
    }
}

/// Four processes push more than there is room for, and then one more piece each.
#[test]
fn a_push_without_room_is_refused_with_all_behind_it() {
    let mut world = world(7, 3, Limits::default());
    let child = ProcId::new(&nspace(2), Rank(0));
    let piece = 6 << 20;
    world.script(move |proc| {
        let from = proc.clone();
        let push = |data: Vec<u8>| {
            let (from, targets) = (from.clone(), vec![ProcId::new(&nspace(2), Rank(0))]);
            ask(HostOp::PushStdin(Asked {
                from,
                request: Push { targets, directives: Vec::new(), data: data.into() },
            }))
        };
        match (proc.nspace.as_str(), proc.rank.0) {
            ("world@1", 0) => {
                let app = App { cmd: Some("child".into()), max_procs: 1, ..App::default() };
                let job = vec![Info::new(keys::FWD_STDIN, Rank::WILDCARD)];
                Script::new(vec![
                    ask(spawning(from.clone(), job, app)),
                    Step::Sleep(Duration::from_secs(60)),
                    push(Vec::new()),
                ])
            }
            ("world@1", rank) => {
                let bytes = text(rank, IofChannel::STDIN, piece);
                Script::new(vec![Step::Sleep(Duration::from_secs(1)), push(bytes), push(b"behind".to_vec())])
            }
            _ => Script::new(vec![Step::Sleep(Duration::from_secs(10)), Step::ReadAll]),
        }
    });
    world.submit(job(5));
    world.run_until(Duration::from_secs(600), |w| w.user.ends.len() == 2);
    let (mut taken, mut refused) = (0, 0);
    for rank in 1..5 {
        let given = answers(&world, &ProcId::new(&nspace(1), Rank(rank)));
        match given.iter().map(HostReply::status).collect::<Vec<_>>()[..] {
            [Status::SUCCESS, Status::SUCCESS] => taken += piece + 6,
            [Status::ERR_OUT_OF_RESOURCE, Status::ERR_IOF_FAILURE] => refused += 1,
            _ => panic!("rank {rank}: {given:?}"),
        }
    }
    assert_eq!((refused, world.procs[&child].read.len()), (2, taken));
}

#[test]
fn bytes_dropped_by_a_cache_are_counted() {
    let mut pulled = 0;
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let mut world = world(seed, random.between(1, 4) as u32, Limits::default());
        let size = random.between(0, 60_000) as u32;
        let policy = [keys::IOF_DROP_OLDEST, keys::IOF_DROP_NEWEST][random.between(0, 2) as usize];
        let mut scripts = random.clone();
        world.script(move |proc| match proc.nspace.as_str() {
            "world@1" => {
                let (from, sources) = (proc.clone(), vec![ProcId::all(&nspace(2))]);
                let app = App { cmd: Some("child".into()), max_procs: 3, ..App::default() };
                let job = vec![
                    Info::new(keys::FWD_STDOUT, true),
                    Info::new(keys::FWD_STDERR, true),
                    Info::new(keys::IOF_CACHE_SIZE, size),
                    Info::new(policy, true),
                ];
                let (channels, directives) = (IofChannel::ALL, vec![Info::new(keys::IOF_COPY, true)]);
                Script::new(vec![
                    ask(spawning(from.clone(), job, app)),
                    Step::Sleep(Duration::from_millis(scripts.between(0, 300))),
                    ask(pulling(from, sources, channels, directives, 9)),
                ])
            }
            _ => writer(&mut scripts, proc.rank.0),
        });
        world.submit(job(1));
        world.run_until(Duration::from_secs(600), |w| w.user.ends.len() == 2);
        world.run_for(Duration::from_secs(20));
        let parent = ProcId::new(&nspace(1), Rank(0));
        if answers(&world, &parent).get(1).is_none_or(|answer| !answer.status().is_success()) {
            continue;
        }
        pulled += 1;
        let tap = tap(&world, world.procs[&parent].node, 9).expect("it reads");
        for (proc, fate) in world.procs.iter().filter(|(proc, _)| proc.nspace == nspace(2)) {
            for channel in [IofChannel::STDOUT, IofChannel::STDERR] {
                let stream = (proc.clone(), channel);
                let wrote = fate.written.get(&channel).map_or(&[][..], Vec::as_slice);
                let got = tap.streams.get(&stream).map_or(&[][..], Vec::as_slice);
                let lost = tap.lost.get(&stream).map_or(0, |lost| *lost as usize);
                assert_eq!(got.len() + lost, wrote.len(), "seed {seed}: {stream:?}");
                // There is one gap: the parts before and behind it make up everything that came.
                let before = wrote.iter().zip(got).take_while(|(a, b)| a == b).count();
                let behind = wrote.iter().rev().zip(got.iter().rev()).take_while(|(a, b)| a == b).count();
                assert!(before + behind >= got.len(), "seed {seed}: {stream:?} is torn");
            }
        }
    }
    assert!(pulled > 30, "only {pulled} pulls came in time");
}

#[test]
fn output_of_survivors_arrives_whole_when_daemons_die() {
    for seed in 0..40 {
        let mut random = Random::new(seed);
        let nodes = random.between(3, 9) as u32;
        let limits = Limits { output_link: random.between(2_000, 60_000) as usize, ..Limits::default() };
        let mut world = world(seed, nodes, limits);
        world.user.pace = Duration::from_micros(random.between(0, 1_000));
        let mut scripts = random.clone();
        world.script(move |proc| match proc.nspace == nspace(1) {
            true => writer(&mut scripts, proc.rank.0),
            false => Script::new(vec![ask(HostOp::IofPull(Asked {
                from: proc.clone(),
                request: Pull {
                    sources: vec![ProcId::all(&nspace(1))],
                    channels: IofChannel::ALL,
                    directives: vec![Info::new(keys::IOF_COPY, true)],
                    handle: 1,
                },
            }))]),
        });
        world.submit(job(random.between(1, 2 * u64::from(nodes)) as u32));
        world.submit(job(1));
        for node in 0..nodes {
            let pace = Duration::from_micros(random.between(0, 2_000));
            let taps = &mut world.node_mut(NodeId(node)).expect("it lives").server_mut().taps;
            taps.insert(1, Tap::new(pace, None));
        }
        for _ in 0..random.between(1, 3) {
            let at = Duration::from_millis(random.between(150, 600));
            world.crash_at(Time::default().after(at), NodeId(random.between(1, u64::from(nodes)) as u32));
        }
        world.run_until(Duration::from_secs(600), |w| w.user.ends.contains_key(&nspace(1)));
        world.run_for(Duration::from_secs(20));
        for (proc, fate) in world.procs.iter().filter(|(proc, _)| proc.nspace == nspace(1)) {
            for channel in [IofChannel::STDOUT, IofChannel::STDERR] {
                let wrote = fate.written.get(&channel).map_or(&[][..], Vec::as_slice);
                let by_user = world.user.output(proc, channel);
                assert!(wrote.starts_with(by_user), "seed {seed}: output of {proc} is torn");
                if world.is_alive(fate.node) {
                    assert!(by_user.len() == wrote.len(), "seed {seed}: output of {proc} is missing");
                }
                for node in (0..nodes).map(NodeId).filter(|node| world.is_alive(*node)) {
                    let tap = tap(&world, node, 1).expect("it was entered");
                    let got = tap.streams.get(&(proc.clone(), channel)).map_or(&[][..], Vec::as_slice);
                    let piece = got.is_empty() || by_user.windows(got.len()).any(|part| part == got);
                    assert!(piece, "seed {seed}: the tool got something else of {proc}");
                }
            }
        }
    }
}
