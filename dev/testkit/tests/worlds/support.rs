//! The attributes that the runtime advertises, and its treatment of directives that are marked as required.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::time::Duration;

use phalanx_core::Event;
use phalanx_core::host::{
    Asked, ConnectRequest, EventsRequest, FenceRequest, GroupRequest, HostOp, HostReply, PullEnded,
};
use phalanx_dvm::{AppSpec, JobRequest, Limits};
use phalanx_spec::{AllocDirective, IofChannel, Range, Rank, Status, keys};
use phalanx_testkit::scripted::ScriptedServer;
use phalanx_testkit::{Op, RankAnswer, Script, Setup, Step, World};
use phalanx_wire::cmd::allocate::Allocate;
use phalanx_wire::cmd::control::JobControl;
use phalanx_wire::cmd::credential::{GetCredential, ValidateCredential};
use phalanx_wire::cmd::fabric::{Register, Update};
use phalanx_wire::cmd::iof::{Pull, Push};
use phalanx_wire::cmd::log::Log;
use phalanx_wire::cmd::monitor::Monitor;
use phalanx_wire::cmd::publish::{Publish, Published};
use phalanx_wire::cmd::query::Queries;
use phalanx_wire::cmd::session::SessionControl;
use phalanx_wire::cmd::spawn::Spawn;
use phalanx_wire::{App, Blob, DataArray, Info, InfoFlags, Key, Nspace, ProcId, Query};

/// The answers to each rank of a job of two, on two nodes.
fn ask(ops: impl Fn(&ProcId) -> Vec<HostOp> + 'static) -> BTreeMap<u32, Vec<HostReply>> {
    let server = Box::new(|_| ScriptedServer::default());
    let (limits, latency) = (Limits::default(), Duration::from_millis(1));
    let mut world = World::new(Setup { seed: 7, nodes: 2, radix: 2, cores: 1, limits, latency, server });
    world.script(move |proc| match proc.nspace.as_str() {
        "world@1" => {
            let asks = ops(proc).into_iter().map(|op| Step::Ask(Op::Host(Box::new(op))));
            Script::new(std::iter::once(Step::Sleep(Duration::from_secs(1))).chain(asks).collect())
        }
        _ => Script::default(),
    });
    let app = AppSpec { argv: vec!["asks".into()], procs: Some(2), ..AppSpec::default() };
    world.submit(JobRequest { apps: vec![app], ..JobRequest::default() });
    let job = Nspace::new("world@1").unwrap();
    world.run_until(Duration::from_secs(600), |world| world.user.ends.contains_key(&job));
    let given = |rank: u32| {
        let answers = &world.procs[&ProcId::new(&job, Rank(rank))].answers;
        let host = answers.iter().map(|(_, answer)| match answer {
            RankAnswer::Host(reply) => (**reply).clone(),
            other => panic!("{other:?}"),
        });
        host.collect()
    };
    [0, 1].into_iter().map(|rank| (rank, given(rank))).collect()
}

/// Each function with the keys that it advertises.
fn advertised() -> BTreeMap<String, Vec<String>> {
    let answers = ask(|proc| {
        let queries = vec![Query {
            keys: vec![keys::QUERY_ATTRIBUTE_SUPPORT.into()],
            qualifiers: vec![Info::new(keys::HOST_ATTRIBUTES, true)],
        }];
        vec![HostOp::Query(Asked { from: proc.clone(), request: Queries { queries } })]
    });
    let HostReply::Infos(Status::SUCCESS, info) = &answers[&0][0] else { panic!("{answers:?}") };
    let layer = info[0].value.as_array().unwrap().infos().next().unwrap().clone();
    assert_eq!(layer.key, keys::HOST_ATTRIBUTES);
    let functions = layer.value.as_array().unwrap();
    let honoured = |info: &Info| {
        let items = &info.value.as_array().unwrap().items;
        let key = |item: &phalanx_wire::Value| match item {
            phalanx_wire::Value::Regattr(attribute) => attribute.key.clone().unwrap().to_string(),
            other => panic!("{other:?}"),
        };
        (info.key.to_string(), items.iter().map(key).collect())
    };
    functions.infos().map(honoured).collect()
}

/// A request that succeeds, or at least does not ask for anything unsupported.
fn request(function: &str, proc: &ProcId, round: usize, directive: Info) -> HostOp {
    let from = proc.clone();
    let info = vec![directive];
    let procs = vec![ProcId::all(&proc.nspace)];
    let key = Key::new(&format!("k{}-{round}", proc.rank)).unwrap();
    match function {
        "PMIx_Fence" => HostOp::Fence(FenceRequest { procs, info, data: Blob::default() }),
        "PMIx_Connect" => HostOp::Connect(ConnectRequest { procs, info }),
        "PMIx_Disconnect" => HostOp::Disconnect(ConnectRequest { procs, info }),
        "PMIx_Group_construct" => {
            HostOp::GroupConstruct(GroupRequest { from: None, id: format!("g{round}"), procs, info })
        }
        "PMIx_Group_destruct" => {
            HostOp::GroupDestruct(GroupRequest { from: None, id: format!("g{round}"), procs, info })
        }
        "PMIx_IOF_deregister" => {
            HostOp::IofStop(PullEnded { from, handle: round as u64, directives: info, died: false })
        }
        "PMIx_IOF_pull" => {
            let channels = IofChannel::STDOUT;
            HostOp::IofPull(Asked {
                from,
                request: Pull { sources: procs, channels, directives: info, handle: round as u64 },
            })
        }
        "PMIx_IOF_push" => HostOp::PushStdin(Asked {
            from,
            request: Push { targets: procs, directives: info, data: Blob::default() },
        }),
        "PMIx_Job_control" => {
            let harmless = Info::new(keys::REGISTER_CLEANUP, format!("/tmp/{key}"));
            HostOp::from(Asked {
                from,
                request: JobControl {
                    targets: vec![proc.clone()],
                    directives: [vec![harmless], info].concat(),
                },
            })
        }
        "PMIx_Log" => HostOp::Log(Asked {
            from,
            request: Log { timestamp: 0, data: vec![Info::new(keys::LOG_STDERR, "x")], directives: info },
        }),
        "PMIx_Lookup" => HostOp::Lookup(Asked { from, request: Published { uid: 0, keys: vec![key], info } }),
        "PMIx_Notify_event" => {
            let code = Status::EVENT_JOB_END;
            HostOp::Notify(Event { code, source: from, range: Range::SESSION, info })
        }
        "PMIx_Publish" => {
            let data = Info { key, flags: InfoFlags::empty(), value: 1_u32.into() };
            HostOp::Publish(Asked { from, request: Publish { uid: 0, info: [vec![data], info].concat() } })
        }
        "PMIx_Query_info" => {
            let queries = vec![Query { keys: vec![keys::QUERY_NAMESPACES.into()], qualifiers: info }];
            HostOp::Query(Asked { from, request: Queries { queries } })
        }
        "PMIx_Session_control" => {
            let harmless = Info::new(keys::SESSION_RESUME, true);
            let directives = [vec![harmless], info].concat();
            HostOp::from(Asked { from, request: SessionControl { session: 0, directives } })
        }
        "PMIx_Register_event_handler" => {
            HostOp::RegisterEvents(EventsRequest { codes: vec![Status::EVENT_JOB_END], info })
        }
        "PMIx_Spawn" => {
            let app = App { cmd: Some("child".into()), max_procs: 1, ..App::default() };
            HostOp::Spawn(Asked { from, request: Spawn { job: info, apps: vec![app] } })
        }
        "PMIx_Unpublish" => {
            HostOp::Unpublish(Asked { from, request: Published { uid: 0, keys: vec![key], info } })
        }
        other => panic!("a new function: {other} needs a request here"),
    }
}

fn required(key: &str) -> Info {
    Info { key: Key::new(key).unwrap(), flags: InfoFlags::REQUIRED, value: false.into() }
}

fn is_refused(reply: &HostReply) -> bool {
    *reply == HostReply::Done(Status::ERR_NOT_SUPPORTED)
}

#[test]
fn advertised_attributes_are_accepted_when_required() {
    let all: Vec<(String, String)> = advertised()
        .into_iter()
        .flat_map(|(f, keys)| keys.into_iter().map(move |k| (f.clone(), k)))
        .collect();
    assert!(all.len() > 30, "{all:?}");
    let asked = all.clone();
    let answers = ask(move |proc| {
        let ops = asked.iter().enumerate();
        ops.map(|(round, (function, key))| request(function, proc, round, required(key))).collect()
    });
    for rank in [0, 1] {
        assert_eq!(answers[&rank].len(), all.len());
        for ((function, key), reply) in all.iter().zip(&answers[&rank]) {
            assert!(!is_refused(reply), "{function} refused {key}, which it is said to honour");
        }
    }
}

#[test]
fn unadvertised_attributes_are_refused_only_if_required() {
    let table = advertised();
    let functions: Vec<String> = table.keys().cloned().collect();
    // One key that no function honours, and for each function one that only others honour.
    let foreign = |function: &str| {
        let mut others = table.values().flatten();
        others.find(|key| !table[function].contains(key)).cloned().unwrap()
    };
    let asked: Vec<(String, String)> = functions
        .iter()
        .flat_map(|function| {
            [(function.clone(), "site.any".to_owned()), (function.clone(), foreign(function))]
        })
        .collect();
    let plain = |flags| move |key: &str| Info { flags, ..required(key) };
    // An array with an unknown key is not examined by any function.
    let inside = |flags| {
        move |key: &str| Info::new("site.array", DataArray::of_infos([Info { flags, ..required(key) }]))
    };
    type Made = Box<dyn Fn(&str) -> Info>;
    let kinds: [(Made, bool); 4] = [
        (Box::new(plain(InfoFlags::REQUIRED)), true),
        (Box::new(plain(InfoFlags::empty())), false),
        (Box::new(inside(InfoFlags::REQUIRED)), true),
        (Box::new(inside(InfoFlags::empty())), false),
    ];
    for (made, expected) in kinds {
        let sent = asked.clone();
        let answers = ask(move |proc| {
            let op = |(round, (function, key)): (usize, &(String, String))| {
                request(function, proc, round, made(key))
            };
            sent.iter().enumerate().map(op).collect()
        });
        for rank in [0, 1] {
            assert_eq!(answers[&rank].len(), asked.len());
            for ((function, key), reply) in asked.iter().zip(&answers[&rank]) {
                assert_eq!(is_refused(reply), expected, "{function} with {key}: {reply:?}");
            }
        }
    }
}

/// Allocating fabrics, for example, is not supported here.
#[test]
fn functions_are_refused_exactly_if_they_are_not_advertised() {
    let ops = |proc: &ProcId| {
        let from = proc.clone();
        let credential = Blob::default();
        let what = Info::new(keys::SEND_HEARTBEAT, true);
        vec![
            HostOp::from(Asked { from: from.clone(), request: Register { directives: Vec::new() } }),
            HostOp::from(Asked { from: from.clone(), request: Update { index: 0 } }),
            HostOp::from(Asked {
                from: from.clone(),
                request: Allocate { directive: AllocDirective::NEW, info: Vec::new() },
            }),
            HostOp::Monitor(Asked {
                from: from.clone(),
                request: Monitor { what, error: Status::ERROR, directives: Vec::new() },
            }),
            HostOp::from(Asked { from: from.clone(), request: GetCredential { info: Vec::new() } }),
            HostOp::from(Asked { from, request: ValidateCredential { credential, info: Vec::new() } }),
        ]
    };
    let advertised = advertised();
    let asked = ops(&ProcId::new(&Nspace::new("world@1").unwrap(), Rank(0)));
    let answers = ask(ops);
    for rank in [0, 1] {
        assert_eq!(answers[&rank].len(), asked.len());
        for (op, reply) in asked.iter().zip(&answers[&rank]) {
            // An update refers to what was registered.
            let function = op.function().unwrap_or("PMIx_Fabric_register");
            assert_eq!(is_refused(reply), !advertised.contains_key(function), "{function}: {reply:?}");
        }
    }
}

#[test]
fn required_directive_of_one_member_fails_all() {
    let answers = ask(|proc| {
        let info = if proc.rank == Rank(0) { vec![required("site.any")] } else { Vec::new() };
        vec![HostOp::Fence(FenceRequest {
            procs: vec![ProcId::all(&proc.nspace)],
            info,
            data: Blob::default(),
        })]
    });
    assert!(is_refused(&answers[&0][0]) && is_refused(&answers[&1][0]), "{answers:?}");
}
