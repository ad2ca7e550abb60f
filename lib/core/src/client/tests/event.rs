use phalanx_spec::keys;
use phalanx_wire::cmd::event::{DeregisterEvents, Notification, RegisterEvents};
use phalanx_wire::frame::TAG_EVENT;
use phalanx_wire::{Info, InfoList};

use super::*;

const A: Status = Status(-1001);
const B: Status = Status(-1002);

fn register(scene: &mut Scene, handler: u64, codes: &[Status], info: Vec<Info>) -> CallId {
    scene.call(ClientCall::RegisterEvents { handler: HandlerId(handler), codes: codes.to_vec(), info })
}

fn registered(scene: &mut Scene, handler: u64, codes: &[Status], info: Vec<Info>) {
    let id = register(scene, handler, codes, info);
    if !scene.asked.is_empty() {
        scene.reply_status(Status::SUCCESS);
    }
    assert_eq!(scene.result(id), ClientReturn::Done(Status::SUCCESS));
}

fn deregister(scene: &mut Scene, handler: u64) -> Option<Vec<Status>> {
    let id = scene.call(ClientCall::DeregisterEvents { handler: HandlerId(handler) });
    assert_eq!(scene.result(id), ClientReturn::Done(Status::SUCCESS));
    scene.asked.pop().map(|(_, request)| match request {
        Request::DeregisterEvents(DeregisterEvents { codes }) => codes,
        other => panic!("{other:?}"),
    })
}

fn report(scene: &mut Scene, code: Status) {
    let event = Notification { code, source: proc(0), info: vec![], range: Some(Range::GLOBAL) };
    scene.bytes(&encode_frame(0, TAG_EVENT, &event.encode(scene.dialect)));
}

/// Completes deliveries until none is left. Returns the handlers in order.
fn handle_all(scene: &mut Scene) -> Vec<u64> {
    let mut order = Vec::new();
    while let Some((delivery, handler, _)) = scene.delivered.pop() {
        order.push(handler.0);
        let verdict = Verdict { status: Status::SUCCESS, results: vec![] };
        scene.call(ClientCall::Handled { delivery, verdict });
    }
    order
}

#[test]
fn the_server_hears_of_a_code_once() {
    let mut scene = Scene::ready();
    let first = register(&mut scene, 1, &[A], vec![Info::new(keys::EVENT_HDLR_NAME, "mine")]);
    assert_eq!(scene.asked(), Request::RegisterEvents(RegisterEvents { codes: vec![A], info: vec![] }));
    scene.reply_status(Status::SUCCESS);
    assert_eq!(scene.result(first), ClientReturn::Done(Status::SUCCESS));
    let second = register(&mut scene, 2, &[A], vec![]);
    assert_eq!(scene.result(second), ClientReturn::Done(Status::SUCCESS));
    registered(&mut scene, 3, &[A, B], vec![]);
    registered(&mut scene, 4, &[], vec![]);
    let here = vec![Info::new(keys::RANGE, Range::PROC_LOCAL)];
    let local = register(&mut scene, 5, &[Status(-1003)], here);
    assert_eq!(scene.result(local), ClientReturn::Done(Status::SUCCESS), "nobody else is concerned");

    report(&mut scene, A);
    assert_eq!(handle_all(&mut scene), [2, 1, 3, 4]);
    assert_eq!(deregister(&mut scene, 1), None);
    assert_eq!(deregister(&mut scene, 2), None);
    assert_eq!(deregister(&mut scene, 3), Some(vec![A, B]));
    assert_eq!(deregister(&mut scene, 4), Some(vec![Status(i32::MIN)]));
    assert_eq!(deregister(&mut scene, 5), None);
    report(&mut scene, A);
    assert_eq!(handle_all(&mut scene), [0; 0]);
}

#[test]
fn deregistering_an_unknown_handler_succeeds() {
    let mut scene = Scene::ready();
    registered(&mut scene, 1, &[A], vec![Info::new(keys::EVENT_ONESHOT, true)]);
    report(&mut scene, A);
    assert_eq!(handle_all(&mut scene), [1]);
    scene.asked.clear();
    assert_eq!(deregister(&mut scene, 1), None, "it has run and gone");
    assert_eq!(deregister(&mut scene, 99), None, "it never was");
}

#[test]
fn a_registration_that_the_server_refuses_is_none() {
    let mut scene = Scene::ready();
    let id = register(&mut scene, 1, &[A], vec![]);
    scene.reply_status(Status::ERR_NOT_SUPPORTED);
    assert_eq!(scene.result(id), ClientReturn::Done(Status::ERR_NOT_SUPPORTED));
    report(&mut scene, A);
    assert!(scene.delivered.is_empty());
}

#[test]
fn registrations_name_affected_processes_to_the_server() {
    let mut scene = Scene::ready();
    let about = Info::new(keys::EVENT_AFFECTED_PROC, proc(3));
    registered(&mut scene, 1, &[A], vec![]);
    register(&mut scene, 2, &[A], vec![about.clone(), Info::new(keys::EVENT_ONESHOT, true)]);
    let wish = RegisterEvents { codes: vec![A], info: vec![about] };
    assert_eq!(scene.asked(), Request::RegisterEvents(wish));
}

#[test]
fn event_reaches_its_own_sender() {
    let mut scene = Scene::ready();
    registered(&mut scene, 1, &[A], vec![]);
    let mut raise = |range, info: Vec<Info>| {
        let id = scene.call(ClientCall::Notify { code: A, range, info });
        let told_server = !scene.asked.is_empty();
        if told_server {
            scene.reply_status(Status::SUCCESS);
        }
        assert_eq!(scene.result(id), ClientReturn::Done(Status::SUCCESS));
        (told_server, handle_all(&mut scene).len())
    };
    assert_eq!(raise(Range::NAMESPACE, vec![]), (true, 1));
    assert_eq!(raise(Range::PROC_LOCAL, vec![]), (false, 1));
    assert_eq!(raise(Range::RM, vec![]), (true, 0));
    let to = |rank| vec![Info::new(keys::EVENT_CUSTOM_RANGE, proc(rank))];
    assert_eq!(raise(Range::CUSTOM, to(0)), (true, 0));
    assert_eq!(raise(Range::CUSTOM, to(1)), (true, 1));
}

#[test]
fn a_handler_gets_its_name_and_its_object() {
    let mut scene = Scene::ready();
    let info = vec![Info::new(keys::EVENT_HDLR_NAME, "mine"), Info::new(keys::EVENT_RETURN_OBJECT, 5_u64)];
    registered(&mut scene, 1, &[A], info);
    report(&mut scene, A);
    let ClientDelivery::Event { event, .. } = &scene.delivered[0].2 else { panic!() };
    assert_eq!(event.info.find(keys::EVENT_HDLR_NAME), Some(&"mine".into()));
    assert_eq!(event.info.find(keys::EVENT_RETURN_OBJECT), Some(&5_u64.into()));
    assert_eq!(event.source, proc(0));
    let waiting = scene.client.explain();
    assert_eq!((&*waiting[0].operation, &*waiting[0].unblocked_by), ("event", "the handler's completion"));
}

#[test]
fn a_one_shot_handler_gives_its_code_up() {
    let mut scene = Scene::ready();
    registered(&mut scene, 1, &[A], vec![Info::new(keys::EVENT_ONESHOT, true)]);
    report(&mut scene, A);
    assert_eq!(handle_all(&mut scene), [1]);
    let (_, request) = scene.asked.pop().unwrap();
    assert_eq!(request, Request::DeregisterEvents(DeregisterEvents { codes: vec![A] }));
}
