use phalanx_spec::{DataType, keys};
use phalanx_wire::cmd::event::Notification;
use phalanx_wire::cmd::fence::Fence;
use phalanx_wire::cmd::publish::{Publish, Published};
use phalanx_wire::frame::{HEADER_LEN, TAG_EVENT};
use phalanx_wire::hello::Flavor;
use phalanx_wire::{DataArray, Info, InfoList};

use super::*;

fn failure(scene: &mut Scene, init: CallId) -> InitError {
    match scene.result(init) {
        ClientReturn::Init(Err(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_client_introduces_itself_and_fetches_its_job() {
    let mut scene = Scene::new(config());
    let init = scene.let_in(vec![Kval::new(keys::JOB_SIZE, 2_u32)]);
    assert_eq!(scene.connected, ["tcp4://127.0.0.1:99"]);
    let hello = scene.hello.clone().unwrap();
    assert_eq!(hello.flavor, Flavor::Client);
    assert_eq!(hello.proc, Some(proc(1)));
    assert_eq!(hello.credential, Credential::Native { uid: 1, gid: 2 });
    assert_eq!((hello.format, hello.store.as_str()), (config().dialect.format, "hash"));
    assert_eq!(hello.info, [Info::new(keys::PROC_PID, Value::Pid(4711))]);
    assert_eq!(scene.result(init), ClientReturn::Init(Ok(())));
    assert!(scene.client.explain().is_empty());
    assert_eq!(scene.client.deadline(), None);
}

#[test]
fn the_answer_may_arrive_in_any_pieces() {
    let mut scene = Scene::new(config());
    let init = scene.call(ClientCall::Init);
    scene.open();
    let welcome = HelloAnswer::Welcome(ClientWelcome { index: INDEX }).encode();
    for byte in welcome {
        scene.bytes(&[byte]);
    }
    let job = JobData { nspace: proc(0).nspace, values: vec![], procs: vec![] };
    let reply = encode_frame(0, scene.asked.remove(0).0, &job.encode(scene.dialect));
    for byte in reply {
        assert!(scene.returned.is_empty());
        scene.bytes(&[byte]);
    }
    assert_eq!(scene.result(init), ClientReturn::Init(Ok(())));
}

#[test]
fn events_may_come_before_the_job_data() {
    let mut scene = Scene::new(config());
    let init = scene.call(ClientCall::Init);
    scene.open();
    let old = Notification { code: Status(-145), source: proc(0), info: vec![], range: None };
    let mut bytes = HelloAnswer::Welcome(ClientWelcome { index: INDEX }).encode();
    bytes.extend(encode_frame(0, TAG_EVENT, &old.encode(scene.dialect)));
    scene.bytes(&bytes);
    let job = JobData { nspace: proc(0).nspace, values: vec![], procs: vec![] };
    scene.reply(&job);
    assert_eq!(scene.result(init), ClientReturn::Init(Ok(())));
    assert!(scene.delivered.is_empty());
}

#[test]
fn every_way_of_not_being_let_in_has_its_error() {
    let begin = || {
        let mut scene = Scene::new(config());
        let init = scene.call(ClientCall::Init);
        (scene, init)
    };

    let (mut scene, init) = begin();
    scene.close();
    assert_eq!(failure(&mut scene, init), InitError::Unreachable);

    let (mut scene, init) = begin();
    scene.open();
    scene.close();
    assert_eq!(failure(&mut scene, init), InitError::TurnedAway);

    let (mut scene, init) = begin();
    scene.open();
    scene.bytes(&Status::ERR_NO_PERMISSIONS.0.to_be_bytes());
    assert_eq!(failure(&mut scene, init), InitError::Refused(Status::ERR_NO_PERMISSIONS));
    assert!(scene.closed);

    let (mut scene, init) = begin();
    scene.open();
    scene.welcome();
    scene.close();
    assert_eq!(failure(&mut scene, init), InitError::TurnedAway);

    let (mut scene, init) = begin();
    scene.open();
    scene.welcome();
    let other = Nspace::new("other").unwrap();
    scene.reply(&JobData { nspace: other.clone(), values: vec![], procs: vec![] });
    assert_eq!(failure(&mut scene, init), InitError::WrongJob { got: other });
    assert!(scene.closed);

    let (mut scene, init) = begin();
    scene.open();
    scene.welcome();
    let (tag, _) = scene.asked.remove(0);
    scene.bytes(&encode_frame(0, tag, &[0xff; 3]));
    assert!(matches!(failure(&mut scene, init), InitError::Malformed(_)));

    let (mut scene, init) = begin();
    scene.open();
    scene.welcome();
    scene.bytes(&[0x7f; HEADER_LEN]);
    assert!(matches!(failure(&mut scene, init), InitError::TooLong(_)));

    let (mut scene, init) = begin();
    scene.open();
    scene.welcome();
    let waiting = scene.client.explain();
    assert_eq!((waiting.len(), &*waiting[0].operation), (1, "init"), "{waiting:?}");
    scene.pass(Duration::from_secs(61));
    assert_eq!(failure(&mut scene, init), InitError::TimedOut);
    assert!(scene.closed);
    let again = scene.call(ClientCall::Init);
    assert_eq!(failure(&mut scene, again), InitError::Again);
}

#[test]
fn pending_calls_end_with_the_connection() {
    let mut scene = Scene::ready();
    let watch = scene.call(ClientCall::RegisterEvents {
        handler: HandlerId(5),
        codes: vec![Status::ERR_LOST_CONNECTION],
        info: vec![],
    });
    scene.reply_status(Status::SUCCESS);
    assert_eq!(scene.result(watch), ClientReturn::Done(Status::SUCCESS));
    let fence = scene.call(ClientCall::Fence(Fence { procs: vec![], info: vec![] }));
    let lookup = scene.call(ClientCall::Lookup(Published { uid: 0, keys: vec![Key::of("x")], info: vec![] }));
    let operations: Vec<_> = scene.client.explain().iter().map(|waiting| waiting.operation.clone()).collect();
    assert_eq!(operations, ["fence", "lookup"]);
    scene.close();
    let lost = Status::ERR_LOST_CONNECTION;
    assert_eq!(
        scene.returned,
        [(fence, ClientReturn::Done(lost)), (lookup, ClientReturn::Found(lost, vec![]))]
    );
    scene.returned.clear();
    let ClientDelivery::Event { event, .. } = &scene.delivered[0].2 else { panic!() };
    assert_eq!((event.code, event.source.to_string()), (lost, "server:0".to_string()));
    let late = scene.call(ClientCall::Commit(vec![]));
    assert_eq!(scene.result(late), ClientReturn::Done(Status::ERR_UNREACH));
    let end = scene.call(ClientCall::Finalize { info: vec![] });
    assert_eq!(scene.result(end), ClientReturn::Done(Status::SUCCESS));
}

#[test]
fn a_reply_that_cannot_be_read_fails_its_call_only() {
    let mut scene = Scene::ready();
    let fence = scene.call(ClientCall::Fence(Fence { procs: vec![], info: vec![] }));
    let commit = scene.call(ClientCall::Commit(vec![]));
    let (tag, _) = scene.asked.remove(0);
    scene.bytes(&encode_frame(0, tag, &[]));
    assert_eq!(scene.result(fence), ClientReturn::Done(Status::ERR_UNPACK_FAILURE));
    scene.bytes(&encode_frame(0, 5000, b"nobody asked"));
    scene.bytes(&encode_frame(0, 50, b"reserved"));
    scene.bytes(&encode_frame(0, TAG_EVENT, b"no event"));
    scene.reply_status(Status::SUCCESS);
    assert_eq!(scene.result(commit), ClientReturn::Done(Status::SUCCESS));
}

#[test]
fn a_debugger_holds_a_process_in_init_until_it_lets_go() {
    let ranks = |ranks: [u32; 2]| {
        let items = ranks.map(|rank| Value::Rank(Rank(rank))).to_vec();
        Value::from(DataArray { of: DataType::PROC_RANK, items })
    };
    for (held, value) in [
        (true, Value::Bool(true)),
        (true, Value::Rank(Rank(1))),
        (true, Value::Rank(Rank::WILDCARD)),
        (true, ranks([0, 1])),
        (false, ranks([0, 2])),
        (false, Value::Bool(false)),
        (false, Value::Rank(Rank(0))),
    ] {
        let mut scene = Scene::new(config());
        let init = scene.let_in(vec![Kval::new(keys::DEBUG_STOP_IN_INIT, value)]);
        if held {
            let Request::RegisterEvents(wish) = scene.asked() else { panic!("{:?}", scene.asked) };
            assert_eq!(wish.codes, [Status::DEBUGGER_RELEASE]);
            scene.reply_status(Status::SUCCESS);
            let Request::Notify(ready) = scene.asked() else { panic!("{:?}", scene.asked) };
            assert_eq!((ready.code, ready.range), (Status::READY_FOR_DEBUG, Range::CUSTOM));
            let for_whom = ready.info.find(keys::EVENT_CUSTOM_RANGE);
            assert_eq!(for_whom, Some(&Value::from(config().server.expect("one").server)));
            scene.reply_status(Status::SUCCESS);
            scene.pass(Duration::from_secs(100_000));
            assert_eq!(scene.client.explain()[0].subject, "held by a debugger");
            assert!(scene.returned.is_empty());
            let release = Notification {
                code: Status::DEBUGGER_RELEASE,
                source: proc(9),
                info: vec![Info::new(keys::EVENT_NON_DEFAULT, true)],
                range: None,
            };
            scene.bytes(&encode_frame(0, TAG_EVENT, &release.encode(scene.dialect)));
        }
        assert_eq!(scene.result(init), ClientReturn::Init(Ok(())));
    }
}

#[test]
fn a_process_that_nobody_started_is_a_job_of_its_own() {
    let mut scene = Scene::new(ClientConfig { server: None, proc: proc(0), ..config() });
    let init = scene.call(ClientCall::Init);
    assert_eq!(scene.result(init), ClientReturn::Init(Ok(())));
    let done = ClientReturn::Done(Status::SUCCESS);
    for call in [
        ClientCall::Commit(vec![]),
        ClientCall::Fence(Fence { procs: vec![], info: vec![] }),
        ClientCall::Fence(Fence { procs: vec![ProcId::all(&proc(0).nspace)], info: vec![] }),
        ClientCall::RegisterEvents { handler: HandlerId(1), codes: vec![], info: vec![] },
        ClientCall::Notify { code: Status(-1), range: Range::GLOBAL, info: vec![] },
    ] {
        let id = scene.call(call);
        assert_eq!(scene.result(id), done);
    }
    assert_eq!(scene.delivered.len(), 1);
    let with_others = scene.call(ClientCall::Fence(Fence { procs: vec![proc(0), proc(1)], info: vec![] }));
    assert_eq!(scene.result(with_others), ClientReturn::Done(Status::ERR_UNREACH));
    let publish = scene.call(ClientCall::Publish(Publish { uid: 0, info: vec![] }));
    assert_eq!(scene.result(publish), ClientReturn::Done(Status::ERR_UNREACH));
    let peers = scene.call(ClientCall::ResolvePeers { node: None, nspace: proc(0).nspace });
    assert_eq!(scene.result(peers), ClientReturn::Peers(Ok(vec![proc(0)])));
    let nodes = scene.call(ClientCall::ResolveNodes { nspace: proc(0).nspace });
    assert_eq!(scene.result(nodes), ClientReturn::Nodes(Ok(vec!["here".into()])));
    let size = LookupRequest::new(ProcId::all(&proc(0).nspace), Some(Key::of(keys::JOB_SIZE)), &[]);
    let size = scene.call(ClientCall::Get { request: size, info: vec![] });
    assert_eq!(scene.result(size), ClientReturn::Value(Ok(Value::Uint32(1))));
    let absent = LookupRequest::new(proc(0), Some(Key::of("absent")), &[]);
    let absent = scene.call(ClientCall::Get { request: absent, info: vec![] });
    assert_eq!(scene.result(absent), ClientReturn::Value(Err(Status::ERR_NOT_FOUND)));
    let end = scene.call(ClientCall::Finalize { info: vec![] });
    assert_eq!(scene.result(end), done);
    assert!(scene.connected.is_empty());
}
