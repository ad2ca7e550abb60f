use phalanx_spec::keys;
use phalanx_wire::cmd::get::{Get, OwnerData, PARTIAL, RefreshCache, RefreshReply, Reply};
use phalanx_wire::{DataArray, Info};

use super::*;
use crate::store::Lookup;
use crate::store::collected::tests::Files;

fn request(rank: Rank, key: &str, info: &[Info]) -> LookupRequest {
    LookupRequest::new(ProcId::new(&proc(0).nspace, rank), Some(Key::new(key).unwrap()), info)
}

fn get(scene: &mut Scene, rank: Rank, key: &str, info: Vec<Info>) -> CallId {
    scene.call(ClientCall::Get { request: request(rank, key, &info), info })
}

fn asked(scene: &Scene) -> Get {
    match scene.asked() {
        Request::Get(get) => get,
        other => panic!("{other:?}"),
    }
}

fn values(owner: ProcId, values: &[(&str, Value)]) -> OwnerData {
    let kval = |(key, value): &(&str, Value)| Kval { key: Key::new(key).unwrap(), value: value.clone() };
    OwnerData { owner, values: values.iter().map(kval).collect() }
}

fn success(data: Vec<OwnerData>) -> Reply {
    Reply { status: Status::SUCCESS, data }
}

fn hit(value: impl Into<Value>) -> ClientReturn {
    ClientReturn::Value(Ok(value.into()))
}

#[test]
fn the_answer_holds_all_of_a_rank_and_is_kept() {
    let mut scene = Scene::ready();
    let id = get(&mut scene, Rank(0), "a", vec![]);
    let Get { nspace, rank, info, key } = asked(&scene);
    assert_eq!((nspace, rank, info, key), (proc(0).nspace, Rank(0), vec![], Some(Key::of("a"))));
    scene.reply(&success(vec![values(proc(0), &[("a", 1_u32.into()), ("b", 2_u32.into())])]));
    assert_eq!(scene.result(id), hit(1_u32));
    assert_eq!(scene.client.store().lookup(&request(Rank(0), "b", &[])), Lookup::Hit(2_u32.into()));
    let again = get(&mut scene, Rank(0), "b", vec![]);
    assert_eq!(scene.result(again), hit(2_u32), "found here, though it was asked from here");
    assert!(scene.asked.is_empty());
}

#[test]
fn values_the_server_lacks_are_not_found() {
    let mut scene = Scene::ready();
    let id = get(&mut scene, Rank(0), "a", vec![]);
    scene.reply(&success(vec![values(proc(0), &[("b", 2_u32.into())])]));
    assert_eq!(scene.result(id), ClientReturn::Value(Err(Status::ERR_NOT_FOUND)));
    let id = get(&mut scene, Rank(0), "a", vec![]);
    scene.reply_status(Status::ERR_TIMEOUT);
    assert_eq!(scene.result(id), ClientReturn::Value(Err(Status::ERR_TIMEOUT)));
    let id = get(&mut scene, Rank(0), "a", vec![Info::new(keys::OPTIONAL, true)]);
    assert_eq!(scene.result(id), ClientReturn::Value(Err(Status::ERR_NOT_FOUND)));
    assert!(scene.asked.is_empty());
}

#[test]
fn gets_of_one_rank_share_a_request() {
    let mut scene = Scene::ready();
    let first = get(&mut scene, Rank(0), "a", vec![]);
    scene.pass(Duration::from_millis(1));
    let others: Vec<CallId> = ["b", "c", "b"].map(|key| get(&mut scene, Rank(0), key, vec![])).to_vec();
    assert_eq!(scene.asked.len(), 1);
    assert_eq!(scene.client.explain().len(), 4);
    scene.reply(&success(vec![values(proc(0), &[("a", 1_u32.into()), ("b", 2_u32.into())])]));
    let ended = std::mem::take(&mut scene.returned);
    assert_eq!(ended, [(first, hit(1_u32)), (others[0], hit(2_u32)), (others[2], hit(2_u32))]);
    // The first request was sent before this key was wanted.
    assert_eq!(asked(&scene).key, Some(Key::of("c")));
    scene.reply_status(Status::ERR_NOT_FOUND);
    assert_eq!(scene.result(others[1]), ClientReturn::Value(Err(Status::ERR_NOT_FOUND)));
    assert!(scene.asked.is_empty() && scene.client.explain().is_empty());
}

#[test]
fn a_get_with_a_time_limit_waits_alone() {
    let mut scene = Scene::ready();
    get(&mut scene, Rank(0), "a", vec![]);
    let hasty = get(&mut scene, Rank(0), "b", vec![Info::new(keys::TIMEOUT, 1_u32)]);
    assert_eq!(scene.asked.len(), 2);
    scene.pass(Duration::from_secs(2));
    assert_eq!(scene.result(hasty), ClientReturn::Value(Err(Status::ERR_TIMEOUT)));
}

#[test]
fn a_server_of_ours_serves_each_waiter_at_once() {
    let mut scene =
        Scene::ready_with(ClientConfig { files: Some(Arc::new(Files::default())), ..config() }, vec![]);
    let calls = ["a", "b", "c", "d"].map(|key| get(&mut scene, Rank(0), key, vec![]));
    assert_eq!(asked(&scene).info, [Info::new(PARTIAL, 0_u64)]);
    let partial = |data| Reply { status: Status::ERR_PARTIAL_SUCCESS, data };
    scene.reply(&partial(vec![values(proc(0), &[("b", 2_u32.into())])]));
    assert_eq!(scene.result(calls[1]), hit(2_u32));
    assert_eq!(
        (asked(&scene).key, asked(&scene).info),
        (Some(Key::of("a")), vec![Info::new(PARTIAL, 1_u64)])
    );
    scene.pass(Duration::from_millis(700));
    scene.reply(&partial(vec![values(proc(0), &[("c", 3_u32.into())])]));
    assert_eq!(scene.result(calls[2]), hit(3_u32));
    let (found, late) = (get(&mut scene, Rank(0), "e", vec![]), get(&mut scene, Rank(0), "f", vec![]));
    assert_eq!(asked(&scene).info, [Info::new(PARTIAL, 701_u64)]);
    scene.reply_status(Status::ERR_NOT_FOUND);
    let absent = ClientReturn::Value(Err(Status::ERR_NOT_FOUND));
    let ended = std::mem::take(&mut scene.returned);
    assert_eq!(ended, [(calls[0], absent.clone()), (calls[3], absent)], "they have waited as long");
    assert_eq!(
        (asked(&scene).key, asked(&scene).info),
        (Some(Key::of("e")), vec![Info::new(PARTIAL, 1_u64)])
    );
    scene.reply(&success(vec![values(proc(0), &[("e", 5_u32.into())])]));
    assert_eq!(scene.result(found), hit(5_u32));
    assert_eq!(asked(&scene).key, Some(Key::of("f")), "a value says nothing about others");
    scene.close();
    assert_eq!(scene.result(late), ClientReturn::Value(Err(Status::ERR_LOST_CONNECTION)));
}

#[test]
fn server_does_not_wait_for_host_provided_keys() {
    let mut scene = Scene::ready();
    get(&mut scene, Rank::WILDCARD, "pmix.hwlocxml2", vec![]);
    assert_eq!(asked(&scene).info, [Info::new(keys::IMMEDIATE, true)]);
    scene.reply_status(Status::ERR_NOT_FOUND);
    let own = vec![Info::new(keys::IMMEDIATE, false)];
    get(&mut scene, Rank::WILDCARD, "pmix.hwlocxml2", own.clone());
    assert_eq!(asked(&scene).info, own, "the caller knows better");
}

#[test]
fn another_job_comes_with_all_its_realms() {
    let mut scene = Scene::ready();
    let there = ProcId::all(&Nspace::new("other").unwrap());
    let size = LookupRequest::new(there.clone(), Some(Key::of(keys::JOB_SIZE)), &[]);
    let id = scene.call(ClientCall::Get { request: size, info: vec![] });
    assert_eq!(asked(&scene).info, []);
    let node = DataArray::of_infos([Info::new(keys::HOSTNAME, "far"), Info::new(keys::LOCAL_PEERS, "0")]);
    let node = Value::DataArray(Box::new(node));
    let data = values(there.clone(), &[(keys::JOB_SIZE, 5_u32.into()), (keys::NODE_INFO_ARRAY, node)]);
    scene.reply(&success(vec![data]));
    assert_eq!(scene.result(id), hit(5_u32));
    let on_far = [Info::new(keys::NODE_INFO, true), Info::new(keys::HOSTNAME, "far")];
    let peers = LookupRequest::new(there, Some(Key::of(keys::LOCAL_PEERS)), &on_far);
    assert_eq!(scene.client.store().lookup(&peers), Lookup::Hit("0".into()));
}

#[test]
fn a_value_of_a_node_is_taken_as_it_is_said() {
    let mut scene = Scene::ready();
    let info = vec![Info::new(keys::NODE_INFO, true), Info::new(keys::HOSTNAME, "far")];
    let id = get(&mut scene, Rank::WILDCARD, keys::LOCAL_SIZE, info);
    assert_eq!(asked(&scene).rank, Rank::UNDEF);
    let unsaid = ProcId::new(&proc(0).nspace, Rank::UNDEF);
    scene.reply(&success(vec![values(unsaid, &[(keys::LOCAL_SIZE, 3_u32.into())])]));
    assert_eq!(scene.result(id), hit(3_u32));
}

#[test]
fn a_refresh_asks_whatever_is_known() {
    let info = vec![Info::new(keys::GET_REFRESH_CACHE, true)];
    let mut scene = Scene::ready();
    scene.client.store().load_owner(values(proc(0), &[("a", 1_u32.into())]));
    let id = get(&mut scene, Rank(0), "a", info.clone());
    let refresh = RefreshCache { nspace: proc(0).nspace, rank: Rank(0) };
    assert_eq!(scene.asked(), Request::RefreshCache(refresh));
    let new = values(proc(0), &[("a", 2_u32.into())]).values;
    scene.reply(&RefreshReply { status: Status(67_108_352), values: new });
    assert_eq!(scene.result(id), hit(2_u32));

    let old = Dialect { release: Release::new(4, 2, 2), ..config().dialect };
    let mut scene = Scene::ready_with(ClientConfig { dialect: old, ..config() }, vec![]);
    get(&mut scene, Rank(0), "a", info.clone());
    assert_eq!(asked(&scene).info, info, "older servers have no command of its own for this");
}
