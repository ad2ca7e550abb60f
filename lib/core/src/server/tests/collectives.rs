use std::time::Duration;

use phalanx_spec::{DataType, Range, Rank, Status, keys};
use phalanx_wire::cmd::connect::{self, Connect};
use phalanx_wire::cmd::group::{Construct, ConstructReply, Destruct, Leave};
use phalanx_wire::cmd::query::Queries;
use phalanx_wire::cmd::{InfoReply, Request};
use phalanx_wire::{Blob, DataArray, Info, InfoList, ProcId, Query, Value};

use super::world::{World, all, collect, config, dialect, fence, get, global, job, ns, proc, v41};
use crate::host::{
    CollectiveKind, ConnectRequest, FenceRequest, GroupFormed, GroupRequest, HostOp, HostReply,
    MemberMissing, OverdueCall,
};
use crate::machine::ConnId;
use crate::server::{ServerCall, ServerConfig, ServerReturn};

fn everybody(world: &mut World, n: u32) -> Vec<ConnId> {
    (0..n).map(|rank| world.connect(rank)).collect()
}

/// The group `g` of all ranks, for which the host returns these members.
fn formed_group(world: &mut World, n: u32, members: Vec<ProcId>) -> Vec<ConnId> {
    let ranks = everybody(world, n);
    let construct = Request::GroupConstruct(Construct { id: "g".into(), procs: all(), info: Vec::new() });
    for conn in &ranks {
        world.send(*conn, &construct);
    }
    let (id, _) = world.take_upcall();
    world.answer(id, HostReply::Group(Ok(GroupFormed { members, ..GroupFormed::default() })));
    ranks
}

#[test]
fn local_fence_needs_no_host() {
    let mut world = World::with_job(1, 3);
    let ranks = everybody(&mut world, 3);
    let tags: Vec<u32> = ranks[..2].iter().map(|conn| world.send(*conn, &fence(all(), collect()))).collect();
    assert!(!world.has_reply(ranks[0], tags[0]));
    let why = world.server.explain();
    assert_eq!((&*why[0].operation, &*why[0].subject), ("fence", "job:*"));
    assert_eq!(why[0].missing, [proc("job", 2)]);
    assert_eq!(world.ask_status(ranks[2], &fence(all(), collect())), Status::SUCCESS);
    assert_eq!(world.status(ranks[0], tags[0]), Status::SUCCESS);
    assert_eq!(world.status(ranks[1], tags[1]), Status::SUCCESS);
    assert!(world.asked.is_empty() && world.server.explain().is_empty());
}

#[test]
fn a_set_is_the_same_in_any_order_and_a_wildcard_is_another() {
    let mut world = World::with_job(1, 2);
    let ranks = everybody(&mut world, 2);
    let (a, b) = (proc("job", 0), proc("job", 1));
    let first = world.send(ranks[0], &fence(vec![a.clone(), b.clone()], Vec::new()));
    let wild = world.send(ranks[0], &fence(Vec::new(), Vec::new()));
    assert_eq!(world.ask_status(ranks[1], &fence(vec![b, a.clone(), a], Vec::new())), Status::SUCCESS);
    assert!(world.has_reply(ranks[0], first) && !world.has_reply(ranks[0], wild));
    assert_eq!(
        world.ask_status(ranks[1], &fence(all(), Vec::new())),
        Status::SUCCESS,
        "empty means the whole job"
    );
    assert!(world.has_reply(ranks[0], wild));
}

#[test]
fn a_fast_rank_may_be_fences_ahead() {
    let mut world = World::with_job(1, 2);
    let ranks = everybody(&mut world, 2);
    let ahead: Vec<u32> = (0..3).map(|_| world.send(ranks[0], &fence(all(), Vec::new()))).collect();
    for (done, tag) in ahead.iter().enumerate() {
        assert!(!world.has_reply(ranks[0], *tag), "fence {done} waits for the other rank");
        assert_eq!(world.ask_status(ranks[1], &fence(all(), Vec::new())), Status::SUCCESS);
        assert!(world.has_reply(ranks[0], *tag));
    }
}

#[test]
fn only_participants_may_enter() {
    let mut world = World::with_job(1, 2);
    let ranks = everybody(&mut world, 2);
    let other = fence(vec![proc("job", 1)], Vec::new());
    assert_eq!(world.ask_status(ranks[0], &other), Status::ERR_BAD_PARAM);
    assert_eq!(world.ask_status(ranks[1], &other), Status::SUCCESS, "alone in a fence");
}

#[test]
fn fence_across_nodes_exchanges_commits() {
    let mut world = World::with_job(2, 2);
    let ranks = everybody(&mut world, 2);
    world.ask_status(ranks[1], &Request::Commit(global("x", "1")));
    let first = world.send(ranks[0], &fence(all(), collect()));
    let second = world.send(ranks[1], &fence(all(), collect()));
    let (id, op) = world.take_upcall();
    let HostOp::Fence(FenceRequest { procs, info, data }) = op else { panic!("{op:?}") };
    assert_eq!((procs, info), (all(), collect()));
    assert!(!world.has_reply(ranks[0], first), "the host decides");

    // The other node mirrors this one.
    let mut other = World::new();
    let mut info = job("job", 2, 2);
    info.here = Some(1);
    other.register(info);
    let far: Vec<ConnId> = [2, 3].iter().map(|rank| other.connect(*rank)).collect();
    other.ask_status(far[0], &Request::Commit(global("y", "2")));
    let tags: Vec<u32> = far.iter().map(|conn| other.send(*conn, &fence(all(), collect()))).collect();
    let (far_id, op) = other.take_upcall();
    let HostOp::Fence(FenceRequest { data: far_data, .. }) = op else { panic!("{op:?}") };

    let union = Blob::from([data.as_bytes(), far_data.as_bytes()].concat());
    world.answer_modex(id, union.clone());
    other.answer_modex(far_id, union);
    assert_eq!(world.status(ranks[0], first), Status::SUCCESS);
    assert_eq!(world.status(ranks[1], second), Status::SUCCESS);
    assert_eq!(other.status(far[1], tags[1]), Status::SUCCESS);
    let tag = world.send(ranks[0], &get(&proc("job", 2), "y", Vec::new()));
    assert_eq!(world.value(ranks[0], tag, "y"), Some("2".into()));
    let tag = other.send(far[1], &get(&proc("job", 1), "x", Vec::new()));
    assert_eq!(other.value(far[1], tag, "x"), Some("1".into()));
    assert!(world.asked.is_empty() && other.asked.is_empty(), "nobody had to ask for it");
}

#[test]
fn refused_fence_is_refused_to_all() {
    let mut world = World::with_job(2, 1);
    let a = world.connect(0);
    world.ask_status(a, &Request::Commit(global("x", "1")));
    let tag = world.send(a, &fence(all(), Vec::new()));
    let (id, op) = world.take_upcall();
    assert!(matches!(op, HostOp::Fence(FenceRequest { data, .. }) if data.is_empty()));
    world.answer(id, HostReply::Modex(Err(Status::ERR_LOST_CONNECTION)));
    assert_eq!(world.status(a, tag), Status::ERR_LOST_CONNECTION);
    let tag = world.send(a, &fence(all(), Vec::new()));
    let (id, _) = world.take_upcall();
    world.answer(id, HostReply::Done(Status::SUCCESS));
    assert_eq!(world.status(a, tag), Status::ERR_SERVER_FAILED_REQUEST, "success without what was promised");
}

#[test]
fn gets_that_wait_are_served_by_a_fence() {
    let mut world = World::with_job(2, 1);
    let a = world.connect(0);
    let waiting = world.send(a, &get(&proc("job", 1), "y", Vec::new()));
    let (_modex, _) = world.take_upcall();
    world.send(a, &fence(all(), collect()));
    let (id, _) = world.take_upcall();
    let mut contribution = crate::server::modex::Contribution::new();
    contribution.add(&proc("job", 1), &[(super::world::key("y"), "2".into())].into());
    world.answer_modex(id, contribution.into_blob());
    assert_eq!(world.value(a, waiting, "y"), Some("2".into()));
}

#[test]
fn death_of_a_participant_fails_the_fence_for_all() {
    let mut world = World::with_job(2, 4);
    let ranks = everybody(&mut world, 4);
    let early = world.send(ranks[0], &fence(all(), collect()));
    world.close(ranks[1]);
    assert_eq!(world.status(ranks[0], early), Status::ERR_LOST_CONNECTION);
    let missing = MemberMissing { proc: proc("job", 1), kind: CollectiveKind::Fence };
    assert!(world.history.contains(&HostOp::MemberMissing(missing)), "{:?}", world.history);
    let (id, op) = world.take_upcall();
    let info = vec![Info::new(keys::LOCAL_COLLECTIVE_STATUS, Status::ERR_LOST_CONNECTION)];
    assert_eq!(
        op,
        HostOp::Fence(FenceRequest { procs: all(), info, data: Blob::default() }),
        "the other node must not wait"
    );
    world.answer(id, HostReply::Done(Status::SUCCESS));
    assert_eq!(world.ask_status(ranks[2], &fence(all(), collect())), Status::ERR_LOST_CONNECTION);
    assert!(world.asked.is_empty(), "one fence, one upcall");
    assert_eq!(world.ask_status(ranks[3], &fence(all(), collect())), Status::ERR_LOST_CONNECTION);
    // The next one fails too, as long as the rank is gone.
    assert_eq!(world.ask_status(ranks[0], &fence(all(), collect())), Status::ERR_LOST_CONNECTION);
    assert!(world.server.explain().is_empty());
}

#[test]
fn one_that_came_and_then_died_has_taken_part() {
    let mut world = World::with_job(1, 2);
    let ranks = everybody(&mut world, 2);
    world.send(ranks[0], &fence(all(), Vec::new()));
    world.close(ranks[0]);
    assert_eq!(world.ask_status(ranks[1], &fence(all(), Vec::new())), Status::SUCCESS);
}

#[test]
fn one_that_finalized_is_waited_for_until_it_has_ended() {
    let mut world = World::with_job(1, 2);
    let ranks = everybody(&mut world, 2);
    world.ask_status(ranks[1], &Request::Finalize);
    world.close(ranks[1]);
    let tag = world.send(ranks[0], &fence(all(), Vec::new()));
    assert!(!world.has_reply(ranks[0], tag));
    // The rank may reconnect.
    let again = world.connect(1);
    assert_eq!(world.ask_status(again, &fence(all(), Vec::new())), Status::SUCCESS);
    world.ask_status(again, &Request::Finalize);
    let tag = world.send(ranks[0], &fence(all(), Vec::new()));
    assert_eq!(world.call(ServerCall::DeregisterClient(proc("job", 1))), ServerReturn::Done(Status::SUCCESS));
    assert_eq!(world.status(ranks[0], tag), Status::ERR_LOST_CONNECTION);
}

#[test]
fn a_timeout_ends_a_fence_for_all_and_for_latecomers() {
    let mut world = World::with_job(1, 3);
    let ranks = everybody(&mut world, 3);
    let long = world.send(ranks[0], &fence(all(), vec![Info::new(keys::TIMEOUT, 60u32)]));
    let short = world.send(ranks[1], &fence(all(), vec![Info::new(keys::TIMEOUT, 2u32)]));
    world.advance(Duration::from_secs(2));
    assert_eq!(world.status(ranks[0], long), Status::ERR_TIMEOUT);
    assert_eq!(world.status(ranks[1], short), Status::ERR_TIMEOUT);
    // A rank that goes on meanwhile opens the next fence, and does not meet the late one in it.
    let next = world.send(ranks[0], &fence(all(), Vec::new()));
    assert_eq!(world.ask_status(ranks[2], &fence(all(), Vec::new())), Status::ERR_TIMEOUT);
    world.send(ranks[1], &fence(all(), Vec::new()));
    assert_eq!(world.ask_status(ranks[2], &fence(all(), Vec::new())), Status::SUCCESS);
    assert_eq!(world.status(ranks[0], next), Status::SUCCESS);
}

/// If the host cannot end a collective that timed out, the server does.
#[test]
fn the_hosts_time_may_run_out_here() {
    let mut world = World::with_job(2, 1);
    let a = world.connect(0);
    let tag = world.send(a, &fence(all(), vec![Info::new(keys::TIMEOUT, 2u32)]));
    let (id, _) = world.take_upcall();
    world.advance(Duration::from_secs(3));
    let (overdue, op) = world.take_upcall();
    assert_eq!(op, HostOp::Overdue(OverdueCall { call: id.number() }));
    assert!(!world.has_reply(a, tag));
    world.answer(overdue, HostReply::Done(Status::ERR_NOT_SUPPORTED));
    assert_eq!(world.status(a, tag), Status::ERR_TIMEOUT);
    world.answer_modex(id, Blob::default());
    assert!(world.asked.is_empty() && world.server.explain().is_empty());
}

/// All ranks get the host's outcome, even if it is no longer a timeout.
#[test]
fn the_host_may_end_in_time_what_it_was_asked_for() {
    for outcome in [Err(Status::ERR_TIMEOUT), Ok(Blob::default())] {
        let mut world = World::with_job(2, 1);
        let a = world.connect(0);
        let tag = world.send(a, &fence(all(), vec![Info::new(keys::TIMEOUT, 2u32)]));
        let (id, _) = world.take_upcall();
        world.advance(Duration::from_secs(3));
        let (overdue, _) = world.take_upcall();
        world.answer(overdue, HostReply::Done(Status::SUCCESS));
        assert!(!world.has_reply(a, tag));
        world.answer(id, HostReply::Modex(outcome.clone()));
        assert_eq!(world.status(a, tag), outcome.err().unwrap_or(Status::SUCCESS));
        assert!(world.asked.is_empty() && world.server.explain().is_empty());
    }
}

#[test]
fn a_fence_failed_elsewhere_fails_for_waiters_and_latecomers() {
    let mut world = World::with_job(2, 2);
    let ranks = everybody(&mut world, 2);
    let other = world.send(ranks[0], &fence(vec![proc("job", 0), proc("job", 1)], Vec::new()));
    let waits = world.send(ranks[0], &fence(all(), Vec::new()));
    let (kind, status) = (CollectiveKind::Fence, Status::ERR_TIMEOUT);
    let procs: Vec<ProcId> = (0..4).map(|rank| proc("job", rank)).collect();
    let fails = ServerCall::FailCollective { kind, id: String::new(), procs, status };
    assert_eq!(world.call(fails), ServerReturn::Done(Status::SUCCESS));
    assert_eq!(world.status(ranks[0], waits), Status::ERR_TIMEOUT);
    // The host counts the failed fence.
    let (id, op) = world.take_upcall();
    assert!(
        matches!(op, HostOp::Fence(FenceRequest { info, .. }) if info.find(keys::LOCAL_COLLECTIVE_STATUS).is_some())
    );
    world.answer(id, HostReply::Done(status));
    assert_eq!(world.ask_status(ranks[1], &fence(all(), Vec::new())), Status::ERR_TIMEOUT);
    assert!(!world.has_reply(ranks[0], other), "of other processes");
}

#[test]
fn unknown_directive_takes_a_local_fence_to_the_host() {
    let mut world = World::with_job(1, 1);
    let a = world.connect(0);
    let tag = world.send(a, &fence(all(), vec![Info::new("host.only", true).required()]));
    let (id, _) = world.take_upcall();
    world.answer(id, HostReply::Done(Status::ERR_NOT_SUPPORTED));
    assert_eq!(world.status(a, tag), Status::ERR_NOT_SUPPORTED);
}

#[test]
fn a_fence_of_several_jobs_goes_to_a_host_that_joins_it() {
    for joins in [false, true] {
        let mut world = World::configured(ServerConfig { joins_fences_of_jobs: joins, ..config() });
        world.register(job("other", 1, 1));
        let ranks = [world.connect(0), world.connect_as(&proc("other", 0), v41())];
        let both = || fence(vec![proc("job", 0), proc("other", 0)], Vec::new());
        let tags = ranks.map(|conn| world.send(conn, &both()));
        if joins {
            let (id, _) = world.take_upcall();
            world.answer_modex(id, Blob::default());
        }
        assert!(world.asked.is_empty());
        ranks
            .into_iter()
            .zip(tags)
            .for_each(|(conn, tag)| assert_eq!(world.status(conn, tag), Status::SUCCESS));
    }
}

/// Slurm's plugin takes a second call for a duplicate contribution to the first.
#[test]
fn the_host_is_asked_for_one_meeting_of_a_set_at_a_time() {
    let mut world = World::with_job(2, 1);
    let a = world.connect(0);
    let tags: Vec<u32> = (0..3).map(|_| world.send(a, &fence(all(), Vec::new()))).collect();
    let other = world.send(a, &fence(vec![proc("job", 0), proc("job", 1)], Vec::new()));
    let first = world.asked.remove(0).0;
    let of_other_set = world.take_upcall().0;
    let why = world.server.explain();
    assert_eq!(why[1].unblocked_by, "the end of an earlier one of the same participants");
    world.answer_modex(of_other_set, Blob::default());
    assert_eq!(world.status(a, other), Status::SUCCESS);
    world.answer_modex(first, Blob::default());
    for (done, tag) in tags.iter().enumerate() {
        assert_eq!(world.status(a, *tag), Status::SUCCESS);
        let next = tags.get(done + 1);
        assert!(next.is_none_or(|next| !world.has_reply(a, *next)), "one after the other");
        if next.is_some() {
            let (id, _) = world.take_upcall();
            world.answer_modex(id, Blob::default());
        }
    }
    assert!(world.asked.is_empty() && world.server.explain().is_empty());
}

#[test]
fn queued_answers_come_before_a_later_failure() {
    let mut world = World::with_job(2, 1);
    let a = world.connect(0);
    let timeout = vec![Info::new(keys::TIMEOUT, 5u32)];
    let two = [proc("job", 0), proc("job", 1)];
    world.send(a, &fence(two.to_vec(), Vec::new()));
    world.send(a, &fence(two.to_vec(), Vec::new()));
    let b = world.connect(0);
    let mut clones = timeout.clone();
    clones.push(Info::new(keys::ALL_CLONES_PARTICIPATE, true));
    let third = world.send(b, &fence(two.to_vec(), clones));
    let first = world.take_upcall().0;
    world.advance(Duration::from_secs(6));
    assert_eq!(world.status(b, third), Status::ERR_TIMEOUT);
    let failed = |op: &HostOp| matches!(op, HostOp::Fence(FenceRequest { info, .. }) if !info.is_empty());
    assert_eq!(world.asked.iter().map(|(_, op)| failed(op)).collect::<Vec<_>>(), [false, true]);
    world.answer_modex(first, Blob::default());
}

#[test]
fn a_job_that_goes_away_ends_its_fences() {
    let mut world = World::with_job(1, 2);
    world.register(job("other", 1, 1));
    let a = world.connect(0);
    let b = world.connect_as(&proc("other", 0), dialect(4, 2, 2));
    let both = vec![ProcId::all(&ns("other")), ProcId::all(&ns("job"))];
    world.send(a, &fence(both.clone(), Vec::new()));
    let tag = world.send(b, &fence(both, Vec::new()));
    world.call(ServerCall::DeregisterNspace(ns("job")));
    assert_eq!(world.status(b, tag), Status::ERR_LOST_CONNECTION);
    assert!(world.server.explain().is_empty() && world.closed.contains(&a));
}

#[test]
fn connected_processes_get_the_data_of_each_others_jobs() {
    let mut world = World::with_job(1, 1);
    world.register(job("other", 1, 1));
    let a = world.connect(0);
    let b = world.connect_as(&proc("other", 0), dialect(6, 1, 0));
    let request = |endpoints| {
        let procs = vec![proc("job", 0), ProcId::all(&ns("other"))];
        Connect { procs, info: Vec::new(), endpoints }
    };
    let first = world.send(a, &Request::Connect(request(Vec::new())));
    let second = world.send(b, &Request::Connect(request(Vec::new())));
    let (id, op) = world.take_upcall();
    assert!(matches!(op, HostOp::Connect(ConnectRequest { procs, .. }) if procs.len() == 2));
    world.answer(id, HostReply::Done(Status::SUCCESS));
    for (conn, tag, other) in [(a, first, "other"), (b, second, "job")] {
        let reply: connect::Reply = world.reply(conn, tag);
        assert_eq!(reply.jobs.iter().map(|job| job.nspace.as_str()).collect::<Vec<_>>(), [other]);
        assert_eq!(reply.jobs[0].procs.len(), 1);
    }
    let first = world.send(a, &Request::Disconnect(request(Vec::new())));
    world.send(b, &Request::Disconnect(request(Vec::new())));
    let (id, op) = world.take_upcall();
    assert!(matches!(op, HostOp::Disconnect(_)));
    world.answer(id, HostReply::Done(Status::ERR_NOT_SUPPORTED));
    assert_eq!(world.status(a, first), Status::ERR_NOT_SUPPORTED);
}

#[test]
fn groups_are_formed_in_the_layout_of_each_release() {
    let mut world = World::with_job(1, 3);
    let releases = [dialect(4, 2, 2), dialect(5, 0, 3), dialect(6, 1, 0)];
    let ranks: Vec<ConnId> =
        (0..).zip(releases).map(|(rank, release)| world.connect_as(&proc("job", rank), release)).collect();
    let construct = Request::GroupConstruct(Construct { id: "g".into(), procs: all(), info: Vec::new() });
    let tags: Vec<u32> = ranks.iter().map(|conn| world.send(*conn, &construct)).collect();
    let (id, op) = world.take_upcall();
    assert_eq!(
        op,
        HostOp::GroupConstruct(GroupRequest { from: None, id: "g".into(), procs: all(), info: Vec::new() })
    );
    let members: Vec<ProcId> = (0..3).map(|rank| proc("job", rank)).collect();
    let formed = GroupFormed { members: members.clone(), context_id: Some(7), info: Vec::new() };
    world.answer(id, HostReply::Group(Ok(formed)));
    for (conn, tag) in ranks.iter().zip(&tags) {
        let reply: ConstructReply = world.reply(*conn, *tag);
        assert_eq!((reply.status, reply.context_id), (Status::SUCCESS, Some(7)));
        let told = world.client(*conn).dialect.release.major >= 5;
        assert_eq!(reply.members, if told { members.clone() } else { Vec::new() });
    }
    // The oldest client names only the group; it is one destruct all the same.
    let destruct =
        |procs: Vec<ProcId>| Request::GroupDestruct(Destruct { id: "g".into(), procs, info: Vec::new() });
    let tags: Vec<u32> = ranks.iter().map(|conn| world.send(*conn, &destruct(members.clone()))).collect();
    let (id, op) = world.take_upcall();
    assert_eq!(
        op,
        HostOp::GroupDestruct(GroupRequest { from: None, id: "g".into(), procs: members, info: Vec::new() })
    );
    world.answer(id, HostReply::Group(Ok(GroupFormed::default())));
    assert_eq!(world.status(ranks[0], tags[0]), Status::SUCCESS);
    assert_eq!(world.ask_status(ranks[0], &destruct(Vec::new())), Status::ERR_NOT_FOUND, "it is no more");
}

#[test]
fn groups_of_one_set_but_different_names_do_not_meet() {
    let mut world = World::with_job(1, 2);
    let ranks = everybody(&mut world, 2);
    for (conn, name) in [(ranks[0], "g"), (ranks[1], "h")] {
        let construct = Construct { id: name.into(), procs: all(), info: Vec::new() };
        let tag = world.send(conn, &Request::GroupConstruct(construct));
        assert!(!world.has_reply(conn, tag));
    }
    assert_eq!(world.server.explain().len(), 2);
    assert!(world.asked.is_empty());
}

#[test]
fn the_host_is_asked_for_groups_without_members_here() {
    let mut world = World::with_job(1, 2);
    let ranks = formed_group(&mut world, 2, all());
    let names = Query { keys: vec![keys::QUERY_GROUP_NAMES.into()], qualifiers: Vec::new() };
    let names = Request::Query(Queries { queries: vec![names] });
    let of_host =
        |names: &str| HostReply::Infos(Status::SUCCESS, vec![Info::new(keys::QUERY_GROUP_NAMES, names)]);
    let cases = [
        (of_host("far,g"), "far,g"),
        (HostReply::Done(Status::ERR_NOT_SUPPORTED), "g"),
        (HostReply::Infos(Status::QUERY_PARTIAL_SUCCESS, Vec::new()), "g"),
    ];
    for (answer, expected) in cases {
        let tag = world.send(ranks[0], &names);
        let (id, _) = world.take_upcall();
        world.answer(id, answer);
        let reply: InfoReply = world.reply(ranks[0], tag);
        assert_eq!((reply.status, reply.info[0].value.as_str()), (Status::SUCCESS, Some(expected)));
    }
}

#[test]
fn a_member_that_leaves_a_group_is_announced_to_the_rest() {
    let mut world = World::with_job(1, 2);
    let ranks = formed_group(&mut world, 2, vec![proc("job", 0), proc("job", 1)]);
    let registration =
        phalanx_wire::cmd::event::RegisterEvents { codes: vec![Status::GROUP_LEFT], info: Vec::new() };
    world.ask_status(ranks[0], &Request::RegisterEvents(registration));
    let leave = Request::GroupLeave(Leave { id: "g".into(), info: Vec::new() });
    assert_eq!(world.ask_status(ranks[1], &leave), Status::SUCCESS);
    let event = &world.client(ranks[0]).events[0];
    assert_eq!((event.code, &event.source), (Status::GROUP_LEFT, &proc("job", 1)));
    assert_eq!(world.ask_status(ranks[1], &leave), Status::ERR_NOT_FOUND);
}

#[test]
fn member_that_leaves_a_group_leaves_the_others_in() {
    let mut world = World::with_job(1, 3);
    let ranks = formed_group(&mut world, 3, all());
    let leave = Request::GroupLeave(Leave { id: "g".into(), info: Vec::new() });
    assert_eq!(world.ask_status(ranks[1], &leave), Status::SUCCESS);
    assert_eq!(world.ask_status(ranks[1], &leave), Status::ERR_NOT_FOUND);
    // 4.2 names the group alone: the remaining members end it.
    let destruct = Destruct { id: "g".into(), procs: Vec::new(), info: Vec::new() };
    for conn in [ranks[0], ranks[2]] {
        world.send(conn, &Request::GroupDestruct(destruct.clone()));
    }
    let (_, op) = world.take_upcall();
    let HostOp::GroupDestruct(GroupRequest { procs, .. }) = op else { panic!("{op:?}") };
    assert_eq!(procs, [proc("job", 0), proc("job", 2)]);
}

#[test]
fn a_member_can_leave_by_an_event_alone() {
    let mut world = World::with_job(1, 2);
    let ranks = formed_group(&mut world, 2, all());
    let left = phalanx_wire::cmd::event::Notify {
        code: Status::GROUP_LEFT,
        range: Range::LOCAL,
        info: vec![Info::new(keys::GROUP_ID, "g")],
    };
    assert_eq!(world.ask_status(ranks[1], &Request::Notify(left)), Status::SUCCESS);
    let leave = Request::GroupLeave(Leave { id: "g".into(), info: Vec::new() });
    assert_eq!(world.ask_status(ranks[1], &leave), Status::ERR_NOT_FOUND);
    assert_eq!(world.ask_status(ranks[0], &leave), Status::SUCCESS);
}

#[test]
fn explain_names_few_of_many_participants() {
    let mut world = World::with_job(1, 20);
    let a = world.connect(0);
    let procs: Vec<ProcId> = (0..20).map(|rank| ProcId::new(&ns("job"), Rank(rank))).collect();
    world.send(a, &fence(procs, Vec::new()));
    let why = world.server.explain();
    assert!(why[0].subject.ends_with("job:7 and 12 more"), "{}", why[0].subject);
    assert_eq!(why[0].missing.len(), 19);
}

fn groups_of(info: Vec<Info>) -> (Request, Request) {
    let id = || "g".into();
    let construct = Construct { id: id(), procs: all(), info };
    let destruct = Destruct { id: id(), procs: all(), info: Vec::new() };
    (Request::GroupConstruct(construct), Request::GroupDestruct(destruct))
}

fn hears_of_failures(world: &mut World, conn: ConnId) {
    let codes = vec![Status::GROUP_MEMBER_FAILED];
    let registration = phalanx_wire::cmd::event::RegisterEvents { codes, info: Vec::new() };
    world.ask_status(conn, &Request::RegisterEvents(registration));
}

#[test]
fn a_group_that_lacks_a_member_is_given_up() {
    let mut world = World::with_job(1, 3);
    let ranks = everybody(&mut world, 3);
    let (construct, _) = groups_of(Vec::new());
    let first = world.send(ranks[0], &construct);
    world.close(ranks[2]);
    assert_eq!(world.status(ranks[0], first), Status::GROUP_CONSTRUCT_ABORT);
    assert_eq!(world.ask_status(ranks[1], &construct), Status::GROUP_CONSTRUCT_ABORT);
}

#[test]
fn groups_are_formed_by_their_members() {
    let mut world = World::with_job(1, 3);
    let ranks = everybody(&mut world, 3);
    let mut construct = |procs: Vec<ProcId>, info: Vec<Info>| {
        let construct = Construct { id: "g".into(), procs, info };
        world.ask_status(ranks[0], &Request::GroupConstruct(construct))
    };
    assert_eq!(construct(vec![proc("job", 1)], Vec::new()), Status::ERR_NOT_A_MEMBER);
    assert!(world.asked.is_empty());
}

#[test]
fn added_members_reach_the_host_in_one_list() {
    let mut world = World::with_job(1, 4);
    let ranks = everybody(&mut world, 4);
    let list = |items: &[u32]| {
        let items = items.iter().map(|rank| Value::Proc(proc("job", *rank))).collect();
        Info::new(keys::GROUP_ADD_MEMBERS, DataArray { of: DataType::PROC, items })
    };
    let leaders = vec![proc("job", 0), proc("job", 1)];
    for (conn, added) in [(ranks[0], list(&[3, 2])), (ranks[1], list(&[3]))] {
        let construct = Construct { id: "g".into(), procs: leaders.clone(), info: vec![added] };
        world.send(conn, &Request::GroupConstruct(construct));
    }
    let (_, op) = world.take_upcall();
    assert_eq!(
        op,
        HostOp::GroupConstruct(GroupRequest {
            from: None,
            id: "g".into(),
            procs: leaders,
            info: vec![list(&[2, 3])]
        })
    );
}

#[test]
fn joiners_of_a_growing_group_are_answered_one_by_one() {
    let mut world = World::with_job(1, 3);
    let ranks: Vec<ConnId> =
        (0..3).map(|rank| world.connect_as(&proc("job", rank), dialect(6, 1, 0))).collect();
    let mut construct = |rank: usize, procs: Vec<ProcId>, info: Vec<Info>| {
        let construct = Construct { id: "g".into(), procs, info };
        let tag = world.send(ranks[rank], &Request::GroupConstruct(construct));
        let (id, op) = world.take_upcall();
        assert!(!world.has_reply(ranks[rank], tag));
        (tag, id, op)
    };
    let bootstrap = vec![Info::new(keys::GROUP_BOOTSTRAP, Value::Size(1))];
    let (leads, leader, op) = construct(0, vec![proc("job", 0)], bootstrap.clone());
    let (from, procs) = (proc("job", 0), vec![proc("job", 0)]);
    assert_eq!(
        op,
        HostOp::GroupConstruct(GroupRequest { from: Some(from), id: "g".into(), procs, info: bootstrap })
    );
    let (follows, follower, op) = construct(1, Vec::new(), Vec::new());
    let (from, procs, info) = (proc("job", 1), Vec::new(), Vec::new());
    assert_eq!(op, HostOp::GroupConstruct(GroupRequest { from: Some(from), id: "g".into(), procs, info }));
    let (uninvited, other, _) = construct(2, Vec::new(), Vec::new());
    assert_eq!(world.server.explain().len(), 3);

    let members = vec![proc("job", 0), proc("job", 1)];
    let formed = GroupFormed { members: members.clone(), context_id: Some(7), info: Vec::new() };
    for id in [leader, follower, other] {
        world.answer(id, HostReply::Group(Ok(formed.clone())));
    }
    for (conn, tag) in [(ranks[0], leads), (ranks[1], follows)] {
        let reply: ConstructReply = world.reply(conn, tag);
        assert_eq!((reply.status, reply.context_id), (Status::SUCCESS, Some(7)));
        assert_eq!(reply.members, members);
    }
    let reply: ConstructReply = world.reply(ranks[2], uninvited);
    assert_eq!(reply.status, Status::ERR_SERVER_FAILED_REQUEST, "it is no member");
    // The group is known from then on.
    let leave = Request::GroupLeave(Leave { id: "g".into(), info: Vec::new() });
    assert_eq!(world.ask_status(ranks[1], &leave), Status::SUCCESS);
}

#[test]
fn fault_tolerant_group_forms_of_living_members() {
    let mut world = World::with_job(1, 3);
    let ranks = everybody(&mut world, 3);
    hears_of_failures(&mut world, ranks[1]);
    let (construct, _) = groups_of(vec![Info::new(keys::GROUP_FT_COLLECTIVE, true)]);
    world.send(ranks[0], &construct);
    world.close(ranks[2]);
    let last = world.send(ranks[1], &construct);
    let (id, op) = world.take_upcall();
    let HostOp::GroupConstruct(GroupRequest { procs, .. }) = op else { panic!("{op:?}") };
    assert_eq!(procs, [proc("job", 0), proc("job", 1)]);
    world.answer(id, HostReply::Group(Ok(GroupFormed::default())));
    assert_eq!(world.status(ranks[1], last), Status::SUCCESS);
    let event = &world.client(ranks[1]).events[0];
    assert_eq!((event.code, &event.source), (Status::GROUP_MEMBER_FAILED, &proc("job", 2)));
}

#[test]
fn members_learn_which_member_a_destruct_lacks() {
    let mut world = World::with_job(1, 3);
    let ranks = everybody(&mut world, 3);
    let (construct, _) = groups_of(Vec::new());
    for conn in &ranks {
        world.send(*conn, &construct);
    }
    let (id, _) = world.take_upcall();
    world.answer(id, HostReply::Group(Ok(GroupFormed::default())));
    hears_of_failures(&mut world, ranks[0]);
    let info = vec![Info::new(keys::GROUP_FT_COLLECTIVE, true)];
    let destruct = Request::GroupDestruct(Destruct { id: "g".into(), procs: all(), info });
    let first = world.send(ranks[0], &destruct);
    world.send(ranks[1], &destruct);
    world.close(ranks[2]);
    let (id, op) = world.take_upcall();
    let HostOp::GroupDestruct(GroupRequest { procs, .. }) = op else { panic!("{op:?}") };
    assert_eq!(procs, [proc("job", 0), proc("job", 1)]);
    world.answer(id, HostReply::Group(Ok(GroupFormed::default())));
    assert_eq!(world.status(ranks[0], first), Status::SUCCESS);
    let events = &world.client(ranks[0]).events;
    let told: Vec<_> = events.iter().map(|event| (event.code, event.source.clone())).collect();
    assert_eq!(told, [(Status::GROUP_MEMBER_FAILED, proc("job", 2))]);
}

#[test]
fn a_group_that_is_watched_ends_without_its_dead() {
    let mut world = World::with_job(1, 3);
    let ranks = everybody(&mut world, 3);
    let (construct, destruct) = groups_of(vec![Info::new(keys::GROUP_NOTIFY_TERMINATION, true)]);
    for conn in &ranks {
        world.send(*conn, &construct);
    }
    let (id, _) = world.take_upcall();
    world.answer(id, HostReply::Group(Ok(GroupFormed::default())));
    hears_of_failures(&mut world, ranks[0]);
    let first = world.send(ranks[0], &destruct);
    world.close(ranks[2]);
    assert_eq!(world.client(ranks[0]).events.len(), 1);
    world.send(ranks[1], &destruct);
    let (id, op) = world.take_upcall();
    let HostOp::GroupDestruct(GroupRequest { procs, .. }) = op else { panic!("{op:?}") };
    assert_eq!(procs, [proc("job", 0), proc("job", 1)]);
    world.answer(id, HostReply::Group(Ok(GroupFormed::default())));
    assert_eq!(world.status(ranks[0], first), Status::SUCCESS);
}

/// Clients of 4.2 name only the group when they destruct it.
#[test]
fn groups_of_one_name_have_the_members_that_made_them() {
    let mut world = World::with_job(1, 2);
    world.register(job("other", 1, 2));
    let jobs = ["job", "other"];
    let ranks = jobs.map(|job| [0, 1].map(|rank| world.connect_as(&proc(job, rank), dialect(4, 2, 2))));
    for (job, ranks) in jobs.into_iter().zip(&ranks) {
        let procs = vec![ProcId::all(&ns(job))];
        let construct = Request::GroupConstruct(Construct { id: "q".into(), procs, info: Vec::new() });
        for conn in ranks {
            world.send(*conn, &construct);
        }
        let (id, _) = world.take_upcall();
        let members = [0, 1].map(|rank| proc(job, rank)).to_vec();
        world.answer(id, HostReply::Group(Ok(GroupFormed { members, ..GroupFormed::default() })));
    }
    for (job, ranks) in jobs.into_iter().zip(&ranks) {
        let destruct =
            Request::GroupDestruct(Destruct { id: "q".into(), procs: Vec::new(), info: Vec::new() });
        let tags = ranks.map(|conn| world.send(conn, &destruct));
        let (id, op) = world.take_upcall();
        let all = [0, 1].map(|rank| proc(job, rank)).to_vec();
        assert!(matches!(op, HostOp::GroupDestruct(GroupRequest { procs, .. }) if procs == all));
        world.answer(id, HostReply::Done(Status::SUCCESS));
        for (conn, tag) in ranks.iter().zip(tags) {
            assert_eq!(world.status(*conn, tag), Status::SUCCESS, "{job}");
        }
    }
}
