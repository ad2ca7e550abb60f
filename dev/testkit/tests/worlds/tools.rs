//! Tools at several daemons of one DVM: their names, the jobs that they start, and what ends with them.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::time::Duration;

use phalanx_core::Time;
use phalanx_core::host::{Asked, ClientLost, HostOp, HostReply, ToolRequest};
use phalanx_dvm::{AppSpec, JobRequest, JobVerdict, Limits, NodeId};
use phalanx_spec::{Rank, Status, keys};
use phalanx_testkit::scripted::ScriptedServer;
use phalanx_testkit::{Op, RankAnswer, Script, Setup, Step, World};
use phalanx_wire::cmd::spawn::Spawn;
use phalanx_wire::{App, Info, Nspace, ProcId};

type Tools = World<ScriptedServer>;

/// A rank on each of `nodes` nodes whose server makes these upcalls; jobs that tools start run forever.
fn world(nodes: u32, ops: impl Fn(u32) -> Vec<Step> + 'static) -> Tools {
    let server = Box::new(|_| ScriptedServer::default());
    let (limits, latency) = (Limits::default(), Duration::from_millis(1));
    let mut world = World::new(Setup { seed: 11, nodes, radix: 2, cores: 1, limits, latency, server });
    world.script(move |proc| match proc.nspace.as_str() {
        "world@1" => Script::new([vec![Step::Sleep(Duration::from_secs(1))], ops(proc.rank.0)].concat()),
        _ => Script::new(vec![Step::Hang]),
    });
    let app = AppSpec { argv: vec!["daemon".into()], procs: Some(nodes), ..AppSpec::default() };
    world.submit(JobRequest { apps: vec![app], ..JobRequest::default() });
    world
}

fn host(op: HostOp) -> Step {
    Step::Ask(Op::Host(Box::new(op)))
}

fn connect(claims: Option<ProcId>) -> Step {
    host(HostOp::ToolConnected(ToolRequest { uid: 0, gid: 0, pid: None, claims, info: Vec::new() }))
}

fn tool(name: &str) -> ProcId {
    ProcId::new(&Nspace::new(name).unwrap(), Rank(0))
}

fn spawn(from: &ProcId, stays: bool) -> Step {
    let argv = vec!["sleep".into()];
    let app = App { cmd: Some("sleep".into()), argv, max_procs: 2, ..App::default() };
    let job = vec![Info::new(keys::REQUESTOR_IS_TOOL, true), Info::new(keys::NOHUP, stays)];
    host(HostOp::Spawn(Asked { from: from.clone(), request: Spawn { job, apps: vec![app] } }))
}

/// The answers to the daemon of this rank, in order.
fn replies(world: &Tools, rank: u32) -> Vec<HostReply> {
    let daemon = ProcId::new(&Nspace::new("world@1").unwrap(), Rank(rank));
    let answers = world.procs.get(&daemon).map(|proc| proc.answers.as_slice()).unwrap_or_default();
    let host = answers.iter().map(|(_, answer)| match answer {
        RankAnswer::Host(reply) => (**reply).clone(),
        other => panic!("{other:?}"),
    });
    host.collect()
}

fn child(reply: &HostReply) -> Nspace {
    match reply {
        HostReply::Spawned(Ok(nspace)) => nspace.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn names_of_tools_are_unique_in_the_whole_dvm() {
    const NODES: u32 = 5;
    let mut world = world(NODES, |_| vec![connect(None), connect(Some(tool("mine"))), Step::Hang]);
    let answered = |world: &Tools| (0..NODES).all(|rank| replies(world, rank).len() == 2);
    world.run_until(Duration::from_secs(600), answered);
    let all: Vec<Vec<HostReply>> = (0..NODES).map(|rank| replies(&world, rank)).collect();
    let given: BTreeSet<ProcId> = all
        .iter()
        .map(|replies| match &replies[0] {
            HostReply::ToolAdmitted(Ok(proc)) => proc.clone(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(given.len(), NODES as usize, "each its own: {given:?}");
    let claimed = all.iter().filter(|replies| replies[1] == HostReply::ToolAdmitted(Ok(tool("mine"))));
    assert_eq!(claimed.count(), 1, "{all:?}");
    let refused = HostReply::ToolAdmitted(Err(Status::ERR_EXISTS));
    assert_eq!(all.iter().filter(|replies| replies[1] == refused).count(), NODES as usize - 1);
}

#[test]
fn jobs_end_with_their_tool_unless_nohup() {
    let me = tool("debugger");
    let steps = {
        let me = me.clone();
        move |rank| match rank {
            2 => vec![
                connect(Some(me.clone())),
                spawn(&me, false),
                spawn(&me, true),
                host(HostOp::ClientLost(ClientLost { proc: me.clone(), cut_off: None })),
                Step::Hang,
            ],
            _ => vec![Step::Hang],
        }
    };
    let mut world = world(4, steps);
    world.run_until(Duration::from_secs(600), |world| !world.user.ends.is_empty());
    let answers = replies(&world, 2);
    let (goes, stays) = (child(&answers[1]), child(&answers[2]));
    world.run_for(Duration::from_secs(60));
    assert_eq!(world.user.ends[&goes].verdict, JobVerdict::Cancelled { signal: 1 });
    assert!(!world.user.ends.contains_key(&stays), "{}", world.explain());
}

#[test]
fn jobs_end_with_the_daemon_that_their_tool_was_connected_to() {
    let me = tool("debugger");
    let steps = {
        let me = me.clone();
        move |rank| match rank {
            3 => vec![connect(Some(me.clone())), spawn(&me, false), Step::Hang],
            _ => vec![Step::Hang],
        }
    };
    let mut world = world(4, steps);
    world.run_until(Duration::from_secs(600), |world| replies(world, 3).len() == 2);
    let goes = child(&replies(&world, 3)[1]);
    world.crash_at(Time(world.now.0 + 1_000_000), NodeId(3));
    world.run_until(Duration::from_secs(600), |world| world.user.ends.contains_key(&goes));
}
