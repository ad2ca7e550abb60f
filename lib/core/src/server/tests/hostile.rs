//! Peers that passed the handshake and then misbehave.

use phalanx_spec::{Command, Range, Status, keys};
use phalanx_wire::cmd::Request;
use phalanx_wire::cmd::event::RegisterEvents;
use phalanx_wire::codec::{Size, Writer};
use phalanx_wire::frame::{FIRST_REQUEST_TAG, encode_frame};
use phalanx_wire::{Info, Key, ProcId};

use super::world::{World, fence, get, global, key, proc, v41};
use crate::host::{ClientLost, CommitRefused, Event, HostOp};
use crate::machine::Input;
use crate::server::ServerCall;
use crate::server::limits::{MAX_QUEUED, MAX_REQUESTS};

fn payload(build: impl FnOnce(&mut Writer) -> &mut Writer) -> Vec<u8> {
    let mut writer = Writer::new(v41().format);
    build(&mut writer);
    writer.into_bytes()
}

#[test]
fn unreadable_requests_are_refused_and_the_connection_lives() {
    let mut world = World::with_job(1, 1);
    let a = world.connect(0);
    let unknown = payload(|to| to.put(&Command(99)));
    let tag = world.raw(a, &unknown);
    assert_eq!(world.status(a, tag), Status::ERR_NOT_SUPPORTED);
    let broken: [Vec<u8>; 5] = [
        Vec::new(),
        payload(|to| to.put(&Command::GETNB)),
        // 2^40 participants.
        payload(|to| to.put(&Command::FENCENB).put(&Size(1 << 40))),
        payload(|to| to.put(&Command::LOOKUPNB).put(&0u32).put(&Size(u64::MAX))),
        // A value of a type that does not exist: INFO list of one, key, flags, type 9999.
        {
            let mut bytes = payload(|to| to.put(&Command::PUBLISHNB).put(&0u32).put(&Size(1)));
            bytes.extend([2, 4, b'k', 0, 0, 0x8f, 0x4e, 1]);
            bytes
        },
    ];
    for bytes in &broken {
        let tag = world.raw(a, bytes);
        assert_eq!(world.status(a, tag), Status::ERR_UNPACK_FAILURE, "{bytes:?}");
    }
    assert_eq!(world.ask_status(a, &Request::Commit(global("x", "1"))), Status::SUCCESS);
}

#[test]
fn the_host_hears_once_why_a_commit_cannot_be_read() {
    let mut world = World::with_job(1, 1);
    let a = world.connect(0);
    for _ in 0..3 {
        let tag = world.raw(a, &payload(|to| to.put(&Command::COMMIT).put(&Size(7))));
        assert_eq!(world.status(a, tag), Status::ERR_UNPACK_FAILURE);
    }
    let refused = world.history.iter().filter_map(|op| match op {
        HostOp::CommitRefused(refused) => Some(refused),
        _ => None,
    });
    let [CommitRefused { proc: of, why }] = &refused.cloned().collect::<Vec<_>>()[..] else {
        panic!("{:?}", world.history)
    };
    assert!(*of == proc("job", 0) && why.starts_with("it cannot be read: "), "{why}");
}

#[test]
fn tags_that_mean_nothing_are_passed_over() {
    let mut world = World::with_job(1, 1);
    let a = world.connect(0);
    for tag in [0, 1, 2, 99] {
        world.bytes(a, &encode_frame(9, tag, b"whatever"));
    }
    assert!(world.client(a).order.is_empty());
    assert_eq!(world.ask_status(a, &Request::Finalize), Status::SUCCESS);
}

#[test]
fn a_claim_of_an_endless_message_ends_the_connection() {
    let mut world = World::with_job(1, 2);
    let (a, b) = (world.connect(0), world.connect(1));
    let waiting = world.send(b, &get(&proc("job", 0), "x", Vec::new()));
    let mut header = encode_frame(0, FIRST_REQUEST_TAG, &[]);
    header[8..12].copy_from_slice(&u32::MAX.to_be_bytes());
    world.bytes(a, &header);
    assert!(world.closed.contains(&a));
    let why =
        "it sent a message of 4294967295 bytes; no more than 268435456 are accepted, so commit less at once";
    let cut_off = Some(why.to_owned());
    assert_eq!(world.history.last(), Some(&HostOp::ClientLost(ClientLost { proc: proc("job", 0), cut_off })));
    assert_eq!(world.status(b, waiting), Status::ERR_NOT_FOUND);
    world.bytes(a, b"what comes after the end is nobody's");
    world.close(a);
}

#[test]
fn messages_in_pieces_and_in_one_piece_are_the_same() {
    let mut world = World::with_job(1, 1);
    let a = world.connect(0);
    let stream = |tags: std::ops::Range<u32>| -> Vec<u8> {
        let commit = |tag| Request::Commit(global(&format!("k{tag}"), "value")).encode(v41());
        tags.flat_map(|tag| encode_frame(0, tag, &commit(tag))).collect()
    };
    for byte in stream(200..210) {
        world.bytes(a, &[byte]);
    }
    world.bytes(a, &stream(210..220));
    assert_eq!(world.client(a).order, (200..220).collect::<Vec<u32>>());
}

#[test]
fn peer_that_does_not_read_is_given_up_alone() {
    let mut world = World::with_job(1, 2);
    let (a, b) = (world.connect(0), world.connect(1));
    let code = Status(-3000);
    let register = RegisterEvents { codes: vec![code], info: Vec::new() };
    world.ask_status(b, &Request::RegisterEvents(register));
    let text = "x".repeat(1 << 19);
    let info = vec![Info::new(keys::EVENT_TEXT_MESSAGE, text.as_str())];
    let raised = Event { code, source: proc("job", 0), range: Range::NAMESPACE, info };
    for _ in 0..=MAX_QUEUED >> 19 {
        assert!(!world.closed.contains(&b));
        world.call(ServerCall::Notify(raised.clone()));
    }
    assert!(world.closed.contains(&b));
    let cut_off = Some(format!("it does not read: more than {MAX_QUEUED} bytes wait for it"));
    assert!(world.history.contains(&HostOp::ClientLost(ClientLost { proc: proc("job", 1), cut_off })));
    assert_eq!(world.ask_status(a, &Request::Finalize), Status::SUCCESS);
    // A peer that catches up in time is kept.
    let mut world = World::with_job(1, 1);
    let a = world.connect(0);
    world.input(Input::Writable { conn: a, queued: MAX_QUEUED + 1 });
    let tag = world.send(a, &Request::Finalize);
    assert!(!world.has_reply(a, tag), "it has to read first");
    world.input(Input::Writable { conn: a, queued: 0 });
    assert_eq!(world.status(a, tag), Status::SUCCESS);
}

#[test]
fn requests_wait_while_answers_are_not_read() {
    let mut world = World::with_job(1, 2);
    let (a, b) = (world.connect(0), world.connect(1));
    let early = world.send(b, &get(&proc("job", 0), "x", Vec::new()));
    let second = world.send(b, &get(&proc("job", 0), "x", Vec::new()));
    let big = phalanx_wire::Value::ByteObject(vec![0; 4 << 20].into());
    world.ask_status(a, &Request::Commit(global("x", big)));
    let wanted = get(&proc("job", 0), "x", Vec::new());
    let mut tags = vec![early, second];
    tags.extend((0..100).map(|_| world.send(b, &wanted)));
    // The gets that waited for the commit, and those that were sent later.
    for answered in 1..=tags.len() {
        let has = |tag: &&u32| world.has_reply(b, **tag);
        assert_eq!(tags.iter().filter(has).count(), answered, "each answer is full");
        world.input(Input::Writable { conn: b, queued: 0 });
    }
    assert!(world.closed.is_empty());
}

#[test]
fn requests_without_answer_are_bounded() {
    let mut world = World::with_job(1, 2);
    let a = world.connect(0);
    world.connect(1);
    let wait = get(&proc("job", 1), "x", Vec::new()).encode(v41());
    let mut stream = Vec::new();
    for tag in 0..=MAX_REQUESTS as u32 {
        stream.extend(encode_frame(0, FIRST_REQUEST_TAG + 1 + tag, &wait));
    }
    world.bytes(a, &stream);
    let refused = &world.client(a).order;
    assert_eq!(refused, &[FIRST_REQUEST_TAG + 1 + MAX_REQUESTS as u32]);
    assert_eq!(world.status(a, refused[0]), Status::ERR_OUT_OF_RESOURCE);
    world.close(a);
    assert!(world.server.explain().is_empty());
}

#[test]
fn long_names_and_odd_ranks_are_only_names_and_ranks() {
    let mut world = World::with_job(1, 1);
    let a = world.connect(0);
    let long = Key::new(&"k".repeat(511)).unwrap();
    assert_eq!(world.ask_status(a, &Request::Commit(global(long.as_str(), "1"))), Status::SUCCESS);
    for rank in [1, 0x7fff_ffff, u32::MAX - 10, u32::MAX - 3] {
        let target = proc("job", rank);
        assert_eq!(world.ask_status(a, &get(&target, "x", Vec::new())), Status::ERR_NOT_FOUND, "{rank:x}");
        let strange = fence(vec![proc("job", 0), target], Vec::new());
        world.send(a, &strange);
    }
    let own =
        get(&ProcId::new(&phalanx_wire::Nspace::none(), phalanx_spec::Rank(0)), long.as_str(), Vec::new());
    let tag = world.send(a, &own);
    assert_eq!(world.value(a, tag, long.as_str()), Some("1".into()), "no namespace is one's own");
    assert_eq!(key("k").as_str(), "k");
}
