//! What is counted of ranks that are started again.

use phalanx_core::host::ClientFinalized;

use super::*;
use crate::msg::{Ends, Reached};

/// Rank 1 has failed, and runs again.
fn again(scene: &mut LocalScene, pid: u32) {
    scene.wishes.clear();
    renew(scene, Task::Clear { targets: rank_one() });
    scene.down(Down::Renewed {
        nspace: nspace(),
        ranks: Ranges::single(1),
        ran: Ranges::single(1),
        from: None,
    });
    renew(scene, Task::Renew { targets: rank_one() });
    scene.serve();
    scene.tell(ToLocal::Spawned { proc: proc(1), pid, program: "/bin/a".into() });
}

/// Like `again`, for jobs that restart failed ranks.
fn recoverable() -> LocalScene {
    let mut desc = desc();
    let policy = FailurePolicy::Restart { most: 9 };
    Arc::get_mut(&mut desc).into_iter().for_each(|desc| desc.on_failure = policy);
    LocalScene::running_job(desc)
}

fn connect(scene: &mut LocalScene, rank: u32) {
    scene.upcall(1, HostOp::ClientConnected(proc(rank)));
}

/// What is reported when all processes here have ended.
fn ends(scene: &LocalScene) -> Ends {
    match scene.part(&OpId::Ended(nspace())) {
        Some(Part::Ends(ends)) => (**ends).clone(),
        other => panic!("{other:?}: {:?}", scene.wishes),
    }
}

#[test]
fn a_rank_that_connects_only_in_a_later_life_is_counted() {
    let mut scene = recoverable();
    scene.wait(1);
    connect(&mut scene, 0);
    scene.exit(1, ExitStatus::Code(3));
    again(&mut scene, 777);
    scene.wait(1);
    connect(&mut scene, 1);
    scene.wait(1);
    let both = Reached { count: 2, after: Duration::from_secs(2) };
    let mut reports = scene.posts().into_iter().filter_map(|up| match up {
        Up::Connected { reached, .. } => Some(*reached),
        _ => None,
    });
    assert_eq!(reports.next_back(), Some(both));
    for rank in [0, 1] {
        scene.upcall(2, HostOp::ClientFinalized(ClientFinalized { proc: proc(rank), others: false }));
        scene.exit(rank, ExitStatus::Code(0));
    }
    assert_eq!(ends(&scene).connected, both);
}

#[test]
fn a_rank_that_has_connected_in_an_earlier_life_has_connected() {
    let mut scene = recoverable();
    scene.wait(1);
    [0, 1].into_iter().for_each(|rank| connect(&mut scene, rank));
    scene.exit(1, ExitStatus::Code(3));
    scene.wait(1);
    again(&mut scene, 777);
    connect(&mut scene, 1);
    scene.exit(1, ExitStatus::Code(3));
    scene.wait(1);
    again(&mut scene, 778);
    scene.down(Down::Control { nspace: nspace(), ranks: None, action: Control::Kill, pauser: Pauser::User });
    for rank in [0, 1] {
        scene.exit(rank, ExitStatus::Signal { number: 9, core_dumped: false });
        scene.wait(1);
    }
    let ends = ends(&scene);
    assert_eq!(ends.connected, Reached { count: 2, after: Duration::from_secs(1) }, "each is counted once");
    assert!(ends.groups.iter().all(|group| group.connected), "{ends:?}");
}

#[test]
fn a_process_that_was_killed_before_it_ran_is_no_earlier_life() {
    let mut scene = LocalScene::running();
    let clear = |scene: &mut LocalScene| {
        scene.wishes.clear();
        let cleared = renew(scene, Task::Clear { targets: rank_one() });
        scene.exit(1, ExitStatus::Signal { number: 9, core_dumped: false });
        let Some(Part::Cleared { ran, .. }) = scene.part(&cleared) else { panic!("{:?}", scene.wishes) };
        let ran = ran.clone();
        scene.down(Down::Renewed {
            nspace: nspace(),
            ranks: Ranges::single(1),
            ran: ran.clone(),
            from: None,
        });
        let row = scene.wishes.iter().rev().find_map(|wish| match wish {
            FromLocal::Call { call: ServerCall::RegisterNspace(info), .. } => info.procs.get(1),
            _ => None,
        });
        (ran.contains(1), row.unwrap().reincarnation)
    };
    let begin = |scene: &mut LocalScene| {
        renew(scene, Task::Renew { targets: rank_one() });
        scene.serve();
    };
    assert_eq!(clear(&mut scene), (true, 1));
    steer_one(&mut scene, Control::Kill);
    begin(&mut scene);
    assert!(started_with(&scene).is_empty(), "it is not started to be killed");
    assert_eq!(clear(&mut scene), (false, 1));
    begin(&mut scene);
    assert_eq!(started_with(&scene), ["PHALANX_RESTARTS=1"]);
    // It is reaped before the shell has reported its start.
    assert_eq!(clear(&mut scene), (true, 2));
    begin(&mut scene);
    assert_eq!(started_with(&scene), ["PHALANX_RESTARTS=2"]);
}
