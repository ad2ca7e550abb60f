//! Files named in replies to fences.

use std::sync::Arc;

use phalanx_spec::keys;
use phalanx_wire::cmd::event::Notification;
use phalanx_wire::cmd::fence::{Fence, Reply};
use phalanx_wire::cmd::publish::LookupReply;
use phalanx_wire::cmd::publish::Published;
use phalanx_wire::frame::TAG_EVENT;
use phalanx_wire::hello::COLLECTED;
use phalanx_wire::{Info, InfoList};

use super::*;
use crate::store::Lookup;
use crate::store::collected::tests::{Files, collection, named};

fn reading() -> (Scene, Files) {
    let files = Files::default();
    let config = ClientConfig { files: Some(Arc::new(files.clone())), ..config() };
    (Scene::ready_with(config, Vec::new()), files)
}

fn fence(scene: &mut Scene, files: &[&str]) {
    let info = vec![Info::new(keys::COLLECT_DATA, true)];
    let id = scene.call(ClientCall::Fence(Fence { procs: Vec::new(), info: info.clone() }));
    assert_eq!(scene.asked(), Request::Fence(Fence { procs: vec![ProcId::all(&proc(0).nspace)], info }));
    let collected = files.iter().map(|file| named("job", file, 0)).collect();
    scene.reply(&Reply { status: Status::SUCCESS, collected });
    assert_eq!(scene.result(id), ClientReturn::Done(Status::SUCCESS));
}

fn request(key: &str) -> LookupRequest {
    LookupRequest::new(proc(0), Some(Key::new(key).unwrap()), &[])
}

fn get(scene: &mut Scene, key: &str) -> CallId {
    scene.call(ClientCall::Get { request: request(key), info: Vec::new() })
}

#[test]
fn only_clients_that_can_read_files_advertise_it() {
    let (mut scene, _) = reading();
    assert!(scene.hello.take().unwrap().info.is_set(COLLECTED));
    assert!(!Scene::ready().hello.unwrap().info.is_set(COLLECTED));
}

#[test]
fn a_get_after_a_fence_asks_nobody() {
    let (mut scene, files) = reading();
    files.put("f", &collection("job", &[(0, &[("a", 1)])]));
    fence(&mut scene, &["f"]);
    let id = get(&mut scene, "a");
    assert_eq!(scene.result(id), ClientReturn::Value(Ok(1_u32.into())));
    assert!(scene.asked.is_empty());
    // A key that is not there may still be committed.
    get(&mut scene, "b");
    assert!(matches!(scene.asked(), Request::Get(get) if get.key == Some(Key::of("b"))));
}

#[test]
fn a_server_that_names_nothing_is_asked() {
    let (mut scene, files) = reading();
    files.put("f", &collection("job", &[(0, &[("a", 1)])]));
    fence(&mut scene, &["f"]);
    fence(&mut scene, &[]);
    get(&mut scene, "a");
    assert!(matches!(scene.asked(), Request::Get(_)));
}

/// The reply of a server that appends unknown data.
#[test]
fn a_client_that_reads_no_files_looks_at_the_status_alone() {
    let mut scene = Scene::ready();
    let id = scene.call(ClientCall::Fence(Fence { procs: Vec::new(), info: Vec::new() }));
    scene.reply(&Reply { status: Status::SUCCESS, collected: vec![named("job", "f", 0)] });
    assert_eq!(scene.result(id), ClientReturn::Done(Status::SUCCESS));
    get(&mut scene, "a");
    assert!(matches!(scene.asked(), Request::Get(_)));
}

#[test]
fn clients_that_may_be_behind_ask_the_server() {
    type Happening = fn(&mut Scene);
    let happenings: [Happening; 2] = [
        |scene| {
            let source = proc(0);
            let event =
                Notification { code: Status(-3000), source, info: Vec::new(), range: Some(Range::GLOBAL) };
            let payload = event.encode(scene.dialect);
            scene.bytes(&encode_frame(0, TAG_EVENT, &payload));
        },
        |scene| {
            let id = scene.call(ClientCall::Lookup(Published {
                uid: 0,
                keys: vec![Key::of("go")],
                info: Vec::new(),
            }));
            scene.reply(&LookupReply { status: Status::ERR_NOT_FOUND, data: Vec::new() });
            scene.result(id);
        },
    ];
    for happening in happenings {
        let (mut scene, files) = reading();
        files.put("f", &collection("job", &[(0, &[("a", 1)])]));
        fence(&mut scene, &["f"]);
        happening(&mut scene);
        assert_eq!(scene.client.store().lookup(&request("a")), Lookup::AskServer);
        fence(&mut scene, &["f"]);
        assert_eq!(scene.client.store().lookup(&request("a")), Lookup::Hit(1_u32.into()));
    }
}
