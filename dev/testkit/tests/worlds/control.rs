//! Job control and stops for debuggers, as entries of the root's table: the content of their replies, and that no entry remains.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use phalanx_core::Event;
use phalanx_core::host::{Asked, HostOp, HostReply};
use phalanx_dvm::{AppSpec, FailurePolicy, JobRequest, Limits, NodeId, names};
use phalanx_spec::{Range, Rank, Status, keys};
use phalanx_testkit::scripted::ScriptedServer;
use phalanx_testkit::{Op, RankAnswer, Script, Setup, Step, World};
use phalanx_wire::cmd::control::JobControl;
use phalanx_wire::cmd::spawn::Spawn;
use phalanx_wire::{App, Info, InfoList, Nspace, ProcId, Value};

/// Slow enough to observe requests while they are carried out.
fn world(nodes: u32) -> World<ScriptedServer> {
    let server = Box::new(|_| ScriptedServer::default());
    let (limits, latency) = (Limits::default(), Duration::from_millis(1500));
    World::new(Setup { seed: 5, nodes, radix: 2, cores: 1, limits, latency, server })
}

fn job(procs: u32) -> JobRequest {
    let app = AppSpec { argv: vec!["controlled".into()], procs: Some(procs), ..AppSpec::default() };
    JobRequest { apps: vec![app], on_failure: FailurePolicy::Continue, ..JobRequest::default() }
}

fn rank(nspace: &str, rank: u32) -> ProcId {
    ProcId::new(&Nspace::new(nspace).unwrap(), Rank(rank))
}

fn one(number: u32) -> ProcId {
    rank("world@1", number)
}

fn late(seconds: u64) -> Step {
    Step::Sleep(Duration::from_secs(seconds))
}

fn ask(op: HostOp) -> Step {
    Step::Ask(Op::Host(Box::new(op)))
}

/// Job control in the name of rank 0, whichever rank sends it.
fn control(targets: &[u32], directives: Vec<Info>) -> Step {
    let targets = targets.iter().map(|target| one(*target)).collect();
    ask(HostOp::from(Asked { from: one(0), request: JobControl { targets, directives } }))
}

fn answers(world: &World<ScriptedServer>, proc: &ProcId) -> Vec<HostReply> {
    let given = world.procs[proc].answers.iter();
    given
        .filter_map(|(_, a)| if let RankAnswer::Host(reply) = a { Some((**reply).clone()) } else { None })
        .collect()
}

/// The status, the name of the request, and the targets for which it has failed.
fn told(reply: &HostReply) -> (Status, Option<&str>, Vec<(&str, Status)>) {
    let HostReply::Infos(status, info) = reply else { panic!("{reply:?}") };
    let results = info.iter().filter(|info| info.key == *names::RESULT).map(|info| {
        let about = info.value.as_array().unwrap();
        let find = |key: &str| about.infos().find(|info| info.key == *key).map(|info| &info.value);
        match find(names::STATUS) {
            Some(Value::Status(why)) => (find(names::WHICH).and_then(Value::as_str).unwrap(), *why),
            other => panic!("{other:?}"),
        }
    });
    let failed = results.filter(|(_, status)| !status.is_success()).collect();
    (*status, info.find(keys::JOB_CTRL_ID).and_then(Value::as_str), failed)
}

fn pause() -> Info {
    Info::new(keys::JOB_CTRL_PAUSE, true)
}

fn id(id: &str) -> Info {
    Info::new(keys::JOB_CTRL_ID, id)
}

fn cancel(id: impl Into<Value>) -> Step {
    control(&[], vec![Info::new(keys::JOB_CTRL_CANCEL, id)])
}

#[test]
fn a_cancelled_request_is_answered_once_and_at_once() {
    let mut world = world(4);
    world.script(|proc| match proc.rank.0 {
        0 => Script::new(vec![
            late(20),
            control(&[2, 3], vec![pause(), id("mine")]),
            control(&[2], vec![pause(), id("other")]),
        ]),
        // In its name: cancels this request, then none, then all, then none.
        1 => Script::new(vec![
            late(20),
            cancel("mine"),
            cancel("mine"),
            cancel(Value::NullString),
            cancel(Value::NullString),
        ]),
        _ => Script::new(vec![Step::Hang]),
    });
    world.submit(job(4));
    world.run_until(Duration::from_secs(60), |world| world.procs.len() == 4);
    world.run_for(Duration::from_secs(17));
    // It is not known yet that the daemon will not answer.
    world.cut_off([NodeId(2)]);
    world.run_until(Duration::from_secs(30), |world| world.explain().contains("mine: world@1:2-3"));
    world.run_until(Duration::from_secs(20), |world| world.procs[&one(1)].answers.len() == 4);
    assert!(world.user.notes.is_empty(), "the daemon is not lost yet: {:?}", world.user.notes);
    world.run_for(Duration::from_secs(120));
    let given = answers(&world, &one(0));
    let cancelled = Status::ERR_JOB_CANCELED;
    assert_eq!(told(&given[0]), (cancelled, Some("mine"), vec![("2-3", cancelled)]));
    assert_eq!(told(&given[1]), (cancelled, Some("other"), vec![("2", cancelled)]));
    let statuses: Vec<Status> = answers(&world, &one(1)).iter().map(HostReply::status).collect();
    assert_eq!(statuses, [Status::SUCCESS, Status::ERR_NOT_FOUND, Status::SUCCESS, Status::SUCCESS]);
    assert_eq!((given.len(), world.explain().contains("job control")), (2, false));
}

#[test]
fn a_reply_names_the_targets_that_were_not_reached() {
    let mut world = world(4);
    world.script(|proc| match proc.rank.0 {
        0 => Script::new(vec![
            late(10),
            control(&[2], vec![pause(), id("two")]),
            control(&[1, 2, 3], vec![pause()]),
            control(&[1, 2], vec![pause(), id("later")]),
        ]),
        1 => Script::new(vec![late(120)]),
        _ => Script::new(vec![Step::Hang]),
    });
    world.submit(job(4));
    world.run_until(Duration::from_secs(60), |world| {
        world.procs.get(&one(0)).is_some_and(|fate| fate.answers.len() == 1)
    });
    world.cut_off([NodeId(2)]);
    world.run_until(Duration::from_secs(300), |world| world.procs[&one(0)].answers.len() == 3);
    let given = answers(&world, &one(0));
    assert_eq!(told(&given[0]), (Status::SUCCESS, Some("two"), vec![]));
    let lost = vec![("2", Status::ERR_LOST_CONNECTION)];
    assert_eq!(told(&given[1]), (Status::ERR_PARTIAL_SUCCESS, None, lost));
    // The target had ended before: that is no failure, but is still reported.
    let gone = vec![("2", Status::ERR_NOT_FOUND)];
    assert_eq!(told(&given[2]), (Status::SUCCESS, Some("later"), gone));
    assert!(!world.explain().contains("job control"), "{}", world.explain());
}

#[test]
fn requests_through_a_lost_daemon_are_given_up() {
    let mut world = world(3);
    world.script(|proc| match proc.rank.0 {
        2 => Script::new(vec![
            late(5),
            Step::Ask(Op::Lookup { key: "never".into(), wait: true, timeout: None }),
        ]),
        _ => Script::new(vec![late(300)]),
    });
    world.submit(job(3));
    world.run_until(Duration::from_secs(60), |world| world.explain().contains("lookup"));
    world.cut_off([NodeId(2)]);
    world.run_until(Duration::from_secs(200), |world| !world.explain().contains("lookup"));
    assert!(world.user.ends.is_empty(), "the job goes on");
}

#[test]
fn a_stop_is_explained_until_nobody_is_held_there() {
    let mut world = world(3);
    let child = "world@2";
    world.script(move |proc| match (proc.nspace.as_str(), proc.rank.0) {
        ("world@1", _) => {
            let app = App { cmd: Some("child".into()), max_procs: 3, ..App::default() };
            let job = [keys::DEBUG_STOP_IN_INIT, keys::JOB_CONTINUOUS].map(|key| Info::new(key, true));
            let spawn = HostOp::Spawn(Asked {
                from: proc.clone(),
                request: Spawn { job: job.to_vec(), apps: vec![app] },
            });
            let release = |target: ProcId| {
                let info = vec![Info::new(keys::EVENT_CUSTOM_RANGE, target)];
                let (code, range) = (Status::DEBUGGER_RELEASE, Range::CUSTOM);
                ask(HostOp::Notify(Event { code, source: proc.clone(), range, info }))
            };
            Script::new(vec![
                ask(spawn),
                late(60),
                release(rank(child, 0)),
                late(30),
                release(ProcId::all(&Nspace::new(child).unwrap())),
                late(100),
            ])
        }
        (_, 1) => Script::new(vec![late(30), Step::Exit(1)]),
        _ => {
            let (code, source) = (Status::READY_FOR_DEBUG, proc.clone());
            let event = Event { code, source, range: Range::RM, info: Vec::new() };
            Script::new(vec![late(1), ask(HostOp::Notify(event)), Step::Hang])
        }
    });
    world.submit(job(1));
    let mut explained = |what: &str| {
        world.run_until(Duration::from_secs(60), |world| world.explain().contains(what));
    };
    explained("world@2 in init");
    explained("world@2:0,2 in init");
    explained("(PMIX_DEBUGGER_RELEASE)");
    explained("world@2:2 in init");
    world.run_until(Duration::from_secs(60), |world| !world.explain().contains("in init"));
    assert!(world.user.ends.is_empty());
}
