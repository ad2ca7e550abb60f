//! Accepted invitations whose leader says nothing more.

use phalanx_core::Event;
use phalanx_spec::{DataType, Range};
use phalanx_wire::{DataArray, InfoList};

use super::*;

fn raise(told: &mut Told, code: Status, source: ProcId, to: &[ProcId]) {
    let to = DataArray { of: DataType::PROC, items: to.iter().cloned().map(Value::Proc).collect() };
    let info = vec![Info::new(keys::EVENT_CUSTOM_RANGE, to), Info::new(keys::GROUP_ID, "g")];
    told.ask(0, HostOp::Notify(Event { code, source, range: Range::CUSTOM, info }));
}

/// The processes that were told that a leader has failed, and which, since the last look.
fn told_of_failure(told: &mut Told) -> Vec<(ProcId, ProcId)> {
    let failures = told.casts().into_iter().filter_map(|(_, body)| match body {
        Down::Event { event, .. } if event.code == Status::GROUP_LEADER_FAILED => {
            let of = |key| msg::procs(event.info.find(key)).next().expect("a process");
            Some((of(keys::EVENT_CUSTOM_RANGE), of(keys::EVENT_AFFECTED_PROC)))
        }
        _ => None,
    });
    let failures = failures.collect();
    told.wishes.clear();
    failures
}

#[test]
fn a_leader_that_is_over_is_said_to_have_failed() {
    let mut told = Told::up(2);
    let first = told.launch(JobRequest::default(), 4);
    let second = told.launch(JobRequest::default(), 2);
    let (leader, joiner, other) = (proc(&first, 1), proc(&first, 2), proc(&second, 0));
    let accept = |told: &mut Told, by: &ProcId, leader: &ProcId| {
        raise(told, Status::GROUP_INVITE_ACCEPTED, by.clone(), std::slice::from_ref(leader));
    };
    accept(&mut told, &joiner, &leader);
    let watched = told.casts().into_iter().any(|(_, body)| matches!(body, Down::Watch { .. }));
    assert!(watched, "its daemon says when it is over");
    accept(&mut told, &other, &leader);
    assert_eq!(told_of_failure(&mut told), []);
    let over = Up::Over { nspace: first.clone(), ranks: Ranges::single(1) };
    told.post(0, over.clone());
    assert_eq!(
        told_of_failure(&mut told),
        [(joiner.clone(), leader.clone()), (other.clone(), leader.clone())]
    );
    for is_settled in [Status::GROUP_CONSTRUCT_COMPLETE, Status::GROUP_CONSTRUCT_ABORT] {
        accept(&mut told, &joiner, &leader);
        accept(&mut told, &other, &leader);
        raise(&mut told, is_settled, leader.clone(), std::slice::from_ref(&joiner));
        told.post(0, over.clone());
        assert_eq!(told_of_failure(&mut told), [(other.clone(), leader.clone())], "{is_settled}");
    }
    let nobody = proc(&first, 9);
    accept(&mut told, &joiner, &nobody);
    assert_eq!(told_of_failure(&mut told), [(joiner, nobody)]);
    accept(&mut told, &other, &leader);
    told.end(&first, 4, ExitStatus::Code(0));
    assert_eq!(told_of_failure(&mut told), [(other.clone(), leader.clone())]);
    accept(&mut told, &other, &leader);
    assert_eq!(told_of_failure(&mut told), [(other.clone(), leader)], "its job is over");
    accept(&mut told, &other, &other);
    told.end(&second, 2, ExitStatus::Code(0));
    assert_eq!(told_of_failure(&mut told), []);
}
