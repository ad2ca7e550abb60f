//! A job from its request to the report of its end, on one node and on several.

use std::time::Duration;

use phalanx_dvm::{
    AppSpec, Control, ExitStatus, FailurePolicy, JobEnd, JobRequest, JobVerdict, Limits, MpiLibrary, NodeId,
};
use phalanx_spec::{IofChannel, Range, Rank, Status, keys};
use phalanx_testkit::wired::WiredServer;
use phalanx_testkit::{Op, RankAnswer, Script, Setup, Step, World};
use phalanx_wire::{Blob, Nspace, ProcId};

const LATENCY: Duration = Duration::from_micros(200);

fn world(seed: u64, nodes: u32, cores: u32) -> World<WiredServer> {
    let server = Box::new(move |node| WiredServer::new(node, seed));
    World::new(Setup { seed, nodes, radix: 2, cores, limits: Limits::default(), latency: LATENCY, server })
}

fn job(program: &str, procs: u32) -> JobRequest {
    let app = AppSpec { argv: vec![program.into()], procs: Some(procs), ..AppSpec::default() };
    JobRequest { apps: vec![app], env: vec!["HOME=/root".into()], ..JobRequest::default() }
}

fn run(world: &mut World<WiredServer>, job: JobRequest) -> JobEnd {
    let request = world.submit(job);
    world.run_until(Duration::from_secs(60), |w| {
        let ended = w.user.accepted.get(&request).is_some_and(|nspace| w.user.ends.contains_key(nspace));
        ended || w.user.refused.contains_key(&request)
    });
    assert_eq!(world.user.refused.get(&request), None);
    let end = world.user.ends[&world.user.accepted[&request]].clone();
    assert_eq!(world.user.complaints, Vec::<String>::new());
    end
}

#[test]
fn only_ranks_that_connect_have_a_directory() {
    let mut world = world(7, 1, 2);
    world.script(|proc| {
        let steps = vec![Step::Ask(Op::Init), Step::Ask(Op::Finalize)];
        Script::new(if proc.rank == Rank(1) { steps } else { Vec::new() })
    });
    run(&mut world, job("hello", 2));
    assert_eq!(world.made, ["/scratch/1/1"]);
}

#[test]
fn processes_meet_and_end() {
    for nodes in [1, 2, 5] {
        let mut world = world(7, nodes, 4);
        world.script(move |proc| {
            let peer = Rank((proc.rank.0 + 1) % (4 * nodes));
            Script::new(vec![
                Step::Ask(Op::Init),
                Step::Ask(Op::Commit { key: "card".to_owned(), value: proc.rank.0.to_string().into_bytes() }),
                Step::Ask(Op::Fence { procs: Vec::new(), collect: nodes == 2 }),
                Step::Ask(Op::Get { rank: peer, key: "card".to_owned() }),
                Step::Write(IofChannel::STDOUT, format!("I am {proc}\n").into_bytes()),
                Step::Ask(Op::Finalize),
            ])
        });
        let size = 4 * nodes;
        let end = run(&mut world, job("hello", size));
        assert_eq!((&end.verdict, end.exit_code, end.procs.len() as u32), (&JobVerdict::Success, 0, size));
        for rank in 0..size {
            let proc = ProcId::new(&end.nspace, Rank(rank));
            let got = world.procs[&proc].answers.iter().find(|(op, _)| matches!(op, Op::Get { .. }));
            let peer = ((rank + 1) % size).to_string();
            assert_eq!(got.map(|(_, answer)| answer), Some(&RankAnswer::Value(Blob::from(peer.as_bytes()))));
            assert_eq!(world.user.output(&proc, IofChannel::STDOUT), format!("I am {proc}\n").as_bytes());
            assert!(world.user.streams[&(proc.clone(), IofChannel::STDERR)].ended);
            assert_eq!(end.procs[rank as usize].status, Some(ExitStatus::Code(0)));
            assert_eq!(end.procs[rank as usize].pid, Some(world.procs[&proc].pid));
            assert_eq!(world.procs[&proc].env[&b"PHALANX_RANK"[..]], rank.to_string().as_bytes());
        }
    }
}

#[test]
fn values_of_a_dead_rank_are_found_from_other_nodes() {
    let mut world = world(7, 2, 1);
    let put = |key: &str| Step::Ask(Op::Commit { key: key.to_owned(), value: b"1".to_vec() });
    world.script(move |proc| match proc.rank.0 {
        1 => Script::new(vec![Step::Ask(Op::Init), put("card"), Step::Die(11)]),
        _ => Script::new(vec![
            Step::Ask(Op::Init),
            Step::Sleep(Duration::from_secs(5)),
            Step::Ask(Op::Get { rank: Rank(1), key: "card".to_owned() }),
            Step::Ask(Op::Get { rank: Rank(1), key: "other".to_owned() }),
            Step::Ask(Op::Finalize),
        ]),
    });
    let end = run(&mut world, JobRequest { on_failure: FailurePolicy::Continue, ..job("dies", 2) });
    let answers = &world.procs[&ProcId::new(&end.nspace, Rank(0))].answers;
    assert_eq!(answers[1].1, RankAnswer::Value(Blob::from(&b"1"[..])));
    assert_eq!(answers[2].1, RankAnswer::Done(Status::ERR_NOT_FOUND));
}

#[test]
fn the_pid_of_a_remote_rank_is_not_found_at_once() {
    let mut world = world(7, 2, 1);
    let pid = Op::Get { rank: Rank(1), key: keys::PROC_PID.to_owned() };
    world.script(move |proc| match proc.rank.0 {
        1 => Script::new(vec![Step::Ask(Op::Init), Step::Sleep(Duration::from_hours(1))]),
        _ => Script::new(vec![
            Step::Ask(Op::Init),
            Step::Ask(pid.clone()),
            Step::Ask(Op::Finalize),
            Step::Exit(3),
        ]),
    });
    let end = run(&mut world, job("asks", 2));
    let answers = &world.procs[&ProcId::new(&end.nspace, Rank(0))].answers;
    assert_eq!(answers[1].1, RankAnswer::Done(Status::ERR_NOT_FOUND));
    assert!(end.duration < Duration::from_secs(1), "{end:?}");
}

#[test]
fn the_first_failure_decides_and_the_others_are_ended() {
    let mut world = world(3, 3, 2);
    world.script(|proc| match proc.rank.0 {
        4 => Script::new(vec![Step::Sleep(Duration::from_secs(1)), Step::Exit(3)]),
        2 => Script { ignores_term: true, ..Script::new(vec![Step::Hang]) },
        _ => Script::new(vec![Step::Hang]),
    });
    let end = run(&mut world, job("fails", 6));
    let JobVerdict::Failed { first } = &end.verdict else { panic!("{:?}", end.verdict) };
    assert_eq!((first.proc.rank, first.node.as_str(), end.exit_code), (Rank(4), "n2", 3));
    assert!(end.procs.iter().all(|p| p.killed_by_us != (p.proc.rank == Rank(4))));
    assert_eq!(end.procs[2].status, Some(ExitStatus::Signal { number: 9, core_dumped: false }));
    assert_eq!(end.procs[0].status, Some(ExitStatus::Signal { number: 15, core_dumped: false }));
}

#[test]
fn the_exit_code_after_a_signal_is_that_of_a_shell() {
    let mut world = world(3, 1, 2);
    world.script(|proc| Script::new(vec![if proc.rank.0 == 1 { Step::Die(11) } else { Step::Hang }]));
    let end = run(&mut world, job("crashes", 2));
    assert_eq!(end.exit_code, 139);
}

#[test]
fn others_may_go_on_after_a_failure() {
    let mut world = world(3, 2, 2);
    world.script(|proc| match proc.rank.0 {
        1 => Script::new(vec![Step::Exit(5)]),
        _ => Script::new(vec![
            Step::Sleep(Duration::from_secs(5)),
            Step::Write(IofChannel::STDOUT, b"done".to_vec()),
        ]),
    });
    let end = run(&mut world, JobRequest { on_failure: FailurePolicy::Continue, ..job("goes on", 4) });
    assert_eq!(end.exit_code, 5);
    assert!(end.procs.iter().all(|p| !p.killed_by_us));
    for rank in [0, 2, 3] {
        assert_eq!(world.user.output(&ProcId::new(&end.nspace, Rank(rank)), IofChannel::STDOUT), b"done");
    }
}

#[test]
fn a_process_that_left_without_finalize_has_failed() {
    let mut world = world(3, 1, 2);
    world.script(|_| Script::new(vec![Step::Ask(Op::Init), Step::Exit(0)]));
    let end = run(&mut world, job("forgets", 1));
    assert_eq!(end.exit_code, 1);
    assert!(matches!(end.verdict, JobVerdict::Failed { first } if first.lost_connection));
}

#[test]
fn an_abort_ends_the_job_with_its_status() {
    let mut world = world(3, 2, 2);
    world.script(|proc| match proc.rank.0 {
        3 => Script::new(vec![Step::Ask(Op::Init), Step::Ask(Op::Abort { status: 77 }), Step::Exit(1)]),
        _ => Script::new(vec![Step::Ask(Op::Init), Step::Ask(Op::Fence { procs: vec![], collect: false })]),
    });
    let end = run(&mut world, job("aborts", 4));
    assert_eq!(end.exit_code, 77);
    assert!(matches!(end.verdict, JobVerdict::Aborted { by, .. } if by.rank == Rank(3)));
}

#[test]
fn a_missing_program_is_named() {
    let mut world = world(3, 2, 2);
    let end = run(&mut world, job("missing", 4));
    let JobVerdict::NotStarted { error } = &end.verdict else { panic!("{:?}", end.verdict) };
    assert!(
        error.contains("missing in PATH and in its working directory: No such file or directory"),
        "{error}"
    );
    assert_eq!(end.exit_code, 127);
}

#[test]
fn a_job_has_a_time_limit() {
    let mut world = world(3, 2, 2);
    world.script(|_| Script::new(vec![Step::Hang]));
    let end = run(&mut world, JobRequest { timeout: Some(Duration::from_secs(10)), ..job("hangs", 4) });
    assert_eq!(end.exit_code, 124);
    assert!(end.duration >= Duration::from_secs(10) && end.duration < Duration::from_secs(12));
}

#[test]
fn descendants_that_hold_the_streams_are_not_waited_for() {
    let mut world = world(3, 1, 2);
    world.script(|_| Script { lingers: Duration::from_secs(3600), ..Script::new(vec![]) });
    let end = run(&mut world, job("lingers", 2));
    assert_eq!(end.exit_code, 0);
    assert!(end.duration < Duration::from_secs(4), "{:?}", end.duration);
}

#[test]
fn output_is_bounded_by_the_reader() {
    let mut world = world(5, 1, 2);
    world.user.pace = Duration::from_millis(50);
    let text: Vec<u8> = (0..10_000_000u32).map(|i| (i % 251) as u8).collect();
    let expected = text.clone();
    world.script(move |_| Script::new(vec![Step::Write(IofChannel::STDOUT, text.clone())]));
    let end = run(&mut world, job("talks", 2));
    for rank in 0..2 {
        let out = world.user.output(&ProcId::new(&end.nspace, Rank(rank)), IofChannel::STDOUT);
        assert!(out == expected, "{} of {} bytes", out.len(), expected.len());
    }
    assert!(world.user.most_held <= 1 << 20, "{}", world.user.most_held);
}

#[test]
fn standard_input_reaches_its_reader_and_ends() {
    for nodes in [1, 3] {
        let mut world = world(5, nodes, 2);
        let text: Vec<u8> = (0..1_000_000u32).map(|i| (i % 251) as u8).collect();
        let nspace = Nspace::new("world@1").unwrap();
        world.feed_stdin(&nspace, &text);
        world.script(|_| Script::new(vec![Step::ReadAll]));
        let all = JobRequest { stdin: phalanx_dvm::StdinTarget::All, ..job("reads", 2 * nodes) };
        let end = run(&mut world, all);
        assert_eq!(end.exit_code, 0);
        for fate in world.procs.values() {
            assert!(fate.read == text && fate.stdin_ended, "{} bytes", fate.read.len());
        }
    }
}

#[test]
fn published_data_is_found_by_others() {
    let mut world = world(9, 3, 1);
    let publish = |range| Op::Publish { key: "port".to_owned(), value: "4711".to_owned(), range };
    let lookup = |wait, timeout| Op::Lookup { key: "port".to_owned(), wait, timeout };
    world.script(move |proc| match proc.rank.0 {
        0 => Script::new(vec![
            Step::Ask(Op::Init),
            Step::Sleep(Duration::from_secs(2)),
            Step::Ask(publish(Range::SESSION)),
            Step::Ask(publish(Range::SESSION)),
            Step::Sleep(Duration::from_secs(1)),
            Step::Ask(Op::Unpublish { key: "port".to_owned() }),
            Step::Ask(Op::Finalize),
        ]),
        1 => Script::new(vec![
            Step::Ask(Op::Init),
            Step::Ask(lookup(false, None)),
            Step::Ask(lookup(true, Some(1))),
            Step::Ask(lookup(true, None)),
            Step::Sleep(Duration::from_secs(2)),
            Step::Ask(lookup(false, None)),
            Step::Ask(Op::Finalize),
        ]),
        _ => Script::default(),
    });
    let end = run(&mut world, job("names", 3));
    assert_eq!(end.exit_code, 0);
    let answers = |rank: u32| {
        let fate = &world.procs[&ProcId::new(&end.nspace, Rank(rank))];
        fate.answers.iter().map(|(_, answer)| answer.clone()).collect::<Vec<_>>()
    };
    let done = |status| RankAnswer::Done(status);
    let found = RankAnswer::Value(Blob::from(&b"4711"[..]));
    let (ok, no) = (done(Status::SUCCESS), done(Status::ERR_NOT_FOUND));
    assert_eq!(answers(0), [ok.clone(), ok.clone(), done(Status::ERR_DUPLICATE_KEY), ok.clone(), ok.clone()]);
    assert_eq!(answers(1), [ok.clone(), no.clone(), done(Status::ERR_TIMEOUT), found, no, ok]);
}

#[test]
fn waiting_lookups_end_with_their_job() {
    let mut world = world(9, 2, 1);
    world.script(move |proc| match proc.rank.0 {
        0 => Script::new(vec![Step::Ask(Op::Init), Step::Sleep(Duration::from_secs(1)), Step::Exit(3)]),
        _ => Script::new(vec![
            Step::Ask(Op::Init),
            Step::Ask(Op::Lookup { key: "nobody's".to_owned(), wait: true, timeout: None }),
        ]),
    });
    let end = run(&mut world, job("waits", 2));
    assert_eq!(end.exit_code, 3);
    // The other daemon has yet to learn that the job is over.
    world.run_until(Duration::from_secs(5), |world| world.explain().is_empty());
    let waiting = world.explain();
    assert!(waiting.is_empty(), "{waiting:?}");
}

#[test]
fn events_reach_the_listeners_in_range() {
    let mut world = world(9, 4, 1);
    let code = Status(-3000);
    world.script(move |proc| {
        let mut steps = vec![Step::Ask(Op::Init)];
        match proc.rank.0 {
            2 => steps.extend([
                Step::Sleep(Duration::from_millis(500)),
                Step::Ask(Op::Notify { code, range: Range::NAMESPACE }),
            ]),
            rank => steps.extend([
                Step::Ask(Op::Listen { codes: vec![if rank == 3 { Status(-3001) } else { code }] }),
                Step::Sleep(Duration::from_secs(2)),
            ]),
        }
        steps.push(Step::Ask(Op::Finalize));
        Script::new(steps)
    });
    run(&mut world, job("tells", 4));
    let told = |id: u32| world.node(NodeId(id)).unwrap().server().events.len();
    assert_eq!([told(0), told(1), told(2), told(3)], [1, 1, 0, 0]);
}

#[test]
fn early_signal_waits_for_the_processes() {
    for nodes in [1, 5] {
        let mut world = world(13, nodes, 2);
        world.script(|_| Script::new(vec![Step::Hang]));
        let request = world.submit(job("waits", 2 * nodes));
        world.run_until(Duration::from_secs(60), |w| w.user.accepted.contains_key(&request));
        let nspace = world.user.accepted[&request].clone();
        assert!(world.procs.is_empty(), "nothing runs yet");
        world.control(&nspace, Control::Signal(12));
        world.run_until(Duration::from_secs(60), |w| w.user.ends.contains_key(&nspace));
        let culprit = world.user.ends[&nspace].procs.iter().find(|end| !end.killed_by_us).unwrap();
        assert!(matches!(culprit.status, Some(ExitStatus::Signal { number: 12, .. })), "{culprit:?}");
    }
}

#[test]
fn phases_are_those_of_the_last_process() {
    let mut world = world(7, 3, 2);
    let seconds = |count: u32| Duration::from_secs(u64::from(count));
    world.script(move |proc| {
        Script::new(vec![
            Step::Sleep(seconds(proc.rank.0)),
            Step::Ask(Op::Init),
            Step::Sleep(seconds(10)),
            Step::Ask(Op::Finalize),
            Step::Sleep(seconds(5)),
        ])
    });
    let phases = run(&mut world, job("hello", 6)).phases;
    let whole = |time: Option<Duration>| time.map(|time| time.as_secs());
    // Ranks begin to connect when the last of them runs, which takes less than a second.
    let expected = [phases.placed, phases.started, phases.connected, phases.finalized, phases.exited];
    assert_eq!(expected.map(whole), [Some(0), Some(0), Some(5), Some(15), Some(20)]);
    assert!(phases.ended > phases.exited && phases.started > phases.placed, "{phases:?}");
}

#[test]
fn phases_that_some_ranks_miss_are_not_reported() {
    let mut world = world(7, 2, 2);
    world.script(move |proc| {
        let connect = vec![Step::Ask(Op::Init), Step::Ask(Op::Finalize)];
        Script::new(if proc.rank == Rank(3) { Vec::new() } else { connect })
    });
    let phases = run(&mut world, job("hello", 4)).phases;
    assert_eq!((phases.connected, phases.finalized), (None, None));
    assert!(phases.started.is_some() && phases.exited.is_some());
}

/// Some ranks of four on two nodes connect after a while; all of them have loaded MPI, with a PMIx client or without.
fn run_with_mpi(connecting: &'static [u32], has_pmix: bool, after: Duration) -> JobEnd {
    let mut world = world(7, 2, 2);
    world.script(move |proc| {
        let connect = vec![Step::Sleep(after), Step::Ask(Op::Init), Step::Ask(Op::Finalize)];
        let connects = connecting.contains(&proc.rank.0);
        Script::new(if connects { connect } else { vec![Step::Sleep(Duration::from_secs(1))] })
    });
    let name = Nspace::new("world@1").unwrap_or_else(|_| Nspace::none());
    for rank in 0..4 {
        let library = MpiLibrary { file: "/lib/libmpi.so.12".to_owned(), has_pmix, below: false };
        world.loaded.insert(ProcId::new(&name, Rank(rank)), library);
    }
    run(&mut world, job("mpi", 4))
}

#[test]
fn ends_name_the_mpi_of_ranks_that_never_connect() {
    let late = Duration::from_millis(500);
    let end = run_with_mpi(&[], true, late);
    assert_eq!(
        (end.verdict, end.connected, end.mpi.as_deref()),
        (JobVerdict::Success, false, Some("/lib/libmpi.so.12"))
    );
    for connecting in [&[0, 1, 2, 3][..], &[3]] {
        let end = run_with_mpi(connecting, true, late);
        assert_eq!((end.verdict, end.connected), (JobVerdict::Success, true));
    }
}

#[test]
fn ranks_that_connect_at_once_are_not_looked_at() {
    let end = run_with_mpi(&[0, 1, 2, 3], false, Duration::ZERO);
    assert_eq!((end.verdict, end.connected, end.mpi), (JobVerdict::Success, true, None));
}

#[test]
fn mpi_without_pmix_ends_a_job() {
    let end = run_with_mpi(&[], false, Duration::ZERO);
    assert!(
        matches!(&end.verdict, JobVerdict::WithoutPmix { library, .. } if library == "/lib/libmpi.so.12")
    );
    assert!(end.duration < Duration::from_millis(500), "{:?}", end.duration);
    assert_eq!(end.exit_code, 1);
}
