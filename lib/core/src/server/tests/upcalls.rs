use phalanx_spec::{AllocDirective, DataType, Persistence, Range, ResourceBlockDirective, Status, keys};
use phalanx_wire::cmd::abort::Abort;
use phalanx_wire::cmd::allocate::{Allocate, ResourceBlock};
use phalanx_wire::cmd::control::JobControl;
use phalanx_wire::cmd::credential::{self, GetCredential, ValidateCredential};
use phalanx_wire::cmd::iof::{DRESSED, STYLE};
use phalanx_wire::cmd::job_data::JobData;
use phalanx_wire::cmd::log::Log;
use phalanx_wire::cmd::publish::{LookupReply, Publish, Published};
use phalanx_wire::cmd::query::Queries;
use phalanx_wire::cmd::spawn::{self, Spawn};
use phalanx_wire::cmd::{InfoReply, Request};
use phalanx_wire::{App, Blob, DataArray, Info, InfoList, Pdata, Query, Value};

use super::world::{UID, World, job, key, ns, proc};
use crate::host::{AbortRequest, Asked, ClientFinalized, HostOp, HostReply};
use crate::machine::HostCall;
use crate::server::{ServerCall, ServerReturn};

fn identity() -> [Info; 2] {
    [Info::new(keys::USERID, UID), Info::new(keys::GRPID, UID)]
}

fn datum(name: &str, value: &str) -> Info {
    Info { key: key(name), flags: Default::default(), value: value.into() }
}

#[test]
fn publications_are_passed_on_with_their_publisher() {
    let mut world = World::with_job(1, 1);
    let a = world.connect(0);
    let info = vec![datum("port", "4711"), Info::new(keys::RANGE, Range::GLOBAL), datum("host", "here")];
    let tag = world.send(a, &Request::Publish(Publish { uid: 0, info: info.clone() }));
    let (id, op) = world.take_upcall();
    let HostOp::Publish(Asked { from, request }) = op else { panic!("{op:?}") };
    assert_eq!(
        (from, request.range(), request.persistence()),
        (proc("job", 0), Range::GLOBAL, Persistence::APP)
    );
    let data: Vec<Info> = request.data().cloned().collect();
    assert_eq!(data, [datum("port", "4711"), datum("host", "here")]);
    assert_eq!(request, Publish { uid: UID, info: [info, identity().to_vec()].concat() });
    world.answer(id, HostReply::Done(Status::ERR_DUPLICATE_KEY));
    assert_eq!(world.status(a, tag), Status::ERR_DUPLICATE_KEY);
    let nothing = Request::Publish(Publish { uid: 0, info: vec![Info::new(keys::RANGE, Range::GLOBAL)] });
    assert_eq!(world.ask_status(a, &nothing), Status::ERR_BAD_PARAM);
}

#[test]
fn a_lookup_brings_what_the_host_found() {
    let mut world = World::with_job(1, 1);
    let a = world.connect(0);
    let lookup = Request::Lookup(Published {
        uid: 0,
        keys: vec![key("port")],
        info: vec![Info::new(keys::WAIT, 1u32)],
    });
    let data = vec![Pdata { proc: proc("x", 0), key: key("port"), value: "4711".into() }];
    let cases = [
        (HostReply::Lookup(Ok(data.clone())), Status::SUCCESS, data),
        (HostReply::Lookup(Ok(Vec::new())), Status::ERR_NOT_FOUND, Vec::new()),
        (HostReply::Lookup(Err(Status::ERR_TIMEOUT)), Status::ERR_TIMEOUT, Vec::new()),
        (HostReply::Done(Status::SUCCESS), Status::ERR_SERVER_FAILED_REQUEST, Vec::new()),
    ];
    for (reply, status, data) in cases {
        let tag = world.send(a, &lookup);
        let why = &world.server.explain()[0];
        assert_eq!(
            (&*why.operation, &*why.subject, &*why.asked_by),
            ("lookup", "port", &[proc("job", 0)][..])
        );
        let (id, op) = world.take_upcall();
        assert!(matches!(op, HostOp::Lookup(it) if (it.range(), it.uid) == (Range::SESSION, UID)));
        world.answer(id, reply);
        assert_eq!(world.reply::<LookupReply>(a, tag), LookupReply { status, data });
    }
    let all = Request::Unpublish(Published { uid: 0, keys: Vec::new(), info: Vec::new() });
    let tag = world.send(a, &all);
    let (id, op) = world.take_upcall();
    assert!(matches!(op, HostOp::Unpublish(it) if it.keys.is_empty()));
    world.answer(id, HostReply::Done(Status::SUCCESS));
    assert_eq!(world.status(a, tag), Status::SUCCESS);
}

#[test]
fn spawner_learns_of_the_new_job() {
    let mut world = World::with_job(1, 1);
    let a = world.connect(0);
    let app = App { cmd: Some("./child".into()), max_procs: 2, ..App::default() };
    let request = Request::Spawn(Spawn { job: Vec::new(), apps: vec![app.clone()] });
    let tag = world.send(a, &request);
    let (id, op) = world.take_upcall();
    let HostOp::Spawn(Asked { from, request: Spawn { job: directives, apps } }) = op else {
        panic!("{op:?}")
    };
    assert_eq!((from, apps), (proc("job", 0), vec![app.clone()]));
    assert!(directives.contains(&Info::new(keys::PARENT_ID, proc("job", 0))));
    assert!(directives.contains(&Info::new(keys::REQUESTOR_IS_CLIENT, true)));
    world.register(job("child", 1, 2));
    world.answer(id, HostReply::Spawned(Ok(ns("child"))));
    let reply: spawn::Reply = world.reply(a, tag);
    let child: JobData = reply.job.unwrap();
    assert_eq!((child.nspace, child.procs.len()), (ns("child"), 2));
    assert!(child.values.iter().all(|value| value.key != *STYLE));
    // A spawner that formats the output itself gets the style.
    let itself = Spawn { job: vec![Info::new(DRESSED, true)], apps: vec![app] };
    let tag = world.send(a, &Request::Spawn(itself));
    let (id, op) = world.take_upcall();
    let HostOp::Spawn(Asked { request: Spawn { job: directives, .. }, .. }) = op else { panic!("{op:?}") };
    assert!(!directives.is_set(DRESSED), "it is between the library and its server");
    world.answer(id, HostReply::Spawned(Ok(ns("child"))));
    let child: JobData = world.reply::<spawn::Reply>(a, tag).job.unwrap();
    let style = child.values.iter().find(|value| value.key == *STYLE).unwrap();
    assert_eq!(style.value.as_array(), Some(&DataArray::of_infos([])));

    let tag = world.send(a, &request);
    let (id, _) = world.take_upcall();
    world.answer(id, HostReply::Spawned(Err(Status::ERR_NOT_FOUND)));
    assert_eq!(
        world.reply::<spawn::Reply>(a, tag),
        spawn::Reply { status: Status::ERR_NOT_FOUND, job: None }
    );
    let nothing = Request::Spawn(Spawn { job: Vec::new(), apps: Vec::new() });
    assert_eq!(world.ask_status(a, &nothing), Status::ERR_BAD_PARAM);
}

#[test]
fn requests_reach_the_host_with_their_requester_and_return() {
    let mut world = World::with_job(1, 1);
    let a = world.connect(0);
    let info = vec![datum("x", "1")];
    let control = JobControl { targets: vec![proc("job", 0)], directives: info.clone() };
    let allocate = Allocate { directive: AllocDirective::EXTEND, info: info.clone() };
    let validate = ValidateCredential { credential: Blob::from(vec![1]), info: info.clone() };
    for request in [Request::from(control), Request::from(allocate), Request::from(validate)] {
        for (reply, expected) in [
            (HostReply::Infos(Status::SUCCESS, info.clone()), (Status::SUCCESS, info.clone())),
            (HostReply::Done(Status::ERR_NOT_SUPPORTED), (Status::ERR_NOT_SUPPORTED, Vec::new())),
        ] {
            let tag = world.send(a, &request);
            let (id, op) = world.take_upcall();
            assert!(format!("{op:?}").contains("from: job:0"), "{op:?}");
            world.answer(id, reply);
            let reply: InfoReply = world.reply(a, tag);
            assert_eq!((reply.status, reply.info), expected, "{request:?}");
        }
    }
    let tag = world.send(a, &Request::from(GetCredential { info: Vec::new() }));
    let (id, _) = world.take_upcall();
    world.answer(id, HostReply::Credential(Ok((Blob::from(vec![7]), info.clone()))));
    let expected = credential::Reply { status: Status::SUCCESS, credential: Blob::from(vec![7]), info };
    assert_eq!(world.reply::<credential::Reply>(a, tag), expected);

    let log = Log { timestamp: 42, data: vec![Info::new(keys::LOG_STDERR, "text")], directives: Vec::new() };
    let tag = world.send(a, &Request::Log(log));
    let (id, op) = world.take_upcall();
    let HostOp::Log(log) = op else { panic!("{op:?}") };
    assert_eq!(log.directives[0], Info::new(keys::LOG_TIMESTAMP, Value::Time(42)));
    world.answer(id, HostReply::Done(Status::SUCCESS));
    assert_eq!(world.status(a, tag), Status::SUCCESS);

    let request = ResourceBlock {
        directive: ResourceBlockDirective::DEFINE,
        block: Some("mine".into()),
        units: Vec::new(),
        info: Vec::new(),
    };
    let tag = world.send(a, &Request::from(request.clone()));
    let (id, op) = world.take_upcall();
    let asked = ResourceBlock { info: identity().to_vec(), ..request.clone() };
    assert_eq!(op, Asked { from: proc("job", 0), request: asked }.into());
    world.answer(id, HostReply::Done(Status::ERR_EXISTS));
    assert_eq!(world.status(a, tag), Status::ERR_EXISTS);
    let nameless = Request::from(ResourceBlock { block: None, ..request });
    assert_eq!(world.ask_status(a, &nameless), Status::ERR_BAD_PARAM);

    let abort = Abort { status: Status(5), message: Some("went wrong".into()), procs: Vec::new() };
    let tag = world.send(a, &Request::Abort(abort));
    let (id, op) = world.take_upcall();
    let message = "went wrong".into();
    assert_eq!(
        op,
        HostOp::Abort(AbortRequest { from: proc("job", 0), status: Status(5), message, procs: Vec::new() })
    );
    world.answer(id, HostReply::Done(Status::OPERATION_SUCCEEDED));
    assert_eq!(world.status(a, tag), Status::SUCCESS, "that it is done already is no client's business");
}

#[test]
fn answers_nobody_waits_for_are_ignored() {
    let mut world = World::with_job(1, 1);
    let a = world.connect(0);
    let lookup = Request::Lookup(Published { uid: 0, keys: vec![key("port")], info: Vec::new() });
    let tag = world.send(a, &lookup);
    let (call, _) = world.take_upcall();
    // Only a stand-in for a machine can do this.
    let again = HostCall::new(call.number());
    world.answer(call, HostReply::Done(Status::ERR_NOT_FOUND));
    world.answer(again, HostReply::Done(Status::SUCCESS));
    world.answer(HostCall::new(4711), HostReply::Done(Status::SUCCESS));
    assert_eq!(world.reply::<LookupReply>(a, tag).status, Status::ERR_NOT_FOUND);
    world.send(a, &lookup);
    let (id, _) = world.take_upcall();
    world.close(a);
    let again = world.connect(0);
    world.answer(id, HostReply::Done(Status::ERR_NOT_FOUND));
    assert!(world.client(again).order.is_empty(), "the answer was for the connection that is gone");
}

#[test]
fn finalize_is_answered_when_the_host_has_and_every_time() {
    let mut world = World::with_job(1, 1);
    let a = world.connect(0);
    world.obliging = false;
    let first = world.send(a, &Request::Finalize);
    assert!(!world.has_reply(a, first));
    let (id, op) = world.take_upcall();
    assert_eq!(op, HostOp::ClientFinalized(ClientFinalized { proc: proc("job", 0), others: false }));
    world.answer(id, HostReply::Done(Status::SUCCESS));
    assert_eq!(world.status(a, first), Status::SUCCESS);
    assert_eq!(world.ask_status(a, &Request::Finalize), Status::SUCCESS);
    assert_eq!(world.ask_status(a, &Request::JobData), Status::ERR_INIT);
    world.close(a);
    assert!(world.asked.is_empty(), "it is not lost");
}

#[test]
fn the_server_answers_what_it_knows_and_asks_for_the_rest() {
    let mut world = World::with_job(2, 2);
    let a = world.connect(0);
    let call = ServerCall::DefineProcessSet { name: "s".into(), members: vec![proc("job", 1)] };
    assert_eq!(world.call(call), ServerReturn::Done(Status::SUCCESS));
    let query = |keys: &[&str], qualifiers: Vec<Info>| {
        let keys = keys.iter().map(|key| (*key).into()).collect();
        Request::Query(Queries { queries: vec![Query { keys, qualifiers }] })
    };
    let known = [keys::QUERY_PSET_NAMES, keys::QUERY_NUM_PSETS, keys::JOB_SIZE, keys::QUERY_PSET_MEMBERSHIP];
    let reply: InfoReply = world.ask(a, &query(&known, vec![Info::new(keys::PSET_NAME, "s")]));
    assert_eq!(reply.status, Status::SUCCESS);
    let of = |name: &str| reply.info.iter().find(|info| info.key == name).unwrap().value.clone();
    assert_eq!(of(keys::QUERY_PSET_NAMES), "s".into());
    assert_eq!(of(keys::QUERY_NUM_PSETS), Value::Size(1));
    assert_eq!(of(keys::JOB_SIZE), Value::Uint32(4));
    assert_eq!(of(keys::QUERY_PSET_MEMBERSHIP).as_array().unwrap().items, [Value::Proc(proc("job", 1))]);

    let mixed = query(&[keys::QUERY_NAMESPACES, "site.load", keys::JOB_SIZE], Vec::new());
    let cases: [(HostReply, Status, &[&str]); 3] = [
        (
            HostReply::Infos(
                Status::SUCCESS,
                vec![datum("site.load", "3"), datum(keys::QUERY_NAMESPACES, "job,x")],
            ),
            Status::SUCCESS,
            &[keys::QUERY_NAMESPACES, "site.load", keys::JOB_SIZE],
        ),
        (
            HostReply::Infos(Status::QUERY_PARTIAL_SUCCESS, vec![datum("site.load", "3")]),
            Status::QUERY_PARTIAL_SUCCESS,
            &["site.load", keys::JOB_SIZE],
        ),
        // A host that knows nothing: the server lists its own jobs.
        (
            HostReply::Done(Status::ERR_NOT_SUPPORTED),
            Status::QUERY_PARTIAL_SUCCESS,
            &[keys::QUERY_NAMESPACES, keys::JOB_SIZE],
        ),
    ];
    for (answer, status, names) in cases {
        let tag = world.send(a, &mixed);
        let (id, op) = world.take_upcall();
        assert!(
            matches!(op, HostOp::Query(Asked { request: Queries { queries, .. }, .. }) if queries[0].keys.len() == 2)
        );
        world.answer(id, answer);
        let reply: InfoReply = world.reply(a, tag);
        let found: Vec<&str> = reply.info.iter().map(|info| info.key.as_str()).collect();
        assert_eq!((reply.status, &*found), (status, names));
    }
    let tag = world.send(a, &query(&["site.load"], Vec::new()));
    let (id, _) = world.take_upcall();
    world.answer(id, HostReply::Done(Status::ERR_NOT_SUPPORTED));
    assert_eq!(world.reply::<InfoReply>(a, tag).status, Status::ERR_NOT_SUPPORTED);
}

#[test]
fn attribute_support_comes_from_the_verbs_own_tables() {
    let mut world = World::with_job(1, 1);
    let a = world.connect(0);
    let query = |qualifiers| {
        let queries = vec![Query { keys: vec![keys::QUERY_ATTRIBUTE_SUPPORT.into()], qualifiers }];
        Request::Query(Queries { queries })
    };
    let layers = |reply: &InfoReply| -> Vec<Info> {
        assert_eq!((reply.info.len(), reply.info[0].key.as_str()), (1, keys::QUERY_ATTRIBUTE_SUPPORT));
        reply.info[0].value.as_array().unwrap().infos().cloned().collect()
    };
    let reply: InfoReply = world.ask(a, &query(vec![Info::new(keys::SERVER_ATTRIBUTES, true)]));
    let layer = layers(&reply).remove(0);
    assert_eq!(layer.key, keys::SERVER_ATTRIBUTES);
    let functions = layer.value.as_array().unwrap();
    let fence = functions.infos().find(|info| info.key == "PMIx_Fence").unwrap().value.as_array().unwrap();
    assert_eq!(fence.of, DataType::REGATTR);
    let names = fence.items.iter().map(|item| match item {
        Value::Regattr(attribute) => attribute.name.clone().unwrap().to_string(),
        other => panic!("{other:?}"),
    });
    let expected = [
        "PMIX_ALL_CLONES_PARTICIPATE",
        "PMIX_COLLECT_DATA",
        "PMIX_COLLECT_GENERATED_JOB_INFO",
        "PMIX_TIMEOUT",
    ];
    assert_eq!(names.collect::<Vec<_>>(), expected);

    // The host reports what it honours itself.
    let tag = world.send(a, &query(Vec::new()));
    let (id, _) = world.take_upcall();
    let host = DataArray::of_infos([Info::new(keys::HOST_ATTRIBUTES, "its own")]);
    world.answer(id, HostReply::Infos(Status::SUCCESS, vec![Info::new(keys::QUERY_ATTRIBUTE_SUPPORT, host)]));
    let both = layers(&world.reply(a, tag));
    let both: Vec<&str> = both.iter().map(|info| info.key.as_str()).collect();
    assert_eq!(both, [keys::SERVER_ATTRIBUTES, keys::HOST_ATTRIBUTES]);
}

#[test]
fn host_learns_which_directives_are_honoured() {
    let mut world = World::with_job(1, 1);
    let a = world.connect(0);
    let info = vec![Info::new(keys::RANGE, Range::LOCAL).required(), Info::new(keys::PREFIX, "x").required()];
    let request = Request::Lookup(Published { uid: 0, keys: vec![key("k")], info });
    world.send(a, &request);
    let (_, HostOp::Lookup(Asked { request: Published { info, .. }, .. })) = world.take_upcall() else {
        panic!("a lookup")
    };
    let required: Vec<&str> =
        info.iter().filter(|info| info.is_required()).map(|info| info.key.as_str()).collect();
    assert_eq!(required, [keys::PREFIX]);
}
