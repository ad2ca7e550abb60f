//! The runtime's answers about jobs and their processes, wherever these are.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use phalanx_core::host::{Asked, HostOp, HostReply};
use phalanx_dvm::{AppSpec, FailurePolicy, JobRequest, Limits, names};
use phalanx_spec::{ProcState, Rank, Status, keys};
use phalanx_testkit::scripted::ScriptedServer;
use phalanx_testkit::{Op, RankAnswer, Script, Setup, Step, World};
use phalanx_wire::cmd::control::JobControl;
use phalanx_wire::cmd::query::Queries;
use phalanx_wire::{DataArray, Info, Nspace, ProcId, Query, Value};

fn world(nodes: u32) -> World<ScriptedServer> {
    let server = Box::new(|_| ScriptedServer::default());
    let (limits, latency) = (Limits::default(), Duration::from_millis(1));
    World::new(Setup { seed: 5, nodes, radix: 2, cores: 1, limits, latency, server })
}

fn job(procs: u32, on_failure: FailurePolicy) -> JobRequest {
    let app = AppSpec { argv: vec!["prog".into(), "-x".into()], procs: Some(procs), ..AppSpec::default() };
    JobRequest { apps: vec![app], on_failure, ..JobRequest::default() }
}

fn of(nspace: &str) -> Info {
    Info::new(keys::NSPACE, nspace)
}

fn ask(proc: &ProcId, key: &str, qualifiers: Vec<Info>) -> Step {
    let queries = vec![Query { keys: vec![key.into()], qualifiers }];
    Step::Ask(Op::Host(Box::new(HostOp::Query(Asked { from: proc.clone(), request: Queries { queries } }))))
}

fn answers(world: &World<ScriptedServer>, nspace: &str) -> Vec<Result<Value, Status>> {
    let proc = ProcId::new(&Nspace::new(nspace).unwrap(), Rank(0));
    let given = world.procs[&proc].answers.iter().map(|(_, answer)| match answer {
        RankAnswer::Host(reply) => match &**reply {
            HostReply::Infos(Status::SUCCESS, info) => {
                info.first().map(|info| info.value.clone()).ok_or(Status::SUCCESS)
            }
            HostReply::Infos(status, _) => Err(*status),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    });
    given.collect()
}

fn infos(value: &Value) -> Vec<DataArray> {
    let inner = value.as_array().unwrap().infos();
    inner.filter_map(|info| info.value.as_array().cloned()).collect()
}

fn find<'a>(array: &'a DataArray, key: &str) -> Option<&'a Value> {
    array.infos().find(|info| info.key == *key).map(|info| &info.value)
}

#[test]
fn queries_show_the_states_of_ranks_while_the_job_runs() {
    let mut world = world(6);
    world.script(|proc| match proc.rank.0 {
        0 => {
            let stop = HostOp::from(Asked {
                from: proc.clone(),
                request: JobControl {
                    targets: vec![ProcId::new(&proc.nspace, Rank(4))],
                    directives: vec![Info::new(keys::JOB_CTRL_PAUSE, true)],
                },
            });
            Script::new(vec![
                Step::Sleep(Duration::from_secs(5)),
                Step::Ask(Op::Host(Box::new(stop))),
                Step::Sleep(Duration::from_secs(1)),
                ask(proc, names::RANKS, Vec::new()),
                ask(proc, keys::QUERY_PROC_TABLE, Vec::new()),
                ask(proc, keys::EXIT_CODE, vec![Info::new(keys::RANK, Rank(2))]),
                ask(proc, keys::HOSTNAME, vec![Info::new(keys::RANK, Rank(2))]),
                ask(proc, keys::EXIT_CODE, vec![Info::new(keys::RANK, Rank(5))]),
                ask(proc, keys::QUERY_MEMORY_USAGE, Vec::new()),
                ask(proc, keys::QUERY_MEMORY_USAGE, vec![Info::new(keys::QUERY_REPORT_AVG, true)]),
                ask(proc, keys::JOB_SIZE, Vec::new()),
                ask(proc, keys::CMD_LINE, vec![of("world@1")]),
                ask(proc, keys::ALLOCATED_NODELIST, Vec::new()),
                Step::Exit(0),
            ])
        }
        1 => Script::new(vec![Step::Exit(0)]),
        2 => Script::new(vec![Step::Exit(3)]),
        3 => Script::new(vec![Step::Die(11)]),
        _ => Script::new(vec![Step::Sleep(Duration::from_secs(30))]),
    });
    world.submit(job(6, FailurePolicy::Continue));
    world.run_until(Duration::from_secs(600), |world| {
        world.procs.values().any(|fate| fate.answers.len() >= 11)
    });
    let given = answers(&world, "world@1");
    let ranks = infos(given[1].as_ref().unwrap());
    let state = |rank: usize| find(&ranks[rank], keys::PROC_STATE_STATUS).cloned();
    let code = |rank: usize| find(&ranks[rank], keys::EXIT_CODE).and_then(Value::as_i64);
    assert_eq!(state(0), Some(ProcState::RUNNING.into()));
    assert_eq!((state(1), code(1)), (Some(ProcState::TERMINATED.into()), Some(0)));
    assert_eq!((state(2), code(2)), (Some(ProcState::TERM_NON_ZERO.into()), Some(3)));
    assert_eq!((state(3), code(3)), (Some(ProcState::ABORTED_BY_SIG.into()), Some(139)));
    assert_eq!(find(&ranks[3], names::SIGNAL).and_then(Value::as_i64), Some(11));
    assert_eq!((state(4), code(4)), (Some(ProcState::RUNNING.into()), None));
    assert!(find(&ranks[4], names::STOPPED).is_some() && find(&ranks[5], names::STOPPED).is_none());
    let Value::ProcInfo(line) = &given[2].as_ref().unwrap().as_array().unwrap().items[3] else { panic!() };
    assert_eq!((line.state, line.proc.rank), (ProcState::ABORTED_BY_SIG, Rank(3)));
    assert_eq!(line.executable, Some("/kind1/prog".into()), "hosts of odd numbers have it elsewhere");
    assert_eq!(given[3].as_ref().unwrap().as_i64(), Some(3));
    assert!(given[4].as_ref().unwrap().as_str().is_some());
    assert_eq!(given[5], Err(Status::ERR_NOT_FOUND));
    let nodes = infos(given[6].as_ref().unwrap());
    assert_eq!(nodes.len(), 3, "three processes live, on a node each");
    assert_eq!(find(&nodes[1], keys::CLIENT_AVG_MEMORY), Some(&Value::Float(5.0)));
    assert_eq!(find(&nodes[1], keys::DAEMON_MEMORY), Some(&Value::Float(16.0)));
    let proc = find(&nodes[1], keys::PROC_INFO_ARRAY).unwrap().as_array().unwrap();
    assert_eq!(find(proc, names::MEMORY).and_then(Value::as_u64), Some(5 << 20));
    assert!(infos(given[7].as_ref().unwrap()).iter().all(|n| find(n, keys::PROC_INFO_ARRAY).is_none()));
    assert_eq!(given[8].as_ref().unwrap().as_u32(), Some(6));
    assert_eq!(given[9].as_ref().unwrap().as_str(), Some("prog -x"));
    assert_eq!(given[10].as_ref().unwrap().as_str(), Some("n0,n1,n2,n3,n4,n5"));
}

#[test]
fn namespaces_are_listed_with_their_sizes_and_ranks() {
    let mut world = world(2);
    world.script(|proc| match proc.rank.0 {
        0 => Script::new(vec![
            Step::Sleep(Duration::from_secs(5)),
            ask(proc, keys::QUERY_NAMESPACE_INFO, Vec::new()),
            ask(proc, keys::QUERY_NAMESPACE_INFO, vec![of("world@99")]),
        ]),
        _ => Script::new(vec![Step::Hang]),
    });
    world.submit(job(2, FailurePolicy::Continue));
    world.run_until(Duration::from_secs(600), |world| {
        world.procs.values().any(|fate| fate.answers.len() >= 2)
    });
    let given = answers(&world, "world@1");
    let jobs = infos(given[0].as_ref().unwrap());
    assert_eq!(jobs.len(), 1);
    assert_eq!(find(&jobs[0], keys::JOB_SIZE), Some(&Value::Uint32(2)));
    assert_eq!(find(&jobs[0], keys::CMD_LINE).and_then(Value::as_str), Some("prog -x"));
    let ranks: Vec<_> = jobs[0].infos().filter(|info| info.key == *keys::PROC_INFO_ARRAY).collect();
    let place = |info: &Info| {
        let about = info.value.as_array().unwrap();
        let host = find(about, keys::HOSTNAME).and_then(Value::as_str).unwrap().to_owned();
        (
            find(about, keys::RANK).and_then(Value::as_rank).unwrap(),
            host,
            find(about, keys::LOCAL_RANK).cloned(),
        )
    };
    let places: Vec<_> = ranks.into_iter().map(place).collect();
    assert_eq!((places[0].0, places[1].0), (Rank(0), Rank(1)));
    assert_ne!(places[0].1, places[1].1, "each on a node of its own");
    assert_eq!((&places[0].2, &places[1].2), (&Some(Value::Uint16(0)), &Some(Value::Uint16(0))));
    assert!(infos(given[1].as_ref().unwrap()).is_empty());
}

#[test]
fn usage_is_reported_by_the_nodes_themselves() {
    let mut world = world(5);
    world.script(|proc| match proc.rank.0 {
        0 => Script::new(vec![
            Step::Sleep(Duration::from_secs(5)),
            ask(proc, keys::QUERY_PROC_RESOURCE_USAGE, Vec::new()),
            ask(proc, keys::QUERY_PROC_RESOURCE_USAGE, vec![Info::new(keys::RANK, Rank(3))]),
            ask(proc, keys::QUERY_PROC_RESOURCE_USAGE, vec![of("world@99")]),
            ask(proc, keys::QUERY_NODE_RESOURCE_USAGE, Vec::new()),
            ask(proc, keys::QUERY_NODE_RESOURCE_USAGE, vec![Info::new(keys::NODEID, 4_u32)]),
            ask(proc, keys::QUERY_NODE_RESOURCE_USAGE, vec![Info::new(keys::NODEID, 5_u32)]),
            ask(proc, keys::QUERY_ALLOC_STATUS, vec![Info::new(keys::ALLOC_ID, "mine")]),
        ]),
        1 => Script::new(vec![Step::Exit(0)]),
        _ => Script::new(vec![Step::Hang]),
    });
    world.submit(job(5, FailurePolicy::Continue));
    world.run_until(Duration::from_secs(600), |world| {
        world.procs.values().any(|fate| fate.answers.len() >= 7)
    });
    let given = answers(&world, "world@1");
    let figure = |array: &DataArray, key| match find(array, key) {
        Some(Value::Float(number)) => *number,
        other => panic!("{key}: {other:?}"),
    };
    let procs = infos(given[0].as_ref().unwrap());
    let megabytes: Vec<f32> = procs.iter().map(|proc| figure(proc, keys::PROC_RSS)).collect();
    assert_eq!(megabytes, [1.0, 3.0, 4.0, 5.0], "those that live");
    let busy: Vec<f32> = procs.iter().map(|proc| figure(proc, keys::PROC_PERCENT_CPU)).collect();
    assert_eq!(busy, [0.0, 50.0, 75.0, 100.0], "of one processor");
    assert_eq!(procs[1].infos().next().unwrap().key, keys::PROCID, "led by whose they are");
    let one = infos(given[1].as_ref().unwrap());
    assert_eq!(one.iter().map(|proc| figure(proc, keys::PROC_RSS)).collect::<Vec<_>>(), [4.0]);
    assert_eq!(given[2], Err(Status::ERR_NOT_FOUND));
    let nodes = infos(given[3].as_ref().unwrap());
    let mut loads: Vec<f32> = nodes.iter().map(|node| figure(node, keys::NODE_LOAD_AVG)).collect();
    loads.sort_by(f32::total_cmp);
    assert_eq!(loads, [0.0, 1.0, 2.0, 3.0, 4.0]);
    let fourth = infos(given[4].as_ref().unwrap());
    assert_eq!((fourth.len(), figure(&fourth[0], keys::NODE_LOAD_AVG15)), (1, 4.0));
    assert_eq!(
        (given[5].clone(), given[6].clone()),
        (Err(Status::ERR_NOT_FOUND), Err(Status::ERR_NOT_FOUND))
    );
}

#[test]
fn an_ended_job_is_remembered() {
    let mut world = world(3);
    world.script(|proc| match proc.nspace.as_str() {
        "world@1" => Script::new(vec![Step::Exit(i32::from(proc.rank == Rank(1)) * 4)]),
        _ => Script::new(vec![
            Step::Sleep(Duration::from_secs(10)),
            ask(proc, names::JOBS, Vec::new()),
            ask(proc, names::RANKS, vec![of("world@1")]),
            ask(proc, keys::QUERY_JOB_STATUS, vec![of("world@1")]),
            ask(proc, keys::EXIT_CODE, vec![of("world@1")]),
            ask(proc, keys::QUERY_NAMESPACES, Vec::new()),
            ask(proc, keys::QUERY_QUEUE_LIST, Vec::new()),
            ask(proc, keys::QUERY_JOB_STATUS, vec![of("world@99")]),
        ]),
    });
    world.submit(job(3, FailurePolicy::Continue));
    world.submit(job(1, FailurePolicy::default()));
    world.run_until(Duration::from_secs(600), |world| world.user.ends.len() == 2);
    let given = answers(&world, "world@2");
    let jobs = infos(given[0].as_ref().unwrap());
    let word = |at: usize, key| find(&jobs[at], key).and_then(Value::as_str).map(str::to_owned);
    assert_eq!(word(0, names::STATE).as_deref(), Some("ended"));
    assert_eq!(word(0, names::VERDICT).as_deref(), Some("failed"));
    assert_eq!(word(1, names::STATE).as_deref(), Some("running"));
    let codes: Vec<_> = infos(given[1].as_ref().unwrap())
        .iter()
        .map(|rank| find(rank, keys::EXIT_CODE).and_then(Value::as_i64))
        .collect();
    assert_eq!(codes, [Some(0), Some(4), Some(0)]);
    assert_eq!(given[2], Ok(Status::ERR_JOB_NON_ZERO_TERM.into()));
    assert_eq!(given[3].as_ref().unwrap().as_i64(), Some(4));
    assert_eq!(given[4].as_ref().unwrap().as_str(), Some("world@2"));
    assert_eq!(given[5], Err(Status::ERR_NOT_SUPPORTED));
    assert_eq!(given[6], Err(Status::ERR_NOT_FOUND));
}

#[test]
fn the_past_of_jobs_is_listed_in_order() {
    let mut world = world(2);
    world.script(|proc| match proc.nspace.as_str() {
        "world@1" => Script::new(vec![
            Step::Sleep(Duration::from_secs(1)),
            Step::Exit(i32::from(proc.rank != Rank(1)) * 4),
        ]),
        _ => Script::new(vec![
            Step::Sleep(Duration::from_secs(10)),
            ask(proc, names::HAPPENINGS, vec![of("world@1")]),
            ask(proc, names::HAPPENINGS, vec![Info::new(names::SINCE, 10_u64)]),
            ask(proc, names::JOBS, Vec::new()),
        ]),
    });
    world.submit(job(3, FailurePolicy::Continue));
    world.submit(job(1, FailurePolicy::default()));
    world.run_until(Duration::from_secs(600), |world| world.user.ends.len() == 2);
    let given = answers(&world, "world@2");
    let told = infos(given[0].as_ref().unwrap());
    let word =
        |about: &DataArray, key| find(about, key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let states: Vec<String> = told.iter().map(|about| word(about, names::STATE)).collect();
    assert_eq!(
        states,
        ["submitted", "placed", "first process started", "started", "failed", "exited", "ended"]
    );
    assert_eq!(
        (word(&told[4], names::WHICH), word(&told[6], names::VERDICT)),
        ("0,2".into(), "failed".into())
    );
    let numbers: Vec<u64> =
        told.iter().filter_map(|about| find(about, names::NUMBER).and_then(Value::as_u64)).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
    let last = find(given[0].as_ref().unwrap().as_array().unwrap(), names::NUMBER).and_then(Value::as_u64);
    assert!(last >= numbers.last().copied(), "{last:?}");
    assert!(infos(given[1].as_ref().unwrap()).is_empty(), "nothing has happened lately");
    let jobs = infos(given[2].as_ref().unwrap());
    let phases = find(&jobs[0], names::PHASES).unwrap().as_array().unwrap();
    let known: Vec<&str> = phases.infos().map(|info| info.key.as_str()).collect();
    assert_eq!(known, ["placed", "started", "exited", "ended"]);
}

#[test]
fn a_query_does_not_wait_for_a_node_that_is_lost() {
    let mut world = world(7);
    world.script(|proc| match proc.rank.0 {
        0 => Script::new(vec![
            Step::Sleep(Duration::from_secs(2)),
            ask(proc, names::RANKS, Vec::new()),
            ask(proc, names::WAITS, Vec::new()),
        ]),
        _ => Script::new(vec![Step::Hang]),
    });
    world.submit(job(7, FailurePolicy::Continue));
    world.run_for(Duration::from_millis(1990));
    world.cut_off([phalanx_dvm::NodeId(2), phalanx_dvm::NodeId(5), phalanx_dvm::NodeId(6)]);
    world.run_until(Duration::from_secs(900), |world| {
        world.procs.values().any(|fate| fate.answers.len() >= 2)
    });
    let given = answers(&world, "world@1");
    let ranks = infos(given[0].as_ref().unwrap());
    let states: Vec<_> =
        ranks.iter().map(|rank| find(rank, keys::PROC_STATE_STATUS).unwrap().clone()).collect();
    assert_eq!(states.len(), 7);
    assert_eq!(states[3], ProcState::RUNNING.into());
    assert!(given[1].as_ref().unwrap().as_array().is_some());
}

#[test]
fn debug_support_of_spawns_is_listed() {
    let mut world = world(1);
    world.script(|proc| {
        let supported = [keys::QUERY_SPAWN_SUPPORT, keys::QUERY_DEBUG_SUPPORT];
        Script::new(
            supported.map(|key| ask(proc, key, Vec::new())).into_iter().chain([Step::Exit(0)]).collect(),
        )
    });
    world.submit(job(1, FailurePolicy::Continue));
    world
        .run_until(Duration::from_secs(60), |world| world.procs.values().any(|fate| fate.answers.len() == 2));
    let given = answers(&world, "world@1");
    let spawns = given[0].as_ref().unwrap().as_str().unwrap().to_owned();
    for key in [keys::MAPBY, keys::DEBUG_STOP_IN_INIT] {
        assert!(spawns.split(',').any(|one| one == key), "{spawns}");
    }
    assert!(!spawns.contains(keys::DEBUG_STOP_ON_EXEC), "{spawns}");
    assert_eq!(given[1], Ok(Value::from("pmix.dbg.init,pmix.dbg.notify")));
}
