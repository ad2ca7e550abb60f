//! Monitoring of processes by their heartbeats, and by files that they change.

use std::time::Duration;

use phalanx_spec::{DataType, Range, Rank, Status, keys};
use phalanx_wire::cmd::event::RegisterEvents;
use phalanx_wire::cmd::monitor::{Monitor, SILENT};
use phalanx_wire::cmd::{InfoReply, Request};
use phalanx_wire::frame::{TAG_HEARTBEAT, encode_frame};
use phalanx_wire::{DataArray, Info, InfoList, Value};

use super::world::{World, ns, proc};
use crate::host::HostReply;
use crate::machine::{ConnId, FileLook, Input};
use crate::server::ServerCall;

const CODE: Status = Status(-3000);

fn register(codes: &[Status], info: Vec<Info>) -> Request {
    Request::RegisterEvents(RegisterEvents { codes: codes.to_vec(), info })
}

fn heard(world: &World, conn: ConnId) -> usize {
    world.client(conn).events.len()
}

#[test]
fn missed_heartbeats_raise_the_chosen_event_once() {
    let mut world = World::with_job(1, 2);
    let (a, b) = (world.connect(0), world.connect(1));
    world.ask_status(b, &register(&[CODE], Vec::new()));
    let monitor = Monitor {
        what: Info::new(keys::MONITOR_HEARTBEAT, Value::Pointer),
        error: CODE,
        directives: vec![
            Info::new(keys::MONITOR_ID, "m"),
            Info::new(keys::MONITOR_HEARTBEAT_TIME, 5u32),
            Info::new(keys::MONITOR_HEARTBEAT_DROPS, 1u32),
        ],
    };
    let reply: InfoReply = world.ask(a, &Request::Monitor(monitor.clone()));
    assert_eq!(reply.status, Status::SUCCESS);
    let beat = encode_frame(0, TAG_HEARTBEAT, &[]);
    for _ in 0..4 {
        world.bytes(a, &beat);
        world.advance(Duration::from_secs(5));
    }
    assert_eq!(heard(&world, b), 0);
    world.advance(Duration::from_secs(5));
    assert_eq!(heard(&world, b), 0, "one may be missed");
    for _ in 0..3 {
        world.advance(Duration::from_secs(5));
    }
    assert_eq!(heard(&world, b), 1);
    assert_eq!(world.client(b).events[0].source, proc("job", 0));
    world.bytes(a, &beat);
    for _ in 0..4 {
        world.advance(Duration::from_secs(5));
    }
    assert_eq!(heard(&world, b), 2, "after a sign of life it counts anew");
    let what = Info::new(keys::MONITOR_CANCEL, "m");
    let cancel = Request::Monitor(Monitor { what, error: Status::SUCCESS, directives: Vec::new() });
    assert_eq!(world.ask::<InfoReply>(a, &cancel).status, Status::SUCCESS);
    world.ask::<InfoReply>(a, &Request::Monitor(monitor));
    world.close(a);
    for _ in 0..9 {
        world.advance(Duration::from_secs(5));
    }
    assert_eq!(heard(&world, b), 2, "nobody watches who has gone");
}

#[test]
fn cancelling_an_unknown_monitor_is_not_found() {
    let mut world = World::with_job(1, 1);
    let a = world.connect(0);
    let cancel = |id: Value| {
        let what = Info::new(keys::MONITOR_CANCEL, id);
        Request::Monitor(Monitor { what, error: Status::SUCCESS, directives: Vec::new() })
    };
    // The host may support more than heartbeats; if it does not, there is nothing to cancel.
    let no = Status::ERR_NOT_SUPPORTED;
    for (id, host, expected) in [
        (Value::from("m"), no, Status::ERR_NOT_FOUND),
        (Value::from("m"), Status::SUCCESS, Status::SUCCESS),
        (Value::from("m"), Status::ERR_NO_PERMISSIONS, Status::ERR_NO_PERMISSIONS),
        (Value::NullString, no, Status::SUCCESS),
    ] {
        let tag = world.send(a, &cancel(id.clone()));
        let (call, _) = world.take_upcall();
        world.answer(call, HostReply::Done(host));
        assert_eq!(world.reply::<InfoReply>(a, tag).status, expected, "{id:?}, the host says {host}");
    }
    assert_eq!(world.ask::<InfoReply>(a, &cancel(Value::from(5u32))).status, Status::ERR_BAD_PARAM);
}

/// A file of this size, last read and written at these times.
fn file(size: u64, accessed: i64, modified: i64) -> FileLook {
    FileLook { identity: (1, 1), size, accessed: (accessed, 0), modified: (modified, 0) }
}

fn watch(what: Value, directives: Vec<Info>) -> Request {
    let check = [Info::new(keys::MONITOR_ID, "m"), Info::new(keys::MONITOR_FILE_CHECK_TIME, 5u32)];
    let directives = check.into_iter().chain(directives).collect();
    Request::Monitor(Monitor {
        what: Info::new(keys::MONITOR_FILE, what),
        error: Status::SUCCESS,
        directives,
    })
}

/// A window passes, and all looks at files give this result.
fn window(world: &mut World, like: Option<FileLook>) {
    world.advance(Duration::from_secs(5));
    answer(world, like);
}

fn answer(world: &mut World, like: Option<FileLook>) {
    for (look, _) in std::mem::take(&mut world.looks) {
        world.input(Input::Looked { look, file: like });
    }
}

/// Two ranks, of which the first is watched by a file; both register for the alert.
fn watched(directives: Vec<Info>) -> (World, ConnId, ConnId) {
    let mut world = World::with_job(1, 2);
    let (a, b) = (world.connect(0), world.connect(1));
    for conn in [a, b] {
        world.ask_status(conn, &register(&[Status::MONITOR_FILE_ALERT], Vec::new()));
    }
    assert_eq!(world.ask::<InfoReply>(a, &watch("out".into(), directives)).status, Status::SUCCESS);
    assert_eq!(world.looks[0].1, "/proc/1/cwd/out");
    answer(&mut world, Some(file(0, 0, 0)));
    (world, a, b)
}

#[test]
fn a_file_that_no_longer_grows_is_reported_once() {
    let drops = Info::new(keys::MONITOR_FILE_DROPS, 1u32);
    let (mut world, a, b) = watched(vec![Info::new(keys::MONITOR_FILE_SIZE, true), drops]);
    for size in 1..5 {
        window(&mut world, Some(file(size, 0, 0)));
    }
    // Rewriting the file without growing it is no sign of life here; one look may be without.
    window(&mut world, Some(file(4, 9, 9)));
    assert_eq!(heard(&world, b), 0);
    for _ in 0..3 {
        window(&mut world, Some(file(4, 9, 9)));
    }
    assert_eq!((heard(&world, a), heard(&world, b)), (1, 1), "the watched process hears of it, too");
    let told = &world.client(b).events[0];
    assert_eq!((told.code, &told.source), (Status::MONITOR_FILE_ALERT, &proc("job", 0)));
    assert_eq!(told.info.find(keys::MONITOR_ID), Some(&"m".into()));
    assert_eq!(told.info.find(keys::MONITOR_FILE), Some(&"out".into()));
    assert_eq!(told.info.find(SILENT), Some(&10_000_u64.into()));
    window(&mut world, Some(file(5, 9, 9)));
    for _ in 0..2 {
        window(&mut world, Some(file(5, 9, 9)));
    }
    assert_eq!(heard(&world, b), 2, "after a sign of life it counts anew");
}

fn heartbeats(more: Vec<Info>) -> Request {
    let time = Info::new(keys::MONITOR_HEARTBEAT_TIME, 5u32);
    Request::Monitor(Monitor {
        what: Info::new(keys::MONITOR_HEARTBEAT, Value::Pointer),
        error: CODE,
        directives: [time].into_iter().chain(more).collect(),
    })
}

/// Two ranks, of which the first is watched by its heartbeats, and the second registers for the alert.
fn watched_by_heartbeats() -> (World, ConnId, ConnId) {
    let mut world = World::with_job(1, 2);
    let (a, b) = (world.connect(0), world.connect(1));
    world.ask_status(b, &register(&[CODE], Vec::new()));
    world.ask::<InfoReply>(a, &heartbeats(Vec::new()));
    (world, a, b)
}

#[test]
fn silence_counts_from_the_last_heartbeat() {
    let (mut world, a, b) = watched_by_heartbeats();
    world.advance(Duration::from_secs(4));
    world.bytes(a, &encode_frame(0, TAG_HEARTBEAT, &[]));
    world.advance(Duration::from_secs(1));
    world.advance(Duration::from_secs(5));
    assert_eq!(world.client(b).events[0].info.find(SILENT), Some(&6_000_u64.into()));
}

#[test]
fn a_paused_process_is_not_silent() {
    let (mut world, _, b) = watched_by_heartbeats();
    let pause = |is_paused| ServerCall::Paused { nspace: ns("job"), ranks: vec![Rank(0)], is_paused };
    world.call(pause(true));
    for _ in 0..4 {
        world.advance(Duration::from_secs(5));
    }
    assert_eq!(heard(&world, b), 0);
    world.call(pause(false));
    world.advance(Duration::from_secs(5));
    assert_eq!(heard(&world, b), 1, "now it is silent");
}

#[test]
fn an_alert_for_chosen_processes_reaches_them() {
    let mut world = World::with_job(1, 3);
    let [a, b, c] = [0, 1, 2].map(|rank| world.connect(rank));
    for conn in [b, c] {
        world.ask_status(conn, &register(&[CODE], Vec::new()));
    }
    let custom = Info::new(keys::RANGE, Value::Range(Range::CUSTOM));
    let refused: InfoReply = world.ask(a, &heartbeats(vec![custom.clone()]));
    assert_eq!(refused.status, Status::ERR_BAD_PARAM, "it would reach nobody");
    let audience = Info::new(keys::EVENT_CUSTOM_RANGE, proc("job", 2));
    world.ask::<InfoReply>(a, &heartbeats(vec![custom, audience]));
    world.advance(Duration::from_secs(5));
    assert_eq!((heard(&world, b), heard(&world, c)), (0, 1));
}

#[test]
fn relative_paths_begin_at_the_directory_of_the_process() {
    let mut world = World::with_job(1, 1);
    let a = world.connect(0);
    world.call(ServerCall::Started { nspace: ns("job"), pids: vec![(Rank(0), 70)] });
    let paths = DataArray { of: DataType::STRING, items: vec!["out".into(), "/out".into()] };
    world.ask::<InfoReply>(a, &watch(paths.into(), Vec::new()));
    let paths: Vec<&str> = world.looks.iter().map(|(_, path)| path.as_str()).collect();
    assert_eq!(paths, ["/proc/70/cwd/out", "/out"]);
}

#[test]
fn the_requester_chooses_which_changes_of_a_file_count() {
    let (size, access, modify) =
        (keys::MONITOR_FILE_SIZE, keys::MONITOR_FILE_ACCESS, keys::MONITOR_FILE_MODIFY);
    let old = Some(file(0, 0, 0));
    let replaced = Some(FileLook { identity: (1, 2), ..file(0, 0, 0) });
    for (key, like, alerts) in [
        (Some(size), Some(file(1, 0, 0)), 0),
        (Some(size), Some(file(0, 1, 1)), 1),
        (Some(access), Some(file(0, 1, 0)), 0),
        (Some(access), Some(file(1, 0, 1)), 1),
        (Some(modify), Some(file(0, 0, 1)), 0),
        (Some(modify), Some(file(1, 1, 0)), 1),
        (None, Some(file(0, 0, 1)), 0),
        (None, old, 1),
        (Some(size), replaced, 0),
        (Some(modify), None, 1),
    ] {
        let directives = key.map(|key| Info::new(key, true)).into_iter().collect();
        let (mut world, _, b) = watched(directives);
        window(&mut world, like);
        assert_eq!(heard(&world, b), alerts, "{key:?} {like:?}");
    }
}

#[test]
fn a_file_system_that_does_not_answer_is_asked_once() {
    let (mut world, _, b) = watched(Vec::new());
    for _ in 0..9 {
        world.advance(Duration::from_secs(5));
    }
    assert_eq!((world.looks.len(), heard(&world, b)), (1, 1));
    answer(&mut world, Some(file(0, 0, 7)));
    window(&mut world, Some(file(0, 0, 8)));
    assert_eq!(heard(&world, b), 1);
}

#[test]
fn several_files_are_watched_and_given_up_together() {
    let (mut world, a, b) = watched(Vec::new());
    let names = DataArray { of: DataType::STRING, items: vec!["x".into(), "y".into()] };
    assert_eq!(world.ask::<InfoReply>(a, &watch(names.into(), Vec::new())).status, Status::SUCCESS);
    answer(&mut world, None);
    let what = Info::new(keys::MONITOR_CANCEL, "m");
    let cancel = Request::Monitor(Monitor { what, error: Status::SUCCESS, directives: Vec::new() });
    assert_eq!(world.ask::<InfoReply>(a, &cancel).status, Status::SUCCESS);
    for _ in 0..3 {
        window(&mut world, None);
    }
    assert_eq!((world.looks.len(), heard(&world, b)), (0, 0));
    for wrong in [Value::Undef, "".into(), 7u32.into()] {
        assert_eq!(world.ask::<InfoReply>(a, &watch(wrong, Vec::new())).status, Status::ERR_BAD_PARAM);
    }
}
