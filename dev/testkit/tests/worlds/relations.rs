//! An event of a job concerns its ancestors, its descendants and the jobs connected with it; no others.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use phalanx_core::host::{Asked, ConnectRequest, EventsRequest, HostOp};
use phalanx_dvm::{AppSpec, JobRequest, Limits};
use phalanx_spec::{Rank, Status, keys};
use phalanx_testkit::scripted::ScriptedServer;
use phalanx_testkit::{Op, Script, Setup, Step, World};
use phalanx_wire::cmd::spawn::Spawn;
use phalanx_wire::{App, InfoList, Nspace, ProcId};

fn host(op: HostOp) -> Step {
    Step::Ask(Op::Host(Box::new(op)))
}

fn first_rank(nspace: &str) -> ProcId {
    ProcId::new(&Nspace::new(nspace).unwrap(), Rank(0))
}

fn spawn(from: &str) -> Step {
    let argv = vec!["child".into()];
    let app = App { cmd: Some("child".into()), argv, max_procs: 1, ..App::default() };
    host(HostOp::Spawn(Asked { from: first_rank(from), request: Spawn { job: Vec::new(), apps: vec![app] } }))
}

fn connection(of: [&str; 2]) -> HostOp {
    HostOp::Connect(ConnectRequest { procs: of.map(first_rank).to_vec(), info: Vec::new() })
}

fn disconnection(of: [&str; 2]) -> HostOp {
    HostOp::Disconnect(ConnectRequest { procs: of.map(first_rank).to_vec(), info: Vec::new() })
}

fn until(seconds: u64) -> Step {
    Step::Sleep(Duration::from_secs(seconds))
}

/// Runs jobs 1 to 3 of the user, job 4 spawned by job 1, and job 5 spawned by job 4.
fn concerned_by_ends(nodes: u32) -> Vec<(String, Vec<String>)> {
    let server = Box::new(|_| ScriptedServer::default());
    let (limits, latency) = (Limits::default(), Duration::from_millis(1));
    let mut world = World::new(Setup { seed: 11, nodes, radix: 2, cores: 1, limits, latency, server });
    world.script(|proc| {
        let listen = host(HostOp::RegisterEvents(EventsRequest {
            codes: vec![Status::EVENT_JOB_END],
            info: Vec::new(),
        }));
        let (soon_over, lasting) = (["world@2", "world@3"], ["world@1", "world@3"]);
        Script::new(match proc.nspace.as_str() {
            "world@1" => vec![listen, host(connection(lasting)), spawn("world@1"), until(40)],
            "world@2" => vec![host(connection(soon_over)), until(10), host(disconnection(soon_over))],
            "world@3" => vec![
                host(connection(soon_over)),
                host(connection(lasting)),
                until(10),
                host(disconnection(soon_over)),
                until(10),
            ],
            "world@4" => vec![spawn("world@4"), until(30)],
            _ => vec![until(5)],
        })
    });
    for _ in 0..3 {
        let app = AppSpec { argv: vec!["parent".into()], procs: Some(1), ..AppSpec::default() };
        world.submit(JobRequest { apps: vec![app], ..JobRequest::default() });
    }
    world.run_until(Duration::from_secs(600), |world| world.user.ends.len() == 5);
    let root = world.node(phalanx_dvm::NodeId::ROOT).unwrap().server();
    let name = |nspace: &Nspace| nspace.as_str().trim_start_matches("world@").to_owned();
    let ends = root.announced.iter().filter(|(event, _)| event.code == Status::EVENT_JOB_END);
    ends.map(|(event, concerned)| {
        assert!(event.info.is_set(keys::EVENT_NON_DEFAULT), "{event:?}");
        (name(&event.source.nspace), concerned.iter().flatten().map(name).collect())
    })
    .collect()
}

#[test]
fn ends_of_jobs_concern_relatives_and_the_connected_only() {
    let told = concerned_by_ends(3);
    let expected = [("5", "5 4 1"), ("2", "2"), ("3", "3 1"), ("4", "4 1"), ("1", "1")];
    for (ended, concerned) in expected {
        let mut concerned: Vec<&str> = concerned.split(' ').collect();
        concerned.sort_unstable();
        let found = told.iter().find(|(job, _)| job == ended).map(|(_, concerned)| concerned.clone());
        assert_eq!(found.unwrap_or_default(), concerned, "job {ended}: {told:?}");
    }
}
