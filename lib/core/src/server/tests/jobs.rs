use std::collections::BTreeSet;
use std::sync::Arc;

use phalanx_spec::required::{Audience, Kind, Realm, for_api};
use phalanx_spec::{Rank, Status, attribute, keys};
use phalanx_wire::cmd::Request;
use phalanx_wire::cmd::job_data::JobData;
use phalanx_wire::cmd::publish::Published;
use phalanx_wire::cmd::resolve::{Node, NodeReply, Peers, PeersReply};
use phalanx_wire::{DataArray, Info, Key, Kval, Nspace, Value};

use super::world::{UID, World, config, dialect, job, ns, proc};
use crate::host::HostReply;
use crate::job::{JobApp, JobInfo, JobNode, Table};
use crate::machine::Input;
use crate::server::limits::{MAX_RANKS_PLACED, MAX_RANKS_TOLD};
use crate::server::{Server, ServerCall, ServerReturn};

/// A job for which the host has stated everything that the standard requires.
fn complete_job() -> JobInfo {
    let mut info = job("job", 2, 2);
    let mut nodes: Vec<JobNode> = info.nodes.iter().collect();
    nodes[0].values.extend([
        Kval::new(keys::TMPDIR, "/tmp/px"),
        Kval::new(keys::HOSTNAME_ALIASES, "localhost,node0.site"),
        Kval::new(keys::NODE_OVERSUBSCRIBED, false),
    ]);
    info.nodes = nodes.into();
    info.job = Arc::from([
        Kval::new(keys::JOBID, "4711"),
        Kval::new(keys::MAPBY, "slot"),
        Kval::new(keys::SPAWNED, false),
    ]);
    let values = vec![Kval::new(keys::WDIR, "/home/u"), Kval::new(keys::APP_ARGV, "./a.out 1")];
    info.apps = Arc::from([JobApp { values }]);
    info
}

fn told(info: JobInfo) -> JobData {
    let mut world = World::new();
    world.register(info);
    let conn = world.connect(0);
    merged(world.ask(conn, &Request::JobData))
}

/// Merges the asker's own values into those of its rank, as every client stores them.
fn merged(mut data: JobData) -> JobData {
    let (rank, own) = data.procs.pop().unwrap();
    data.procs.iter_mut().find(|(of, _)| *of == rank).unwrap().1.extend(own);
    data
}

fn arrays(data: &JobData, name: &str) -> Vec<DataArray> {
    let arrays = data.values.iter().filter(|kval| kval.key == name);
    arrays.map(|kval| kval.value.as_array().unwrap().clone()).collect()
}

fn find<'a>(infos: impl IntoIterator<Item = &'a Info>, name: &str) -> Option<Value> {
    infos.into_iter().find(|info| info.key == name).map(|info| info.value.clone())
}

fn loose(data: &JobData, name: &str) -> Option<Value> {
    data.values.iter().find(|kval| kval.key == name).map(|kval| kval.value.clone())
}

#[test]
fn all_values_required_by_the_standard_are_sent_on_their_level() {
    let data = told(complete_job());
    let session = arrays(&data, keys::SESSION_INFO_ARRAY).remove(0);
    let node = arrays(&data, keys::NODE_INFO_ARRAY).remove(0);
    let app = arrays(&data, keys::APP_INFO_ARRAY).remove(0);
    let of_array =
        |array: &DataArray| array.infos().map(|info| info.key.to_string()).collect::<BTreeSet<_>>();
    let of_list = |values: &[Kval]| values.iter().map(|kval| kval.key.to_string()).collect::<BTreeSet<_>>();
    let own = &data.procs[0].1;
    for block in for_api("PMIx_server_register_nspace") {
        if (block.kind, block.audience) != (Kind::Required, Audience::Host) {
            continue;
        }
        let there = match block.realm.unwrap() {
            Realm::Session => of_array(&session),
            Realm::Job => of_list(&data.values),
            Realm::App => of_array(&app),
            Realm::Node | Realm::NodeOwn => of_array(&node),
            Realm::Proc | Realm::ProcLocal => of_list(own),
            Realm::Model | Realm::NodeOther => continue,
        };
        for key in block.keys {
            assert!(there.contains(*key), "{:?} lacks {key}", block.realm);
        }
    }
}

#[test]
fn every_value_has_the_type_that_its_key_wants() {
    let data = told(complete_job());
    let check = |key: &str, value: &Value| {
        let known = attribute(key).unwrap_or_else(|| panic!("{key} is no attribute"));
        assert!(known.accepts(value.data_type()), "{key} as {:?}", value.data_type());
    };
    for kval in data.values.iter().chain(data.procs.iter().flat_map(|(_, values)| values)) {
        check(kval.key.as_str(), &kval.value);
        if kval.key.as_str().ends_with(".arr") {
            kval.value.as_array().unwrap().infos().for_each(|info| check(info.key.as_str(), &info.value));
        }
    }
}

#[test]
fn values_follow_from_the_map_unless_the_host_states_them() {
    let data = told(complete_job());
    assert_eq!(loose(&data, keys::JOB_SIZE), Some(Value::Uint32(4)));
    assert_eq!(loose(&data, keys::JOBID), Some("4711".into()));
    assert_eq!(loose(&data, keys::NODE_LIST), Some("node0,node1".into()));
    assert_eq!(loose(&data, keys::NODE_MAP), Some("pmix[node[1:0-1]]".into()));
    assert_eq!(loose(&data, keys::PROC_MAP), Some("pmix[0-1;2-3]".into()));
    for (key, own) in [(keys::HOSTNAME, "node0"), (keys::NSDIR, "/tmp/px/job"), (keys::TMPDIR, "/tmp/px")] {
        assert_eq!(loose(&data, key), Some(own.into()), "{key} of our own node is looked for here");
    }
    let nodes = arrays(&data, keys::NODE_INFO_ARRAY);
    let of_node = |i: usize, name: &str| find(nodes[i].infos(), name);
    assert_eq!(of_node(1, keys::HOSTNAME), Some("node1".into()));
    assert_eq!(of_node(1, keys::LOCAL_PEERS), Some("2,3".into()));
    assert_eq!(of_node(1, keys::LOCALLDR), Some(Rank(2).into()));
    assert_eq!(of_node(1, keys::LOCAL_SIZE), Some(Value::Uint32(2)));
    assert_eq!(of_node(1, keys::LOCAL_PROCS), None, "only our own node's");
    let session = arrays(&data, keys::SESSION_INFO_ARRAY).remove(0);
    assert_eq!(session.infos().next().unwrap(), &Info::new(keys::SESSION_ID, 17u32), "its id comes first");
    let app = arrays(&data, keys::APP_INFO_ARRAY).remove(0);
    assert_eq!(find(app.infos(), keys::APPLDR), Some(Rank(0).into()));
    let ranks: Vec<Rank> = data.procs.iter().map(|(rank, _)| *rank).collect();
    assert_eq!(ranks, [Rank(0), Rank(1), Rank(2), Rank(3)]);
    let of_rank = |rank: usize, name: &str| {
        data.procs[rank].1.iter().find(|kval| kval.key == name).map(|kval| kval.value.clone())
    };
    assert_eq!(of_rank(3, keys::HOSTNAME), Some("node1".into()));
    assert_eq!(of_rank(3, keys::LOCAL_RANK), Some(Value::Uint16(1)));
    assert_eq!(of_rank(0, keys::PROCDIR), Some("/tmp/px/job/0".into()));
}

#[test]
fn rarely_wanted_values_are_sent_on_request() {
    let mut world = World::new();
    world.register(complete_job());
    let (a, b) = (world.connect(0), world.connect(1));
    let first: JobData = world.ask(a, &Request::JobData);
    let second: JobData = world.ask(b, &Request::JobData);
    assert_eq!(first.procs[..4], second.procs[..4]);
    assert_eq!((first.procs[4].0, second.procs[4].0), (Rank(0), Rank(1)));
    let keys_of = |data: &JobData, at: usize| -> BTreeSet<String> {
        data.procs[at].1.iter().map(|kval| kval.key.to_string()).collect()
    };
    assert!(keys_of(&first, 4).is_disjoint(&keys_of(&first, 0)), "nothing is told twice");
    assert!(keys_of(&first, 4).contains(keys::PROCDIR));
    let tag = world.send(a, &super::world::get(&proc("job", 1), keys::PROCDIR, Vec::new()));
    assert_eq!(world.value(a, tag, keys::PROCDIR), Some("/tmp/px/job/1".into()));
}

#[test]
fn spawned_ranks_get_their_parent_as_their_own_value() {
    let mut world = World::with_job(1, 1);
    let mut child = job("child", 1, 2);
    let parent = proc("job", 0);
    child.job = Arc::from([Kval::new(keys::SPAWNED, true), Kval::new(keys::PARENT_ID, parent.clone())]);
    world.register(child);
    let conn = world.connect_as(&proc("child", 1), dialect(6, 1, 0));
    let data: JobData = merged(world.ask(conn, &Request::JobData));
    let of_rank = |rank: usize| data.procs[rank].1.iter().find(|kval| kval.key == keys::PARENT_ID);
    assert_eq!(of_rank(1).map(|kval| kval.value.clone()), Some(parent.clone().into()));
    assert_eq!(of_rank(0), None, "of others it is told when they are asked about");
    let tag = world.send(conn, &super::world::get(&proc("child", 0), keys::PARENT_ID, Vec::new()));
    assert_eq!(world.value(conn, tag, keys::PARENT_ID), Some(parent.into()));
    let first = world.connect(0);
    let request = super::world::get(&proc("job", 0), keys::PARENT_ID, Vec::new());
    assert_eq!(world.ask_status(first, &request), Status::ERR_NOT_FOUND);
}

#[test]
fn job_data_is_packed_once_per_encoding() {
    let mut world = World::with_job(1, 3);
    let described = {
        let mut dialect = dialect(5, 0, 3);
        dialect.format.described = true;
        dialect
    };
    let a = world.connect(0);
    let b = world.connect_as(&proc("job", 1), described);
    let first: JobData = world.ask(a, &Request::JobData);
    let second: JobData = world.ask(b, &Request::JobData);
    let third: JobData = world.ask(a, &Request::JobDataFallback { store: Some("shmem2".into()) });
    assert!(first == third && first.values == second.values && first.procs[..3] == second.procs[..3]);
    let mut changed = job("job", 1, 3);
    changed.job = Arc::from([Kval::new(keys::MAPBY, "node")]);
    assert_eq!(
        world.call(ServerCall::RegisterNspace(Box::new(changed))),
        ServerReturn::Done(Status::SUCCESS)
    );
    let data: JobData = world.ask(a, &Request::JobData);
    assert_eq!(loose(&data, keys::MAPBY), Some("node".into()), "and the rank is still connected");
}

#[test]
fn processes_of_large_jobs_get_less_and_request_the_rest() {
    for (limit, named) in [(MAX_RANKS_TOLD, true), (MAX_RANKS_PLACED, false)] {
        let info = job("job", u32::try_from(limit).unwrap() / 64 + 1, 64);
        let size = info.procs.len();
        let mut world = World::new();
        world.register(info);
        let conn = world.connect(0);
        let data = merged(world.ask(conn, &Request::JobData));
        world.input(Input::Writable { conn, queued: 0 });
        assert_eq!(data.procs.len(), if named { size } else { 64 });
        assert!(data.procs[..64].iter().all(|(_, values)| values.len() > 8), "its own node");
        let place: Vec<&str> = data.procs.last().unwrap().1.iter().map(|kval| kval.key.as_str()).collect();
        assert!(!named || place == [keys::HOSTNAME, keys::NODEID], "{place:?}");
        let far = proc("job", u32::try_from(size).unwrap() - 1);
        let tag = world.send(conn, &super::world::get(&far, keys::LOCAL_RANK, Vec::new()));
        assert_eq!(world.value(conn, tag, keys::LOCAL_RANK), Some(Value::Uint16(63)));
    }
}

#[test]
fn jobs_and_ranks_that_make_no_sense_are_not_registered() {
    let mut world = World::new();
    let register = |world: &mut World, change: &dyn Fn(&mut JobInfo)| {
        let mut info = job("job", 2, 1);
        change(&mut info);
        world.call(ServerCall::RegisterNspace(Box::new(info)))
    };
    let refused = ServerReturn::Done(Status::ERR_BAD_PARAM);
    assert_eq!(register(&mut world, &|info| info.nodes = Table::from([])), refused);
    assert_eq!(register(&mut world, &|info| info.apps = Arc::from([])), refused);
    assert_eq!(register(&mut world, &|info| info.here = Some(2)), refused);
    assert_eq!(register(&mut world, &|info| info.nspace = Nspace::none()), refused);
    assert_eq!(register(&mut world, &|info| info.here = None), ServerReturn::Done(Status::SUCCESS));
    let client = |rank| ServerCall::RegisterClient { proc: proc("job", rank), uid: 0, gid: 0 };
    assert_eq!(world.call(client(2)), refused);
    assert_eq!(world.call(client(0)), ServerReturn::Done(Status::SUCCESS));
    assert_eq!(world.call(client(0)), ServerReturn::Done(Status::ERR_EXISTS));
    assert_eq!(
        world.call(ServerCall::DeregisterNspace(ns("nobody"))),
        ServerReturn::Done(Status::ERR_NOT_FOUND)
    );
}

#[test]
fn clients_may_be_named_before_their_job() {
    let mut world = World::with_job(1, 1);
    let client = |rank| ServerCall::RegisterClient { proc: proc("late", rank), uid: UID, gid: UID };
    assert_eq!(world.call(client(0)), ServerReturn::Done(Status::SUCCESS));
    assert_eq!(world.call(client(0)), ServerReturn::Done(Status::ERR_EXISTS));
    // A rank that the job turns out not to have.
    assert_eq!(world.call(client(9)), ServerReturn::Done(Status::SUCCESS));
    let info = job("late", 1, 2);
    assert_eq!(world.call(ServerCall::RegisterNspace(Box::new(info))), ServerReturn::Done(Status::SUCCESS));
    world.connect_as(&proc("late", 0), dialect(5, 0, 3));
    assert_eq!(world.call(client(0)), ServerReturn::Done(Status::ERR_EXISTS));
    assert_eq!(world.call(client(1)), ServerReturn::Done(Status::SUCCESS));
}

#[test]
fn peers_and_nodes_are_resolved() {
    let mut world = World::with_job(2, 2);
    world.register(job("other", 1, 1));
    let conn = world.connect_as(&proc("job", 0), dialect(5, 0, 3));
    let mut peers = |node: Option<&str>, nspace: Nspace| {
        let request = Request::ResolvePeers(Peers { node: node.map(Into::into), nspace });
        let reply: PeersReply = world.ask(conn, &request);
        (reply.status, reply.procs)
    };
    assert_eq!(peers(Some("node1"), ns("job")), (Status::SUCCESS, vec![proc("job", 2), proc("job", 3)]));
    assert_eq!(peers(None, ns("job")), (Status::SUCCESS, vec![proc("job", 0), proc("job", 1)]));
    assert_eq!(peers(None, Nspace::none()).1.len(), 3);
    assert_eq!(peers(Some("node7"), ns("job")), (Status::SUCCESS, Vec::new()));
    assert_eq!(peers(None, ns("nobody")).0, Status::ERR_INVALID_NAMESPACE);
    let mut nodes = |nspace: Nspace| -> NodeReply { world.ask(conn, &Request::ResolveNode(Node { nspace })) };
    assert_eq!(nodes(ns("job")).nodes, Some("node0,node1".into()));
    assert_eq!(nodes(ns("other")).nodes, Some("node0".into()));
    assert_eq!(nodes(Nspace::none()).nodes, Some("node0,node1".into()));
    assert_eq!(nodes(ns("nobody")).status, Status::ERR_INVALID_NAMESPACE);
}

#[test]
fn the_environment_of_a_process_leads_it_here() {
    let mut world = World::with_job(1, 2);
    let ServerReturn::Environment(environment) = world.call(ServerCall::SetupFork(proc("job", 1))) else {
        panic!()
    };
    let of = |name: &str| environment.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str());
    assert_eq!(of("PMIX_NAMESPACE"), Some("job"));
    assert_eq!(of("PMIX_RANK"), Some("1"));
    for uri in ["41", "4", "3", "21", "2"] {
        let name = format!("PMIX_SERVER_URI{uri}");
        assert_eq!(of(&name), Some("phalanx.0;tcp4://127.0.0.1:4711"), "{name}");
    }
    assert_eq!((of("PMIX_SERVER_URI51"), of("PMIX_SERVER_URI61")), (None, None));
    assert_eq!(of("PMIX_GDS_MODULE"), Some("hash"));
    assert_eq!(of("PMIX_SECURITY_MODE"), Some("native"));
    assert_eq!(of("PMIX_BFROP_BUFFER_TYPE"), Some("PMIX_BFROP_BUFFER_NON_DESC"));
    assert_eq!(of("PMIX_HOSTNAME"), Some("node0"));
    assert_eq!(of("PMIX_SERVER_TMPDIR"), Some("/tmp/px"));
    assert!(of("PMIX_VERSION").unwrap().starts_with("5.0."));
}

#[test]
fn an_idle_server_is_small() {
    assert!(size_of_val(&Server::new(config())) < 2048);
}

#[test]
fn nothing_stays_of_a_job_that_has_ended() {
    let mut world = World::with_job(2, 2);
    let (a, b) = (world.connect(0), world.connect(1));
    world.send(a, &super::world::get(&proc("job", 1), "k", Vec::new()));
    world.send(a, &super::world::get(&proc("job", 2), "k", Vec::new()));
    world.send(b, &super::world::fence(Vec::new(), Vec::new()));
    let keys = vec![Key::new("port").unwrap()];
    world.send(b, &Request::Lookup(Published { uid: 0, keys, info: vec![Info::new(keys::WAIT, true)] }));
    assert!(world.server.explain().len() >= 4);
    let asked = std::mem::take(&mut world.asked);
    world.call(ServerCall::DeregisterNspace(proc("job", 0).nspace));
    assert_eq!(world.server.explain(), Vec::new());
    // The host answers late.
    for (call, _) in asked {
        world.answer(call, HostReply::Done(Status::ERR_NOT_FOUND));
    }
    assert_eq!(world.server.explain(), Vec::new());
}
