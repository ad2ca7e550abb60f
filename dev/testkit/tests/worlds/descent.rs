//! Spawned jobs: what becomes of them when their parent ends, and of jobs that job control ends.

use std::time::Duration;

use phalanx_core::host::{Asked, HostOp};
use phalanx_dvm::{AppSpec, JobRequest, JobVerdict, Limits};
use phalanx_spec::{Rank, keys};
use phalanx_testkit::scripted::ScriptedServer;
use phalanx_testkit::{Op, Script, Setup, Step, World};
use phalanx_wire::cmd::control::JobControl;
use phalanx_wire::cmd::spawn::Spawn;
use phalanx_wire::{App, Info, Nspace, ProcId};

fn world(nodes: u32) -> World<ScriptedServer> {
    let server = Box::new(|_| ScriptedServer::default());
    let (limits, latency) = (Limits::default(), Duration::from_millis(1));
    World::new(Setup { seed: 5, nodes, radix: 2, cores: 2, limits, latency, server })
}

fn run(world: &mut World<ScriptedServer>, procs: u32, jobs: usize) {
    let app = AppSpec { argv: vec!["parent".into()], procs: Some(procs), ..AppSpec::default() };
    world.submit(JobRequest { apps: vec![app], ..JobRequest::default() });
    world.run_until(Duration::from_secs(300), |w| w.user.ends.len() == jobs);
    assert_eq!(world.user.complaints, Vec::<String>::new());
}

fn verdict(world: &World<ScriptedServer>, number: u32) -> &JobVerdict {
    &world.user.ends[&named(number)].verdict
}

fn named(number: u32) -> Nspace {
    Nspace::new(&format!("world@{number}")).unwrap_or_else(|_| Nspace::none())
}

fn spawn(from: &ProcId, job: Vec<Info>) -> Step {
    let app = App { cmd: Some("child".into()), max_procs: 2, ..App::default() };
    Step::Ask(Op::Host(Box::new(HostOp::Spawn(Asked {
        from: from.clone(),
        request: Spawn { job, apps: vec![app] },
    }))))
}

fn separate(from: &ProcId, yes: bool) -> Step {
    spawn(from, vec![Info::new(keys::SPAWN_CHILD_SEP, yes)])
}

fn seconds(count: u64) -> Step {
    Step::Sleep(Duration::from_secs(count))
}

#[test]
fn children_outlive_a_parent_that_ends_well_if_they_may() {
    let mut world = world(3);
    world.script(|proc| match proc.nspace.as_str() {
        "world@1" => Script::new(vec![spawn(proc, Vec::new()), separate(proc, true), separate(proc, false)]),
        _ => Script::new(vec![seconds(20)]),
    });
    run(&mut world, 1, 4);
    for number in [1, 2, 3] {
        assert_eq!(*verdict(&world, number), JobVerdict::Success, "{number}");
    }
    assert_eq!(*verdict(&world, 4), JobVerdict::ParentEnded { parent: named(1) });
}

#[test]
fn a_separate_child_outlives_a_parent_that_fails() {
    let mut world = world(3);
    world.script(|proc| match proc.nspace.as_str() {
        "world@1" => {
            Script::new(vec![separate(proc, true), separate(proc, false), seconds(5), Step::Exit(3)])
        }
        _ => Script::new(vec![seconds(20)]),
    });
    run(&mut world, 1, 3);
    assert!(matches!(verdict(&world, 1), JobVerdict::Failed { .. }));
    assert_eq!(*verdict(&world, 2), JobVerdict::Success);
    assert_eq!(*verdict(&world, 3), JobVerdict::ParentEnded { parent: named(1) });
}

#[test]
fn all_descendants_end_with_a_parent_that_fails() {
    let mut world = world(3);
    world.script(|proc| match (proc.nspace.as_str(), proc.rank) {
        ("world@1", _) => Script::new(vec![spawn(proc, Vec::new()), seconds(5), Step::Exit(3)]),
        ("world@2", Rank(0)) => Script::new(vec![spawn(proc, Vec::new()), Step::Hang]),
        _ => Script::new(vec![Step::Hang]),
    });
    run(&mut world, 1, 3);
    assert!(matches!(verdict(&world, 1), JobVerdict::Failed { .. }));
    assert_eq!(*verdict(&world, 2), JobVerdict::ParentEnded { parent: named(1) });
    assert_eq!(*verdict(&world, 3), JobVerdict::ParentEnded { parent: named(2) });
}

#[test]
fn a_job_whose_ranks_job_control_has_ended_has_not_succeeded() {
    for (key, signal) in [(keys::JOB_CTRL_TERMINATE, 15), (keys::JOB_CTRL_KILL, 9)] {
        // Some ranks, or the whole job.
        for targets in [vec![Rank(1)], vec![Rank::WILDCARD]] {
            let mut world = world(2);
            let chosen = targets.clone();
            world.script(move |proc| {
                let targets = chosen.iter().map(|rank| ProcId::new(&proc.nspace, *rank)).collect();
                let directives = vec![Info::new(key, true)];
                let control =
                    HostOp::from(Asked { from: proc.clone(), request: JobControl { targets, directives } });
                Script::new(match proc.rank {
                    Rank(0) => vec![seconds(1), Step::Ask(Op::Host(Box::new(control)))],
                    Rank(1) => vec![Step::Hang],
                    _ => vec![seconds(5)],
                })
            });
            run(&mut world, 3, 1);
            let by = ProcId::new(&named(1), Rank(0));
            assert_eq!(*verdict(&world, 1), JobVerdict::Killed { by, signal, first: None }, "{targets:?}");
            assert_eq!(world.user.ends[&named(1)].exit_code, 128 + signal);
        }
    }
}

#[test]
fn a_failure_counts_before_what_job_control_has_ended() {
    let mut world = world(2);
    world.script(|proc| {
        let targets = vec![ProcId::new(&proc.nspace, Rank(1))];
        let directives = vec![Info::new(keys::JOB_CTRL_KILL, true)];
        let control = HostOp::from(Asked { from: proc.clone(), request: JobControl { targets, directives } });
        Script::new(match proc.rank {
            Rank(0) => vec![Step::Ask(Op::Host(Box::new(control))), seconds(2), Step::Exit(7)],
            _ => vec![Step::Hang],
        })
    });
    run(&mut world, 3, 1);
    assert_eq!(world.user.ends[&named(1)].exit_code, 7);
}
