use std::time::Duration;

use phalanx_spec::{DataType, Rank, Scope, Status, keys};
use phalanx_wire::cmd::Request;
use phalanx_wire::cmd::commit::Commit;
use phalanx_wire::cmd::get::{Get, OwnerData, PARTIAL, RefreshCache, RefreshReply, Reply};
use phalanx_wire::{Blob, DataArray, Info, InfoFlags, Key, Kval, ProcId, Value};

use super::world::{World, dialect, fence, get, global, job, key, ns, proc, v41};
use crate::host::{DirectModexRequest, HostOp, HostReply};
use crate::machine::{ConnId, Input};
use crate::server::modex::Contribution;
use crate::server::{ServerCall, ServerReturn};

fn put(world: &mut World, conn: ConnId, scope: Scope, name: &str, value: &str) {
    let kvals = vec![Kval { key: key(name), value: value.into() }];
    let commit = match scope {
        Scope::GLOBAL => global(name, value),
        _ => Commit { buckets: vec![(scope, kvals)] },
    };
    assert_eq!(world.ask_status(conn, &Request::Commit(commit)), Status::SUCCESS);
}

fn modex(of: &ProcId, name: &str, value: &str) -> Blob {
    let mut contribution = Contribution::new();
    contribution.add(of, &[(key(name), Value::from(value))].into());
    contribution.into_blob()
}

fn array<'a>(reply: &'a Reply, name: &str) -> &'a DataArray {
    let mut values = reply.data.iter().flat_map(|owner| &owner.values);
    values.find(|kval| kval.key == name).unwrap().value.as_array().unwrap()
}

fn of_array(array: &DataArray, name: &str) -> Value {
    array.infos().find(|info| info.key == name).unwrap().value.clone()
}

#[test]
fn qualified_values_are_returned_as_they_were_committed() {
    let mut world = World::with_job(1, 2);
    let (a, b) = (world.connect(0), world.connect(1));
    let qualifier = |n: u32| Info { key: key("color"), flags: InfoFlags::QUALIFIER, value: n.into() };
    let of = |n: u32, value: &str| {
        let named = Info { key: key("k"), flags: InfoFlags::empty(), value: value.into() };
        Kval::new(keys::QUALIFIED_VALUE, DataArray::of_infos([named, qualifier(n)]))
    };
    let values = vec![of(1, "red"), of(2, "blue"), of(2, "green")];
    let commit = Commit { buckets: vec![(Scope::LOCAL, values.clone()), (Scope::REMOTE, values)] };
    assert_eq!(world.ask_status(a, &Request::Commit(commit)), Status::SUCCESS);
    let reply: Reply = world.ask(b, &get(&proc("job", 0), "k", vec![qualifier(2)]));
    let values = vec![of(1, "red"), of(2, "green")];
    assert_eq!(
        reply,
        Reply { status: Status::SUCCESS, data: vec![OwnerData { owner: proc("job", 0), values }] }
    );
    let at_once = Info::new(keys::IMMEDIATE, true);
    for directives in [vec![at_once.clone()], vec![qualifier(3), at_once]] {
        let reply: Reply = world.ask(b, &get(&proc("job", 0), "k", directives));
        assert_eq!(reply, Reply { status: Status::ERR_NOT_FOUND, data: Vec::new() });
    }
}

#[test]
fn qualified_values_of_reserved_keys_are_there_or_nowhere() {
    let name = keys::GROUP_CONTEXT_ID;
    let mut world = World::with_job(2, 2);
    let (a, b) = (world.connect(0), world.connect(1));
    let far = proc("job", 2);
    let color = || Info { key: key("color"), flags: InfoFlags::QUALIFIER, value: 1_u32.into() };
    // This get does not wait for the first commit.
    assert_eq!(world.ask_status(b, &get(&proc("job", 0), name, vec![color()])), Status::ERR_NOT_FOUND);
    let call = ServerCall::DirectModex { proc: proc("job", 0), key: Some(key(name)) };
    assert_eq!(world.call(call.clone()), ServerReturn::Modex(Err(Status::ERR_NOT_FOUND)));
    let named = Info { key: key(name), flags: InfoFlags::empty(), value: "red".into() };
    let value = Kval::new(keys::QUALIFIED_VALUE, DataArray::of_infos([named, color()]));
    let commit = Commit { buckets: vec![(Scope::REMOTE, vec![value])] };
    assert_eq!(world.ask_status(a, &Request::Commit(commit)), Status::SUCCESS);
    assert!(matches!(world.call(call), ServerReturn::Modex(Ok(_))));
    // Clients ask like this for reserved keys.
    let at_once = vec![color(), Info::new(keys::IMMEDIATE, true)];
    let tag = world.send(b, &get(&far, name, at_once.clone()));
    let (id, op) = world.take_upcall();
    let info = [at_once, vec![Info::new(keys::REQUIRED_KEY, name)]].concat();
    assert_eq!(op, HostOp::DirectModex(DirectModexRequest { proc: far, info }));
    world.answer(id, HostReply::Modex(Err(Status::ERR_NOT_FOUND)));
    assert_eq!(world.status(b, tag), Status::ERR_NOT_FOUND);
}

#[test]
fn pids_of_local_ranks_are_known_while_their_job_is() {
    let mut world = World::with_job(1, 3);
    let a = world.connect(0);
    let pid = |world: &mut World, rank| {
        let tag = world.send(a, &get(&proc("job", rank), keys::PROC_PID, Vec::new()));
        world.value(a, tag, keys::PROC_PID)
    };
    // The kernel's pid, until the host gives one.
    assert_eq!([0, 1].map(|rank| pid(&mut world, rank)), [Some(Value::Pid(1)), None]);
    world.call(ServerCall::Started { nspace: ns("job"), pids: vec![(Rank(0), 70), (Rank(1), 71)] });
    world.call(ServerCall::DeregisterClient(proc("job", 1)));
    let pids = [0, 1, 2].map(|rank| pid(&mut world, rank));
    assert_eq!(pids, [Some(Value::Pid(70)), Some(Value::Pid(71)), None]);
}

#[test]
fn values_committed_by_a_peer_are_there_at_once() {
    let mut world = World::with_job(1, 2);
    let (a, b) = (world.connect(0), world.connect(1));
    put(&mut world, a, Scope::GLOBAL, "x", "1");
    put(&mut world, a, Scope::LOCAL, "y", "2");
    let reply: Reply = world.ask(b, &get(&proc("job", 0), "x", Vec::new()));
    // All of the rank's values, since the client will not ask again.
    let values = vec![Kval { key: key("x"), value: "1".into() }, Kval { key: key("y"), value: "2".into() }];
    assert_eq!(
        reply,
        Reply { status: Status::SUCCESS, data: vec![OwnerData { owner: proc("job", 0), values }] }
    );
    // Its own values, too.
    let tag = world.send(a, &get(&proc("job", 0), "y", Vec::new()));
    assert_eq!(world.value(a, tag, "y"), Some("2".into()));
    // A later value replaces the earlier one.
    put(&mut world, a, Scope::GLOBAL, "x", "3");
    let tag = world.send(b, &get(&proc("job", 0), "x", Vec::new()));
    assert_eq!(world.value(b, tag, "x"), Some("3".into()));
}

/// The owners of the values in the answer to a get of `x`.
fn owners(world: &mut World, conn: ConnId, rank: u32) -> Vec<u32> {
    let reply: Reply = world.ask(conn, &get(&proc("job", rank), "x", Vec::new()));
    assert_eq!(reply.status, Status::SUCCESS);
    assert!(reply.data.iter().all(|of| of.values.iter().any(|kval| kval.key == "x")));
    reply.data.iter().map(|of| of.owner.rank.0).collect()
}

#[test]
fn sequential_gets_are_answered_ahead() {
    let mut world = World::with_job(1, 20);
    let conns: Vec<ConnId> = (0..20).map(|rank| world.connect(rank)).collect();
    for conn in &conns[..19] {
        put(&mut world, *conn, Scope::GLOBAL, "x", "1");
    }
    // Rank 4 skips itself.
    let me = conns[4];
    assert_eq!(owners(&mut world, me, 0), [0], "nobody knows what it wants next");
    assert_eq!(owners(&mut world, me, 1), [1, 2]);
    assert_eq!(owners(&mut world, me, 3), [3, 5, 6, 7]);
    assert_eq!(owners(&mut world, me, 8), [8, 9, 10, 11, 12, 13, 14, 15]);
    assert_eq!(owners(&mut world, me, 16), [16, 17, 18], "rank 19 has not committed");
    // A client that does not go in order gets only what it asks for.
    assert_eq!(owners(&mut world, me, 2), [2]);
    assert_eq!(owners(&mut world, me, 7), [7]);
    assert_eq!(owners(&mut world, me, 8), [8, 9]);
}

#[test]
fn values_are_not_sent_ahead_across_another_request() {
    let mut world = World::with_job(1, 4);
    let conns: Vec<ConnId> = (0..4).map(|rank| world.connect(rank)).collect();
    for conn in &conns {
        put(&mut world, *conn, Scope::GLOBAL, "x", "1");
    }
    assert_eq!(owners(&mut world, conns[0], 1), [1]);
    for conn in &conns {
        world.send(*conn, &fence(Vec::new(), Vec::new()));
    }
    assert_eq!(owners(&mut world, conns[0], 2), [2]);
    assert_eq!(owners(&mut world, conns[0], 3), [3]);
    // Requests of other clients change nothing.
    assert_eq!(owners(&mut world, conns[3], 0), [0]);
    put(&mut world, conns[2], Scope::GLOBAL, "x", "2");
    assert_eq!(owners(&mut world, conns[3], 1), [1, 2]);
}

#[test]
fn scopes_keep_values_on_their_side_of_the_network() {
    let mut world = World::with_job(1, 2);
    let (a, b) = (world.connect(0), world.connect(1));
    put(&mut world, a, Scope::REMOTE, "far", "1");
    put(&mut world, a, Scope::LOCAL, "near", "2");
    assert_eq!(world.ask_status(b, &get(&proc("job", 0), "far", Vec::new())), Status::ERR_NOT_FOUND);
    let as_remote = |name| get(&proc("job", 0), name, vec![Info::new(keys::DATA_SCOPE, Scope::REMOTE)]);
    let tag = world.send(b, &as_remote("far"));
    assert_eq!(world.value(b, tag, "far"), Some("1".into()), "who asks for it gets it");
    assert_eq!(world.ask_status(b, &as_remote("near")), Status::ERR_NOT_FOUND);
    for (name, found) in [("far", true), ("near", false)] {
        let call = ServerCall::DirectModex { proc: proc("job", 0), key: Some(key(name)) };
        let ServerReturn::Modex(result) = world.call(call) else { panic!() };
        assert_eq!(result.is_ok(), found, "{name}");
    }
}

#[test]
fn a_get_waits_for_the_first_commit_and_for_no_longer() {
    let mut world = World::with_job(1, 3);
    let (a, b, c) = (world.connect(0), world.connect(1), world.connect(2));
    let waiting = world.send(b, &get(&proc("job", 0), "x", Vec::new()));
    let other = world.send(c, &get(&proc("job", 0), "y", Vec::new()));
    let immediate = get(&proc("job", 0), "x", vec![Info::new(keys::IMMEDIATE, true)]);
    assert_eq!(world.ask_status(b, &immediate), Status::ERR_NOT_FOUND);
    assert!(!world.has_reply(b, waiting));
    let why = world.server.explain();
    assert_eq!((&*why[0].operation, &*why[0].subject), ("get", "x of job:0"));
    assert_eq!((&*why[0].asked_by, &*why[0].missing), (&[proc("job", 1)][..], &[proc("job", 0)][..]));
    put(&mut world, a, Scope::GLOBAL, "x", "1");
    assert_eq!(world.value(b, waiting, "x"), Some("1".into()));
    // A key that the first commit lacks may still arrive, but not for ever.
    assert!(!world.has_reply(c, other));
    world.advance(Duration::from_secs(3));
    // Other gets of that client may wait for these values.
    let reply: Reply = world.reply(c, other);
    let values = vec![Kval { key: key("x"), value: "1".into() }];
    assert_eq!(
        (reply.status, &*reply.data),
        (Status::SUCCESS, &[OwnerData { owner: proc("job", 0), values }][..])
    );
    assert!(world.server.explain().is_empty());
    let again = world.send(c, &get(&proc("job", 0), "y", Vec::new()));
    world.advance(Duration::from_secs(3));
    assert_eq!(world.status(c, again), Status::ERR_NOT_FOUND, "there is nothing new");
}

/// The status of an answer and the keys in it.
fn brought(world: &World, conn: ConnId, tag: u32) -> (Status, Vec<String>) {
    let reply: Reply = world.reply(conn, tag);
    let keys = reply.data.iter().flat_map(|owner| &owner.values).map(|kval| kval.key.as_str().to_owned());
    (reply.status, keys.collect())
}

#[test]
fn a_connection_gets_a_value_once() {
    let mut world = World::with_job(1, 2);
    let (a, b) = (world.connect(0), world.connect(1));
    let of = |name| get(&proc("job", 0), name, Vec::new());
    let waiting: Vec<u32> = ["x", "y"].into_iter().map(|name| world.send(b, &of(name))).collect();
    let kvals = ["x", "y", "z"].map(|name| Kval { key: key(name), value: "1".into() });
    let commit = Commit { buckets: vec![(Scope::LOCAL, kvals.to_vec())] };
    assert_eq!(world.ask_status(a, &Request::Commit(commit)), Status::SUCCESS);
    assert_eq!(brought(&world, b, waiting[0]).1, ["x", "y", "z"]);
    assert_eq!(brought(&world, b, waiting[1]).1, ["y"], "what is asked for, in any case");
    put(&mut world, a, Scope::LOCAL, "y", "2");
    let tag = world.send(b, &of("x"));
    assert_eq!(brought(&world, b, tag).1, ["x", "y"], "and what is new");
    let everything = Request::Get(Get { nspace: ns("job"), rank: Rank(0), info: Vec::new(), key: None });
    let tag = world.send(b, &everything);
    let all = brought(&world, b, tag).1;
    assert!(["x", "y", "z"].iter().all(|key| all.iter().any(|one| one == key)), "{all:?}");
}

#[test]
fn a_get_for_many_is_answered_by_anything_new() {
    let mut world = World::with_job(1, 2);
    let (a, b) = (world.connect(0), world.connect(1));
    let of = |name, waited: u64| get(&proc("job", 0), name, vec![Info::new(PARTIAL, waited)]);
    let tag = world.send(b, &of("z", 0));
    put(&mut world, a, Scope::LOCAL, "x", "1");
    assert_eq!(brought(&world, b, tag), (Status::ERR_PARTIAL_SUCCESS, vec!["x".to_owned()]));
    put(&mut world, a, Scope::LOCAL, "y", "1");
    let tag = world.send(b, &of("z", 1));
    assert_eq!(brought(&world, b, tag), (Status::ERR_PARTIAL_SUCCESS, vec!["y".to_owned()]));
    let tag = world.send(b, &of("z", 1500));
    world.advance(Duration::from_millis(400));
    assert!(!world.has_reply(b, tag));
    world.advance(Duration::from_millis(200));
    assert_eq!(brought(&world, b, tag), (Status::ERR_NOT_FOUND, Vec::new()), "it has waited long enough");
    let tag = world.send(b, &of("z", 1));
    put(&mut world, a, Scope::LOCAL, "z", "1");
    assert_eq!(brought(&world, b, tag), (Status::SUCCESS, vec!["z".to_owned()]));
}

#[test]
fn a_get_ends_with_its_time() {
    let mut world = World::with_job(1, 2);
    let b = world.connect(1);
    let tag = world.send(b, &get(&proc("job", 0), "x", vec![Info::new(keys::TIMEOUT, 5i32)]));
    assert_eq!(world.server.explain()[0].deadline, Some(world.now.after(Duration::from_secs(5))));
    world.advance(Duration::from_secs(4));
    assert!(!world.has_reply(b, tag));
    world.advance(Duration::from_secs(1));
    assert_eq!(world.status(b, tag), Status::ERR_TIMEOUT);
    put_later(&mut world);
}

/// Commits after the time is up: no get is left to answer.
fn put_later(world: &mut World) {
    let a = world.connect(0);
    put(world, a, Scope::GLOBAL, "x", "1");
}

#[test]
fn waiters_are_answered_when_the_rank_ends() {
    type End = fn(&mut World, ConnId);
    let ends: [End; 3] = [
        |world, conn| world.close(conn),
        |world, conn| assert_eq!(world.ask_status(conn, &Request::Finalize), Status::SUCCESS),
        |world, _| drop(world.call(ServerCall::DeregisterClient(proc("job", 0)))),
    ];
    for end in ends {
        let mut world = World::with_job(1, 2);
        let (a, b) = (world.connect(0), world.connect(1));
        let tag = world.send(b, &get(&proc("job", 0), "x", Vec::new()));
        let (call, returned) = world.try_call(ServerCall::DirectModex { proc: proc("job", 0), key: None });
        assert_eq!(returned, None);
        end(&mut world, a);
        assert_eq!(world.status(b, tag), Status::ERR_NOT_FOUND);
        assert!(world.returns.contains_key(&call));
        let later = world.ask_status(b, &get(&proc("job", 0), "x", Vec::new()));
        assert_eq!(later, Status::ERR_NOT_FOUND, "nor does it hang later");
    }
}

#[test]
fn values_of_an_ended_rank_are_still_found() {
    let mut world = World::with_job(1, 2);
    let (a, b) = (world.connect(0), world.connect(1));
    put(&mut world, a, Scope::GLOBAL, "x", "1");
    world.close(a);
    let tag = world.send(b, &get(&proc("job", 0), "x", Vec::new()));
    assert_eq!(world.value(b, tag, "x"), Some("1".into()));
    assert_eq!(world.ask_status(b, &get(&proc("job", 0), "y", Vec::new())), Status::ERR_NOT_FOUND);
}

#[test]
fn a_get_of_an_own_missing_key_fails_at_once() {
    let mut world = World::with_job(1, 2);
    let a = world.connect(0);
    let own = get(&proc("job", 0), "x", Vec::new());
    assert_eq!(world.ask_status(a, &own), Status::ERR_NOT_FOUND, "before it has committed anything");
    put(&mut world, a, Scope::GLOBAL, "y", "1");
    assert_eq!(world.ask_status(a, &own), Status::ERR_NOT_FOUND, "and after");
    put(&mut world, a, Scope::GLOBAL, "x", "2");
    let tag = world.send(a, &own);
    assert_eq!(world.value(a, tag, "x"), Some("2".into()));
}

#[test]
fn a_getter_that_goes_leaves_nothing_behind() {
    let mut world = World::with_job(1, 2);
    let (a, b) = (world.connect(0), world.connect(1));
    world.send(b, &get(&proc("job", 0), "x", vec![Info::new(keys::TIMEOUT, 5u32)]));
    world.close(b);
    assert!(world.server.explain().is_empty());
    put(&mut world, a, Scope::GLOBAL, "x", "1");
    world.advance(Duration::from_secs(60));
}

#[test]
fn remote_values_are_fetched_once_for_all_waiters() {
    let mut world = World::with_job(2, 2);
    let (a, b) = (world.connect(0), world.connect(1));
    let far = proc("job", 2);
    let first = world.send(a, &get(&far, "x", Vec::new()));
    let second = world.send(b, &get(&far, "x", Vec::new()));
    let (id, op) = world.take_upcall();
    let info = vec![Info::new(keys::REQUIRED_KEY, "x")];
    assert_eq!(op, HostOp::DirectModex(DirectModexRequest { proc: far.clone(), info }));
    world.answer_modex(id, modex(&far, "x", "9"));
    assert_eq!(world.value(a, first, "x"), Some("9".into()));
    assert_eq!(world.value(b, second, "x"), Some("9".into()));
    // The value is kept; a refresh asks anew; immediate does not ask.
    let third = world.send(b, &get(&far, "x", Vec::new()));
    assert_eq!(world.value(b, third, "x"), Some("9".into()));
    let immediate = get(&far, "z", vec![Info::new(keys::IMMEDIATE, true)]);
    assert_eq!(world.ask_status(b, &immediate), Status::ERR_NOT_FOUND);
    let fresh = world.send(b, &get(&far, "x", vec![Info::new(keys::GET_REFRESH_CACHE, true)]));
    let (id, _) = world.take_upcall();
    world.answer_modex(id, modex(&far, "x", "10"));
    assert_eq!(world.value(b, fresh, "x"), Some("10".into()));
}

#[test]
fn values_of_a_rank_that_is_started_again_are_fetched_anew() {
    let mut world = World::with_job(2, 2);
    let a = world.connect(0);
    let far = proc("job", 2);
    let forget = |world: &mut World, ranks: &[u32]| {
        let ranks = ranks.iter().copied().map(Rank).collect();
        world.call(ServerCall::ForgetValues { nspace: ns("job"), ranks })
    };
    let first = world.send(a, &get(&far, "x", Vec::new()));
    let (id, _) = world.take_upcall();
    world.answer_modex(id, modex(&far, "x", "old"));
    assert_eq!(world.value(a, first, "x"), Some("old".into()));
    assert_eq!(forget(&mut world, &[2]), ServerReturn::Done(Status::SUCCESS));
    let second = world.send(a, &get(&far, "x", Vec::new()));
    let (id, _) = world.take_upcall();
    world.answer_modex(id, modex(&far, "x", "new"));
    assert_eq!(world.value(a, second, "x"), Some("new".into()));
    // A local rank that has not ended keeps its values.
    put(&mut world, a, Scope::GLOBAL, "y", "mine");
    assert_eq!(forget(&mut world, &[0]), ServerReturn::Done(Status::SUCCESS));
    let call = ServerCall::DirectModex { proc: proc("job", 0), key: Some(key("y")) };
    assert!(matches!(world.call(call.clone()), ServerReturn::Modex(Ok(_))));
    world.call(ServerCall::DeregisterClient(proc("job", 0)));
    assert_eq!(forget(&mut world, &[0]), ServerReturn::Done(Status::SUCCESS));
    assert_eq!(world.call(call), ServerReturn::Modex(Err(Status::ERR_NOT_FOUND)));
}

#[test]
fn gets_of_different_keys_do_not_wait_for_each_other() {
    let mut world = World::with_job(2, 2);
    let (a, b) = (world.connect(0), world.connect(1));
    let far = proc("job", 2);
    let first = world.send(a, &get(&far, "x", Vec::new()));
    let second = world.send(b, &get(&far, "y", Vec::new()));
    let third = world.send(b, &get(&far, "x", Vec::new()));
    let wants = |op: &HostOp, key: &str| matches!(op, HostOp::DirectModex(DirectModexRequest { info, .. }) if *info == [Info::new(keys::REQUIRED_KEY, key)]);
    let (of_x, op) = world.asked.remove(0);
    assert!(wants(&op, "x"), "{op:?}");
    let (of_y, op) = world.take_upcall();
    assert!(wants(&op, "y"), "{op:?}");
    world.answer_modex(of_y, modex(&far, "y", "1"));
    assert_eq!(world.value(b, second, "y"), Some("1".into()));
    assert!(!world.has_reply(a, first) && !world.has_reply(b, third));
    world.answer_modex(of_x, modex(&far, "y", "1"));
    assert_eq!(world.status(a, first), Status::ERR_NOT_FOUND);
    // The third get was sent after the search for `x` had begun.
    let (id, _) = world.take_upcall();
    world.answer_modex(id, modex(&far, "x", "2"));
    assert_eq!(world.value(b, third, "x"), Some("2".into()));
    let third = world.send(b, &get(&far, "y", Vec::new()));
    let (id, _) = world.take_upcall();
    world.answer(id, HostReply::Modex(Err(Status::ERR_TIMEOUT)));
    assert_eq!(world.status(b, third), Status::ERR_TIMEOUT);
    let fourth = world.send(b, &get(&far, "y", Vec::new()));
    let (id, _) = world.take_upcall();
    world.answer_modex(id, Blob::from(vec![0xff; 9]));
    assert_eq!(world.status(b, fourth), Status::ERR_UNPACK_FAILURE);
}

#[test]
fn each_get_from_a_far_rank_has_its_own_time_limit() {
    let mut world = World::with_job(2, 2);
    let (a, b) = (world.connect(0), world.connect(1));
    let far = proc("job", 2);
    let short = world.send(a, &get(&far, "x", vec![Info::new(keys::TIMEOUT, 1u32)]));
    let long = world.send(b, &get(&far, "x", vec![Info::new(keys::TIMEOUT, 60u32)]));
    let none = world.send(b, &get(&far, "x", Vec::new()));
    let (id, _) = world.take_upcall();
    world.advance(Duration::from_secs(1));
    assert_eq!(world.status(a, short), Status::ERR_TIMEOUT);
    world.answer(id, HostReply::Modex(Err(Status::ERR_TIMEOUT)));
    assert!(!world.has_reply(b, long) && !world.has_reply(b, none));
    // The rank has committed other keys, and its server has waited for this one.
    let (id, _) = world.take_upcall();
    world.answer(id, HostReply::Modex(Err(Status::ERR_PARTIAL_SUCCESS)));
    assert_eq!(world.status(b, none), Status::ERR_NOT_FOUND);
    assert!(!world.has_reply(b, long));
    let (id, _) = world.take_upcall();
    world.answer_modex(id, modex(&far, "x", "late"));
    assert_eq!(world.value(b, long, "x"), Some("late".into()));
}

/// Otherwise all its values would be lost silently.
#[test]
fn a_commit_that_cannot_be_read_is_an_error_for_all() {
    let mut world = World::with_job(2, 2);
    let (a, b) = (world.connect(0), world.connect(1));
    put(&mut world, a, Scope::GLOBAL, "before", "known");
    let waits = world.send(b, &get(&proc("job", 0), "x", Vec::new()));
    let owner = ServerCall::DirectModex { proc: proc("job", 0), key: Some(key("x")) };
    let commit = Request::Commit(Commit { buckets: vec![(Scope::GLOBAL, vec![Kval::new("x", "lost")])] });
    let mut bytes = commit.encode(v41());
    bytes.truncate(bytes.len() - 3);
    let tag = world.raw(a, &bytes);
    assert_eq!(world.status(a, tag), Status::ERR_UNPACK_FAILURE);
    assert_eq!(world.status(b, waits), Status::ERR_UNPACK_FAILURE);
    assert_eq!(world.ask_status(b, &get(&proc("job", 0), "y", Vec::new())), Status::ERR_UNPACK_FAILURE);
    assert_eq!(world.call(owner), ServerReturn::Modex(Err(Status::ERR_UNPACK_FAILURE)));
    let known = world.send(b, &get(&proc("job", 0), "before", Vec::new()));
    assert_eq!(world.value(b, known, "before"), Some("known".into()));
}

#[test]
fn a_rank_that_does_not_exist_is_not_waited_for() {
    let mut world = World::with_job(2, 1);
    let a = world.connect(0);
    assert_eq!(world.ask_status(a, &get(&proc("job", 2), "x", Vec::new())), Status::ERR_NOT_FOUND);
    let unknown = world.send(a, &get(&proc("elsewhere", 0), "x", vec![Info::new(keys::TIMEOUT, 3u32)]));
    let (id, op) = world.take_upcall();
    assert!(
        matches!(op, HostOp::DirectModex(DirectModexRequest { proc: p, .. }) if p == proc("elsewhere", 0))
    );
    world.answer(id, HostReply::Done(Status::ERR_NOT_FOUND));
    assert_eq!(world.status(a, unknown), Status::ERR_NOT_FOUND);
    let hanging = world.send(a, &get(&proc("elsewhere", 0), "x", vec![Info::new(keys::TIMEOUT, 3u32)]));
    world.advance(Duration::from_secs(3));
    assert_eq!(world.status(a, hanging), Status::ERR_TIMEOUT);
}

#[test]
fn a_job_may_become_known_while_somebody_asks_for_it() {
    let mut world = World::with_job(1, 1);
    let a = world.connect(0);
    let tag = world.send(a, &get(&ProcId::all(&ns("late")), keys::JOB_SIZE, Vec::new()));
    let (id, _) = world.take_upcall();
    world.register(job("late", 1, 3));
    assert_eq!(world.value(a, tag, keys::JOB_SIZE), Some(3u32.into()));
    world.answer_modex(id, Blob::default());
    // Now its ranks are local, and are waited for.
    let tag = world.send(a, &get(&proc("late", 1), "x", Vec::new()));
    let late = world.connect_as(&proc("late", 1), dialect(5, 0, 3));
    put(&mut world, late, Scope::GLOBAL, "x", "1");
    assert_eq!(world.value(a, tag, "x"), Some("1".into()));
}

#[test]
fn a_process_of_another_job_gets_the_job_data_once() {
    let mut world = World::with_job(1, 1);
    world.register(job("other", 1, 2));
    let a = world.connect(0);
    let b = world.connect_as(&proc("other", 0), dialect(4, 2, 2));
    put(&mut world, b, Scope::GLOBAL, "x", "1");
    let reply: Reply = world.ask(a, &get(&proc("other", 0), "x", Vec::new()));
    let owners: Vec<&ProcId> = reply.data.iter().map(|owner| &owner.owner).collect();
    assert_eq!(owners, [&ProcId::all(&ns("other")), &proc("other", 0)]);
    let ranks = reply.data[0].values.iter().filter(|kval| kval.key == keys::PROC_INFO_ARRAY);
    let first = |kval: &Kval| kval.value.as_array().unwrap().infos().next().unwrap().value.clone();
    assert_eq!(ranks.map(first).collect::<Vec<_>>(), [Value::Rank(Rank(0)), Value::Rank(Rank(1))]);
    let reply: Reply = world.ask(a, &get(&proc("other", 0), "x", Vec::new()));
    assert_eq!(reply.data.len(), 1);
    assert!(reply.data[0].values.iter().any(|kval| kval.key == keys::HOSTNAME));
}

#[test]
fn job_level_values_are_there_or_are_not() {
    let mut world = World::with_job(2, 2);
    let a = world.connect(0);
    let all = ProcId::all(&ns("job"));
    let tag = world.send(a, &get(&all, keys::JOB_SIZE, Vec::new()));
    assert_eq!(world.value(a, tag, keys::JOB_SIZE), Some(Value::Uint32(4)));
    assert_eq!(world.ask_status(a, &get(&all, keys::CREDENTIAL, Vec::new())), Status::ERR_NOT_FOUND);
    let reply: Reply = world.ask(a, &get(&all, keys::UNIV_SIZE, Vec::new()));
    let session = array(&reply, keys::SESSION_INFO_ARRAY);
    assert_eq!(of_array(session, keys::UNIV_SIZE), Value::Uint32(4));
    assert_eq!(of_array(session, keys::ALLOCATED_NODELIST), "node0,spare".into());
    let reply: Reply = world.ask(a, &get(&all, keys::LOCAL_PEERS, Vec::new()));
    assert_eq!(of_array(array(&reply, keys::NODE_INFO_ARRAY), keys::LOCAL_PEERS), "0,1".into());
    // Rank WILDCARD has no node.
    assert_eq!(world.ask_status(a, &get(&all, keys::NODEID, Vec::new())), Status::ERR_NOT_FOUND);
    let everything =
        Request::Get(Get { nspace: ns("job"), rank: Rank::WILDCARD, info: Vec::new(), key: None });
    let reply: Reply = world.ask(a, &everything);
    assert!(reply.data[0].values.len() > 10);
}

#[test]
fn nodes_are_found_by_name_by_number_and_by_rank() {
    let mut world = World::with_job(3, 2);
    let a = world.connect(0);
    let here = Info::new(keys::NODE_INFO, true);
    let asked: [(Rank, Option<Info>, &str); 6] = [
        (Rank::UNDEF, Some(Info::new(keys::HOSTNAME, "node1")), "2,3"),
        (Rank::UNDEF, Some(Info::new(keys::NODEID, 102u32)), "4,5"),
        (Rank::WILDCARD, None, "0,1"),
        // As 4.2 asks for the peers on its own node.
        (Rank::WILDCARD, Some(Info::new(keys::HOSTNAME, Value::NullString)), "0,1"),
        (Rank(3), None, "2,3"),
        (Rank::WILDCARD, Some(Info::new(keys::NODEID, 100i32)), "0,1"),
    ];
    for (rank, which, peers) in asked {
        let target = ProcId::new(&ns("job"), rank);
        let info = [here.clone()].into_iter().chain(which).collect();
        let reply: Reply = world.ask(a, &get(&target, keys::LOCAL_PEERS, info));
        assert_eq!(of_array(array(&reply, keys::NODE_INFO_ARRAY), keys::LOCAL_PEERS), peers.into());
        assert_eq!(reply.data[0].owner, ProcId::all(&ns("job")));
    }
    let nowhere = vec![here, Info::new(keys::HOSTNAME, "node9")];
    let target = ProcId::new(&ns("job"), Rank::UNDEF);
    assert_eq!(world.ask_status(a, &get(&target, keys::LOCAL_PEERS, nowhere)), Status::ERR_NOT_FOUND);
}

#[test]
fn apps_and_sessions_are_asked_for_by_their_directive() {
    let mut world = World::with_job(1, 2);
    let a = world.connect(0);
    let all = ProcId::all(&ns("job"));
    for info in [
        vec![Info::new(keys::APP_INFO, true)],
        vec![Info::new(keys::APP_INFO, true), Info::new(keys::APPNUM, 0u32)],
    ] {
        let reply: Reply = world.ask(a, &get(&all, keys::WDIR, info));
        assert_eq!(of_array(array(&reply, keys::APP_INFO_ARRAY), keys::WDIR), "/home/u".into());
    }
    let no_app = vec![Info::new(keys::APP_INFO, true), Info::new(keys::APPNUM, 4u32)];
    assert_eq!(world.ask_status(a, &get(&all, keys::WDIR, no_app)), Status::ERR_NOT_FOUND);
    let reply: Reply = world.ask(a, &get(&all, keys::SESSION_ID, vec![Info::new(keys::SESSION_INFO, true)]));
    assert_eq!(of_array(array(&reply, keys::SESSION_INFO_ARRAY), keys::SESSION_ID), Value::Uint32(17));
    for (id, status) in [(17u32, Status::SUCCESS), (18, Status::ERR_NOT_FOUND)] {
        let session = vec![Info::new(keys::SESSION_INFO, true), Info::new(keys::SESSION_ID, id)];
        assert_eq!(world.ask_status(a, &get(&all, keys::UNIV_SIZE, session)), status);
    }
}

#[test]
fn location_of_any_rank_can_be_asked_for() {
    let mut world = World::with_job(2, 2);
    let a = world.connect(0);
    for (rank, node) in [(1, "node0"), (3, "node1")] {
        let tag = world.send(a, &get(&proc("job", rank), keys::HOSTNAME, Vec::new()));
        assert_eq!(world.value(a, tag, keys::HOSTNAME), Some(node.into()), "of rank {rank}");
    }
    let reserved = get(&proc("job", 1), keys::FABRIC_COORDINATES, Vec::new());
    assert_eq!(
        world.ask_status(a, &reserved),
        Status::ERR_NOT_FOUND,
        "a reserved key does not come by commit"
    );
}

#[test]
fn a_key_that_is_unique_is_found_without_a_rank() {
    let mut world = World::with_job(1, 2);
    let (a, b) = (world.connect(0), world.connect(1));
    let anybody = ProcId::new(&ns("job"), Rank::UNDEF);
    let tag = world.send(a, &get(&anybody, "x", Vec::new()));
    put(&mut world, b, Scope::GLOBAL, "x", "1");
    assert_eq!(world.value(a, tag, "x"), Some("1".into()));
}

#[test]
fn refresh_gives_everything_a_rank_has_now() {
    let mut world = World::with_job(2, 1);
    let a = world.connect_as(&proc("job", 0), dialect(5, 0, 3));
    put(&mut world, a, Scope::GLOBAL, "x", "1");
    let own = Request::RefreshCache(RefreshCache { nspace: ns("job"), rank: Rank(0) });
    let reply: RefreshReply = world.ask(a, &own);
    assert!(reply.status == Status::SUCCESS && reply.values.iter().any(|kval| kval.key == "x"));
    let far = Request::RefreshCache(RefreshCache { nspace: ns("job"), rank: Rank(1) });
    let tag = world.send(a, &far);
    let (id, op) = world.take_upcall();
    assert_eq!(op, HostOp::DirectModex(DirectModexRequest { proc: proc("job", 1), info: Vec::new() }));
    world.answer_modex(id, modex(&proc("job", 1), "z", "2"));
    let reply: RefreshReply = world.reply(a, tag);
    assert!(reply.values.iter().any(|kval| kval.key == "z"));
}

#[test]
fn unknown_required_directive_is_refused() {
    let mut world = World::with_job(1, 2);
    let (a, b) = (world.connect(0), world.connect(1));
    put(&mut world, a, Scope::GLOBAL, "x", "1");
    let unknown = Info { key: key("site.magic"), flags: InfoFlags::empty(), value: true.into() };
    assert_eq!(world.ask_status(b, &get(&proc("job", 0), "x", vec![unknown.clone()])), Status::SUCCESS);
    let required = get(&proc("job", 0), "x", vec![unknown.required()]);
    assert_eq!(world.ask_status(b, &required), Status::ERR_NOT_SUPPORTED);
}

#[test]
fn commits_are_bounded_and_replaced_values_do_not_count() {
    let mut world = World::with_job(1, 1);
    let a = world.connect(0);
    let big = Value::ByteObject(Blob::from(vec![0; 40 << 20]));
    let one = |name: &str| {
        let kval = Kval { key: key(name), value: big.clone() };
        Request::Commit(Commit { buckets: vec![(Scope::LOCAL, vec![kval])] })
    };
    for _ in 0..5 {
        assert_eq!(world.ask_status(a, &one("same")), Status::SUCCESS);
    }
    let statuses: Vec<Status> =
        ["b", "c", "d", "e", "f", "g"].iter().map(|name| world.ask_status(a, &one(name))).collect();
    assert_eq!(statuses.iter().filter(|s| **s == Status::ERR_OUT_OF_RESOURCE).count(), 1);
}

#[test]
fn names_of_process_sets_are_got_like_values() {
    let mut world = World::with_job(1, 2);
    let a = world.connect(0);
    let names = get(&proc("job", 0), keys::PSET_NAMES, Vec::new());
    assert_eq!(world.ask_status(a, &names), Status::ERR_NOT_FOUND);
    for (name, members) in [("one", vec![proc("job", 1)]), ("two", vec![ProcId::all(&ns("job"))])] {
        let call = ServerCall::DefineProcessSet { name: name.into(), members };
        assert_eq!(world.call(call), ServerReturn::Done(Status::SUCCESS));
    }
    let tag = world.send(a, &names);
    assert_eq!(world.value(a, tag, keys::PSET_NAMES), Some("two".into()));
}

#[test]
fn a_value_of_any_type_comes_back_as_it_went() {
    let mut world = World::with_job(1, 2);
    let (a, b) = (world.connect(0), world.connect(1));
    let items = vec![Value::Uint16(1), Value::Uint16(2)];
    let values = [
        Value::Double(0.5),
        Value::NullString,
        Value::Proc(proc("job", 1)),
        Value::DataArray(Box::new(DataArray { of: DataType::UINT16, items })),
        Value::ByteObject(Blob::default()),
        Value::Int64(i64::MIN),
    ];
    let kvals =
        |(i, value): (usize, &Value)| Kval { key: Key::new(&format!("k{i}")).unwrap(), value: value.clone() };
    let bucket: Vec<Kval> = values.iter().enumerate().map(kvals).collect();
    let commit = Commit { buckets: vec![(Scope::LOCAL, bucket.clone())] };
    assert_eq!(world.ask_status(a, &Request::Commit(commit)), Status::SUCCESS);
    let reply: Reply = world.ask(b, &get(&proc("job", 0), "k0", Vec::new()));
    assert_eq!(reply.data[0].values, bucket);
}

#[test]
fn answers_fit_the_messages_that_release_6_takes() {
    const MIB: usize = 1 << 20;
    let commit = |world: &mut World, conn, name: &str, mib: usize| {
        let value = Value::ByteObject(vec![7; mib * MIB].into());
        let commit = Commit { buckets: vec![(Scope::LOCAL, vec![Kval { key: key(name), value }])] };
        assert_eq!(world.ask_status(conn, &Request::Commit(commit)), Status::SUCCESS);
    };
    let of_0 = |name: &str| get(&proc("job", 0), name, Vec::new());
    let mut world = World::with_job(1, 3);
    let puts = world.connect(0);
    let asks = world.connect_as(&proc("job", 1), dialect(6, 1, 0));
    for name in ["k0", "k1", "k2", "k3"] {
        commit(&mut world, puts, name, 10);
    }
    // The client gets as much as it can take, the requested value first.
    for name in ["k3", "k2", "k1", "k0"] {
        let tag = world.send(asks, &of_0(name));
        assert!(world.client(asks).replies[&tag].len() <= 32 * MIB);
        assert!(world.value(asks, tag, name).is_some());
        world.input(Input::Writable { conn: asks, queued: 0 });
    }
    // The same holds for a get that has waited.
    let waits = world.connect_as(&proc("job", 2), dialect(6, 1, 0));
    let tag = world.send(waits, &of_0("last"));
    assert!(!world.has_reply(waits, tag));
    commit(&mut world, puts, "last", 1);
    assert!(world.client(waits).replies[&tag].len() <= 32 * MIB);
    assert!(world.value(waits, tag, "last").is_some());
    // A value that is too long alone can be sent only to other releases.
    commit(&mut world, puts, "long", 33);
    assert_eq!(world.ask_status(asks, &of_0("long")), Status::ERR_OUT_OF_RESOURCE);
    let other = world.connect(0);
    let tag = world.send(other, &of_0("long"));
    assert!(world.value(other, tag, "long").is_some());
}
