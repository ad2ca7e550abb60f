//! Upcalls that our simulated clients cannot make yet: connect, groups, spawn, job control, queries.

use std::time::Duration;

use phalanx_core::Event;
use phalanx_core::host::{Asked, ConnectRequest, GroupFormed, GroupRequest, HostOp, HostReply};
use phalanx_dvm::{
    AppSpec, ExitStatus, FailurePolicy, JobRequest, JobVerdict, Limits, LogLine, NodeId, StdinTarget, names,
};
use phalanx_spec::{DataType, Range, Rank, Status, keys};
use phalanx_testkit::scripted::ScriptedServer;
use phalanx_testkit::{Op, RankAnswer, Script, Setup, Step, World};
use phalanx_wire::cmd::control::JobControl;
use phalanx_wire::cmd::iof::Push;
use phalanx_wire::cmd::log::Log;
use phalanx_wire::cmd::query::Queries;
use phalanx_wire::cmd::spawn::Spawn;
use phalanx_wire::{App, DataArray, Info, InfoList, Nspace, ProcId, Query, Value};

fn world(nodes: u32) -> World<ScriptedServer> {
    let server = Box::new(|_| ScriptedServer::default());
    let (limits, latency) = (Limits::default(), Duration::from_millis(1));
    World::new(Setup { seed: 11, nodes, radix: 2, cores: 1, limits, latency, server })
}

fn job(procs: u32) -> JobRequest {
    let app = AppSpec { argv: vec!["upcalls".into()], procs: Some(procs), ..AppSpec::default() };
    JobRequest { apps: vec![app], ..JobRequest::default() }
}

fn ask(op: HostOp) -> Step {
    Step::Ask(Op::Host(Box::new(op)))
}

fn answers(world: &World<ScriptedServer>, proc: &ProcId) -> Vec<HostReply> {
    let given = world.procs[proc].answers.iter();
    given
        .filter_map(|(_, a)| if let RankAnswer::Host(reply) = a { Some((**reply).clone()) } else { None })
        .collect()
}

fn finish(world: &mut World<ScriptedServer>, jobs: usize) {
    world.run_until(Duration::from_secs(120), |w| w.user.ends.len() + w.user.refused.len() == jobs);
    assert_eq!(world.user.complaints, Vec::<String>::new());
}

fn rank(nspace: &str, rank: u32) -> ProcId {
    ProcId::new(&Nspace::new(nspace).unwrap_or_else(|_| Nspace::none()), Rank(rank))
}

#[test]
fn two_jobs_connect_and_a_group_gets_a_context() {
    let mut world = world(4);
    world.script(|_| {
        let procs = vec![rank("world@1", 0), rank("world@1", 1), rank("world@2", 0), rank("world@2", 1)];
        let info = vec![Info::new(keys::GROUP_ASSIGN_CONTEXT_ID, true)];
        Script::new(vec![
            ask(HostOp::Connect(ConnectRequest { procs: procs.clone(), info: Vec::new() })),
            ask(HostOp::GroupConstruct(GroupRequest {
                from: None,
                id: "all".to_owned(),
                procs: procs.clone(),
                info,
            })),
            ask(HostOp::GroupDestruct(GroupRequest {
                from: None,
                id: "all".to_owned(),
                procs: procs.clone(),
                info: Vec::new(),
            })),
            ask(HostOp::Disconnect(ConnectRequest { procs, info: Vec::new() })),
        ])
    });
    world.submit(job(2));
    world.submit(job(2));
    finish(&mut world, 2);
    for proc in [rank("world@1", 0), rank("world@1", 1), rank("world@2", 0), rank("world@2", 1)] {
        let given = answers(&world, &proc);
        let done = HostReply::Done(Status::SUCCESS);
        assert_eq!((&given[0], &given[2], &given[3]), (&done, &done, &done), "{proc}");
        let HostReply::Group(Ok(GroupFormed { members, context_id, .. })) = &given[1] else {
            panic!("{given:?}");
        };
        assert_eq!((members.len(), *context_id), (4, Some(1)));
    }
}

#[test]
fn all_processes_can_query_the_members_of_groups() {
    let mut world = world(4);
    world.script(|proc| {
        let procs = vec![rank("world@1", 0), rank("world@1", 1)];
        let query = |key: &str, group: &str| {
            HostOp::Query(Asked {
                from: proc.clone(),
                request: Queries {
                    queries: vec![Query {
                        keys: vec![key.into()],
                        qualifiers: vec![Info::new(keys::GROUP_ID, group)],
                    }],
                },
            })
        };
        let construct = |id: &str| {
            HostOp::GroupConstruct(GroupRequest {
                from: None,
                id: id.into(),
                procs: procs.clone(),
                info: Vec::new(),
            })
        };
        let (names, members) = (keys::QUERY_GROUP_NAMES, keys::QUERY_GROUP_MEMBERSHIP);
        Script::new(match proc.rank.0 {
            number @ (0 | 1) => {
                let destruct = HostOp::GroupDestruct(GroupRequest {
                    from: None,
                    id: "one".into(),
                    procs: procs.clone(),
                    info: Vec::new(),
                });
                let info = vec![Info::new(keys::GROUP_ID, "two")];
                let (code, range) = (Status::GROUP_LEFT, Range::CUSTOM);
                let left = Event { code, source: proc.clone(), range, info };
                let mut steps = vec![ask(construct("one")), ask(construct("two")), late(10), ask(destruct)];
                steps.extend((number == 0).then(|| ask(HostOp::Notify(left))));
                steps
            }
            // It is in neither group, and on another node.
            2 => vec![
                late(5),
                ask(query(names, "")),
                ask(query(members, "one")),
                late(10),
                ask(query(names, "")),
                ask(query(members, "one")),
                ask(query(members, "two")),
            ],
            _ => vec![late(60)],
        })
    });
    world.submit(job(4));
    finish(&mut world, 1);
    let given = answers(&world, &rank("world@1", 2));
    let value = |at: usize| match &given[at] {
        HostReply::Infos(Status::SUCCESS, info) => info[0].value.clone(),
        other => panic!("{at}: {other:?}"),
    };
    let members = |at| value(at).as_array().map(|array| array.items.clone()).unwrap_or_default();
    let of = |ranks: &[u32]| ranks.iter().map(|r| Value::Proc(rank("world@1", *r))).collect::<Vec<_>>();
    assert_eq!((value(0).as_str(), members(1)), (Some("one,two"), of(&[0, 1])));
    assert_eq!((value(2).as_str(), given[3].status()), (Some("two"), Status::ERR_NOT_FOUND));
    assert_eq!(members(4), of(&[1]));
}

/// The directives of one of two leaders that add members.
fn brings(brought: &[ProcId]) -> Vec<Info> {
    let items = brought.iter().cloned().map(Value::Proc).collect();
    vec![
        Info::new(keys::GROUP_BOOTSTRAP, Value::Size(2)),
        Info::new(keys::GROUP_ADD_MEMBERS, DataArray { of: DataType::PROC, items }),
        Info::new(keys::GROUP_ASSIGN_CONTEXT_ID, true),
    ]
}

#[test]
fn group_members_come_in_the_order_that_was_given() {
    let mut world = world(4);
    let all: Vec<ProcId> = (0..4).map(|number| rank("world@1", number)).collect();
    let members = all.clone();
    world.script(move |proc| {
        let listed = [3, 1].map(|number| Value::Proc(rank("world@1", number))).to_vec();
        let order =
            Info::new(keys::GROUP_FINAL_MEMBERSHIP_ORDER, DataArray { of: DataType::PROC, items: listed });
        let info = if proc.rank.0 == 0 { vec![order] } else { Vec::new() };
        Script::new(vec![ask(HostOp::GroupConstruct(GroupRequest {
            from: None,
            id: "listed".into(),
            procs: members.clone(),
            info,
        }))])
    });
    world.submit(job(4));
    finish(&mut world, 1);
    let formed = GroupFormed {
        members: [3, 1, 0, 2].map(|number| rank("world@1", number)).to_vec(),
        ..GroupFormed::default()
    };
    for proc in &all {
        assert_eq!(answers(&world, proc), [HostReply::Group(Ok(formed.clone()))], "{proc}");
    }
}

fn assemble(from: &ProcId, name: &str, procs: Vec<ProcId>, info: Vec<Info>) -> HostOp {
    HostOp::GroupConstruct(GroupRequest { from: Some(from.clone()), id: name.to_owned(), procs, info })
}

fn follow(proc: &ProcId) -> Step {
    ask(assemble(proc, "grown", Vec::new(), Vec::new()))
}

fn late(seconds: u64) -> Step {
    Step::Sleep(Duration::from_secs(seconds))
}

/// Runs a job in which each rank takes these steps, and checks the answers to the final members.
fn grow(
    ranks: u32,
    members: [u32; 4],
    does: impl Fn(&ProcId) -> Vec<Step> + 'static,
) -> World<ScriptedServer> {
    let mut world = world(ranks);
    world.script(move |proc| Script::new(does(proc)));
    world.submit(job(ranks));
    finish(&mut world, 1);
    let members = members.map(|number| rank("world@1", number)).to_vec();
    let formed = GroupFormed { members: members.clone(), context_id: Some(1), info: Vec::new() };
    for member in members {
        assert_eq!(answers(&world, &member), [HostReply::Group(Ok(formed.clone()))], "{member}");
    }
    world
}

#[test]
fn a_group_grows_until_all_that_its_leaders_add_have_come() {
    let world = grow(6, [0, 1, 4, 5], |proc| {
        let brought = |number| brings(&[rank("world@1", number)]);
        let lead = |number| ask(assemble(proc, "grown", vec![proc.clone()], brought(number)));
        // No leader adds the last rank, which asks all the same.
        match proc.rank.0 {
            0 => vec![lead(5)],
            1 => vec![late(2), lead(4)],
            2 => Vec::new(),
            4 => vec![late(4), follow(proc)],
            _ => vec![follow(proc)],
        }
    });
    let given = answers(&world, &rank("world@1", 3));
    assert_eq!(given, [HostReply::Group(Err(Status::ERR_NOT_A_MEMBER))]);
}

#[test]
fn group_waits_for_members_added_by_leaders() {
    grow(5, [0, 1, 3, 4], |proc| {
        let adds = |number| {
            let brought = brings(&[rank("world@1", number)]).into_iter();
            // A collective construct has no leaders to count.
            let info = brought.filter(|said| said.key != keys::GROUP_BOOTSTRAP).collect();
            let procs = vec![rank("world@1", 0), rank("world@1", 1)];
            ask(HostOp::GroupConstruct(GroupRequest { from: None, id: "grown".to_owned(), procs, info }))
        };
        match proc.rank.0 {
            0 => vec![adds(4)],
            1 => vec![late(2), adds(3)],
            2 => Vec::new(),
            3 => vec![late(4), follow(proc)],
            _ => vec![follow(proc)],
        }
    });
}

#[test]
fn group_without_agreeing_leaders_is_given_up() {
    let mut world = world(4);
    world.script(|proc| {
        let count = |leaders: u64| vec![Info::new(keys::GROUP_BOOTSTRAP, Value::Size(leaders))];
        let in_time = |seconds: i32| [count(2), vec![Info::new(keys::TIMEOUT, seconds)]].concat();
        let lead = |name: &str, info| ask(assemble(proc, name, vec![proc.clone()], info));
        Script::new(match proc.rank.0 {
            0 => vec![lead("odd", in_time(30)), lead("none", count(0)), lead("alone", count(1))],
            1 => vec![late(2), lead("odd", count(3))],
            _ => Vec::new(),
        })
    });
    world.submit(job(4));
    finish(&mut world, 1);
    let refused = |status| HostReply::Done(status);
    let given = answers(&world, &rank("world@1", 0));
    assert_eq!(given[0], HostReply::Group(Err(Status::ERR_TIMEOUT)));
    assert_eq!(given[1], refused(Status::ERR_BAD_PARAM));
    let members = vec![rank("world@1", 0)];
    assert_eq!(given[2], HostReply::Group(Ok(GroupFormed { members, ..GroupFormed::default() })));
    assert_eq!(answers(&world, &rank("world@1", 1)), [refused(Status::ERR_BAD_PARAM)]);
}

#[test]
fn a_group_that_grows_is_given_up_when_one_of_it_fails() {
    let mut world = world(3);
    world.script(|proc| {
        let dead = rank("world@1", 2);
        let add = |id: &str| {
            let info = vec![Info::new(keys::GROUP_ADD_MEMBERS, dead.clone())];
            let procs = vec![rank("world@1", 0), rank("world@1", 1)];
            ask(HostOp::GroupConstruct(GroupRequest { from: None, id: id.to_owned(), procs, info }))
        };
        let lead =
            |name: &str| ask(assemble(proc, name, vec![proc.clone()], brings(std::slice::from_ref(&dead))));
        Script::new(match proc.rank.0 {
            2 => vec![late(5), Step::Exit(3)],
            // In the second group the failed rank was a member before the group was requested.
            _ => vec![lead("early"), late(5), lead("late"), add("added")],
        })
    });
    world.submit(JobRequest { on_failure: FailurePolicy::Continue, ..job(3) });
    finish(&mut world, 1);
    for number in [0, 1] {
        let given = answers(&world, &rank("world@1", number));
        assert_eq!(given[0], HostReply::Group(Err(Status::GROUP_CONSTRUCT_ABORT)), "{number}");
        assert_eq!(given[1], HostReply::Group(Err(Status::GROUP_CONSTRUCT_ABORT)), "{number}");
        assert_eq!(given[2], HostReply::Done(Status::GROUP_CONSTRUCT_ABORT), "{number}");
    }
}

#[test]
fn a_group_that_grows_is_given_up_when_one_of_it_ends_well() {
    let mut world = world(4);
    world.script(|proc| {
        let one = |number: u32| rank("world@1", number);
        let lead =
            |name: &str, brought| ask(assemble(proc, name, vec![proc.clone()], brings(&[one(brought)])));
        let follow = |name: &str| ask(assemble(proc, name, Vec::new(), Vec::new()));
        Script::new(match proc.rank.0 {
            // It ends after its answer, so it is not missing.
            2 => vec![Step::Ask(Op::Init), follow("whole"), late(5), Step::Ask(Op::Finalize), late(60)],
            3 => vec![late(5)],
            // In the later groups those members had ended before the group was requested.
            _ => vec![
                lead("whole", 2),
                lead("finalized", 2),
                lead("exited", 3),
                late(10),
                lead("finalized", 2),
                lead("exited", 3),
            ],
        })
    });
    world.submit(job(4));
    finish(&mut world, 1);
    for number in [0, 1] {
        let given = answers(&world, &rank("world@1", number));
        assert!(matches!(given[0], HostReply::Group(Ok(_))), "{number}: {given:?}");
        assert_eq!(
            given[1..],
            [const { HostReply::Group(Err(Status::GROUP_CONSTRUCT_ABORT)) }; 4],
            "{number}"
        );
    }
}

#[test]
fn the_spawner_is_notified_once_when_all_ranks_have_stopped() {
    let mut world = world(4);
    world.script(|proc| match proc.nspace.as_str() {
        "world@1" => {
            let items = [0, 2].map(|rank| Value::Rank(Rank(rank))).to_vec();
            let some = DataArray { of: DataType::PROC_RANK, items };
            let app = |info| App { cmd: Some("child".into()), max_procs: 3, info, ..App::default() };
            let spawn = |job, of_app| {
                HostOp::Spawn(Asked { from: proc.clone(), request: Spawn { job, apps: vec![app(of_app)] } })
            };
            let stop = |key, value: Value| vec![Info::new(key, value)];
            Script::new(vec![
                ask(spawn(stop(keys::DEBUG_STOP_ON_EXEC, true.into()), Vec::new())),
                ask(spawn(Vec::new(), stop(keys::DEBUG_STOP_IN_INIT, true.into()))),
                ask(spawn(stop(keys::DEBUG_STOP_IN_INIT, Value::Rank(Rank(3))), Vec::new())),
                ask(spawn(stop(keys::DEBUG_STOP_IN_INIT, some.into()), Vec::new())),
                late(20),
            ])
        }
        _ => {
            let info = vec![Info::new(keys::BREAKPOINT, format!("of {}", proc.rank))];
            let (code, range) = (Status::READY_FOR_DEBUG, Range::RM);
            let ready = Event { code, source: proc.clone(), range, info };
            let seconds = [1, 4, 7][proc.rank.0 as usize];
            Script::new(vec![late(seconds), ask(HostOp::Notify(ready)), late(20)])
        }
    });
    world.submit(job(1));
    finish(&mut world, 2);
    let given = answers(&world, &rank("world@1", 0));
    assert_eq!(given[..2], [const { HostReply::Done(Status::ERR_NOT_SUPPORTED) }; 2]);
    assert_eq!(given[2], HostReply::Spawned(Err(Status::ERR_JOB_FAILED_TO_MAP)));
    let says = |note: &String| note.contains("rank 3 is to stop, and the job's ranks are 0 to 2");
    assert_eq!(world.user.notes.iter().filter(|note| says(note)).count(), 1, "{:?}", world.user.notes);
    let servers = (0..4).filter_map(|node| world.node(NodeId(node)));
    let events = servers.flat_map(|node| &node.server().events);
    let told = events.filter(|event| event.code == Status::READY_FOR_DEBUG);
    let told: Vec<_> =
        told.map(|event| (event.info.find(keys::NSPACE), event.info.find(keys::BREAKPOINT))).collect();
    assert_eq!(told, [(Some(&Value::from("world@2")), Some(&Value::from("of 2")))]);
}

#[test]
fn ranks_that_die_before_their_stop_are_not_awaited() {
    let mut world = world(4);
    world.script(|proc| match (proc.nspace.as_str(), proc.rank.0) {
        ("world@1", _) => {
            let app = App { cmd: Some("child".into()), max_procs: 3, ..App::default() };
            let job = [keys::DEBUG_STOP_IN_INIT, keys::JOB_CONTINUOUS].map(|key| Info::new(key, true));
            let spawn = HostOp::Spawn(Asked {
                from: proc.clone(),
                request: Spawn { job: job.to_vec(), apps: vec![app] },
            });
            Script::new(vec![ask(spawn), late(20)])
        }
        (_, 1) => Script::new(vec![late(4), Step::Exit(1)]),
        _ => {
            let event = Event {
                code: Status::READY_FOR_DEBUG,
                source: proc.clone(),
                range: Range::RM,
                info: Vec::new(),
            };
            Script::new(vec![late(1), ask(HostOp::Notify(event)), late(20)])
        }
    });
    world.submit(job(1));
    finish(&mut world, 2);
    let servers = (0..4).filter_map(|node| world.node(NodeId(node)));
    let events = servers.flat_map(|node| &node.server().events);
    assert_eq!(events.filter(|event| event.code == Status::READY_FOR_DEBUG).count(), 1);
}

#[test]
fn a_process_spawns_a_job_whose_failure_is_its_own() {
    for nodes in [1, 4] {
        let mut world = world(nodes);
        world.script(|proc| match proc.nspace.as_str() {
            "world@1" => {
                let app = |cmd: &str| App { cmd: Some(cmd.into()), max_procs: 2, ..App::default() };
                let spawn = |cmd| {
                    HostOp::Spawn(Asked {
                        from: proc.clone(),
                        request: Spawn { job: Vec::new(), apps: vec![app(cmd)] },
                    })
                };
                let two = HostOp::Spawn(Asked {
                    from: proc.clone(),
                    request: Spawn { job: Vec::new(), apps: vec![app("child"), app("missing")] },
                });
                Script::new(vec![ask(spawn("child")), ask(spawn("missing")), ask(two), late(5)])
            }
            _ => Script::new(vec![Step::Exit(i32::from(proc.rank == Rank(1)) * 4)]),
        });
        world.submit(job(1));
        finish(&mut world, 4);
        let given = answers(&world, &rank("world@1", 0));
        let child = Nspace::new("world@2").unwrap();
        assert_eq!(given[0], HostReply::Spawned(Ok(child.clone())));
        let missing = HostReply::Spawned(Err(Status::ERR_JOB_EXE_NOT_FOUND));
        assert_eq!(given[1..], [missing.clone(), missing], "{nodes} nodes");
        assert_eq!(world.user.ends[&child].exit_code, 4);
        assert_eq!(world.user.ends[&Nspace::new("world@1").unwrap()].verdict, JobVerdict::Success);
    }
}

/// Debug builds check at each daemon that nothing remains of a job that is over.
#[test]
fn requests_of_ended_processes_are_forgotten_everywhere() {
    for nodes in [1, 4] {
        let mut world = world(nodes);
        world.script(|proc| match (proc.nspace.as_str(), proc.rank.0) {
            // It does not read the data pushed to it.
            ("world@1", _) => Script::new(vec![Step::Sleep(Duration::from_secs(60))]),
            ("world@2", 0) => Script::new(vec![Step::Sleep(Duration::from_secs(5)), Step::Exit(3)]),
            ("world@2", 1) => {
                let apps = vec![App { cmd: Some("child".into()), max_procs: 1, ..App::default() }];
                let job = vec![Info::new(keys::SPAWN_CHILD_SEP, true), Info::new(keys::FWD_STDOUT, true)];
                Script::new(vec![
                    ask(HostOp::Spawn(Asked { from: proc.clone(), request: Spawn { job, apps } })),
                    Step::Hang,
                ])
            }
            ("world@2", 2) => {
                let info = Info::new(keys::GROUP_BOOTSTRAP, 2_u64);
                Script::new(vec![ask(assemble(proc, "grows", Vec::new(), vec![info]))])
            }
            ("world@2", _) => {
                let (from, targets) = (proc.clone(), vec![rank("world@1", 0)]);
                let data = vec![7; 8 << 20].into();
                Script::new(vec![ask(HostOp::PushStdin(Asked {
                    from,
                    request: Push { targets, directives: Vec::new(), data },
                }))])
            }
            _ => Script::new(vec![Step::Sleep(Duration::from_secs(30))]),
        });
        world.submit(JobRequest { stdin: StdinTarget::All, ..job(1) });
        world.submit(job(4));
        let over = Nspace::new("world@2").unwrap();
        world.run_until(Duration::from_secs(60), |w| w.user.ends.contains_key(&over));
        assert!(!world.user.ends.contains_key(&Nspace::new("world@3").unwrap()), "its child goes on");
        world.run_until(Duration::from_secs(5), |world| !world.explain().contains("world@2"));
        finish(&mut world, 3);
    }
}

#[test]
fn a_limit_of_a_spawn_is_no_limit_of_its_job() {
    let server = Box::new(|_| ScriptedServer::default());
    let (limits, latency) = (Limits::default(), Duration::from_millis(1500));
    let mut world = World::new(Setup { seed: 11, nodes: 2, radix: 2, cores: 1, limits, latency, server });
    world.script(|proc| match proc.nspace.as_str() {
        "world@1" => {
            let spawn = |key, seconds: u32| {
                HostOp::Spawn(Asked {
                    from: proc.clone(),
                    request: Spawn {
                        job: vec![Info::new(key, seconds)],
                        apps: vec![App { cmd: Some("child".into()), max_procs: 2, ..App::default() }],
                    },
                })
            };
            Script::new(vec![
                ask(spawn(keys::TIMEOUT, 10)),
                ask(spawn(keys::TIMEOUT, 1)),
                ask(spawn(keys::SPAWN_TIMEOUT, 1)),
                ask(spawn(keys::JOB_TIMEOUT, 10)),
                late(60),
            ])
        }
        _ => Script::new(vec![late(30)]),
    });
    world.submit(job(1));
    finish(&mut world, 5);
    let given = answers(&world, &rank("world@1", 0));
    let named = |number: u32| Nspace::new(&format!("world@{number}")).unwrap();
    let overdue = HostReply::Spawned(Err(Status::ERR_TIMEOUT));
    let ran = |number| HostReply::Spawned(Ok(named(number)));
    assert_eq!(given, [ran(2), overdue.clone(), overdue, ran(5)]);
    let ends = &world.user.ends;
    assert_eq!(ends[&named(2)].verdict, JobVerdict::Success);
    assert!(matches!(ends[&named(3)].verdict, JobVerdict::NotStarted { .. }));
    assert_eq!(ends[&named(5)].verdict, JobVerdict::TimedOut { limit: Duration::from_secs(10) });
}

#[test]
fn directives_that_are_not_honoured_are_refused_or_named() {
    let mut world = world(1);
    world.script(|proc| match proc.nspace.as_str() {
        "world@1" => {
            let spawn = |job: Vec<Info>, info: Vec<Info>| {
                HostOp::Spawn(Asked {
                    from: proc.clone(),
                    request: Spawn {
                        job,
                        apps: vec![App { cmd: Some("child".into()), max_procs: 1, info, ..App::default() }],
                    },
                })
            };
            let (pset, pre) = (Info::new(keys::PSET_NAME, "set"), Info::new(keys::PRELOAD_BIN, true));
            let not = Info::new(keys::PRELOAD_FILES, false);
            let of_job_only = Info::new(keys::JOB_TIMEOUT, 5_u32);
            let needed = |info: &Info| info.clone().required();
            Script::new(vec![
                ask(spawn(vec![needed(&pset)], Vec::new())),
                ask(spawn(Vec::new(), vec![needed(&pset)])),
                ask(spawn(Vec::new(), vec![needed(&of_job_only)])),
                ask(spawn(vec![pre.clone(), not.clone()], vec![pset.clone(), of_job_only])),
                ask(spawn(vec![pre, not], vec![Info::new(keys::WDIR, "/")])),
                late(5),
            ])
        }
        _ => Script::default(),
    });
    world.submit(job(1));
    finish(&mut world, 3);
    let given = answers(&world, &rank("world@1", 0));
    assert_eq!(given[..3], [const { HostReply::Done(Status::ERR_NOT_SUPPORTED) }; 3]);
    assert!(given[3..].iter().all(|answer| answer.status().is_success()), "{given:?}");
    // The user gets each note once.
    let told = |parts: &[&str]| {
        let says = |note: &&String| parts.iter().all(|part| note.contains(part));
        world.user.notes.iter().filter(says).count()
    };
    for name in ["PMIX_PSET_NAME", "PMIX_JOB_TIMEOUT"] {
        assert_eq!((told(&[name, "refused"]), told(&[name, "ignored"])), (1, 1), "{name}");
    }
    assert_eq!((told(&["PMIX_PRELOAD_BIN", "ignored"]), told(&["PRELOAD_FILES"])), (1, 0));
    let ignored = |number: u32| {
        let job = world.user.spawned.get(&Nspace::new(&format!("world@{number}")).unwrap());
        job.and_then(|(info, _)| info.find(names::IGNORED)).and_then(Value::as_str).map(str::to_owned)
    };
    assert_eq!(ignored(2).as_deref(), Some("pmix.job.time,pmix.preloadbin,pmix.pset.nm"));
    assert_eq!(ignored(3).as_deref(), Some("pmix.preloadbin"));
}

#[test]
fn processes_are_controlled_and_asked_about() {
    let mut world = world(3);
    world.script(|proc| {
        if proc.rank != Rank(0) {
            return Script::new(vec![Step::Hang]);
        }
        let control = |rank_, key: &'static str| {
            HostOp::from(Asked {
                from: proc.clone(),
                request: JobControl {
                    targets: vec![rank("world@1", rank_)],
                    directives: vec![Info::new(key, true)],
                },
            })
        };
        let query = |key: &str| {
            HostOp::Query(Asked {
                from: proc.clone(),
                request: Queries { queries: vec![Query { keys: vec![key.into()], qualifiers: Vec::new() }] },
            })
        };
        Script::new(vec![
            late(1),
            ask(query(keys::QUERY_NAMESPACES)),
            ask(query(keys::QUERY_PROC_TABLE)),
            ask(query("no.such.key")),
            ask(control(1, keys::JOB_CTRL_PAUSE)),
            ask(control(1, keys::JOB_CTRL_TERMINATE)),
            ask(control(2, keys::JOB_CTRL_KILL)),
            ask(control(2, keys::JOB_CTRL_DEFINE_PSET)),
        ])
    });
    world.submit(job(3));
    finish(&mut world, 1);
    let given = answers(&world, &rank("world@1", 0));
    let HostReply::Infos(status, names) = &given[0] else { panic!("{given:?}") };
    assert_eq!((*status, names[0].value.as_str()), (Status::SUCCESS, Some("world@1")));
    let HostReply::Infos(_, table) = &given[1] else { panic!("{given:?}") };
    assert_eq!(table[0].value.as_array().map(|array| array.items.len()), Some(3));
    assert_eq!(given[2], HostReply::Infos(Status::ERR_NOT_SUPPORTED, Vec::new()));
    assert_eq!(given[6], HostReply::Done(Status::ERR_NOT_SUPPORTED));
    let end = world.user.ends.values().next().unwrap();
    let signal = |number| Some(ExitStatus::Signal { number, core_dumped: false });
    assert_eq!((end.procs[1].status, end.procs[2].status), (signal(15), signal(9)));
}

#[test]
fn job_control_finds_no_process_that_has_ended() {
    for nodes in [1, 3] {
        let mut world = world(nodes);
        let directives = [
            Info::new(keys::JOB_CTRL_KILL, true),
            Info::new(keys::JOB_CTRL_TERMINATE, true),
            Info::new(keys::JOB_CTRL_SIGNAL, 10),
            Info::new(keys::JOB_CTRL_PAUSE, true),
            Info::new(keys::JOB_CTRL_RESUME, true),
        ];
        world.script(move |proc| match proc.rank {
            Rank(0) => {
                let control = |directive: &Info, ranks: &[u32]| {
                    let targets = ranks.iter().map(|number| rank("world@1", *number)).collect();
                    let directives = vec![directive.clone()];
                    let request = JobControl { targets, directives };
                    ask(HostOp::from(Asked { from: proc.clone(), request }))
                };
                let gone = directives.iter().map(|directive| control(directive, &[1]));
                let of_two = control(&directives[0], &[1, 2]);
                Script::new([late(1)].into_iter().chain(gone).chain([of_two]).collect())
            }
            Rank(1) => Script::new(vec![Step::Exit(0)]),
            _ => Script::new(vec![Step::Hang]),
        });
        world.submit(job(3));
        finish(&mut world, 1);
        let given = answers(&world, &rank("world@1", 0));
        let given: Vec<Status> = given.iter().map(HostReply::status).collect();
        let (gone, of_two) = ([Status::ERR_NOT_FOUND; 5], [Status::SUCCESS]);
        assert_eq!(given, [&gone[..], &of_two].concat(), "{nodes} nodes");
    }
}

#[test]
fn a_part_that_is_cut_off_ends_itself_and_its_jobs() {
    let mut world = world(15);
    world.script(|_| Script::new(vec![Step::Hang]));
    world.submit(job(15));
    world.run_for(Duration::from_secs(2));
    assert_eq!(world.procs.len(), 15);
    // The subtree of daemon 1; the other daemons are not notified.
    let island = [1, 3, 4, 7, 8, 9, 10].map(phalanx_dvm::NodeId);
    world.cut_off(island);
    finish(&mut world, 1);
    let end = world.user.ends.values().next().unwrap();
    assert!(matches!(end.verdict, JobVerdict::NodeLost { .. }), "{:?}", end.verdict);
    world.run_for(Duration::from_secs(120));
    for node in island {
        assert!(!world.is_alive(node), "{node:?} goes on alone");
    }
    assert!(world.procs.values().all(|fate| fate.ended.is_some()));
}

#[test]
fn each_daemon_writes_to_the_syslog_of_its_node() {
    let mut world = world(7);
    world.script(|proc| {
        let data =
            vec![Info::new(keys::LOG_LOCAL_SYSLOG, "local"), Info::new(keys::LOG_GLOBAL_SYSLOG, "global")];
        let request = Log { data, directives: Vec::new(), timestamp: 0 };
        match proc.rank {
            Rank(5) => Script::new(vec![ask(HostOp::Log(Asked { from: proc.clone(), request }))]),
            _ => Script::new(Vec::new()),
        }
    });
    world.submit(job(7));
    finish(&mut world, 1);
    let from = rank("world@1", 5);
    assert_eq!(answers(&world, &from), [HostReply::Done(Status::SUCCESS)]);
    let line = |text: &str| LogLine::Syslog { priority: 11, line: format!("{from}: {text}").into() };
    world.logged.sort_by_key(|(node, _)| *node);
    assert_eq!(world.logged, [(NodeId(0), line("global")), (NodeId(5), line("local"))]);
}
