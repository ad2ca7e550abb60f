use std::time::Duration;

use phalanx_spec::{Rank, Status};
use phalanx_wire::cmd::Request;
use phalanx_wire::codec::{Dialect, Release};
use phalanx_wire::credential::Credential;
use phalanx_wire::frame::encode_frame;
use phalanx_wire::hello::{Flavor, HelloAnswer, SECRET, ToolWelcome};
use phalanx_wire::{Blob, Info, ProcId};

use super::world::{UID, World, hello, ns, proc, v41};
use crate::host::{ClientLost, ClientRefused, HostOp, HostReply, ToolRequest};
use crate::machine::{CloseReason, ConnId, Input};
use crate::server::limits::MAX_STRANGERS;
use crate::server::{Remote, ServerCall, ServerReturn, ToolsOf};

/// Opens a connection as `uid`, sends `bytes`, and returns whether it is still open.
fn survives(world: &mut World, uid: u32, bytes: &[u8]) -> bool {
    let conn = world.open_as(uid);
    world.bytes(conn, bytes);
    !world.closed.contains(&conn)
}

#[test]
fn an_announced_rank_of_the_right_user_is_let_in() {
    let mut world = World::with_job(1, 2);
    let conn = world.connect(1);
    assert_eq!(world.client(conn).greeting(), [0, 0, 0, 0, 0, 0, 0, 1]);
    assert_eq!(world.history, [HostOp::ClientConnected(proc("job", 1))]);
}

#[test]
fn the_user_is_the_kernels_word_and_never_the_messages() {
    let mut world = World::with_job(1, 1);
    let mut liar = hello(&proc("job", 0));
    liar.credential = Credential::Native { uid: UID, gid: UID };
    assert!(!survives(&mut world, UID + 1, &liar.encode()));
    let refused = ClientRefused { proc: proc("job", 0), uid: UID + 1, pid: Some(1), expected: UID };
    assert_eq!(world.history, [HostOp::ClientRefused(refused)]);
    assert!(!survives(&mut world, 0, &liar.encode()), "root is not the rank either");
    let unknown = world.open(None);
    assert!(world.closed.contains(&unknown), "nobody is let in whom the kernel cannot name");
    world.connect(0);
}

#[test]
fn remote_peers_must_be_tools_that_show_the_secret() {
    let mut world = World::new();
    let (address, secret) = ("tcp4://10.0.0.1:7".to_owned(), "open sesame".to_owned());
    world.server.config.remote = Some(Remote { address, secret });
    let tool = |secret: Option<&str>| {
        let mut hello = hello(&proc("visitor", 0));
        hello.flavor = Flavor::NamedTool;
        hello.info = secret.into_iter().map(|secret| Info::new(SECRET, secret)).collect();
        hello
    };
    for wrong in [None, Some(""), Some("open sesam"), Some("open sesamE")] {
        let conn = world.open(None);
        world.bytes(conn, &tool(wrong).encode());
        assert!(world.closed.contains(&conn), "{wrong:?}");
    }
    let mut client = tool(Some("open sesame"));
    client.flavor = Flavor::Client;
    let conn = world.open(None);
    world.bytes(conn, &client.encode());
    assert!(world.closed.contains(&conn), "clients are always here");
    let conn = world.open(None);
    world.bytes(conn, &tool(Some("open sesame")).encode());
    assert!(!world.closed.contains(&conn));
    // The host gets the owner's uid, and not the secret.
    let (_, op) = world.take_upcall();
    let claims = Some(proc("visitor", 0));
    let HostOp::ToolConnected(ToolRequest { uid, claims: claimed, info, .. }) = op else { panic!("{op:?}") };
    assert_eq!((uid, claimed, info), (UID, claims, Vec::new()));
}

#[test]
fn only_credentials_that_prove_nothing_are_accepted() {
    let kinds = [
        (Credential::None, true),
        (Credential::Munge(b"MUNGE:token".to_vec()), true),
        (Credential::Other { module: "dummy_handshake".into(), bytes: Blob::default() }, false),
        (Credential::Other { module: "native".into(), bytes: Blob::from(vec![1]) }, false),
    ];
    for (credential, accepted) in kinds {
        let mut world = World::with_job(1, 1);
        let mut hello = hello(&proc("job", 0));
        hello.credential = credential.clone();
        assert_eq!(survives(&mut world, UID, &hello.encode()), accepted, "{credential:?}");
    }
}

#[test]
fn strangers_are_turned_away_without_a_word_and_harm_nobody() {
    let mut world = World::with_job(2, 1);
    let friend = world.connect(0);
    let good = hello(&proc("job", 0)).encode();
    let mut codec = good.clone();
    let at = codec.windows(3).position(|w| w == b"v41").unwrap();
    codec[at..at + 3].copy_from_slice(b"v99");
    let mut huge = good.clone();
    huge[8..12].copy_from_slice(&u32::MAX.to_ne_bytes());
    let cases: Vec<Vec<u8>> = vec![
        hello(&proc("nobody", 0)).encode(),
        hello(&proc("job", 7)).encode(),
        hello(&proc("job", 1)).encode(), // a rank of the other node
        hello(&ProcId::all(&proc("job", 0).nspace)).encode(),
        codec,
        huge,
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        vec![0; 4096],
        vec![0xff; 4096],
    ];
    for case in &cases {
        assert!(!survives(&mut world, UID, case), "{:?}", &case[..16.min(case.len())]);
    }
    assert_eq!(world.ask_status(friend, &Request::Finalize), Status::SUCCESS);
}

#[test]
fn a_half_handshake_ends_with_its_time_and_a_slow_one_does_not() {
    let mut world = World::with_job(1, 1);
    let good = hello(&proc("job", 0)).encode();
    let half = world.open_as(UID);
    world.bytes(half, &good[..20]);
    let slow = world.open_as(UID);
    for byte in &good {
        world.bytes(slow, &[*byte]);
    }
    assert!(world.client(slow).welcomed);
    world.advance(Duration::from_secs(29));
    assert!(!world.closed.contains(&half));
    world.advance(Duration::from_secs(2));
    assert!(world.closed.contains(&half) && !world.closed.contains(&slow));
}

#[test]
fn of_too_many_silent_connections_the_oldest_is_dropped() {
    let mut world = World::with_job(1, 1);
    let silent: Vec<ConnId> = (0..MAX_STRANGERS).map(|_| world.open_as(UID)).collect();
    assert!(world.closed.is_empty());
    world.connect(0);
    assert_eq!(world.closed.iter().collect::<Vec<_>>(), [&silent[0]]);
}

#[test]
fn the_host_has_the_last_word_and_may_take_its_time() {
    let mut world = World::with_job(1, 1);
    world.obliging = false;
    let conn = world.open_as(UID);
    // Bytes that are sent too early are kept until the host has decided.
    let mut bytes = hello(&proc("job", 0)).encode();
    bytes.extend(encode_frame(0, 101, &Request::JobData.encode(v41())));
    world.bytes(conn, &bytes);
    let (id, op) = world.take_upcall();
    assert_eq!(op, HostOp::ClientConnected(proc("job", 0)));
    assert!(world.client(conn).greeting().is_empty());
    world.answer(id, HostReply::Done(Status::OPERATION_SUCCEEDED));
    assert!(world.client(conn).welcomed && world.has_reply(conn, 101));

    let mut world = World::with_job(1, 1);
    world.obliging = false;
    let conn = world.open_as(UID);
    world.bytes(conn, &hello(&proc("job", 0)).encode());
    let (id, _) = world.take_upcall();
    world.answer(id, HostReply::Done(Status::ERR_NO_PERMISSIONS));
    assert!(world.closed.contains(&conn) && world.client(conn).greeting().is_empty());
}

#[test]
fn a_rank_may_come_back_after_it_left() {
    let mut world = World::with_job(1, 1);
    let first = world.connect(0);
    world.ask_status(first, &Request::Finalize);
    let second = world.connect(0);
    world.close(first);
    assert_eq!(world.ask_status(second, &Request::Finalize), Status::SUCCESS);
    world.close(second);
    let third = world.connect(0);
    world.close(third);
    assert!(world.history.contains(&HostOp::ClientLost(ClientLost { proc: proc("job", 0), cut_off: None })));
    world.connect(0);
    assert_eq!(world.call(ServerCall::DeregisterClient(proc("job", 0))), ServerReturn::Done(Status::SUCCESS));
    assert!(!survives(&mut world, UID, &hello(&proc("job", 0)).encode()), "it has ended");
}

#[test]
fn tools_are_admitted_by_the_host_under_the_name_it_gives() {
    let mut world = World::with_job(1, 1);
    let mut tool = hello(&proc("job", 0));
    tool.flavor = Flavor::Tool;
    tool.proc = None;
    let conn = world.open_as(UID);
    world.bytes(conn, &tool.encode());
    let (id, op) = world.take_upcall();
    assert_eq!(
        op,
        HostOp::ToolConnected(ToolRequest {
            uid: UID,
            gid: UID,
            pid: Some(1),
            claims: None,
            info: Vec::new()
        })
    );
    world.answer(id, HostReply::ToolAdmitted(Ok(proc("tool-1", 0))));
    let expected = ToolWelcome {
        assigned: Some(proc("tool-1", 0)),
        server: proc("phalanx", 0),
        security: Status::SUCCESS,
    };
    let sent = world.client(conn).greeting();
    assert!(HelloAnswer::Welcome(expected).encode().starts_with(sent), "the rest went to the frame reader");
    world.close(conn);
    assert_eq!(
        world.history.last(),
        Some(&HostOp::ClientLost(ClientLost { proc: proc("tool-1", 0), cut_off: None }))
    );
}

#[test]
fn host_gives_up_a_tool_that_left_early() {
    let mut world = World::with_job(1, 1);
    world.obliging = false;
    let mut tool = hello(&proc("job", 0));
    tool.flavor = Flavor::Tool;
    let conn = world.open_as(UID);
    world.bytes(conn, &tool.encode());
    world.input(Input::Closed { conn, reason: CloseReason::Error });
    let (id, _) = world.take_upcall();
    world.answer(id, HostReply::ToolAdmitted(Ok(proc("tool-1", 0))));
    assert_eq!(
        world.history.last(),
        Some(&HostOp::ClientLost(ClientLost { proc: proc("tool-1", 0), cut_off: None }))
    );
}

#[test]
fn tools_get_a_refusal_if_their_release_can_read_it() {
    let answer =
        |version: &str, uid: u32, change: &dyn Fn(&mut phalanx_wire::hello::Hello), support: bool| {
            let mut world = World::with_job(1, 1);
            world.connect(0);
            world.server.config.refuse_clones = true;
            world.server.config.tools_of = if support { ToolsOf::Owner } else { ToolsOf::Nobody };
            let mut tool = hello(&proc("tool", 0));
            tool.flavor = Flavor::NamedTool;
            tool.version = version.into();
            change(&mut tool);
            let conn = world.open_as(uid);
            world.bytes(conn, &tool.encode());
            assert!(world.closed.contains(&conn));
            world.client(conn).greeting().to_vec()
        };
    let refused = |uid: u32, change: &dyn Fn(&mut phalanx_wire::hello::Hello), support: bool| {
        let status = answer("5.0.0", uid, change, support);
        Status(i32::from_be_bytes(status.try_into().unwrap()))
    };
    assert_eq!(refused(UID, &|_| {}, false), Status::ERR_NOT_SUPPORTED);
    assert_eq!(refused(UID + 1, &|_| {}, true), Status::ERR_NO_PERMISSIONS);
    assert_eq!(refused(UID, &|tool| tool.proc = Some(proc("job", 0)), true), Status::ERR_EXISTS);
    assert_eq!(refused(UID, &|tool| tool.flavor = Flavor::Scheduler, true), Status::ERR_NOT_SUPPORTED);
    for version in ["4.2.2rc2", "3.2.1", "?"] {
        assert_eq!(answer(version, UID + 1, &|_| {}, true), [], "{version} takes any answer for a welcome");
    }
}

#[test]
fn tools_of_every_user_come_to_the_host_if_all_are_welcome() {
    let mut world = World::with_job(1, 1);
    world.server.config.tools_of = ToolsOf::Everybody;
    world.obliging = false;
    let come = |world: &mut World, name: ProcId| {
        let mut tool = hello(&name);
        tool.flavor = Flavor::NamedTool;
        let conn = world.open_as(UID + 1);
        world.bytes(conn, &tool.encode());
        !world.closed.contains(&conn)
    };
    assert!(come(&mut world, proc("visitor", 0)));
    let (call, op) = world.take_upcall();
    assert!(matches!(op, HostOp::ToolConnected(ToolRequest { uid, .. }) if uid == UID + 1), "{op:?}");
    world.answer(call, HostReply::ToolAdmitted(Ok(proc("visitor", 0))));
    assert!(!come(&mut world, proc("job", 0)), "it is another user's rank");
}

#[test]
fn a_connection_that_closes_while_it_shakes_hands_is_forgotten() {
    let mut world = World::with_job(1, 1);
    world.obliging = false;
    let conn = world.open_as(UID);
    world.bytes(conn, &hello(&proc("job", 0)).encode());
    world.input(Input::Closed { conn, reason: CloseReason::Error });
    let (id, _) = world.take_upcall();
    world.answer(id, HostReply::Done(Status::SUCCESS));
    assert!(world.client(conn).greeting().is_empty());
    world.obliging = true;
    let again = world.connect(0);
    assert_eq!(world.client(again).dialect, Dialect { release: Release::new(4, 2, 2), ..v41() });
}

#[test]
fn undecided_host_costs_only_that_connection() {
    let mut world = World::with_job(1, 2);
    world.obliging = false;
    let conn = world.open_as(UID);
    world.bytes(conn, &hello(&proc("job", 0)).encode());
    let (id, _) = world.take_upcall();
    world.advance(Duration::from_secs(29));
    assert!(!world.closed.contains(&conn));
    world.advance(Duration::from_secs(2));
    assert!(world.closed.contains(&conn));
    world.answer(id, HostReply::Done(Status::SUCCESS));
    world.obliging = true;
    world.connect(0);
    world.connect(1);
}

#[test]
fn all_processes_of_a_job_can_end_in_one_call() {
    let mut world = World::with_job(1, 2);
    let conns = [world.connect(0), world.connect(1)];
    let all = ProcId::new(&ns("job"), Rank::WILDCARD);
    assert_eq!(world.call(ServerCall::DeregisterClient(all)), ServerReturn::Done(Status::SUCCESS));
    assert!(conns.iter().all(|conn| world.closed.contains(conn)));
    let unknown = ProcId::new(&ns("unknown"), Rank::WILDCARD);
    let status = ServerReturn::Done(Status::ERR_NOT_FOUND);
    assert_eq!(world.call(ServerCall::DeregisterClient(unknown)), status);
}
