use phalanx_spec::{Scope, keys};
use phalanx_wire::cmd::control::JobControl;
use phalanx_wire::cmd::fence::Fence;
use phalanx_wire::cmd::log::Log;
use phalanx_wire::cmd::publish::LookupReply;
use phalanx_wire::cmd::publish::{Publish, Published};
use phalanx_wire::cmd::query::Queries;
use phalanx_wire::cmd::resolve::{NodeReply, PeersReply};
use phalanx_wire::cmd::{InfoReply, commit, fence};
use phalanx_wire::{DataArray, Info};

use super::*;

fn timeout(seconds: i32) -> Info {
    Info::new(keys::TIMEOUT, seconds)
}

fn kval(key: &str, value: u32) -> Kval {
    Kval { key: Key::new(key).unwrap(), value: value.into() }
}

#[test]
fn global_values_are_committed_to_this_node_and_to_others() {
    let mut scene = Scene::ready();
    let commit = scene.call(ClientCall::Commit(vec![
        (Scope::LOCAL, vec![kval("l", 1)]),
        (Scope::REMOTE, vec![kval("r", 2)]),
        (Scope::GLOBAL, vec![kval("g", 3)]),
        (Scope::INTERNAL, vec![kval("i", 4)]),
    ]));
    let local = vec![kval("l", 1), kval("g", 3)];
    let remote = vec![kval("r", 2), kval("g", 3)];
    let buckets = vec![(Scope::LOCAL, local), (Scope::REMOTE, remote)];
    assert_eq!(scene.asked(), Request::Commit(commit::Commit { buckets }));
    scene.reply_status(Status::SUCCESS);
    assert_eq!(scene.result(commit), ClientReturn::Done(Status::SUCCESS));
    let empty = scene.call(ClientCall::Commit(vec![]));
    assert_eq!(scene.asked(), Request::Commit(commit::Commit { buckets: vec![] }));
    scene.reply_status(Status::ERR_BAD_PARAM);
    assert_eq!(scene.result(empty), ClientReturn::Done(Status::ERR_BAD_PARAM));
}

#[test]
fn a_fence_without_participants_is_of_the_whole_job() {
    let mut scene = Scene::ready();
    let info = vec![Info::new(keys::COLLECT_DATA, true)];
    let whole = scene.call(ClientCall::Fence(Fence { procs: vec![], info: info.clone() }));
    let everybody = vec![ProcId::all(&proc(0).nspace)];
    assert_eq!(scene.asked(), Request::Fence(fence::Fence { procs: everybody, info }));
    assert_eq!(scene.client.explain()[0].subject, "job:*");
    scene.reply_status(Status::SUCCESS);
    assert_eq!(scene.result(whole), ClientReturn::Done(Status::SUCCESS));
}

#[test]
fn replies_may_come_in_any_order() {
    let mut scene = Scene::ready();
    let first = scene.call(ClientCall::Fence(Fence { procs: vec![proc(0), proc(1)], info: vec![] }));
    let second = scene.call(ClientCall::Fence(Fence { procs: vec![proc(1)], info: vec![] }));
    scene.asked.swap(0, 1);
    scene.reply_status(Status(-2));
    assert_eq!(scene.result(second), ClientReturn::Done(Status(-2)));
    scene.reply_status(Status(-1));
    assert_eq!(scene.result(first), ClientReturn::Done(Status(-1)));
}

#[test]
fn late_reply_after_a_timeout_does_no_harm() {
    let mut scene = Scene::ready();
    let fence = scene.call(ClientCall::Fence(Fence { procs: vec![], info: vec![timeout(3)] }));
    let forever = scene.call(ClientCall::Fence(Fence { procs: vec![], info: vec![timeout(0)] }));
    let deadline = scene.client.deadline().unwrap();
    assert_eq!(scene.client.explain()[0].deadline, Some(deadline));
    scene.pass(Duration::from_secs(3));
    assert!(scene.returned.is_empty(), "the server may still say more about it");
    scene.pass(Duration::from_secs(1));
    assert_eq!(scene.result(fence), ClientReturn::Done(Status::ERR_TIMEOUT));
    assert_eq!(scene.client.explain().len(), 1);
    assert_eq!(scene.client.deadline(), None);
    scene.reply_status(Status::SUCCESS);
    assert!(scene.returned.is_empty());
    scene.reply_status(Status::SUCCESS);
    assert_eq!(scene.result(forever), ClientReturn::Done(Status::SUCCESS));
}

#[test]
fn publish_lookup_unpublish() {
    let mut scene = Scene::ready();
    let data = vec![Info::new("port", "tcp:1"), Info::new(keys::RANGE, Range::SESSION)];
    let publish = scene.call(ClientCall::Publish(Publish { uid: 0, info: data.clone() }));
    let Request::Publish(asked) = scene.asked() else { panic!() };
    assert_eq!((asked.uid, asked.info), (1, data));
    assert_eq!(scene.client.explain()[0].subject, "port");
    scene.reply_status(Status::SUCCESS);
    assert_eq!(scene.result(publish), ClientReturn::Done(Status::SUCCESS));

    let keys = vec![Key::of("port"), Key::of("absent")];
    let lookup = scene.call(ClientCall::Lookup(Published { uid: 0, keys: keys.clone(), info: vec![] }));
    let found = vec![Pdata { proc: proc(0), key: Key::of("port"), value: "tcp:1".into() }];
    scene.reply(&LookupReply { status: Status::ERR_PARTIAL_SUCCESS, data: found.clone() });
    assert_eq!(scene.result(lookup), ClientReturn::Found(Status::ERR_PARTIAL_SUCCESS, found));

    let unpublish = scene.call(ClientCall::Unpublish(Published { uid: 0, keys, info: vec![] }));
    scene.reply_status(Status::ERR_NOT_FOUND);
    assert_eq!(scene.result(unpublish), ClientReturn::Done(Status::ERR_NOT_FOUND));
}

#[test]
fn query_log_and_job_control() {
    let mut scene = Scene::ready();
    let queries = vec![Query { keys: vec!["pmix.qry.ns".into()], qualifiers: vec![timeout(1)] }];
    let query = scene.call(ClientCall::Query(Queries { queries }));
    assert!(scene.client.deadline().is_some(), "a qualifier may limit the time");
    let info = vec![Info::new(keys::QUERY_NAMESPACES, "job")];
    scene.reply(&InfoReply { status: Status::SUCCESS, info: info.clone() });
    assert_eq!(scene.result(query), ClientReturn::Infos(Status::SUCCESS, info));

    let data = vec![Info::new(keys::LOG_STDERR, "text")];
    let log = scene.call(ClientCall::Log(Log { timestamp: 5, data: data.clone(), directives: vec![] }));
    let Request::Log(asked) = scene.asked() else { panic!() };
    assert_eq!((asked.timestamp, asked.data), (5, data));
    scene.reply_status(Status::SUCCESS);
    assert_eq!(scene.result(log), ClientReturn::Done(Status::SUCCESS));

    let directives = vec![Info::new(keys::JOB_CTRL_PAUSE, true)];
    let control = scene.call(ClientCall::from(JobControl { targets: vec![proc(0)], directives }));
    assert_eq!(scene.client.explain()[0].subject, "pmix.jctrl.pause");
    scene.reply(&InfoReply { status: Status::ERR_NOT_SUPPORTED, info: vec![] });
    assert_eq!(scene.result(control), ClientReturn::Infos(Status::ERR_NOT_SUPPORTED, vec![]));
}

#[test]
fn abort_does_not_wait_for_ever() {
    let mut scene = Scene::ready();
    let abort =
        scene.call(ClientCall::Abort { status: Status(7), message: Some("so".into()), procs: vec![] });
    let Request::Abort(asked) = scene.asked() else { panic!() };
    assert_eq!((asked.status, asked.message, asked.procs), (Status(7), Some("so".into()), vec![]));
    scene.pass(Duration::from_secs(31));
    assert_eq!(scene.result(abort), ClientReturn::Done(Status::ERR_TIMEOUT));
}

#[test]
fn peers_and_nodes_of_a_known_job_need_no_server() {
    let node = |name: &str, peers: &str| {
        let infos = [Info::new(keys::HOSTNAME, name), Info::new(keys::LOCAL_PEERS, peers)];
        Kval::new(keys::NODE_INFO_ARRAY, Value::DataArray(Box::new(DataArray::of_infos(infos))))
    };
    let mut scene = Scene::ready_with(config(), vec![node("a", "2,0"), node("b", "1")]);
    let nspace = proc(0).nspace;
    let peers = scene.call(ClientCall::ResolvePeers { node: Some("a".into()), nspace: nspace.clone() });
    assert_eq!(scene.result(peers), ClientReturn::Peers(Ok(vec![proc(0), proc(2)])));
    let nodes = scene.call(ClientCall::ResolveNodes { nspace });
    assert_eq!(scene.result(nodes), ClientReturn::Nodes(Ok(vec!["a".into(), "b".into()])));

    let other = Nspace::new("other").unwrap();
    let peers = scene.call(ClientCall::ResolvePeers { node: None, nspace: other.clone() });
    let there = ProcId::new(&other, Rank(4));
    scene.reply(&PeersReply { status: Status::SUCCESS, procs: vec![there.clone()] });
    assert_eq!(scene.result(peers), ClientReturn::Peers(Ok(vec![there])));
    let nodes = scene.call(ClientCall::ResolveNodes { nspace: other.clone() });
    scene.reply(&NodeReply { status: Status::SUCCESS, nodes: Some("c,d".into()) });
    assert_eq!(scene.result(nodes), ClientReturn::Nodes(Ok(vec!["c".into(), "d".into()])));

    let old = Dialect { release: Release::new(4, 2, 2), ..config().dialect };
    let mut scene = Scene::ready_with(ClientConfig { dialect: old, ..config() }, vec![]);
    let peers = scene.call(ClientCall::ResolvePeers { node: None, nspace: other });
    assert_eq!(scene.result(peers), ClientReturn::Peers(Err(Status::ERR_NOT_FOUND)));
}

#[test]
fn finalize_says_goodbye_and_ends_what_still_waits() {
    let mut scene = Scene::ready();
    let fence = scene.call(ClientCall::Fence(Fence { procs: vec![], info: vec![] }));
    scene.asked.clear();
    let end = scene.call(ClientCall::Finalize { info: vec![] });
    assert_eq!(scene.asked(), Request::Finalize);
    scene.reply_status(Status::SUCCESS);
    let lost = ClientReturn::Done(Status::ERR_LOST_CONNECTION);
    assert_eq!(scene.returned, [(fence, lost), (end, ClientReturn::Done(Status::SUCCESS))]);
    assert!(scene.closed);
    scene.returned.clear();
    scene.close();
    let late = scene.call(ClientCall::Commit(vec![]));
    assert_eq!(scene.result(late), ClientReturn::Done(Status::ERR_INIT));
    let again = scene.call(ClientCall::Finalize { info: vec![] });
    assert_eq!(scene.result(again), ClientReturn::Done(Status::ERR_INIT));
}

#[test]
fn finalize_does_not_depend_on_the_server() {
    let mut scene = Scene::ready();
    let silent = scene.call(ClientCall::Finalize { info: vec![] });
    scene.pass(Duration::from_secs(2));
    assert_eq!(scene.result(silent), ClientReturn::Done(Status::SUCCESS));
    assert!(scene.closed);

    let mut scene = Scene::ready();
    let gone = scene.call(ClientCall::Finalize { info: vec![] });
    scene.close();
    assert_eq!(scene.result(gone), ClientReturn::Done(Status::SUCCESS));
    assert!(scene.delivered.is_empty());
}

#[test]
fn finalize_begins_with_a_barrier_if_asked_to() {
    let info = vec![Info::new(keys::EMBED_BARRIER, true), timeout(5)];
    let mut scene = Scene::ready();
    let end = scene.call(ClientCall::Finalize { info: info.clone() });
    assert!(matches!(scene.asked(), Request::Fence(_)));
    scene.reply_status(Status::SUCCESS);
    assert_eq!(scene.asked(), Request::Finalize);
    scene.reply_status(Status::SUCCESS);
    assert_eq!(scene.result(end), ClientReturn::Done(Status::SUCCESS));

    let mut scene = Scene::ready();
    let end = scene.call(ClientCall::Finalize { info });
    scene.pass(Duration::from_secs(6));
    assert_eq!(scene.asked[1].1, Request::Finalize, "time has run out for the barrier");
    scene.reply_status(Status::SUCCESS);
    scene.reply_status(Status::SUCCESS);
    assert_eq!(scene.result(end), ClientReturn::Done(Status::SUCCESS));
    assert!(scene.asked.is_empty());
}
