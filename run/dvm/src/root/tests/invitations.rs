//! Accepted invitations whose leader says nothing more.

use phalanx_core::Event;
use phalanx_spec::{DataType, Range};
use phalanx_wire::{DataArray, InfoList};

use super::*;

fn raise(scene: &mut RootScene, code: Status, source: ProcId, to: &[ProcId]) {
    let to = DataArray { of: DataType::PROC, items: to.iter().cloned().map(Value::Proc).collect() };
    let info = vec![Info::new(keys::EVENT_CUSTOM_RANGE, to), Info::new(keys::GROUP_ID, "g")];
    scene.ask(0, HostOp::Notify(Event { code, source, range: Range::CUSTOM, info }));
}

/// The processes that were notified that a leader has failed, and which, since the last look.
fn told_of_failure(scene: &mut RootScene) -> Vec<(ProcId, ProcId)> {
    let failures = scene.casts().into_iter().filter_map(|(_, body)| match body {
        Down::Event { event, .. } if event.code == Status::GROUP_LEADER_FAILED => {
            let of = |key| msg::procs(event.info.find(key)).next().expect("a process");
            Some((of(keys::EVENT_CUSTOM_RANGE), of(keys::EVENT_AFFECTED_PROC)))
        }
        _ => None,
    });
    let failures = failures.collect();
    scene.wishes.clear();
    failures
}

#[test]
fn a_leader_that_is_over_is_said_to_have_failed() {
    let mut scene = RootScene::up(2);
    let first = scene.launch(JobRequest::default(), 4);
    let second = scene.launch(JobRequest::default(), 2);
    let (leader, joiner, other) = (proc(&first, 1), proc(&first, 2), proc(&second, 0));
    let accept = |scene: &mut RootScene, by: &ProcId, leader: &ProcId| {
        raise(scene, Status::GROUP_INVITE_ACCEPTED, by.clone(), std::slice::from_ref(leader));
    };
    accept(&mut scene, &joiner, &leader);
    let watched = scene.casts().into_iter().any(|(_, body)| matches!(body, Down::Watch { .. }));
    assert!(watched, "its daemon says when it is over");
    accept(&mut scene, &other, &leader);
    assert_eq!(told_of_failure(&mut scene), []);
    let over = Up::Over { nspace: first.clone(), ranks: Ranges::single(1) };
    scene.post(0, over.clone());
    assert_eq!(
        told_of_failure(&mut scene),
        [(joiner.clone(), leader.clone()), (other.clone(), leader.clone())]
    );
    for is_settled in [Status::GROUP_CONSTRUCT_COMPLETE, Status::GROUP_CONSTRUCT_ABORT] {
        accept(&mut scene, &joiner, &leader);
        accept(&mut scene, &other, &leader);
        raise(&mut scene, is_settled, leader.clone(), std::slice::from_ref(&joiner));
        scene.post(0, over.clone());
        assert_eq!(told_of_failure(&mut scene), [(other.clone(), leader.clone())], "{is_settled}");
    }
    let nobody = proc(&first, 9);
    accept(&mut scene, &joiner, &nobody);
    assert_eq!(told_of_failure(&mut scene), [(joiner, nobody)]);
    accept(&mut scene, &other, &leader);
    scene.end(&first, 4, ExitStatus::Code(0));
    assert_eq!(told_of_failure(&mut scene), [(other.clone(), leader.clone())]);
    accept(&mut scene, &other, &leader);
    assert_eq!(told_of_failure(&mut scene), [(other.clone(), leader)], "its job is over");
    accept(&mut scene, &other, &other);
    scene.end(&second, 2, ExitStatus::Code(0));
    assert_eq!(told_of_failure(&mut scene), []);
}
