//! Files of collected data: when they are written, what they hold, which clients get their names, when they are removed.

use phalanx_spec::{Rank, Scope, Status};
use phalanx_wire::cmd::commit::Commit;
use phalanx_wire::cmd::fence::{Collected, Reply};
use phalanx_wire::cmd::{Body, Request, StatusReply};
use phalanx_wire::collected::Collection;
use phalanx_wire::hello::COLLECTED;
use phalanx_wire::{Blob, Info, Kval, ProcId};

use super::world::{UID, World, collect, config, fence, global, hello, job, key, ns, proc, v41};
use crate::host::{FenceRequest, HostOp};
use crate::machine::ConnId;
use crate::server::{ServerCall, ServerConfig};

const BEGINNING: &str = "/tmp/px/collected";

fn writing() -> ServerConfig {
    ServerConfig { collections: Some(BEGINNING.to_owned()), ..config() }
}

/// A job of that shape, with a server that writes files.
fn world(nodes: u32, per_node: u32) -> World {
    let mut world = World::configured(writing());
    world.call(ServerCall::DeregisterNspace(ns("job")));
    world.register(job("job", nodes, per_node));
    world
}

/// One of our clients.
fn reader(world: &mut World, proc: &ProcId) -> ConnId {
    let conn = world.open_as(UID);
    let info = vec![Info::new(COLLECTED, true)];
    world.bytes(conn, &phalanx_wire::hello::Hello { info, ..hello(proc) }.encode());
    conn
}

fn readers(world: &mut World, n: u32) -> Vec<ConnId> {
    (0..n).map(|rank| reader(world, &proc("job", rank))).collect()
}

fn commit(world: &mut World, conn: ConnId, name: &str, n: u32) {
    assert_eq!(world.ask_status(conn, &Request::Commit(global(name, n))), Status::SUCCESS);
}

/// A fence of all these; returns the files named to the first of them.
fn meet(world: &mut World, all: &[ConnId], procs: Vec<ProcId>, info: Vec<Info>) -> Vec<Collected> {
    let tags: Vec<u32> =
        all.iter().map(|conn| world.send(*conn, &fence(procs.clone(), info.clone()))).collect();
    named(world, all[0], tags[0])
}

fn named(world: &World, conn: ConnId, tag: u32) -> Vec<Collected> {
    let reply: Reply = world.reply(conn, tag);
    assert_eq!(reply.status, Status::SUCCESS);
    reply.collected
}

/// Keys and numeric values of a rank in the named file.
fn values(world: &World, named: &Collected, rank: u32) -> Option<Vec<(String, u32)>> {
    let file = world.files[named.file.as_str().unwrap()].as_slice();
    let collection = Collection::open(file, named.at, &named.nspace).unwrap();
    let values = collection.values_of(Rank(rank)).unwrap()?;
    Some(values.into_iter().map(|v| (v.key.to_string(), v.value.as_u32().unwrap())).collect())
}

fn one(name: &str, n: u32) -> Option<Vec<(String, u32)>> {
    Some(vec![(name.to_owned(), n)])
}

#[test]
fn a_fence_that_collects_names_a_file_to_clients_of_ours_alone() {
    let mut world = world(1, 3);
    let mut ranks = readers(&mut world, 2);
    ranks.push(world.connect(2));
    commit(&mut world, ranks[0], "a", 10);
    commit(&mut world, ranks[2], "c", 12);
    let tags: Vec<u32> = ranks.iter().map(|conn| world.send(*conn, &fence(Vec::new(), collect()))).collect();
    let files = named(&world, ranks[0], tags[0]);
    assert_eq!(
        (files[0].file.to_string_lossy(), files[0].at, named(&world, ranks[1], tags[1])),
        (format!("{BEGINNING}.1"), 0, files.clone())
    );
    let plain = StatusReply(Status::SUCCESS).encode(v41());
    assert_eq!(world.client(ranks[2]).replies[&tags[2]], plain);
    let expected = [one("a", 10), None, one("c", 12), None];
    for (rank, expected) in (0..).zip(expected) {
        assert_eq!(values(&world, &files[0], rank), expected);
    }
}

#[test]
fn without_a_reader_a_directory_or_a_wish_nothing_is_written() {
    let mut others = world(1, 1);
    let conn = others.connect(0);
    meet(&mut others, &[conn], Vec::new(), collect());
    let mut nowhere = World::with_job(1, 1);
    let conn = reader(&mut nowhere, &proc("job", 0));
    assert_eq!(meet(&mut nowhere, &[conn], Vec::new(), collect()), []);
    let mut plain = world(1, 1);
    let conn = reader(&mut plain, &proc("job", 0));
    assert_eq!(meet(&mut plain, &[conn], Vec::new(), Vec::new()), []);
    let mut foreign = World::configured(ServerConfig { owner_uid: 0, ..writing() });
    let conn = reader(&mut foreign, &proc("job", 0));
    assert_eq!(meet(&mut foreign, &[conn], Vec::new(), collect()), [], "it could not read it");
    for world in [others, nowhere, plain, foreign] {
        assert!(world.files.is_empty());
    }
}

#[test]
fn a_file_is_named_until_somebody_commits() {
    let mut world = world(1, 2);
    let ranks = readers(&mut world, 2);
    commit(&mut world, ranks[1], "a", 1);
    let first = meet(&mut world, &ranks, Vec::new(), collect());
    assert_eq!(meet(&mut world, &ranks, Vec::new(), Vec::new()), first, "nothing has changed");
    assert_eq!(meet(&mut world, &ranks, Vec::new(), collect()), first);
    commit(&mut world, ranks[1], "a", 2);
    assert_eq!(meet(&mut world, &ranks, Vec::new(), Vec::new()), []);
    let second = meet(&mut world, &ranks, Vec::new(), collect());
    assert_eq!(values(&world, &second[0], 1), one("a", 2));
    assert_eq!(values(&world, &first[0], 1), one("a", 1), "who still reads that is not disturbed");
    assert_eq!(world.files.len(), 1, "both stand in one file");
}

#[test]
fn a_fence_of_some_writes_nothing() {
    let mut world = world(1, 3);
    let ranks = readers(&mut world, 3);
    let some = || vec![proc("job", 0), proc("job", 1)];
    assert_eq!(meet(&mut world, &ranks[..2], some(), collect()), []);
    let by_name = (0..3).map(|rank| proc("job", rank)).collect();
    let file = meet(&mut world, &ranks, by_name, collect());
    assert_eq!(file.len(), 1);
    assert_eq!(meet(&mut world, &ranks[..2], some(), Vec::new()), file);
}

#[test]
fn each_job_of_a_fence_has_its_file_which_goes_with_it() {
    let mut world = world(1, 1);
    world.register(job("other", 1, 1));
    let ranks = [reader(&mut world, &proc("job", 0)), reader(&mut world, &proc("other", 0))];
    commit(&mut world, ranks[0], "a", 1);
    commit(&mut world, ranks[1], "b", 2);
    let both = vec![ProcId::all(&ns("job")), ProcId::all(&ns("other"))];
    let files = meet(&mut world, &ranks, both, collect());
    assert_eq!(values(&world, &files[0], 0), one("a", 1));
    assert_eq!(values(&world, &files[1], 0), one("b", 2));
    world.call(ServerCall::DeregisterNspace(ns("other")));
    assert_eq!(world.files.keys().collect::<Vec<_>>(), [files[0].file.as_str().unwrap()]);
    world.call(ServerCall::DeregisterNspace(ns("job")));
    assert!(world.files.is_empty());
}

/// It holds what other nodes contributed, and each rank's values as processes of this node see them.
#[test]
fn the_file_holds_what_this_node_may_see() {
    let mut world = world(2, 2);
    let ranks = readers(&mut world, 2);
    let kval = |name: &str| vec![Kval { key: key(name), value: 1_u32.into() }];
    let scopes = Commit { buckets: vec![(Scope::LOCAL, kval("here")), (Scope::REMOTE, kval("there"))] };
    world.ask_status(ranks[0], &Request::Commit(scopes));
    world.ask_status(ranks[1], &Request::Commit(Commit { buckets: vec![(Scope::REMOTE, kval("there"))] }));
    let tags: Vec<u32> = ranks.iter().map(|conn| world.send(*conn, &fence(Vec::new(), collect()))).collect();
    let (id, HostOp::Fence(FenceRequest { data, .. })) = world.take_upcall() else { panic!() };

    let mut elsewhere = World::configured(config());
    let mut far = job("job", 2, 2);
    far.here = Some(1);
    elsewhere.call(ServerCall::DeregisterNspace(ns("job")));
    elsewhere.register(far);
    let there: Vec<ConnId> = (2..4).map(|rank| elsewhere.connect(rank)).collect();
    commit(&mut elsewhere, there[1], "far", 3);
    for conn in there {
        elsewhere.send(conn, &fence(Vec::new(), collect()));
    }
    let (_, HostOp::Fence(FenceRequest { data: from_there, .. })) = elsewhere.take_upcall() else { panic!() };

    world.answer_modex(id, Blob::from([data.as_bytes(), from_there.as_bytes()].concat()));
    let file = named(&world, ranks[1], tags[1]).remove(0);
    let expected = [one("here", 1), None, None, one("far", 3)];
    for (rank, expected) in (0..).zip(expected) {
        assert_eq!(values(&world, &file, rank), expected);
    }
}

#[test]
fn a_long_file_is_followed_by_another() {
    let mut world = world(1, 1);
    let rank = reader(&mut world, &proc("job", 0));
    let mut names = Vec::new();
    for n in 0..3 {
        let kval = Kval { key: key("large"), value: Blob::from(vec![n; 5 << 20]).into() };
        world.ask_status(rank, &Request::Commit(Commit { buckets: vec![(Scope::LOCAL, vec![kval])] }));
        let named = meet(&mut world, &[rank], Vec::new(), collect()).remove(0);
        names.push((named.file.to_string_lossy(), named.at > 0));
    }
    let name = |n: u32| format!("{BEGINNING}.{n}");
    assert_eq!(names, [(name(1), false), (name(1), true), (name(2), false)]);
    assert_eq!(world.files.keys().collect::<Vec<_>>(), [&name(2)]);
}

#[test]
fn oversized_collections_are_not_written() {
    let mut world = world(1, 2);
    let ranks = readers(&mut world, 2);
    let large = Blob::from(vec![1; 40 << 20]);
    for conn in &ranks {
        let kval = Kval { key: key("large"), value: large.clone().into() };
        let commit = Commit { buckets: vec![(Scope::LOCAL, vec![kval])] };
        assert_eq!(world.ask_status(*conn, &Request::Commit(commit)), Status::SUCCESS);
    }
    assert_eq!(meet(&mut world, &ranks, Vec::new(), collect()), []);
    assert!(world.files.is_empty());
}

#[test]
fn environments_name_our_server_only_if_it_names_files() {
    let environment = |config: ServerConfig| crate::server::environment(&config, &proc("job", 0));
    let ours = |all: Vec<(String, String)>| all.into_iter().find(|(name, _)| name == crate::server::OURS);
    assert_eq!(ours(environment(config())), None);
    let all = environment(writing());
    let uri = all.iter().find(|(name, _)| name == "PMIX_SERVER_URI41").unwrap().1.clone();
    assert_eq!(ours(all), Some((crate::server::OURS.to_owned(), uri)));
}
