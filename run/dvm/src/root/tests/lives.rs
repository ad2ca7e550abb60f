//! How often ranks were started again.

use super::control::control;
use super::restarts::{cleared, launched, renew};
use super::*;

/// A tool has rank 1 started again. Returns whether its last process is counted as one that ran. The new one runs, or is killed
/// before that.
fn again(scene: &mut RootScene, nspace: &Nspace, before: bool, now: bool) -> bool {
    scene.wishes.clear();
    scene.ask(0, control(tool(), &[proc(nspace, 1)], Info::new(keys::JOB_CTRL_RESTART, "")));
    let clear = scene.task_among().1;
    scene.wishes.clear();
    scene.gathered(clear, cleared(&[1], if before { &[1] } else { &[] }));
    let counted = scene.casts().into_iter().find_map(|(_, body)| match body {
        Down::Renewed { ranks, ran, .. } if *ranks == Ranges::single(1) => Some(*ran == Ranges::single(1)),
        _ => None,
    });
    let renewal = scene.task_among().1;
    let mut results = Results::default();
    let status = if now { Status::SUCCESS } else { Status::ERR_PROC_ABORTED };
    results.set(&Ranges::single(1), status);
    let pids = if now { vec![(1, 501)] } else { Vec::new() };
    scene.gathered(renewal, Part::Renewed { results, pids, programs: Programs::default() });
    counted.unwrap()
}

#[test]
fn processes_that_never_ran_are_no_lives_of_their_rank() {
    let mut scene = RootScene::up(2);
    let nspace = launched(&mut scene, FailurePolicy::Restart { most: 1 }, 2);
    assert!(again(&mut scene, &nspace, true, false));
    assert!(!again(&mut scene, &nspace, false, false));
    // None of these is one of the restarts that the rank is granted after a failure.
    scene.wishes.clear();
    scene.post(0, failed(&nspace, 1));
    let noted = |of: &str| {
        let is_note = |report: &&Report| matches!(report, Report::Note { text, .. } if text.contains(of));
        scene.reports().into_iter().filter(is_note).count()
    };
    assert_eq!(noted("it is started again (1 of 1)"), 1, "{:?}", scene.wishes);
    renew(&mut scene, &nspace, &[1]);
    scene.end(&nspace, 2, ExitStatus::Code(0));
    let ended = scene.reports().into_iter().find_map(|report| match report {
        Report::Ended(end) => Some(end.restarts.clone()),
        _ => None,
    });
    assert_eq!(ended, Some(vec![(1, 1)]));
}
