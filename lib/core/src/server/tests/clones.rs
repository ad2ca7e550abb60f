use std::time::Duration;

use phalanx_spec::{IofChannel, Range, Scope, Status, keys};
use phalanx_wire::cmd::commit::Commit;
use phalanx_wire::cmd::event::{Notify, RegisterEvents};
use phalanx_wire::cmd::iof::{Pull, PullReply};
use phalanx_wire::cmd::monitor::Monitor;
use phalanx_wire::cmd::{InfoReply, Request};
use phalanx_wire::frame::encode_frame;
use phalanx_wire::{Info, Kval, Value};

use super::world::{UID, World, all, fence, get, global, hello, key, proc};
use crate::host::{ClientFinalized, ClientLost, HostOp, HostReply};
use crate::machine::{ConnId, Input};
use crate::server::limits::{FULL_QUEUE, MAX_CLONES, MAX_MONITORS, MAX_PULLS, MAX_QUEUED, MAX_REGISTRATIONS};
use crate::server::{ServerCall, ServerReturn};

const CODE: Status = Status(-3000);

fn with_clones() -> Vec<Info> {
    vec![Info::new(keys::ALL_CLONES_PARTICIPATE, true)]
}

fn connected() -> HostOp {
    HostOp::ClientConnected(proc("job", 0))
}

fn finalized(others: bool) -> HostOp {
    HostOp::ClientFinalized(ClientFinalized { proc: proc("job", 0), others })
}

fn lost() -> HostOp {
    HostOp::ClientLost(ClientLost { proc: proc("job", 0), cut_off: None })
}

/// Whether another connection of rank 0 is let in.
fn another_is_let_in(world: &mut World) -> bool {
    let conn = world.open_as(UID);
    world.bytes(conn, &hello(&proc("job", 0)).encode());
    world.client(conn).welcomed
}

#[test]
fn a_rank_finalizes_with_its_last_connection() {
    let mut world = World::with_job(1, 1);
    let (parent, child) = (world.connect(0), world.connect(0));
    assert_eq!(world.ask_status(child, &Request::Finalize), Status::SUCCESS);
    world.close(child);
    assert_eq!(world.ask_status(parent, &Request::Finalize), Status::SUCCESS);
    world.close(parent);
    assert_eq!(world.history, [connected(), finalized(true), finalized(false)]);
    world.connect(0);
    assert_eq!(world.history.last(), Some(&connected()), "it begins again");
}

#[test]
fn a_connection_that_breaks_while_another_goes_on_is_no_loss() {
    let mut world = World::with_job(1, 2);
    let (parent, child) = (world.connect(0), world.connect(0));
    let other = world.connect(1);
    let waits = world.send(other, &fence(all(), Vec::new()));
    world.close(child);
    assert!(!world.has_reply(other, waits));
    assert_eq!(world.ask_status(parent, &fence(all(), Vec::new())), Status::SUCCESS);
    assert_eq!(world.status(other, waits), Status::SUCCESS);
    assert!(!world.history.contains(&lost()));
    world.close(parent);
    assert_eq!(world.history.last(), Some(&lost()), "that was the last one");
}

#[test]
fn broken_connection_after_a_clones_finalize_is_no_loss() {
    let mut world = World::with_job(1, 1);
    let (parent, child) = (world.connect(0), world.connect(0));
    world.ask_status(parent, &Request::Finalize);
    world.close(parent);
    world.close(child);
    assert_eq!(world.history, [connected(), finalized(true), finalized(false)]);
    // The earlier connections do not count any more.
    let again = world.connect(0);
    world.close(again);
    assert_eq!(world.history.last(), Some(&lost()));
}

#[test]
fn the_host_decides_once_for_all_that_wait() {
    let mut world = World::with_job(1, 1);
    world.obliging = false;
    let waiting: Vec<ConnId> = (0..3).map(|_| world.open_as(UID)).collect();
    for conn in &waiting {
        world.bytes(*conn, &hello(&proc("job", 0)).encode());
    }
    world.close(waiting[0]);
    let (id, op) = world.take_upcall();
    assert_eq!(op, connected());
    world.answer(id, HostReply::Done(Status::SUCCESS));
    assert!(world.client(waiting[1]).welcomed && world.client(waiting[2]).welcomed);
    assert!(another_is_let_in(&mut world) && world.asked.is_empty(), "it is not asked again");
}

#[test]
fn all_that_wait_are_refused_with_the_first() {
    let mut world = World::with_job(1, 1);
    world.obliging = false;
    let waiting: Vec<ConnId> = (0..2).map(|_| world.open_as(UID)).collect();
    for conn in &waiting {
        world.bytes(*conn, &hello(&proc("job", 0)).encode());
    }
    let (id, _) = world.take_upcall();
    world.answer(id, HostReply::Done(Status::ERR_NO_PERMISSIONS));
    assert!(waiting.iter().all(|conn| world.closed.contains(conn)));
}

#[test]
fn each_connection_proves_its_user() {
    let mut world = World::with_job(1, 1);
    world.connect(0);
    let conn = world.open_as(UID + 1);
    world.bytes(conn, &hello(&proc("job", 0)).encode());
    assert!(world.closed.contains(&conn));
}

#[test]
fn connections_per_rank_are_bounded() {
    let mut world = World::with_job(1, 2);
    let first = world.connect(0);
    for n in 1..MAX_CLONES {
        assert!(another_is_let_in(&mut world), "{n}");
    }
    assert!(!another_is_let_in(&mut world));
    world.ask_status(first, &Request::Finalize);
    assert!(!another_is_let_in(&mut world), "one that has finalized is still open");
    world.close(first);
    assert!(another_is_let_in(&mut world) && !another_is_let_in(&mut world));
    world.connect(1);
}

#[test]
fn unread_bytes_are_bounded_for_all_together() {
    let mut world = World::with_job(1, 2);
    let (one, two, other) = (world.connect(0), world.connect(0), world.connect(1));
    for conn in [one, two, other] {
        world.input(Input::Writable { conn, queued: MAX_QUEUED / 2 + 1 });
    }
    let tags: Vec<u32> = [one, two, other].iter().map(|conn| world.send(*conn, &Request::JobData)).collect();
    assert!(!tags.iter().zip([one, two, other]).any(|(tag, conn)| world.has_reply(conn, *tag)));
    // One of them reads: long answers are left out while the other has more than both may have.
    world.input(Input::Writable { conn: two, queued: MAX_QUEUED });
    world.input(Input::Writable { conn: one, queued: 0 });
    world.input(Input::Writable { conn: other, queued: 0 });
    let refused = Status::ERR_OUT_OF_RESOURCE;
    assert_ne!(world.status(one, tags[0]), refused, "not more than both may have");
    world.input(Input::Writable { conn: one, queued: FULL_QUEUE });
    let again = world.send(one, &Request::JobData);
    assert_eq!(world.status(one, again), refused, "but more than that");
    assert_ne!(world.status(other, tags[2]), refused);
    assert!(world.closed.is_empty());
    world.input(Input::Writable { conn: two, queued: 0 });
    assert_ne!(world.status(two, tags[1]), refused);
}

#[test]
fn incomplete_messages_are_bounded_for_all_together() {
    let mut world = World::with_job(1, 1);
    let conns: Vec<ConnId> = (0..3).map(|_| world.connect(0)).collect();
    let beginning = encode_frame(0, 101, &vec![0; 100 << 20]);
    for conn in &conns {
        world.bytes(*conn, &beginning[..beginning.len() - 1]);
    }
    assert_eq!(world.closed.iter().collect::<Vec<_>>(), [&conns[2]]);
}

#[test]
fn pulls_and_monitors_are_bounded_per_rank() {
    let monitor = Monitor {
        what: Info::new(keys::MONITOR_HEARTBEAT, true),
        error: Status::SUCCESS,
        directives: vec![Info::new(keys::MONITOR_HEARTBEAT_TIME, 5u32)],
    };
    let pull = |n| Pull {
        sources: vec![proc("other", n)],
        directives: Vec::new(),
        channels: IofChannel::STDOUT,
        handle: 0,
    };
    let register = |n| RegisterEvents { codes: vec![Status(-3000 - n)], info: Vec::new() };
    type Made = Box<dyn Fn(usize) -> Request>;
    let lasting: [(usize, Made); 3] = [
        (MAX_REGISTRATIONS, Box::new(move |n| Request::RegisterEvents(register(i32::try_from(n).unwrap())))),
        (MAX_PULLS, Box::new(move |n| Request::IofPull(pull(u32::try_from(n).unwrap())))),
        (MAX_MONITORS, Box::new(move |_| Request::Monitor(monitor.clone()))),
    ];
    for (limit, request) in lasting {
        let mut world = World::with_job(1, 2);
        let (one, two, other) = (world.connect(0), world.connect(0), world.connect(1));
        let made = |world: &mut World, conn, n| {
            let request = request(n);
            let tag = world.send(conn, &request);
            for (id, _) in std::mem::take(&mut world.asked) {
                world.answer(id, HostReply::Done(Status::SUCCESS));
            }
            match request {
                Request::IofPull(_) => world.reply::<PullReply>(conn, tag).status,
                Request::Monitor(_) => world.reply::<InfoReply>(conn, tag).status,
                _ => world.status(conn, tag),
            }
        };
        for n in 0..limit {
            assert_eq!(made(&mut world, [one, two][n % 2], n), Status::SUCCESS, "{n} of {limit}");
        }
        for conn in [one, two] {
            assert_eq!(made(&mut world, conn, limit), Status::ERR_OUT_OF_RESOURCE);
        }
        assert_eq!(made(&mut world, other, limit), Status::SUCCESS, "another rank");
        world.close(one);
        assert_eq!(made(&mut world, two, limit), Status::SUCCESS, "there is room again");
    }
}

#[test]
fn connections_that_wait_for_the_host_are_bounded_too() {
    let mut world = World::with_job(1, 1);
    world.obliging = false;
    let waiting: Vec<ConnId> = (0..=MAX_CLONES).map(|_| world.open_as(UID)).collect();
    for conn in &waiting {
        world.bytes(*conn, &hello(&proc("job", 0)).encode());
    }
    assert_eq!(world.closed.iter().collect::<Vec<_>>(), [&waiting[MAX_CLONES]]);
}

#[test]
fn a_host_may_want_one_connection_at_a_time() {
    let mut world = World::with_job(1, 1);
    world.server.config.refuse_clones = true;
    let first = world.connect(0);
    assert!(!another_is_let_in(&mut world));
    world.ask_status(first, &Request::Finalize);
    assert!(another_is_let_in(&mut world));
}

#[test]
fn the_end_of_a_rank_closes_all_its_connections() {
    let mut world = World::with_job(1, 1);
    let both = [world.connect(0), world.connect(0)];
    assert_eq!(world.call(ServerCall::DeregisterClient(proc("job", 0))), ServerReturn::Done(Status::SUCCESS));
    assert!(both.iter().all(|conn| world.closed.contains(conn)));
    assert_eq!(world.history, [connected()], "the host knows that it has ended");
    assert!(!another_is_let_in(&mut world));
}

#[test]
fn clones_share_values_and_get_answers_to_their_own_requests() {
    let mut world = World::with_job(1, 2);
    let (parent, child, other) = (world.connect(0), world.connect(0), world.connect(1));
    let tag = world.send(parent, &get(&proc("job", 1), "answer", Vec::new()));
    world.ask_status(child, &Request::Commit(global("from", "child")));
    world.ask_status(parent, &Request::Commit(global("more", "parent")));
    for (name, value) in [("from", "child"), ("more", "parent")] {
        let tag = world.send(other, &get(&proc("job", 0), name, Vec::new()));
        assert_eq!(world.value(other, tag, name), Some(Value::from(value)));
    }
    world.ask_status(other, &Request::Commit(global("answer", 42u32)));
    assert_eq!(world.value(parent, tag, "answer"), Some(Value::from(42u32)));
    assert_eq!(world.client(child).replies.len(), 1, "to its commit");
    // Closing a connection ends only its own waiting get.
    let (one, two) = (world.connect(0), world.connect(0));
    let wanted = get(&proc("job", 1), "late", vec![Info::new(keys::TIMEOUT, 60u32)]);
    world.send(one, &wanted);
    let tag = world.send(two, &wanted);
    world.close(one);
    let kval = Kval { key: key("late"), value: 1u32.into() };
    world.ask_status(other, &Request::Commit(Commit { buckets: vec![(Scope::LOCAL, vec![kval])] }));
    assert_eq!(world.value(two, tag, "late"), Some(Value::from(1u32)));
}

#[test]
fn each_call_is_a_participation_of_the_rank() {
    let mut world = World::with_job(1, 2);
    let (parent, child, other) = (world.connect(0), world.connect(0), world.connect(1));
    let first = world.send(child, &fence(all(), Vec::new()));
    let second = world.send(parent, &fence(all(), Vec::new()));
    assert_eq!(world.ask_status(other, &fence(all(), Vec::new())), Status::SUCCESS);
    assert!(world.has_reply(child, first) && !world.has_reply(parent, second));
    assert_eq!(world.ask_status(other, &fence(all(), Vec::new())), Status::SUCCESS);
    assert_eq!(world.status(parent, second), Status::SUCCESS);
}

#[test]
fn all_clones_participate_where_a_call_says_so() {
    let mut world = World::with_job(1, 2);
    let (parent, child, other) = (world.connect(0), world.connect(0), world.connect(1));
    let first = world.send(child, &fence(all(), with_clones()));
    let theirs = world.send(other, &fence(all(), Vec::new()));
    assert!(!world.has_reply(other, theirs), "the parent is missing");
    let why = world.server.explain();
    assert_eq!(why[0].missing, [proc("job", 0)]);
    let second = world.send(parent, &fence(all(), with_clones()));
    for (conn, tag) in [(child, first), (parent, second), (other, theirs)] {
        assert_eq!(world.status(conn, tag), Status::SUCCESS);
    }
    // A connection that ends is not waited for, whether it closes or finalizes.
    for end in [World::close, |world: &mut World, conn| {
        world.ask_status(conn, &Request::Finalize);
    }] {
        let third = world.connect(0);
        world.send(child, &fence(all(), with_clones()));
        world.send(parent, &fence(all(), with_clones()));
        let theirs = world.send(other, &fence(all(), Vec::new()));
        assert!(!world.has_reply(other, theirs));
        end(&mut world, third);
        assert_eq!(world.status(other, theirs), Status::SUCCESS);
    }
    assert!(world.server.explain().is_empty());
}

#[test]
fn death_in_a_fence_does_not_count_for_a_sibling() {
    let mut world = World::with_job(1, 2);
    let (parent, child, other) = (world.connect(0), world.connect(0), world.connect(1));
    world.send(child, &fence(all(), Vec::new()));
    world.close(child);
    let theirs = world.send(other, &fence(all(), Vec::new()));
    assert!(!world.has_reply(other, theirs));
    assert_eq!(world.ask_status(parent, &fence(all(), Vec::new())), Status::SUCCESS);
    assert_eq!(world.status(other, theirs), Status::SUCCESS);
    assert!(world.server.explain().is_empty());
}

#[test]
fn queued_clone_inherits_a_dead_peers_turn() {
    let mut world = World::with_job(1, 2);
    let (first, second, third) = (world.connect(0), world.connect(0), world.connect(0));
    let other = world.connect(1);
    let within = |seconds: u32| vec![Info::new(keys::TIMEOUT, seconds)];
    for _ in 0..2 {
        world.send(first, &fence(all(), Vec::new()));
    }
    let behind = world.send(second, &fence(all(), Vec::new()));
    let last = world.send(third, &fence(all(), Vec::new()));
    world.close(first);
    assert_eq!(world.ask_status(other, &fence(all(), Vec::new())), Status::SUCCESS);
    assert_eq!(world.status(second, behind), Status::SUCCESS);
    assert!(!world.has_reply(third, last));
    let again = world.send(second, &fence(all(), within(5)));
    world.close(third);
    assert_eq!(world.server.explain().len(), 1);
    world.advance(Duration::from_secs(6));
    assert_eq!(world.status(second, again), Status::ERR_TIMEOUT, "its deadline came along");
}

#[test]
fn an_event_reaches_all_connections_but_the_one_that_raised_it() {
    let mut world = World::with_job(1, 1);
    let both = [world.connect(0), world.connect(0)];
    let register = Request::RegisterEvents(RegisterEvents { codes: vec![CODE], info: Vec::new() });
    both.iter().for_each(|conn| assert_eq!(world.ask_status(*conn, &register), Status::SUCCESS));
    let notify = Request::Notify(Notify { code: CODE, range: Range::LOCAL, info: Vec::new() });
    assert_eq!(world.ask_status(both[1], &notify), Status::SUCCESS);
    let heard = |world: &World, conn: ConnId| world.client(conn).events.len();
    assert_eq!(both.map(|conn| heard(&world, conn)), [1, 0]);
    // Later connections get the event, too, even after the raising connection has gone.
    let late = world.connect(0);
    world.ask_status(late, &register);
    world.close(both[0]);
    let later = world.connect(0);
    world.ask_status(later, &register);
    assert_eq!([late, later].map(|conn| heard(&world, conn)), [1, 1]);
}

#[test]
fn signs_of_life_are_those_of_the_connection_that_is_watched() {
    let mut world = World::with_job(1, 1);
    let (parent, child) = (world.connect(0), world.connect(0));
    let codes = vec![Status::MONITOR_HEARTBEAT_ALERT];
    world.ask_status(parent, &Request::RegisterEvents(RegisterEvents { codes, info: Vec::new() }));
    let watch = Request::Monitor(Monitor {
        what: Info::new(keys::MONITOR_HEARTBEAT, true),
        error: Status::SUCCESS,
        directives: vec![Info::new(keys::MONITOR_HEARTBEAT_TIME, 5u32)],
    });
    world.send(child, &watch);
    let beat = Request::Monitor(Monitor {
        what: Info::new(keys::SEND_HEARTBEAT, true),
        error: Status::SUCCESS,
        directives: Vec::new(),
    });
    world.send(parent, &beat);
    world.advance(Duration::from_secs(6));
    assert_eq!(world.client(parent).events.len(), 1, "its parent hears that the child is silent");
}
