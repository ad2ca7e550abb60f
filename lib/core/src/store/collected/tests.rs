use std::collections::BTreeMap;
use std::sync::Mutex;

use phalanx_spec::{Scope, keys};
use phalanx_wire::cmd::get::OwnerData;
use phalanx_wire::collected::{self, block};
use phalanx_wire::{Blob, Info, Key, ProcId};

use super::*;
use crate::store::{Lookup, LookupRequest};

/// Files in memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Files(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    files: BTreeMap<String, Arc<File>>,
    /// How often a file was opened.
    opened: usize,
}

#[derive(Debug, Default)]
struct File(Mutex<Vec<u8>>);

impl Files {
    /// Appends to a file, and returns the offset.
    pub(crate) fn put(&self, name: &str, bytes: &[u8]) -> u64 {
        let file = self.0.lock().unwrap().files.entry(name.to_owned()).or_default().clone();
        let mut all = file.0.lock().unwrap();
        let at = all.len() as u64;
        all.extend_from_slice(bytes);
        at
    }

    fn opened(&self) -> usize {
        self.0.lock().unwrap().opened
    }
}

impl OpenCollected for Files {
    fn open(&self, file: &Text) -> Option<Arc<dyn ReadAt>> {
        let mut kept = self.0.lock().unwrap();
        kept.opened += 1;
        Some(kept.files.get(file.as_str()?)?.clone())
    }
}

impl ReadAt for File {
    fn length(&self) -> u64 {
        self.0.lock().unwrap().len() as u64
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> bool {
        self.0.lock().unwrap().as_slice().read_at(at, into)
    }
}

/// Names a collection of `job` at this offset.
pub(crate) fn named(nspace: &str, file: &str, at: u64) -> Collected {
    Collected { nspace: Nspace::new(nspace).unwrap(), file: file.into(), at }
}

/// The committed values of these ranks of `nspace`: keys and numbers.
pub(crate) fn collection(nspace: &str, ranks: &[(u32, &[(&str, u32)])]) -> Vec<u8> {
    let nspace = Nspace::new(nspace).unwrap();
    let one = |(rank, values): &(u32, &[(&str, u32)])| {
        let kvals = values.iter().map(|(key, n)| kval(key, *n));
        (Rank(*rank), block(&ProcId::new(&nspace, Rank(*rank)), kvals))
    };
    let blocks: Vec<(Rank, Blob)> = ranks.iter().map(one).collect();
    collected::collection(&nspace, blocks.iter().map(|(rank, block)| (*rank, block)))
}

fn kval(key: &str, n: u32) -> Kval {
    Kval { key: Key::new(key).unwrap(), value: n.into() }
}

fn proc(nspace: &str, rank: u32) -> ProcId {
    ProcId::new(&Nspace::new(nspace).unwrap(), Rank(rank))
}

struct Scene {
    files: Files,
    store: Store,
}

impl Scene {
    /// Rank 1 of `job`, which has read nothing yet.
    fn new() -> Scene {
        let files = Files::default();
        let store = Store::reading(proc("job", 1), Some(Arc::new(files.clone())));
        Scene { files, store }
    }

    /// Writes a collection of `job` to a file, and names it.
    fn named(&self, file: &str, bytes: &[u8]) {
        let at = self.files.put(file, bytes);
        self.store.set_collected(&[named("job", file, at)]);
    }

    fn get(&self, rank: u32, key: &str, info: &[Info]) -> Lookup {
        self.store.lookup(&LookupRequest::new(proc("job", rank), Some(Key::new(key).unwrap()), info))
    }

    fn told(&self, rank: u32, key: &str, n: u32) {
        self.store.load_owner(OwnerData { owner: proc("job", rank), values: vec![kval(key, n)] });
    }
}

fn hit(n: u32) -> Lookup {
    Lookup::Hit(n.into())
}

#[test]
fn a_rank_is_read_when_one_of_its_values_is_wanted() {
    let scene = Scene::new();
    scene.named("f", &collection("job", &[(0, &[("a", 1), ("b", 2)]), (2, &[("a", 3)])]));
    assert_eq!(scene.files.opened(), 0);
    assert_eq!(scene.get(0, "a", &[]), hit(1));
    assert_eq!(scene.get(0, "b", &[Info::new(keys::OPTIONAL, true)]), hit(2));
    assert_eq!(scene.store.value("job", Rank(2), "a"), Some(3_u32.into()));
    assert_eq!(scene.get(0, "absent", &[]), Lookup::AskServer);
    assert_eq!(scene.get(3, "a", &[]), Lookup::AskServer);
    assert_eq!(scene.get(3, "a", &[Info::new(keys::OPTIONAL, true)]), Lookup::Absent);
    assert_eq!(scene.get(0, "a", &[Info::new(keys::GET_REFRESH_CACHE, true)]), Lookup::AskServer);
    assert_eq!(scene.files.opened(), 1);
    let all = scene.store.lookup(&LookupRequest::new(proc("job", 2), None, &[]));
    assert!(matches!(all, Lookup::Hit(Value::DataArray(array)) if array.infos().any(|info| info.key == "a")));
}

#[test]
fn later_file_replaces_earlier_values() {
    let scene = Scene::new();
    scene.named("f", &collection("job", &[(0, &[("a", 1), ("b", 1)])]));
    assert_eq!(scene.get(0, "a", &[]), hit(1));
    scene.told(2, "a", 1);
    scene.named("f", &collection("job", &[(0, &[("a", 2)]), (2, &[("a", 2)])]));
    assert_eq!([scene.get(0, "a", &[]), scene.get(2, "a", &[])], [hit(2), hit(2)]);
    assert_eq!(scene.get(0, "b", &[]), hit(1), "nothing is ever taken back");
    assert_eq!(scene.files.opened(), 1, "it goes on in the same file");
    scene.named("g", &collection("job", &[(0, &[("a", 3)])]));
    assert_eq!((scene.get(0, "a", &[]), scene.files.opened()), (hit(3), 2));
}

#[test]
fn answers_of_the_server_are_newer_than_the_file() {
    let scene = Scene::new();
    scene.named("f", &collection("job", &[(0, &[("a", 1)])]));
    scene.told(0, "a", 2);
    assert_eq!(scene.get(0, "a", &[]), hit(2));
}

#[test]
fn values_that_are_gone_are_read_from_no_earlier_file() {
    let scene = Scene::new();
    scene.named("one", &collection("job", &[(2, &[("x", 1)])]));
    let gone = [proc("job", 2)];
    scene.store.forget_values(&gone);
    assert_eq!(scene.get(2, "x", &[]), Lookup::AskServer, "it was not read before");
    scene.told(2, "y", 2);
    assert_eq!(scene.get(2, "y", &[]), hit(2));
    scene.store.forget_values(&gone);
    assert_eq!(scene.get(2, "y", &[]), Lookup::AskServer);
    scene.named("two", &collection("job", &[(2, &[("x", 3)])]));
    assert_eq!((scene.get(2, "x", &[]), scene.get(2, "y", &[])), (hit(3), Lookup::AskServer));
}

#[test]
fn an_outdated_file_is_not_read() {
    let scene = Scene::new();
    scene.named("f", &collection("job", &[(0, &[("a", 1)]), (2, &[("a", 1)])]));
    assert_eq!(scene.get(0, "a", &[]), hit(1));
    scene.store.outdate_collected();
    assert_eq!([scene.get(0, "a", &[]), scene.get(2, "a", &[])], [hit(1), Lookup::AskServer]);
    scene.store.set_collected(&[named("job", "f", 0)]);
    assert_eq!(scene.get(2, "a", &[]), hit(1), "it is good after all");
}

#[test]
fn each_namespace_has_its_file() {
    let scene = Scene::new();
    scene.files.put("f", &collection("job", &[(0, &[("a", 1)])]));
    scene.files.put("g", &collection("other", &[(0, &[("a", 2)])]));
    scene.store.set_collected(&[named("job", "f", 0), named("other", "g", 0)]);
    assert_eq!(scene.store.value("other", Rank(0), "a"), Some(2_u32.into()));
    assert_eq!(scene.get(0, "a", &[]), hit(1));
    scene.store.set_collected(&[named("job", "g", 0)]);
    assert_eq!(scene.get(3, "a", &[]), Lookup::AskServer, "a file of another namespace");
}

#[test]
fn a_process_knows_better_what_is_its_own() {
    let scene = Scene::new();
    scene.named("f", &collection("job", &[(1, &[("a", 1), ("b", 1)])]));
    scene.store.put(Scope::GLOBAL, kval("a", 2));
    scene.store.keep(&proc("job", 0), kval("c", 3));
    assert_eq!([scene.get(1, "a", &[]), scene.get(1, "b", &[])], [hit(2), Lookup::AskServer]);
    assert_eq!(scene.get(0, "c", &[]), hit(3));
}

#[test]
fn keys_of_the_standard_and_of_a_scope_stay_what_they_were() {
    let scene = Scene::new();
    scene.told(0, keys::HOSTNAME, 1);
    scene.named("f", &collection("job", &[(0, &[(keys::HOSTNAME, 2), (keys::CPUSET, 3), ("a", 4)])]));
    assert_eq!(scene.get(0, "a", &[Info::new(keys::DATA_SCOPE, Scope::REMOTE)]), Lookup::AskServer);
    assert_eq!(scene.get(0, keys::HOSTNAME, &[]), hit(1));
    assert_eq!(scene.get(0, keys::CPUSET, &[]), hit(3), "Open MPI 4 puts it");
}

#[test]
fn the_server_is_asked_when_a_file_cannot_be_read() {
    let whole = collection("job", &[(0, &[("a", 1)]), (2, &[("a", 1)])]);
    let scene = Scene::new();
    scene.store.set_collected(&[named("job", "absent", 0)]);
    assert_eq!([scene.get(0, "a", &[]), scene.get(2, "a", &[])], [Lookup::AskServer, Lookup::AskServer]);
    assert_eq!(scene.files.opened(), 1, "it is looked for once");
    for end in 0..whole.len() {
        scene.named(&format!("cut.{end}"), &whole[..end]);
        assert_eq!(scene.get(0, "a", &[]), Lookup::AskServer);
    }
    // A lookup ends whatever the file holds.
    for at in 0..whole.len() {
        for byte in [0, 1, 0x7f, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] = byte;
            let scene = Scene::new();
            scene.named("f", &bytes);
            for rank in 0..4 {
                scene.get(rank, "a", &[]);
            }
        }
    }
}
