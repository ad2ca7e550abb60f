//! Groups that may lack members, on nodes with real servers, whose members end before they have joined.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use phalanx_core::HostReply;
use phalanx_dvm::{AppSpec, FailurePolicy, JobRequest, Limits, NodeId};
use phalanx_spec::{Rank, Status, keys};
use phalanx_testkit::wired::WiredServer;
use phalanx_testkit::{Op, RankAnswer, Script, Setup, Step, World};
use phalanx_wire::{Info, InfoList, Nspace, ProcId, Value};

const NODES: u32 = 3;

/// Two ranks on each node.
fn world() -> World<WiredServer> {
    let server = Box::new(|node| WiredServer::new(node, 5));
    let (limits, latency) = (Limits::default(), Duration::from_millis(1));
    World::new(Setup { seed: 5, nodes: NODES, radix: 2, cores: 2, limits, latency, server })
}

fn submit(world: &mut World<WiredServer>) {
    let app = AppSpec { argv: vec!["meets".into()], procs: Some(2 * NODES), ..AppSpec::default() };
    let on_failure = FailurePolicy::Continue;
    world.submit(JobRequest { apps: vec![app], on_failure, ..JobRequest::default() });
}

fn run(world: &mut World<WiredServer>) {
    submit(world);
    world.run_until(Duration::from_secs(300), |world| world.user.ends.len() == 1);
    assert_eq!(world.user.complaints, Vec::<String>::new());
}

fn rank(rank: u32) -> ProcId {
    ProcId::new(&Nspace::new("world@1").unwrap(), Rank(rank))
}

fn late(seconds: u64) -> Step {
    Step::Sleep(Duration::from_secs(seconds))
}

fn lacks() -> Vec<Info> {
    vec![Info::new(keys::GROUP_FT_COLLECTIVE, true)]
}

fn group(info: Vec<Info>) -> Step {
    Step::Ask(Op::Group { name: "some".to_owned(), info })
}

fn ungroup(info: Vec<Info>) -> Step {
    Step::Ask(Op::Ungroup { name: "some".to_owned(), info })
}

fn listen() -> Step {
    Step::Ask(Op::Listen { codes: vec![Status::GROUP_MEMBER_FAILED] })
}

/// The members of the groups that a rank has formed, and the results of its other calls.
fn answers(world: &World<WiredServer>, number: u32) -> Vec<Result<Vec<ProcId>, Status>> {
    let given = world.procs[&rank(number)].answers.iter();
    let answers = given.map(|(_, answer)| match answer {
        RankAnswer::Host(reply) => match &**reply {
            HostReply::Group(Ok(formed)) => Ok(formed.members.clone()),
            other => panic!("{other:?}"),
        },
        RankAnswer::Done(status) => Err(*status),
        RankAnswer::Value(value) => panic!("{value:?}"),
    });
    answers.collect()
}

/// The ranks that this rank was notified have ended.
fn heard(world: &World<WiredServer>, number: u32) -> Vec<ProcId> {
    let servers = (0..NODES).filter_map(|node| world.node(NodeId(node)));
    let events = servers.flat_map(|node| &node.server().events);
    let affected = |info: &Vec<Info>| match info.find(keys::EVENT_AFFECTED_PROC) {
        Some(Value::Proc(proc)) => proc.clone(),
        other => panic!("{other:?}"),
    };
    let mut heard: Vec<ProcId> =
        events.filter(|(to, _)| *to == rank(number)).map(|(_, event)| affected(&event.info)).collect();
    heard.sort();
    heard
}

const DONE: Result<Vec<ProcId>, Status> = Err(Status::SUCCESS);

#[test]
fn a_group_is_formed_of_the_survivors_on_all_nodes() {
    let mut world = world();
    world.script(|proc| {
        let init = || Step::Ask(Op::Init);
        Script::new(match proc.rank.0 {
            0 => vec![init(), listen(), group(lacks()), late(20), ungroup(lacks()), Step::Ask(Op::Finalize)],
            // Rank 0, on the same node, reports it missing.
            1 => vec![init(), late(2), Step::Exit(3)],
            // It ends before the group does.
            2 => vec![init(), listen(), group(lacks()), late(5), Step::Exit(7)],
            3 => vec![init(), late(3), Step::Ask(Op::Finalize), late(30)],
            // No member is left on that node.
            4 => vec![init(), late(4), Step::Die(9)],
            _ => vec![],
        })
    });
    run(&mut world);
    let members = vec![rank(0), rank(2)];
    let all = [DONE, DONE, Ok(members.clone()), DONE, DONE];
    assert_eq!(answers(&world, 0), all);
    assert_eq!(answers(&world, 2), all[..3]);
    assert_eq!(heard(&world, 2), [1, 3, 4, 5].map(rank));
    // It also includes rank 2, which had joined and was missed when it ended.
    assert_eq!(heard(&world, 0), [1, 2, 3, 4, 5].map(rank));
}

#[test]
fn a_group_that_lacks_nobody_may_not_be_small() {
    for dies in [false, true] {
        let mut world = world();
        world.script(move |proc| {
            let (init, fin) = (Step::Ask(Op::Init), Step::Ask(Op::Finalize));
            Script::new(match proc.rank.0 {
                5 if dies => vec![init, late(3), Step::Exit(1)],
                5 => vec![init, late(3), group(Vec::new()), late(1), ungroup(Vec::new()), fin],
                _ => vec![init, group(Vec::new()), late(1), ungroup(Vec::new()), fin],
            })
        });
        run(&mut world);
        let formed = match dies {
            true => Err(Status::GROUP_CONSTRUCT_ABORT),
            false => Ok((0..6).map(rank).collect()),
        };
        for number in 0..5 {
            assert_eq!(answers(&world, number)[1], formed, "{number}");
        }
    }
}

#[test]
fn a_lost_node_takes_its_members_out_of_the_group() {
    let mut world = world();
    world.script(|proc| {
        let init = || Step::Ask(Op::Init);
        Script::new(match proc.rank.0 {
            0..4 => vec![init(), group(lacks()), late(2), Step::Ask(Op::Finalize)],
            _ => vec![init(), late(500)],
        })
    });
    submit(&mut world);
    let has_asked = |world: &World<WiredServer>, number| {
        world.procs.get(&rank(number)).is_some_and(|it| !it.answers.is_empty())
    };
    world.run_until(Duration::from_secs(60), |world| (0..6).all(|number| has_asked(world, number)));
    world.cut_off([NodeId(2)]);
    world.run_until(Duration::from_secs(600), |world| world.user.ends.len() == 1);
    for number in 0..4 {
        assert_eq!(answers(&world, number)[1], Ok((0..4).map(rank).collect()), "{number}");
    }
}
