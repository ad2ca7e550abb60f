//! Pulled output: which readers get it, when the host may send more, and what a lossy reader loses.

use std::time::Duration;

use phalanx_spec::{IofChannel, Status, keys};
use phalanx_wire::cmd::iof::{
    DRESSED, DROPPED, Deregister, FORWARDED, Output, PIECE, Pull, PullReply, Push, TELLS_TAKEN, Taken,
};
use phalanx_wire::cmd::{Body, Request};
use phalanx_wire::frame::{TAG_IOF, encode_frame};
use phalanx_wire::{Blob, Info, InfoList, ProcId, Value};

use super::super::limits::FULL_PUSHES;
use super::world::{World, config, global, proc, v41};
use crate::host::{HostOp, HostReply, PullEnded};
use crate::machine::{CallId, ConnId, Input, Machine};
use crate::server::{OutputTo, ServerCall, ServerConfig, ServerReturn};

fn pull_of(sources: Vec<ProcId>, directives: Vec<Info>, handle: u64) -> Request {
    Request::IofPull(Pull { sources, directives, channels: IofChannel::STDOUT, handle })
}

fn pull(handle: u64) -> Request {
    pull_of(vec![proc("child", 0)], Vec::new(), handle)
}

fn stop(handle: u64) -> Request {
    Request::IofDeregister(Deregister { directives: Vec::new(), handle })
}

fn output(to: OutputTo, channel: IofChannel, data: &[u8]) -> ServerCall {
    ServerCall::Output { to, source: proc("child", 0), channel, data: data.into(), info: Vec::new() }
}

fn to_all(data: &[u8]) -> ServerCall {
    output(OutputTo::All, IofChannel::STDOUT, data)
}

const DONE: ServerReturn = ServerReturn::Done(Status::SUCCESS);
const NOBODY: ServerReturn = ServerReturn::Done(Status::ERR_NOT_FOUND);

/// Pulls, with a host that accepts. Returns the server's number.
fn accepted(world: &mut World, conn: ConnId, request: &Request) -> u64 {
    let tag = world.send(conn, request);
    let (id, op) = world.take_upcall();
    assert!(matches!(op, HostOp::IofPull(_)), "{op:?}");
    world.answer(id, HostReply::Done(Status::SUCCESS));
    let reply: PullReply = world.reply(conn, tag);
    assert_eq!(reply.status, Status::SUCCESS);
    reply.handle
}

fn drained(world: &mut World, conn: ConnId) {
    world.input(Input::Writable { conn, queued: 0 });
}

fn received(world: &World, conn: ConnId) -> Vec<Output> {
    let others = world.client(conn).others.iter();
    others
        .filter(|(tag, _)| *tag == TAG_IOF)
        .map(|(_, payload)| Output::decode(payload, v41()).unwrap())
        .collect()
}

fn is_done(world: &mut World, id: CallId) -> bool {
    world.returns.remove(&id).is_some_and(|result| {
        assert_eq!(result, DONE);
        true
    })
}

#[test]
fn output_goes_only_to_current_pulls() {
    let mut world = World::with_job(1, 2);
    let (a, b) = (world.connect(0), world.connect(1));
    assert_eq!(world.call(to_all(b"lost")), NOBODY);
    let handle = accepted(&mut world, a, &pull(33));
    assert_eq!(world.call(output(OutputTo::All, IofChannel::STDERR, b"not wanted")), NOBODY);
    let (id, early) = world.try_call(to_all(b"bytes"));
    assert_eq!(early, None, "the transport has it");
    drained(&mut world, a);
    assert!(is_done(&mut world, id));
    let expected = Output {
        source: proc("child", 0),
        channel: IofChannel::STDOUT,
        handle: 33,
        info: Vec::new(),
        data: b"bytes"[..].into(),
    };
    assert_eq!(received(&world, a), [expected]);

    assert_eq!(world.ask_status(b, &stop(handle)), Status::ERR_NOT_FOUND, "it is another's");
    let tag = world.send(a, &stop(handle));
    let (id, op) = world.take_upcall();
    assert_eq!(
        op,
        HostOp::IofStop(PullEnded { from: proc("job", 0), handle, directives: Vec::new(), died: false })
    );
    assert_eq!(world.try_call(to_all(b"rest")).1, None);
    world.answer(id, HostReply::Done(Status::SUCCESS));
    assert_eq!(world.status(a, tag), Status::SUCCESS);
    assert_eq!(world.call(to_all(b"late")), NOBODY);
    assert_eq!(received(&world, a).last().map(|o| o.data.clone()), Some(b"rest"[..].into()));

    // A refused pull leaves nothing behind; a pull whose connection closes is ended with the host.
    let tag = world.send(b, &pull(1));
    let (id, _) = world.take_upcall();
    world.answer(id, HostReply::Done(Status::ERR_NOT_SUPPORTED));
    assert_eq!(world.reply::<PullReply>(b, tag).status, Status::ERR_NOT_SUPPORTED);
    assert_eq!(world.call(to_all(b"nobody")), NOBODY);
    accepted(&mut world, b, &pull(2));
    world.close(b);
    let (_, op) = world.take_upcall();
    assert!(matches!(op, HostOp::IofStop(PullEnded { died: true, .. })));
}

#[test]
fn a_reader_that_goes_while_its_pull_ends_leaves_nothing() {
    let mut world = World::with_job(1, 1);
    let a = world.connect(0);
    let handle = accepted(&mut world, a, &pull(1));
    world.send(a, &stop(handle));
    let (call, _) = world.take_upcall();
    world.close(a);
    world.answer(call, HostReply::Done(Status::SUCCESS));
    let left = format!("{:?}", world.server);
    assert!(!left.contains("Farewell"), "{left}");
}

#[test]
fn a_pull_within_an_earlier_one_is_served_without_the_host() {
    let mut world = World::with_job(1, 2);
    let (a, b) = (world.connect(0), world.connect(1));
    let whole = accepted(&mut world, a, &pull_of(vec![ProcId::all(&proc("child", 0).nspace)], Vec::new(), 1));
    let within: PullReply = world.ask(b, &pull(2));
    assert_eq!(within.status, Status::SUCCESS);
    let id = world.try_call(output(OutputTo::Pull(whole), IofChannel::STDOUT, b"both")).0;
    drained(&mut world, a);
    assert!(!is_done(&mut world, id), "the other has not taken it");
    drained(&mut world, b);
    assert!(is_done(&mut world, id));
    assert_eq!((received(&world, a).len(), received(&world, b).len()), (1, 1));

    // Another mode, or earlier output, has to come from the host.
    let copy = vec![Info::new(keys::IOF_COPY, true)];
    let copied = accepted(&mut world, b, &pull_of(vec![proc("child", 0)], copy, 3));
    assert_ne!(copied, whole);
    let backlog = vec![Info::new(keys::IOF_CACHE_SIZE, 1024u32)];
    accepted(&mut world, b, &pull_of(vec![proc("child", 0)], backlog, 4));

    // The first pull ends; the host must continue for the second, until that ends, too.
    assert_eq!(world.ask_status(a, &stop(whole)), Status::SUCCESS);
    assert_eq!(world.try_call(output(OutputTo::Pull(whole), IofChannel::STDOUT, b"one")).1, None);
    assert_eq!((received(&world, a).len(), received(&world, b).len()), (1, 2));
    let tag = world.send(b, &stop(within.handle));
    let (id, op) = world.take_upcall();
    assert_eq!(
        op,
        HostOp::IofStop(PullEnded {
            from: proc("job", 1),
            handle: whole,
            directives: Vec::new(),
            died: false
        })
    );
    world.answer(id, HostReply::Done(Status::SUCCESS));
    assert_eq!(world.status(b, tag), Status::SUCCESS);
    assert_eq!(world.call(output(OutputTo::Pull(whole), IofChannel::STDOUT, b"late")), NOBODY);
}

#[test]
fn pulls_that_partly_overlap_get_each_byte_once() {
    let mut world = World::with_job(1, 1);
    let a = world.connect(0);
    let sources = |ranks: [u32; 2]| ranks.map(|rank| proc("child", rank)).to_vec();
    let first = accepted(&mut world, a, &pull_of(sources([0, 1]), Vec::new(), 1));
    let second = accepted(&mut world, a, &pull_of(sources([1, 2]), Vec::new(), 2));
    for (feeds, rank) in [(vec![first], 0), (vec![first, second], 1), (vec![second], 2)] {
        for feed in feeds {
            let to = OutputTo::Pull(feed);
            let data = rank.to_string().as_bytes().into();
            let (source, channel) = (proc("child", rank), IofChannel::STDOUT);
            world.try_call(ServerCall::Output { to, source, channel, data, info: Vec::new() });
            drained(&mut world, a);
        }
    }
    let got = |handle: u64| -> Vec<u32> {
        let of_pull = received(&world, a).into_iter().filter(|output| output.handle == handle);
        of_pull.map(|output| output.source.rank.0).collect()
    };
    assert_eq!((got(1), got(2)), (vec![0, 1], vec![1, 2]));
    // The end of one leaves the other as it is.
    let tag = world.send(a, &stop(first));
    let (id, _) = world.take_upcall();
    world.answer(id, HostReply::Done(Status::SUCCESS));
    assert_eq!(world.status(a, tag), Status::SUCCESS);
    let source = proc("child", 1);
    let (to, channel, data) = (OutputTo::Pull(second), IofChannel::STDOUT, b"more"[..].into());
    world.try_call(ServerCall::Output { to, source, channel, data, info: Vec::new() });
    drained(&mut world, a);
    let got: Vec<u64> = received(&world, a).iter().map(|output| output.handle).collect();
    assert_eq!(got, [1, 1, 2, 2, 2]);
}

#[test]
fn a_channel_that_is_not_there_is_refused_within_a_whole_pull() {
    let mut world = World::with_job(1, 2);
    let (a, b) = (world.connect(0), world.connect(1));
    let sources = || vec![ProcId::all(&proc("child", 0).nspace)];
    let of = |channels, handle| {
        Request::IofPull(Pull { sources: sources(), directives: Vec::new(), channels, handle })
    };
    let tag = world.send(a, &of(IofChannel::ALL, 1));
    let (id, _) = world.take_upcall();
    let forwarded = Info::new(FORWARDED, Value::Uint16(IofChannel::STDOUT.0));
    world.answer(id, HostReply::Infos(Status::SUCCESS, vec![forwarded]));
    assert_eq!(world.reply::<PullReply>(a, tag).status, Status::SUCCESS);
    for (handle, channels) in [(2, IofChannel::STDOUT), (3, IofChannel::ALL)] {
        assert_eq!(world.ask::<PullReply>(b, &of(channels, handle)).status, Status::SUCCESS);
    }
    let tag = world.send(b, &of(IofChannel::STDERR, 4));
    let (id, op) = world.take_upcall();
    assert!(matches!(op, HostOp::IofPull(_)), "{op:?}");
    world.answer(id, HostReply::Done(Status::ERR_NOT_AVAILABLE));
    assert_eq!(world.reply::<PullReply>(b, tag).status, Status::ERR_NOT_AVAILABLE);
}

#[test]
fn host_waits_only_for_living_readers() {
    let mut world = World::with_job(1, 2);
    let (a, b) = (world.connect(0), world.connect(1));
    accepted(&mut world, a, &pull(1));
    let _within: PullReply = world.ask(b, &pull(2));
    let piece = vec![7; 100_000];
    let ids: Vec<CallId> = (0..10).map(|_| world.try_call(to_all(&piece)).0).collect();
    // Each transport holds only this many; the rest is shared.
    assert_eq!((received(&world, a).len(), received(&world, b).len()), (2, 2));
    for _ in 0..10 {
        drained(&mut world, a);
    }
    assert_eq!((received(&world, a).len(), received(&world, b).len()), (10, 2));
    assert!(world.returns.is_empty());
    world.close(b);
    assert!(ids.into_iter().all(|id| is_done(&mut world, id)));

    // The host learns that output reached no reader.
    let id = world.try_call(to_all(&piece)).0;
    world.close(a);
    assert_eq!(world.returns.remove(&id), Some(NOBODY));
}

#[test]
fn lossy_readers_delay_nobody_and_learn_their_losses() {
    for oldest in [false, true] {
        let mut world = World::with_job(1, 1);
        let a = world.connect(0);
        let policy = if oldest { keys::IOF_DROP_OLDEST } else { keys::IOF_DROP_NEWEST };
        let directives = vec![Info::new(policy, true), Info::new(keys::IOF_CACHE_SIZE, 250_000u32)];
        accepted(&mut world, a, &pull_of(vec![proc("child", 0)], directives, 1));
        for n in 0..10 {
            assert_eq!(world.call(to_all(&[n; 100_000])), DONE);
        }
        assert_eq!(world.call(to_all(b"")), DONE, "the end is never lost");
        for _ in 0..5 {
            drained(&mut world, a);
        }
        let got: Vec<(Option<u8>, u64)> = received(&world, a)
            .iter()
            .map(|o| {
                (
                    o.data.as_bytes().first().copied(),
                    o.info.find(DROPPED).and_then(Value::as_u64).unwrap_or(0),
                )
            })
            .collect();
        let expected = if oldest {
            vec![(Some(0), 0), (Some(1), 0), (Some(8), 600_000), (Some(9), 0), (None, 0)]
        } else {
            vec![(Some(0), 0), (Some(1), 0), (Some(2), 0), (Some(3), 0), (None, 600_000)]
        };
        assert_eq!(got, expected, "oldest: {oldest}");
    }
}

fn take(world: &mut World, conn: ConnId, spans: &[(u64, u64)]) {
    let taken = Taken { spans: spans.to_vec(), held: Vec::new() };
    world.input(Input::Bytes { conn, data: &encode_frame(0, TAG_IOF, &taken.encode(v41())) });
}

fn piece(output: &Output) -> Option<u64> {
    output.info.find(PIECE).and_then(Value::as_u64)
}

#[test]
fn output_that_a_dead_reader_had_not_taken_is_not_lost() {
    let mut world = World::with_job(1, 1);
    let a = world.connect(0);
    let tells = vec![Info::new(TELLS_TAKEN, true)];
    accepted(&mut world, a, &pull_of(vec![proc("child", 0)], tells, 1));
    let ids: Vec<CallId> = (0..4).map(|n| world.try_call(to_all(&[n; 10])).0).collect();
    drained(&mut world, a);
    assert!(world.returns.is_empty(), "the transport is not the program");
    let pieces: Vec<u64> = received(&world, a).iter().filter_map(piece).collect();
    assert_eq!(pieces, [1, 2, 3, 4]);
    take(&mut world, a, &[(1, 1), (3, 3)]);
    assert!(is_done(&mut world, ids[0]) && is_done(&mut world, ids[2]));
    // Invalid reports are ignored.
    take(&mut world, a, &[(9, 5), (77, u64::MAX), (0, 1)]);
    world.input(Input::Bytes { conn: a, data: &encode_frame(0, TAG_IOF, b"?") });
    assert!(world.returns.is_empty());
    world.close(a);
    assert_eq!(world.returns.remove(&ids[1]), Some(NOBODY));
    assert_eq!(world.returns.remove(&ids[3]), Some(NOBODY));

    // What the reader of a copy has not taken is not waited for: the reader may be stopped, and its job must end all the
    // same.
    let mut world = World::with_job(1, 1);
    let a = world.connect(0);
    let wishes = vec![Info::new(TELLS_TAKEN, true), Info::new(keys::IOF_COPY, true)];
    accepted(&mut world, a, &pull_of(vec![proc("child", 0)], wishes, 1));
    let id = world.try_call(to_all(b"bytes")).0;
    drained(&mut world, a);
    assert!(is_done(&mut world, id));
}

#[test]
fn held_beginning_of_a_line_is_not_counted_as_taken() {
    let mut world = World::with_job(1, 1);
    let a = world.connect(0);
    let wishes = vec![tag(), Info::new(TELLS_TAKEN, true)];
    let handle = accepted(&mut world, a, &pull_of(vec![proc("child", 0)], wishes, 1));
    let first = world.try_call(to_all(b"one\ntw")).0;
    take(&mut world, a, &[(1, 1)]);
    let second = world.try_call(to_all(b"o")).0;
    assert!(world.returns.is_empty(), "half a line is here alone");
    world.try_call(to_all(b"!\n"));
    take(&mut world, a, &[(2, 2)]);
    assert!(is_done(&mut world, first) && is_done(&mut world, second));
    assert_eq!(text(&received(&world, a)), ["one\n", "two!\n"].map(|l| format!("[child,0]<stdout>: {l}")));
    world.returns.clear();
    // Bytes beyond the limit for one stream are not waited for, but are reported as held.
    let long: Vec<CallId> = (0..4).map(|_| world.try_call(to_all(&[b'x'; 5_000])).0).collect();
    assert_eq!(std::mem::take(&mut world.returns), [(long[0], ServerReturn::Held(5_000))].into());
    // Stopping the pull ends the wait for the end of a line.
    let end = world.send(a, &stop(handle));
    let held = [10_000, 15_000, 20_000].map(ServerReturn::Held);
    assert_eq!(world.returns, long[1..].iter().copied().zip(held).collect());
    let (id, _) = world.take_upcall();
    world.answer(id, HostReply::Done(Status::SUCCESS));
    assert_eq!(world.status(a, end), Status::SUCCESS);
    assert_eq!(received(&world, a).last().map(|output| output.data.len()), Some(20_000 + 19));
}

fn text(outputs: &[Output]) -> Vec<String> {
    outputs.iter().map(|output| String::from_utf8_lossy(output.data.as_bytes()).into_owned()).collect()
}

#[test]
fn a_reader_gets_its_output_in_the_form_that_it_asked_for() {
    let mut world = World::with_job(1, 2);
    let (a, b) = (world.connect(0), world.connect(1));
    let handle = accepted(&mut world, a, &pull_of(vec![proc("child", 0)], vec![tag()], 1));
    let _plain: PullReply = world.ask(b, &pull(2));
    let (id, early) = world.try_call(to_all(b"one\ntw"));
    assert_eq!(early, None);
    drained(&mut world, a);
    drained(&mut world, b);
    assert!(is_done(&mut world, id));
    assert_eq!(text(&received(&world, a)), ["[child,0]<stdout>: one\n"]);
    assert_eq!(text(&received(&world, b)), ["one\ntw"], "who asks for nothing gets it as it came");

    // Output that is held for a moment delays nothing, and leaves after a quiet time. Another reader has all of it.
    world.advance(Duration::from_secs(1));
    drained(&mut world, a);
    assert_eq!(text(&received(&world, a))[1..], ["[child,0]<stdout>: tw"]);
    let (id, early) = world.try_call(to_all(b"o\nend"));
    assert_eq!(early, None);
    drained(&mut world, a);
    drained(&mut world, b);
    assert!(is_done(&mut world, id));

    // The end of the pull releases the rest, before it is answered.
    let end = world.send(a, &stop(handle));
    drained(&mut world, a);
    assert_eq!(world.status(a, end), Status::SUCCESS);
    assert_eq!(text(&received(&world, a))[2..], ["o\n", "[child,0]<stdout>: end"]);
}

#[test]
fn early_output_has_the_form_known_by_then() {
    let mut world = World::configured(ServerConfig { output: vec![tag()], ..config() });
    let a = world.connect(0);
    let sent = world.send(a, &pull_of(vec![proc("child", 0)], Vec::new(), 1));
    let (id, _) = world.take_upcall();
    world.try_call(to_all(b"early\n"));
    let of_job = vec![Info::new(keys::IOF_TAG_OUTPUT, false), Info::new(keys::IOF_RANK_OUTPUT, true)];
    world.answer(id, HostReply::Infos(Status::SUCCESS, of_job));
    assert_eq!(world.reply::<PullReply>(a, sent).status, Status::SUCCESS);
    drained(&mut world, a);
    world.try_call(to_all(b"late\n"));
    assert_eq!(text(&received(&world, a)).concat(), "[child,0]<stdout>: early\n0: late\n");
}

#[test]
fn output_held_for_an_idle_reader_is_bounded() {
    let mut world = World::with_job(1, 1);
    let a = world.connect(0);
    let wishes = vec![tag(), Info::new(keys::IOF_COPY, true)];
    accepted(&mut world, a, &pull_of(vec![proc("child", 0)], wishes, 1));
    let mut open = Vec::new();
    for _ in 0..20 {
        let (id, early) = world.try_call(to_all(&[b'x'; 50_000]));
        open.extend(early.is_none().then_some(id));
        // It becomes a prompt, and is queued without having been waited for.
        world.advance(Duration::from_secs(1));
    }
    let waiting = open.iter().filter(|id| !world.returns.contains_key(id)).count();
    assert!(waiting >= 15, "only {waiting} of 20 pieces wait for the reader");
    for _ in 0..20 {
        drained(&mut world, a);
    }
    assert!(open.into_iter().all(|id| is_done(&mut world, id)));
    let bytes: usize = received(&world, a).iter().map(|output| output.data.len()).sum();
    assert_eq!(bytes, 20 * 50_000 + "[child,0]<stdout>: ".len());
}

#[test]
fn form_of_job_overrides_server_and_reader_overrides_both() {
    let defaults = vec![tag(), Info::new(keys::IOF_BUFFERING_SIZE, 1_000u32)];
    let mut world = World::configured(ServerConfig { output: defaults, ..config() });
    let a = world.connect(0);
    let own = vec![Info::new(keys::IOF_BUFFERING_SIZE, 0u32)];
    let sent = world.send(a, &pull_of(vec![proc("child", 0)], own, 1));
    let (id, _) = world.take_upcall();
    let of_job = vec![Info::new(keys::IOF_TAG_OUTPUT, false), Info::new(keys::IOF_RANK_OUTPUT, true)];
    world.answer(id, HostReply::Infos(Status::SUCCESS, of_job));
    let PullReply { status, style, .. } = world.reply(a, sent);
    assert_eq!((status, style), (Status::SUCCESS, vec![]));
    world.try_call(to_all(b"line\n"));
    assert_eq!(text(&received(&world, a)), ["0: line\n"]);

    // A reader that formats the output itself gets it unformatted, with the style; the job's files are up to the host.
    let itself = vec![tag(), Info::new(DRESSED, true), Info::new(keys::IOF_COPY, true)];
    let sent = world.send(a, &pull_of(vec![proc("child", 0)], itself, 2));
    let (id, _) = world.take_upcall();
    let of_job = vec![Info::new(keys::IOF_XML_OUTPUT, true), Info::new(keys::IOF_OUTPUT_TO_FILE, "of-job")];
    world.answer(id, HostReply::Infos(Status::SUCCESS, of_job));
    let PullReply { style, .. } = world.reply(a, sent);
    let levels =
        [tag(), Info::new(keys::IOF_BUFFERING_SIZE, 1_000u32), Info::new(keys::IOF_XML_OUTPUT, true)];
    assert_eq!(style, levels);
    drained(&mut world, a);
    world.try_call(to_all(b"piece"));
    let plain: Vec<Output> = received(&world, a).into_iter().filter(|output| output.handle == 2).collect();
    assert_eq!(text(&plain), ["piece"]);
}

#[test]
fn the_end_of_a_stream_comes_behind_what_was_held_of_it() {
    let mut world = World::with_job(1, 1);
    let a = world.connect(0);
    let directives = vec![Info::new(keys::IOF_BUFFERING_SIZE, 100u32)];
    accepted(&mut world, a, &pull_of(vec![proc("child", 0)], directives, 1));
    let (id, _) = world.try_call(to_all(b"few"));
    drained(&mut world, a);
    assert_eq!(world.returns.remove(&id), Some(ServerReturn::Held(3)), "nobody waits for what is collected");
    let (id, _) = world.try_call(to_all(b""));
    drained(&mut world, a);
    assert!(is_done(&mut world, id));
    assert_eq!(text(&received(&world, a)), ["few", ""]);

    // The reader of a copy has nothing that other readers lack.
    let copy = vec![Info::new(keys::IOF_BUFFERING_SIZE, 100u32), Info::new(keys::IOF_COPY, true)];
    let mut world = World::with_job(1, 1);
    let a = world.connect(0);
    accepted(&mut world, a, &pull_of(vec![proc("child", 0)], copy, 1));
    let (id, _) = world.try_call(to_all(b"few"));
    drained(&mut world, a);
    assert!(is_done(&mut world, id));
}

#[test]
fn the_host_learns_what_a_readers_library_holds() {
    let mut world = World::with_job(1, 2);
    let (a, b) = (world.connect(0), world.connect(1));
    let wishes = vec![Info::new(DRESSED, true), Info::new(TELLS_TAKEN, true)];
    accepted(&mut world, a, &pull_of(vec![proc("child", 0)], wishes.clone(), 1));
    let ids: Vec<CallId> = (0..3).map(|n| world.try_call(to_all(&[n; 10])).0).collect();
    let taken = Taken { spans: vec![(1, 1)], held: vec![(2, 4), (77, 1)] };
    world.input(Input::Bytes { conn: a, data: &encode_frame(0, TAG_IOF, &taken.encode(v41())) });
    assert!(is_done(&mut world, ids[0]));
    assert_eq!(world.returns.remove(&ids[1]), Some(ServerReturn::Held(4)));
    // If another reader has all of it, nothing is missing.
    let _within: PullReply = world.ask(b, &pull_of(vec![proc("child", 0)], wishes, 2));
    let both = world.try_call(to_all(b"both")).0;
    let held = Taken { spans: Vec::new(), held: vec![(4, 4)] };
    world.input(Input::Bytes { conn: a, data: &encode_frame(0, TAG_IOF, &held.encode(v41())) });
    assert!(world.returns.is_empty());
    take(&mut world, b, &[(1, 1)]);
    assert!(is_done(&mut world, both));
    world.close(a);
    assert_eq!(world.returns.remove(&ids[2]), Some(NOBODY));
}

#[test]
fn half_sent_delivery_counts_as_unread_at_death() {
    let mut world = World::with_job(1, 1);
    let a = world.connect(0);
    let wishes = vec![tag(), Info::new(TELLS_TAKEN, true)];
    accepted(&mut world, a, &pull_of(vec![proc("child", 0)], wishes, 1));
    let id = world.try_call(to_all(b"one\ntw")).0;
    take(&mut world, a, &[(1, 1)]);
    world.close(a);
    assert_eq!(world.returns.remove(&id), Some(NOBODY));
}

fn tag() -> Info {
    Info::new(keys::IOF_TAG_OUTPUT, true)
}

#[test]
fn input_is_the_hosts_to_deliver() {
    let mut world = World::with_job(1, 1);
    let a = world.connect(0);
    let push = Push { targets: vec![proc("child", 0)], directives: Vec::new(), data: Blob::default() };
    let tag = world.send(a, &Request::IofPush(push));
    let (id, op) = world.take_upcall();
    assert!(matches!(op, HostOp::PushStdin(push) if push.data.is_empty()));
    world.answer(id, HostReply::Done(Status::ERR_IOF_COMPLETE));
    assert_eq!(world.status(a, tag), Status::ERR_IOF_COMPLETE);
}

#[test]
fn requests_wait_while_pushed_input_is_not_taken() {
    let mut world = World::with_job(1, 1);
    let a = world.connect(0);
    let push = |bytes: usize| {
        let data = vec![7; bytes].into();
        Request::IofPush(Push { targets: vec![proc("child", 0)], directives: Vec::new(), data })
    };
    let tags: Vec<u32> = (0..4).map(|_| world.send(a, &push(FULL_PUSHES / 2 + 1))).collect();
    let behind = world.send(a, &Request::Commit(global("x", 1u32)));
    assert!(world.server.is_full(a));
    assert_eq!((world.asked.len(), world.client(a).order.len()), (2, 0), "the rest has not been looked at");
    let (first, _) = world.asked.remove(0);
    world.answer(first, HostReply::Done(Status::SUCCESS));
    assert_eq!(world.client(a).order, tags[..1]);
    assert!(world.server.is_full(a), "the third has taken its place");
    while !world.asked.is_empty() {
        let (id, _) = world.asked.remove(0);
        world.answer(id, HostReply::Done(Status::SUCCESS));
    }
    let order = &world.client(a).order;
    assert!(tags.iter().chain([&behind]).all(|tag| order.contains(tag)), "{order:?}");
    assert!(!world.server.is_full(a));
}
