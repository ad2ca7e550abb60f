use std::time::Duration;

use phalanx_spec::{DataType, Range, Status, keys};
use phalanx_wire::cmd::Request;
use phalanx_wire::cmd::event::{DeregisterEvents, Notify, RegisterEvents};
use phalanx_wire::{Blob, DataArray, Info, ProcId, Value};

use super::world::{World, job, ns, proc};
use crate::host::{Event, EventsRequest, HostOp, HostReply};
use crate::machine::ConnId;
use crate::server::limits::{MAX_CACHED_EVENTS, MAX_EVENT_BYTES, MAX_REGISTRATIONS};
use crate::server::{ServerCall, ServerReturn};

const CODE: Status = Status(-3000);

fn register(codes: &[Status], info: Vec<Info>) -> Request {
    Request::RegisterEvents(RegisterEvents { codes: codes.to_vec(), info })
}

fn notify(range: Range, info: Vec<Info>) -> Request {
    Request::Notify(Notify { code: CODE, range, info })
}

fn event(source: ProcId, range: Range, info: Vec<Info>) -> ServerCall {
    ServerCall::Notify(Event { code: CODE, source, range, info })
}

fn procs(procs: &[ProcId]) -> DataArray {
    DataArray { of: DataType::PROC, items: procs.iter().cloned().map(Value::Proc).collect() }
}

fn heard(world: &World, conn: ConnId) -> usize {
    world.client(conn).events.len()
}

#[test]
fn registered_processes_get_an_event_once_its_source_never() {
    let mut world = World::with_job(1, 4);
    let ranks: Vec<ConnId> = (0..4).map(|rank| world.connect(rank)).collect();
    world.ask_status(ranks[0], &register(&[CODE], Vec::new()));
    world.ask_status(ranks[1], &register(&[CODE], Vec::new()));
    world.ask_status(ranks[1], &register(&[], Vec::new()));
    world.ask_status(ranks[2], &register(&[Status(-3001)], Vec::new()));
    let info = vec![Info::new(keys::EVENT_TEXT_MESSAGE, "hello")];
    assert_eq!(world.ask_status(ranks[0], &notify(Range::NAMESPACE, info.clone())), Status::SUCCESS);
    assert_eq!(ranks.iter().map(|conn| heard(&world, *conn)).collect::<Vec<_>>(), [0, 1, 0, 0]);
    let told = &world.client(ranks[1]).events[0];
    assert_eq!((told.code, &told.source, told.range), (CODE, &proc("job", 0), Some(Range::NAMESPACE)));
    assert_eq!(told.info, info);
    let raised = Event { code: CODE, source: proc("job", 0), range: Range::NAMESPACE, info };
    assert_eq!(world.history.last(), Some(&HostOp::Notify(raised)), "others may be elsewhere");
}

#[test]
fn range_decides_visibility_and_travel() {
    let cases: [(Range, Vec<Info>, [usize; 3], bool); 8] = [
        (Range::RM, Vec::new(), [0, 0, 0], true),
        (Range::LOCAL, Vec::new(), [0, 1, 1], false),
        (Range::NAMESPACE, Vec::new(), [0, 1, 0], true),
        (Range::SESSION, Vec::new(), [0, 1, 1], true),
        (Range::GLOBAL, Vec::new(), [0, 1, 1], true),
        (Range::CUSTOM, vec![Info::new(keys::EVENT_CUSTOM_RANGE, proc("other", 0))], [0, 0, 1], true),
        (
            Range::CUSTOM,
            vec![Info::new(keys::EVENT_CUSTOM_RANGE, procs(&[ProcId::all(&ns("job"))]))],
            [0, 1, 0],
            true,
        ),
        (Range::PROC_LOCAL, Vec::new(), [0, 0, 0], false),
    ];
    for (range, info, expected, leaves) in cases {
        let mut world = World::with_job(1, 2);
        world.register(job("other", 1, 1));
        let ranks =
            [world.connect(0), world.connect(1), world.connect_as(&proc("other", 0), super::world::v41())];
        for conn in ranks {
            world.ask_status(conn, &register(&[CODE], Vec::new()));
        }
        assert_eq!(world.ask_status(ranks[0], &notify(range, info)), Status::SUCCESS);
        assert_eq!(ranks.map(|conn| heard(&world, conn)), expected, "{range}");
        let left = world.history.iter().any(|op| matches!(op, HostOp::Notify(_)));
        assert_eq!(left, leaves, "{range}");
    }
    let mut world = World::with_job(1, 1);
    let a = world.connect(0);
    assert_eq!(world.ask_status(a, &notify(Range::INVALID, Vec::new())), Status::ERR_BAD_PARAM);
}

#[test]
fn default_handlers_are_spared_what_asks_for_it() {
    let mut world = World::with_job(1, 2);
    let (a, b) = (world.connect(0), world.connect(1));
    world.ask_status(b, &register(&[], Vec::new()));
    world.ask_status(a, &notify(Range::LOCAL, vec![Info::new(keys::EVENT_NON_DEFAULT, true)]));
    assert_eq!(heard(&world, b), 0);
    world.ask_status(a, &notify(Range::LOCAL, Vec::new()));
    assert_eq!(heard(&world, b), 1);
}

#[test]
fn registration_may_name_affected_processes() {
    let mut world = World::with_job(1, 2);
    let (a, b) = (world.connect(0), world.connect(1));
    let other = ProcId::all(&ns("child"));
    world.ask_status(b, &register(&[CODE], vec![Info::new(keys::EVENT_AFFECTED_PROC, other)]));
    let affecting = |whom: ProcId| notify(Range::LOCAL, vec![Info::new(keys::EVENT_AFFECTED_PROC, whom)]);
    world.ask_status(a, &affecting(proc("job", 0)));
    assert_eq!(heard(&world, b), 0);
    world.ask_status(a, &affecting(proc("child", 3)));
    assert_eq!(heard(&world, b), 1);
    let several = vec![Info::new(keys::EVENT_AFFECTED_PROCS, procs(&[proc("x", 1), proc("child", 0)]))];
    world.ask_status(a, &notify(Range::LOCAL, several));
    assert_eq!(heard(&world, b), 2);
    // A second registration of the same code widens the first, and brings the missed events.
    world.ask_status(b, &register(&[CODE], Vec::new()));
    assert_eq!(heard(&world, b), 3);
    world.ask_status(a, &affecting(proc("job", 0)));
    assert_eq!(heard(&world, b), 4);
}

#[test]
fn the_host_knows_which_codes_are_wanted_and_no_more_than_once() {
    let mut world = World::with_job(1, 2);
    let (a, b) = (world.connect(0), world.connect(1));
    let seen = |world: &World| {
        let told = |op: &HostOp| match op {
            HostOp::RegisterEvents(EventsRequest { codes, .. }) => Some((true, codes.clone())),
            HostOp::DeregisterEvents(EventsRequest { codes, .. }) => Some((false, codes.clone())),
            _ => None,
        };
        world.history.iter().filter_map(told).collect::<Vec<_>>()
    };
    world.ask_status(a, &register(&[CODE, Status(-4000)], Vec::new()));
    world.ask_status(b, &register(&[CODE], Vec::new()));
    world.ask_status(b, &register(&[], Vec::new()));
    let mut expected = vec![(true, vec![CODE, Status(-4000)]), (true, Vec::new())];
    assert_eq!(seen(&world), expected);
    // Never answered, whatever it holds.
    let before = world.client(a).order.len();
    world.send(a, &Request::DeregisterEvents(DeregisterEvents { codes: vec![CODE, Status(-4000)] }));
    world.raw(a, &[2, 14, 0xff]);
    assert_eq!(world.client(a).order.len(), before);
    expected.push((false, vec![Status(-4000)]));
    assert_eq!(seen(&world), expected);
    world.send(b, &Request::DeregisterEvents(DeregisterEvents { codes: vec![Status(i32::MIN)] }));
    expected.push((false, Vec::new()));
    assert_eq!(seen(&world), expected);
    world.close(b);
    expected.push((false, vec![CODE]));
    assert_eq!(seen(&world), expected);
}

#[test]
fn registration_is_answered_after_the_hosts_word() {
    let mut world = World::with_job(1, 2);
    let (a, b) = (world.connect(0), world.connect(1));
    world.obliging = false;
    let tag = world.send(a, &register(&[CODE], Vec::new()));
    assert!(!world.has_reply(a, tag));
    let (id, _) = world.take_upcall();
    world.answer(id, HostReply::Done(Status::ERR_NOT_SUPPORTED));
    assert_eq!(world.status(a, tag), Status::SUCCESS);
    world.ask_status(b, &notify(Range::LOCAL, Vec::new()));
    assert_eq!(heard(&world, a), 1);
    let tag = world.send(b, &notify(Range::GLOBAL, Vec::new()));
    let (id, _) = world.take_upcall();
    world.answer(id, HostReply::Done(Status::ERR_NOT_SUPPORTED));
    assert_eq!(world.status(b, tag), Status::ERR_NOT_SUPPORTED);
    assert_eq!(heard(&world, a), 2);
}

#[test]
fn events_of_the_host_are_delivered_and_not_sent_back() {
    let mut world = World::with_job(1, 2);
    let (a, b) = (world.connect(0), world.connect(1));
    world.ask_status(a, &register(&[CODE], Vec::new()));
    world.ask_status(b, &register(&[CODE], Vec::new()));
    let before = world.history.len();
    let call = event(proc("job", 0), Range::NAMESPACE, Vec::new());
    assert_eq!(world.call(call), ServerReturn::Done(Status::SUCCESS));
    assert_eq!((heard(&world, a), heard(&world, b)), (0, 1));
    world.call(event(proc("phalanx", 0), Range::SESSION, Vec::new()));
    assert_eq!((heard(&world, a), heard(&world, b)), (1, 2));
    assert_eq!(world.history.len(), before);
}

#[test]
fn recent_events_follow_the_answer_to_a_registration() {
    let mut world = World::with_job(1, 3);
    let (a, b) = (world.connect(0), world.connect(1));
    world.ask_status(a, &notify(Range::NAMESPACE, vec![Info::new(keys::EVENT_TEXT_MESSAGE, "kept")]));
    world.ask_status(a, &notify(Range::NAMESPACE, vec![Info::new(keys::EVENT_DO_NOT_CACHE, true)]));
    world.ask_status(a, &notify(Range::RM, Vec::new()));
    let data = world.send(b, &Request::JobData);
    let tag = world.send(b, &register(&[CODE], Vec::new()));
    assert_eq!(world.client(b).order, [data, tag, 0]);
    // No peer gets it again, and the source does not get it.
    world.ask_status(b, &register(&[Status(-1)], Vec::new()));
    world.ask_status(b, &register(&[], Vec::new()));
    world.ask_status(a, &register(&[CODE], Vec::new()));
    assert_eq!((heard(&world, a), heard(&world, b)), (0, 1));
    world.advance(Duration::from_secs(121));
    let c = world.connect(2);
    world.ask_status(c, &register(&[CODE], Vec::new()));
    assert_eq!(heard(&world, c), 0, "old news");
}

#[test]
fn complete_checkpoints_reach_the_host_whatever_their_range() {
    let mut world = World::with_job(1, 1);
    let a = world.connect(0);
    let code = Status::JCTRL_CHECKPOINT_COMPLETE;
    world.ask_status(a, &Request::Notify(Notify { code, range: Range::LOCAL, info: Vec::new() }));
    assert!(matches!(world.history.last(), Some(HostOp::Notify(event)) if event.code == code));
}

#[test]
fn jobs_do_not_get_events_from_before_they_were_registered() {
    let mut world = World::with_job(1, 3);
    let a = world.connect(0);
    let later = vec![Info::new(keys::EVENT_CUSTOM_RANGE, proc("later", 0))];
    for range in [Range::UNDEF, Range::LOCAL, Range::SESSION, Range::GLOBAL] {
        world.ask_status(a, &notify(range, Vec::new()));
    }
    // It is named.
    world.ask_status(a, &notify(Range::CUSTOM, later));
    world.advance(Duration::from_secs(1));
    world.register(job("later", 1, 1));
    let (b, c) = (world.connect(1), world.connect_as(&proc("later", 0), super::world::v41()));
    for conn in [b, c] {
        world.ask_status(conn, &register(&[CODE], Vec::new()));
    }
    assert_eq!([b, c].map(|conn| heard(&world, conn)), [4, 1]);
    world.ask_status(a, &notify(Range::GLOBAL, Vec::new()));
    assert_eq!([b, c].map(|conn| heard(&world, conn)), [5, 2]);
    // What is registered anew is no new job.
    world.call(ServerCall::RegisterNspace(Box::new(job("job", 1, 3))));
    let d = world.connect(2);
    world.ask_status(d, &register(&[CODE], Vec::new()));
    assert_eq!(heard(&world, d), 5);
}

#[test]
fn a_process_that_reconnects_gets_only_events_it_missed() {
    let mut world = World::with_job(1, 2);
    let (a, b) = (world.connect(0), world.connect(1));
    world.ask_status(b, &register(&[CODE], Vec::new()));
    world.ask_status(a, &notify(Range::NAMESPACE, Vec::new()));
    assert_eq!(heard(&world, b), 1);
    world.ask_status(b, &Request::Finalize);
    world.close(b);
    world.ask_status(a, &notify(Range::NAMESPACE, Vec::new()));
    let b = world.connect(1);
    world.ask_status(b, &register(&[CODE], Vec::new()));
    assert_eq!(heard(&world, b), 1, "the second event, not the first");
}

#[test]
fn kept_events_are_bounded() {
    let mut world = World::with_job(1, 2);
    let (a, b) = (world.connect(0), world.connect(1));
    for _ in 0..MAX_CACHED_EVENTS + 10 {
        world.ask_status(a, &notify(Range::LOCAL, Vec::new()));
    }
    let big = |bytes| Info::new(keys::EVENT_TEXT_MESSAGE, Value::ByteObject(Blob::from(vec![0; bytes])));
    let told = world.ask_status(a, &notify(Range::LOCAL, vec![big(MAX_EVENT_BYTES / 2)]));
    assert_eq!(told, Status::SUCCESS, "told, but not kept");
    let refused = world.ask_status(a, &notify(Range::LOCAL, vec![big(MAX_EVENT_BYTES)]));
    assert_eq!(refused, Status::ERR_OUT_OF_RESOURCE);
    world.ask_status(b, &register(&[CODE], Vec::new()));
    assert_eq!(heard(&world, b), MAX_CACHED_EVENTS);
    let codes: Vec<Status> = (0..).map(Status).take(MAX_REGISTRATIONS + 1).collect();
    assert_eq!(world.ask_status(b, &register(&codes, Vec::new())), Status::ERR_OUT_OF_RESOURCE);
}

#[test]
fn process_sets_are_announced_here() {
    let mut world = World::with_job(1, 1);
    let a = world.connect(0);
    world.ask_status(a, &register(&[Status::PROCESS_SET_DEFINE, Status::PROCESS_SET_DELETE], Vec::new()));
    let before = world.history.len();
    let members = vec![proc("job", 0), proc("far", 9)];
    let define = ServerCall::DefineProcessSet { name: "s".into(), members: members.clone() };
    assert_eq!(world.call(define.clone()), ServerReturn::Done(Status::SUCCESS));
    assert_eq!(world.call(define), ServerReturn::Done(Status::ERR_EXISTS));
    let delete = ServerCall::DeleteProcessSet { name: "s".into() };
    assert_eq!(world.call(delete.clone()), ServerReturn::Done(Status::SUCCESS));
    assert_eq!(world.call(delete), ServerReturn::Done(Status::ERR_NOT_FOUND));
    let told = &world.client(a).events;
    assert_eq!(told.len(), 2);
    let expected = vec![Info::new(keys::PSET_NAME, "s"), Info::new(keys::PSET_MEMBERS, procs(&members))];
    assert_eq!((told[0].code, &told[0].info), (Status::PROCESS_SET_DEFINE, &expected));
    assert_eq!(world.history.len(), before, "every server is told by its own host");
}

fn announce(whom: ProcId, concerned: &[&str]) -> ServerCall {
    let info =
        vec![Info::new(keys::EVENT_AFFECTED_PROC, whom.clone()), Info::new(keys::EVENT_NON_DEFAULT, true)];
    let event = Event { code: CODE, source: whom, range: Range::SESSION, info };
    let concerned = Some(concerned.iter().map(|name| ns(name)).collect());
    ServerCall::Announce { event, number: 1, concerned, ago: None }
}

fn announce_late(whom: ProcId, concerned: &[&str], seconds: u64) -> ServerCall {
    let ServerCall::Announce { event, concerned, .. } = announce(whom, concerned) else { unreachable!() };
    ServerCall::Announce { event, number: 1, concerned, ago: Some(Duration::from_secs(seconds)) }
}

#[test]
fn recurring_events_are_not_taken_for_repeated_ones() {
    let mut world = World::with_job(1, 2);
    let a = world.connect(0);
    world.ask_status(a, &register(&[CODE], Vec::new()));
    // Two ranks at one time, then one of them again; all in the name of their job, and each announced twice.
    for (number, rank) in [(1, 4), (1, 5), (2, 4), (1, 4), (1, 5), (2, 4)] {
        let info = vec![Info::new(keys::EVENT_AFFECTED_PROC, proc("job", rank))];
        let source = ProcId::all(&ns("job"));
        let event = Event { code: CODE, source, range: Range::SESSION, info };
        let (concerned, ago) = (Some(vec![ns("job")]), Some(Duration::ZERO));
        world.call(ServerCall::Announce { event, number, concerned, ago });
    }
    assert_eq!(world.client(a).events.len(), 3);
}

#[test]
fn a_late_announcement_obeys_the_rule_of_its_time() {
    let mut world = World::with_job(1, 4);
    world.register(job("stranger", 1, 1));
    let early = world.connect(0);
    let stranger = world.connect_as(&proc("stranger", 0), super::world::v41());
    world.advance(Duration::from_secs(10));
    let (late, naming) = (world.connect(1), world.connect(2));
    let ended = ProcId::all(&ns("gone"));
    for conn in [early, late, stranger] {
        world.ask_status(conn, &register(&[CODE], Vec::new()));
    }
    let named = vec![Info::new(keys::EVENT_AFFECTED_PROC, ended.clone())];
    world.ask_status(naming, &register(&[CODE], named.clone()));
    // It happened when only the first two were connected; each gets it once, however often it is announced.
    for _ in 0..2 {
        world.call(announce_late(ended.clone(), &["job"], 5));
    }
    assert_eq!([early, late, naming, stranger].map(|conn| heard(&world, conn)), [1, 0, 1, 0]);
    // A later registration that names it gets the kept event.
    let last = world.connect(3);
    world.ask_status(last, &register(&[CODE], named));
    assert_eq!(heard(&world, last), 1);
    // An event that is too old is not delivered.
    let older = ProcId::all(&ns("older"));
    world.call(announce_late(older.clone(), &["job"], 1000));
    assert_eq!(heard(&world, early), 1);
}

#[test]
fn announcements_reach_concerned_jobs_and_handlers_naming_them() {
    let mut world = World::with_job(1, 2);
    world.register(job("kin", 1, 1));
    world.register(job("stranger", 1, 2));
    let v41 = super::world::v41;
    let default = world.connect(0);
    let own = world.connect(1);
    let kin = world.connect_as(&proc("kin", 0), v41());
    let stranger = world.connect_as(&proc("stranger", 0), v41());
    let naming = world.connect_as(&proc("stranger", 1), v41());
    world.ask_status(default, &register(&[], Vec::new()));
    for conn in [own, kin, stranger] {
        world.ask_status(conn, &register(&[CODE], Vec::new()));
    }
    let ended = ProcId::all(&ns("job"));
    let named = vec![Info::new(keys::EVENT_AFFECTED_PROC, ended.clone())];
    world.ask_status(naming, &register(&[CODE], named));
    assert_eq!(world.call(announce(ended, &["job", "kin"])), ServerReturn::Done(Status::SUCCESS));
    let all = [default, own, kin, stranger, naming];
    assert_eq!(all.map(|conn| heard(&world, conn)), [0, 1, 1, 0, 1]);
}

#[test]
fn announcements_are_not_repeated_to_later_clients() {
    let mut world = World::with_job(1, 4);
    let early = world.connect(0);
    world.advance(Duration::from_secs(1));
    let ended = ProcId::all(&ns("gone"));
    world.call(announce(ended.clone(), &["job"]));
    world.advance(Duration::from_secs(1));
    let (late, naming) = (world.connect(1), world.connect(2));
    for conn in [early, late] {
        world.ask_status(conn, &register(&[CODE], Vec::new()));
    }
    world.ask_status(naming, &register(&[CODE], vec![Info::new(keys::EVENT_AFFECTED_PROC, ended)]));
    assert_eq!([early, late, naming].map(|conn| heard(&world, conn)), [1, 0, 1]);
}

#[test]
fn late_listeners_hear_events_in_the_order_of_their_time() {
    let mut world = World::with_job(1, 3);
    world.register(job("gone", 1, 1));
    let end = Status(CODE.0 - 1);
    let announce_as = |code: Status, number: u64, ago: Option<Duration>| {
        let whom = ProcId::all(&ns("gone"));
        let ServerCall::Announce { mut event, concerned, .. } = announce(whom, &[]) else { unreachable!() };
        event.code = code;
        ServerCall::Announce { event, number, concerned, ago }
    };
    let named = || vec![Info::new(keys::EVENT_AFFECTED_PROC, ProcId::all(&ns("gone")))];
    let (early, a, b) = (world.connect(0), world.connect(1), world.connect(2));
    let codes = |world: &World, conn| world.client(conn).events.iter().map(|e| e.code).collect::<Vec<_>>();
    // When it all happens, at one moment, only the end of the job is wanted here.
    world.ask_status(early, &register(&[end], named()));
    world.call(announce_as(end, 7, None));
    world.obliging = false;
    let asked = [a, b].map(|conn| {
        world.send(conn, &register(&[CODE, end], named()));
        let (upcall, op) = world.take_upcall();
        assert!(matches!(op, HostOp::RegisterEvents(asked) if asked.codes == [CODE, end]), "both wait");
        upcall
    });
    world.call(announce_as(CODE, 5, Some(Duration::ZERO)));
    assert_eq!([a, b].map(|conn| codes(&world, conn)), [[], []]);
    asked.into_iter().for_each(|upcall| world.answer(upcall, HostReply::Done(Status::SUCCESS)));
    assert_eq!([early, a, b].map(|conn| codes(&world, conn)), [vec![end], vec![CODE, end], vec![CODE, end]]);
    // The same holds after the job has been forgotten.
    world.obliging = true;
    world.call(ServerCall::DeregisterNspace(ns("gone")));
    world.close(b);
    let again = world.connect(1);
    world.ask_status(again, &register(&[end, CODE], named()));
    assert_eq!(codes(&world, again), [CODE, end]);
}

#[test]
fn each_registration_that_names_a_job_hears_its_past_once() {
    let mut world = World::with_job(1, 3);
    let [a, b, c] = [0, 1, 2].map(|rank| world.connect(rank));
    // The host knows the code already when a registration names a job that ended before.
    world.ask_status(a, &register(&[CODE], Vec::new()));
    world.obliging = false;
    let gone = || ProcId::all(&ns("gone"));
    for conn in [b, c] {
        let named = vec![Info::new(keys::EVENT_AFFECTED_PROC, gone())];
        world.send(conn, &register(&[CODE], named.clone()));
        let (upcall, op) = world.take_upcall();
        assert_eq!(op, HostOp::RegisterEvents(EventsRequest { codes: vec![CODE], info: named }));
        world.call(announce_late(gone(), &["gone"], 5));
        world.answer(upcall, HostReply::Done(Status::SUCCESS));
    }
    assert_eq!([a, b, c].map(|conn| heard(&world, conn)), [0, 1, 1]);
}

#[test]
fn announcements_do_not_push_out_what_processes_have_raised() {
    let mut world = World::with_job(1, 2);
    let (a, b) = (world.connect(0), world.connect(1));
    world.ask_status(a, &notify(Range::NAMESPACE, Vec::new()));
    for _ in 0..MAX_CACHED_EVENTS + 10 {
        world.call(announce(ProcId::all(&ns("gone")), &[]));
    }
    world.ask_status(b, &register(&[CODE], Vec::new()));
    assert_eq!(heard(&world, b), 1);
}
