use phalanx_spec::{DataType, Rank, Scope, keys};
use phalanx_wire::cmd::get::OwnerData;
use phalanx_wire::cmd::job_data::JobData;
use phalanx_wire::{DataArray, Info, InfoFlags, Key, Kval, Nspace, ProcId, Value};

use super::*;

fn nspace(name: &str) -> Nspace {
    Nspace::new(name).unwrap()
}

fn proc(rank: u32) -> ProcId {
    ProcId::new(&nspace("job"), Rank(rank))
}

fn array(infos: impl IntoIterator<Item = Info>) -> Value {
    Value::DataArray(Box::new(DataArray::of_infos(infos)))
}

fn node(name: &str, id: u32, peers: &str) -> Kval {
    Kval::new(
        keys::NODE_INFO_ARRAY,
        array([
            Info::new(keys::HOSTNAME, name),
            Info::new(keys::NODEID, id),
            Info::new(keys::LOCAL_PEERS, peers),
        ]),
    )
}

/// Rank 1 of a job of two nodes and two apps.
fn store() -> Store {
    let store = Store::new(proc(1));
    let of_rank = |host: &str, app: u32| vec![Kval::new(keys::HOSTNAME, host), Kval::new(keys::APPNUM, app)];
    store.load_job(JobData {
        nspace: nspace("job"),
        values: vec![
            Kval::new(keys::JOB_SIZE, 3_u32),
            node("a", 0, "0"),
            node("b", 1, "1,2"),
            Kval::new(
                keys::APP_INFO_ARRAY,
                array([Info::new(keys::APPNUM, 0_u32), Info::new(keys::WDIR, "/zero")]),
            ),
            Kval::new(
                keys::APP_INFO_ARRAY,
                array([Info::new(keys::APPNUM, 1_u32), Info::new(keys::WDIR, "/one")]),
            ),
            Kval::new(keys::SESSION_INFO_ARRAY, array([Info::new(keys::UNIV_SIZE, 64_u32)])),
            Kval { key: Key::new("OMPI_FIRST_RANKS").unwrap(), value: "0 2".into() },
        ],
        procs: vec![(Rank(0), of_rank("a", 0)), (Rank(1), of_rank("b", 1)), (Rank(2), of_rank("b", 1))],
    });
    store
}

fn get(store: &Store, rank: Rank, key: &str, info: &[Info]) -> Lookup {
    let proc = ProcId::new(&nspace("job"), rank);
    store.lookup(&LookupRequest::new(proc, Some(Key::new(key).unwrap()), info))
}

fn hit(value: impl Into<Value>) -> Lookup {
    Lookup::Hit(value.into())
}

#[test]
fn a_process_knows_itself_before_it_gets_any_data() {
    let store = Store::new(proc(1));
    assert_eq!(get(&store, Rank(1), keys::RANK, &[]), hit(Rank(1)));
    assert_eq!(get(&store, Rank(1), keys::NSPACE, &[]), hit("job"));
    assert_eq!(get(&store, Rank(1), keys::PROCID, &[]), hit(proc(1)));
}

#[test]
fn a_tool_without_a_node_gets_values_of_the_ranks_node() {
    let store = Store::new(ProcId::new(&nspace("tool"), Rank(0)));
    store.load_job(JobData {
        nspace: nspace("job"),
        values: vec![node("a", 0, "0"), node("b", 1, "1,2")],
        procs: vec![
            (Rank(0), vec![Kval::new(keys::HOSTNAME, "a")]),
            (Rank(2), vec![Kval::new(keys::NODEID, 1_u32)]),
        ],
    });
    assert_eq!(get(&store, Rank(0), keys::LOCAL_PEERS, &[]), hit("0"));
    assert_eq!(get(&store, Rank(2), keys::LOCAL_PEERS, &[]), hit("1,2"));
    assert_eq!(get(&store, Rank(1), keys::LOCAL_PEERS, &[]), Lookup::AskServer);
    assert_eq!(get(&store, Rank::WILDCARD, keys::LOCAL_PEERS, &[]), Lookup::AskServer);
}

#[test]
fn reserved_keys_are_found_in_whatever_realm_they_stand() {
    let store = store();
    for rank in [Rank::WILDCARD, Rank(1), Rank(2), Rank::UNDEF] {
        assert_eq!(get(&store, rank, keys::JOB_SIZE, &[]), hit(3_u32));
        assert_eq!(get(&store, rank, keys::LOCAL_PEERS, &[]), hit("1,2"), "of the asker's node");
        assert_eq!(get(&store, rank, keys::WDIR, &[]), hit("/one"), "of the asker's app");
        assert_eq!(get(&store, rank, keys::UNIV_SIZE, &[]), hit(64_u32));
    }
    assert_eq!(get(&store, Rank(0), keys::HOSTNAME, &[]), hit("a"), "the rank's own value comes first");
    assert_eq!(get(&store, Rank::WILDCARD, "OMPI_FIRST_RANKS", &[]), hit("0 2"));
    assert_eq!(
        get(&store, Rank(0), "OMPI_FIRST_RANKS", &[]),
        Lookup::AskServer,
        "users' keys belong to a rank"
    );
}

#[test]
fn a_realm_can_be_named() {
    let store = store();
    let on = |key| Info::new(key, true);
    let all = Rank::WILDCARD;
    let of_node = [on(keys::NODE_INFO), Info::new(keys::HOSTNAME, "a")];
    assert_eq!(get(&store, all, keys::LOCAL_PEERS, &of_node), hit("0"));
    let of_node = [on(keys::NODE_INFO), Info::new(keys::NODEID, 1_u32)];
    assert_eq!(get(&store, all, keys::LOCAL_PEERS, &of_node), hit("1,2"));
    assert_eq!(get(&store, all, keys::LOCAL_PEERS, &[on(keys::NODE_INFO)]), hit("1,2"));
    let of_app = [on(keys::APP_INFO), Info::new(keys::APPNUM, 0_u32)];
    assert_eq!(get(&store, all, keys::WDIR, &of_app), hit("/zero"));
    assert_eq!(get(&store, all, keys::WDIR, &[on(keys::APP_INFO)]), hit("/one"));
    assert_eq!(get(&store, all, keys::UNIV_SIZE, &[on(keys::SESSION_INFO)]), hit(64_u32));
    assert_eq!(get(&store, all, keys::JOB_SIZE, &[on(keys::SESSION_INFO)]), hit(3_u32));
    assert_eq!(get(&store, all, keys::WDIR, &[on(keys::JOB_INFO)]), Lookup::AskServer);
}

#[test]
fn directives_decide_whether_the_server_is_asked() {
    let store = store();
    let on = |key| Info::new(key, true);
    assert_eq!(get(&store, Rank(2), "endpoint", &[]), Lookup::AskServer);
    assert_eq!(get(&store, Rank(2), "endpoint", &[on(keys::OPTIONAL)]), Lookup::Absent);
    assert_eq!(
        get(&store, Rank::WILDCARD, keys::JOB_SIZE, &[on(keys::GET_REFRESH_CACHE)]),
        Lookup::AskServer
    );
    let both = [on(keys::GET_REFRESH_CACHE), on(keys::OPTIONAL)];
    assert_eq!(get(&store, Rank::WILDCARD, keys::JOB_SIZE, &both), hit(3_u32));
    let elsewhere = ProcId::new(&nspace("other"), Rank(0));
    let request = LookupRequest::new(elsewhere, Some(Key::of(keys::JOB_SIZE)), &[]);
    assert_eq!(store.lookup(&request), Lookup::AskServer);
    assert!(!request.is_for_job_data_of(store.me()));
}

#[test]
fn values_of_others_are_filed_under_their_owner() {
    let store = store();
    let endpoint = |text: &str| vec![Kval { key: Key::new("endpoint").unwrap(), value: text.into() }];
    store.load_owner(OwnerData { owner: proc(2), values: endpoint("two") });
    store.load_owner(OwnerData { owner: ProcId::new(&nspace("job"), Rank::UNDEF), values: endpoint("mine") });
    assert_eq!(get(&store, Rank(2), "endpoint", &[]), hit("two"));
    assert_eq!(get(&store, Rank(1), "endpoint", &[]), hit("mine"));
    store.load_owner(OwnerData { owner: proc(2), values: endpoint("moved") });
    assert_eq!(get(&store, Rank(2), "endpoint", &[]), hit("moved"));
}

#[test]
fn everything_of_a_process_comes_as_infos() {
    let store = store();
    let whole = store.lookup(&LookupRequest::new(proc(2), None, &[]));
    let infos = [Info::new(keys::APPNUM, 1_u32), Info::new(keys::HOSTNAME, "b")];
    assert_eq!(whole, Lookup::Hit(array(infos)));
    assert_eq!(store.lookup(&LookupRequest::new(proc(9), None, &[])), Lookup::AskServer);
    let on = |key| Info::new(key, true);
    for (realm, key, value) in [
        (vec![on(keys::NODE_INFO)], keys::LOCAL_PEERS, "1,2".into()),
        (vec![on(keys::NODE_INFO), Info::new(keys::HOSTNAME, "a")], keys::LOCAL_PEERS, "0".into()),
        (vec![on(keys::APP_INFO), Info::new(keys::APPNUM, 0_u32)], keys::WDIR, "/zero".into()),
        (vec![on(keys::SESSION_INFO)], keys::UNIV_SIZE, Value::from(64_u32)),
        (vec![on(keys::JOB_INFO)], keys::JOB_SIZE, Value::from(3_u32)),
    ] {
        let all = ProcId::all(&nspace("job"));
        let Lookup::Hit(whole) = store.lookup(&LookupRequest::new(all, None, &realm)) else {
            panic!("nothing of {realm:?}");
        };
        let found: Vec<&Info> = whole.as_array().unwrap().infos().filter(|info| info.key == *key).collect();
        assert_eq!(found, [&Info::new(key, value)], "{realm:?}");
    }
}

#[test]
fn compressed_values_are_expanded() {
    let store = store();
    let long = "topology ".repeat(1000);
    let compressed = Value::CompressedString(phalanx_wire::compress::deflate(long.as_bytes()).into());
    let broken = Value::CompressedString(Vec::from(b"nothing".as_slice()).into());
    let values = vec![
        Kval { key: Key::new("long").unwrap(), value: compressed },
        Kval { key: Key::new("broken").unwrap(), value: broken },
    ];
    store.load_owner(OwnerData { owner: proc(2), values });
    assert_eq!(get(&store, Rank(2), "long", &[]), hit(long));
    assert_eq!(get(&store, Rank(2), "broken", &[]), Lookup::AskServer);
}

#[test]
fn malformed_arrays_do_no_harm() {
    let store = Store::new(proc(1));
    let numbers = DataArray { of: DataType::UINT32, items: vec![Value::Uint32(1)] };
    for key in [keys::NODE_INFO_ARRAY, keys::APP_INFO_ARRAY] {
        let values = vec![Kval::new(key, Value::DataArray(Box::new(numbers.clone()))), Kval::new(key, 5_u32)];
        store.load_job(JobData { nspace: nspace("job"), values, procs: vec![] });
    }
    assert_eq!(get(&store, Rank::WILDCARD, keys::JOB_SIZE, &[]), Lookup::AskServer);
}

#[test]
fn a_put_is_seen_here_at_once_and_staged_until_the_commit() {
    let store = store();
    let put = |scope, key: &str, value: &str| {
        store.put(scope, Kval { key: Key::new(key).unwrap(), value: value.into() });
    };
    put(Scope::GLOBAL, "g", "1");
    put(Scope::LOCAL, "l", "2");
    put(Scope::REMOTE, "r", "3");
    put(Scope::INTERNAL, "i", "4");
    put(Scope::LOCAL, "g", "5");
    assert_eq!(get(&store, Rank(1), "g", &[]), hit("5"));
    assert_eq!(get(&store, Rank(1), "i", &[]), hit("4"));
    let staged = store.take_staged();
    let keys: Vec<_> = staged
        .iter()
        .map(|(scope, values)| (*scope, values.iter().map(|kv| kv.key.as_str()).collect::<Vec<_>>()))
        .collect();
    assert_eq!(keys, [(Scope::LOCAL, vec!["g", "l"]), (Scope::REMOTE, vec!["r"])]);
    assert!(store.take_staged().is_empty());
    assert_eq!(get(&store, Rank(1), "r", &[]), hit("3"), "a commit takes nothing away");
}

#[test]
fn qualified_values_are_found_by_their_qualifiers_alone() {
    let store = store();
    let qualifier =
        |n: u32| Info { key: Key::new("color").unwrap(), flags: InfoFlags::QUALIFIER, value: n.into() };
    let of = |n: u32, value: &str| {
        let named = Info { key: Key::new("k").unwrap(), flags: InfoFlags::empty(), value: value.into() };
        Kval::new(keys::QUALIFIED_VALUE, array([named, qualifier(n)]))
    };
    store.put(Scope::GLOBAL, of(1, "red"));
    store.put(Scope::GLOBAL, of(2, "blue"));
    store.put(Scope::LOCAL, of(2, "green"));
    store.put(Scope::GLOBAL, Kval { key: Key::new("k").unwrap(), value: "plain".into() });
    let find = |rank, n| get(&store, Rank(rank), "k", &[qualifier(n)]);
    assert_eq!((find(1, 1), find(1, 2)), (hit("red"), hit("green")));
    assert_eq!(get(&store, Rank(1), "k", &[]), hit("plain"));
    assert_eq!(find(1, 3), Lookup::AskServer);
    let staged: Vec<_> = store.take_staged().into_iter().map(|(scope, kvals)| (scope, kvals.len())).collect();
    assert_eq!(staged, [(Scope::LOCAL, 1), (Scope::GLOBAL, 2)]);
    let owner = proc(0);
    store.load_owner(OwnerData { owner, values: vec![of(1, "peer's")] });
    assert_eq!((find(0, 1), get(&store, Rank(0), "k", &[])), (hit("peer's"), Lookup::AskServer));
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the store is the one part that several threads share")]
fn readers_never_see_half_a_load() {
    let store = std::sync::Arc::new(store());
    let pair = |n: u32| {
        let pair = ["x", "y"].map(|key| Kval { key: Key::new(key).unwrap(), value: n.into() });
        OwnerData { owner: proc(2), values: pair.into() }
    };
    store.load_owner(pair(0));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let whole = LookupRequest::new(proc(2), None, &[]);
                for _ in 0..2000 {
                    let Lookup::Hit(Value::DataArray(array)) = store.lookup(&whole) else { panic!("absent") };
                    let of = |key: &str| array.infos().find(|i| i.key == *key).unwrap().value.clone();
                    assert_eq!(of("x"), of("y"));
                }
            });
        }
        for n in 1..2000 {
            store.load_owner(pair(n));
        }
    });
}
