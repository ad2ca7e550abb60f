//! Rights to answer that are dropped unused.

use phalanx_spec::Status;
use phalanx_wire::cmd::Request;
use phalanx_wire::cmd::publish::{LookupReply, Published};

use super::world::{World, get, global, key, ns, proc};
use crate::host::HostReply;
use crate::machine::Input;
use crate::server::{ServerCall, ServerReturn};

fn lookup() -> Request {
    Request::Lookup(Published { uid: 0, keys: vec![key("port")], info: Vec::new() })
}

/// Handles an input that has nothing to do with what was dropped.
fn turn(world: &mut World) {
    world.input(Input::Tick);
}

#[test]
#[cfg_attr(debug_assertions, should_panic(expected = "the host did not answer"))]
fn an_upcall_that_the_host_drops_is_refused() {
    let mut world = World::with_job(1, 1);
    let a = world.connect(0);
    let tag = world.send(a, &lookup());
    drop(world.take_upcall());
    turn(&mut world);
    assert_eq!(world.reply::<LookupReply>(a, tag).status, Status::ERROR);
    assert!(world.server.upcalls.is_empty());
}

#[test]
#[cfg_attr(debug_assertions, should_panic(expected = "was not answered"))]
fn a_request_that_the_server_drops_is_refused() {
    let mut world = World::with_job(1, 1);
    let a = world.connect(0);
    let tag = 4711;
    drop(world.server.peers.conns.begin_request(a, tag));
    turn(&mut world);
    assert_eq!(world.status(a, tag), Status::ERROR);
}

#[test]
fn rights_that_serve_no_peer_are_dropped_in_silence() {
    let mut world = World::with_job(1, 2);
    // The request's connection is gone.
    let a = world.connect(0);
    let request = world.server.peers.conns.begin_request(a, 4711).map(|(asker, _)| asker);
    world.close(a);
    drop(request);
    turn(&mut world);
    // The upcall's job is over.
    let b = world.connect(1);
    world.send(b, &lookup());
    let (call, _) = world.take_upcall();
    let over = ServerCall::DeregisterNspace(ns("job"));
    assert_eq!(world.call(over), ServerReturn::Done(Status::SUCCESS));
    drop(call);
    turn(&mut world);
    // The server is gone.
    let mut world = World::with_job(1, 1);
    let a = world.connect(0);
    world.send(a, &lookup());
    let World { server, asked, .. } = world;
    drop(server);
    drop(asked);
}

#[test]
fn a_tool_of_a_job_that_is_over_is_answered() {
    let mut world = World::with_job(1, 1);
    let tool = world.connect_tool(&proc("job", 7));
    let tag = world.send(tool, &lookup());
    let (call, _) = world.take_upcall();
    let over = ServerCall::DeregisterNspace(ns("job"));
    assert_eq!(world.call(over), ServerReturn::Done(Status::SUCCESS));
    assert_eq!(world.reply::<LookupReply>(tool, tag).status, Status::ERR_LOST_CONNECTION);
    world.answer(call, HostReply::Lookup(Ok(Vec::new())));
    assert_eq!(world.client(tool).order.len(), 1, "the late answer is ignored");
}

#[test]
fn a_process_that_finalizes_ends_its_own_requests() {
    let mut world = World::with_job(1, 2);
    let (a, b) = (world.connect(0), world.connect(1));
    let tag = world.send(a, &get(&proc("job", 1), "later", Vec::new()));
    assert_eq!(world.ask_status(a, &Request::Finalize), Status::SUCCESS);
    assert_eq!(world.ask_status(b, &Request::Commit(global("later", 1u32))), Status::SUCCESS);
    assert!(!world.has_reply(a, tag));
}
