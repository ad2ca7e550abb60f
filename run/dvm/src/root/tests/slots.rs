//! Slots of ranks that have ended, and spawns that wait for them. Two nodes with four slots each.

use super::control::{control, done, named, results};
use super::restarts::cleared;
use super::*;
use crate::msg::{Collective, Members, Policy as Lasting};
use phalanx_core::host::CollectiveKind;
use phalanx_wire::InfoList;

/// A rank spawns a job of so many processes, with a time limit in seconds; returns the request.
fn spawn(scene: &mut RootScene, parent: &Nspace, ranks: i32, limit: Option<u32>) -> u64 {
    scene.wishes.clear();
    let app = phalanx_wire::App { argv: vec!["program".into()], max_procs: ranks, ..Default::default() };
    let job = limit.map(|seconds| Info::new(keys::TIMEOUT, seconds)).into_iter().collect();
    scene.ask(0, HostOp::Spawn(Asked { from: proc(parent, 0), request: Spawn { job, apps: vec![app] } }))
}

/// The job that has been sent to the daemons.
fn started(scene: &RootScene) -> Option<Arc<msg::JobDesc>> {
    scene.casts().into_iter().find_map(|(_, body)| match body {
        Down::Start(desc) => Some(desc.clone()),
        _ => None,
    })
}

fn freed(scene: &mut RootScene, nspace: &Nspace, ended: &[u32], leaving: &[u32]) {
    let set = |ranks: &[u32]| ranks.iter().copied().collect();
    scene.post(0, Up::Freed { nspace: nspace.clone(), ended: set(ended), leaving: set(leaving) });
}

/// The daemons have nothing more to report.
fn answered(scene: &mut RootScene) {
    let (_, op, task) = scene.task_among();
    assert!(matches!(*task, Task::TellFreed { .. }), "{task:?}");
    scene.gathered(op, Part::Nothing);
}

fn meet(scene: &mut RootScene, kind: CollectiveKind, jobs: &[(&Nspace, u32)]) {
    let members = jobs
        .iter()
        .map(|(nspace, ranks)| Members { nspace: (*nspace).clone(), ranks: Ranges::first(*ranks) });
    let op = Collective { kind, members: members.collect(), id: None, round: 0, policy: Lasting::Fixed };
    scene.gathered(OpId::Collective(op), Part::Nothing);
}

/// A spawn by one job that waits for the end of another; returns both jobs, and the request.
fn waiting_for_another_job(scene: &mut RootScene) -> (Nspace, Nspace, u64) {
    let parent = scene.launch(JobRequest::default(), 4);
    let other = scene.launch(JobRequest::default(), 4);
    scene.post(1, failed(&other, 0));
    let asked = spawn(scene, &parent, 4, None);
    answered(scene);
    assert_eq!((scene.answer(asked), started(scene).is_some()), (None, false));
    (parent, other, asked)
}

#[test]
fn slots_of_ended_ranks_are_free_while_the_job_goes_on() {
    let mut scene = RootScene::up(2);
    let nspace = scene.launch(JobRequest::default(), 8);
    freed(&mut scene, &nspace, &[1, 6], &[]);
    spawn(&mut scene, &nspace, 2, None);
    let desc = started(&scene).expect("it fits");
    assert_eq!([0, 1].map(|rank| desc.places.node.get(rank)), [0, 1]);
    assert_eq!([0, 1].map(|rank| desc.places.node_rank.get(rank)), [1, 2], "the others are in use");
}

#[test]
fn slots_of_failed_ranks_are_free_at_once() {
    let mut scene = RootScene::up(2);
    let nspace = scene.launch(JobRequest { on_failure: FailurePolicy::Continue, ..JobRequest::default() }, 8);
    scene.post(0, failed(&nspace, 3));
    spawn(&mut scene, &nspace, 1, None);
    assert!(started(&scene).is_some());
}

#[test]
fn a_spawn_without_room_asks_for_ends_first() {
    let mut scene = RootScene::up(2);
    let nspace = scene.launch(JobRequest::default(), 8);
    let asked = spawn(&mut scene, &nspace, 2, None);
    freed(&mut scene, &nspace, &[4], &[]);
    assert_eq!((started(&scene).is_none(), scene.answer(asked)), (true, None), "one is not enough");
    freed(&mut scene, &nspace, &[5], &[]);
    answered(&mut scene);
    assert!(started(&scene).is_some());
    assert_eq!(scene.answer(asked), None, "it runs when all daemons have started it");
}

#[test]
fn a_spawn_that_nothing_makes_fit_is_refused_soon() {
    let mut scene = RootScene::up(2);
    let nspace = scene.launch(JobRequest::default(), 7);
    let refused = HostReply::Spawned(Err(Status::ERR_JOB_FAILED_TO_MAP));
    let asked = spawn(&mut scene, &nspace, 9, None);
    assert_eq!(scene.answer(asked), Some(&refused), "there never are so many slots");
    let asked = spawn(&mut scene, &nspace, 2, None);
    answered(&mut scene);
    assert_eq!(scene.answer(asked), None, "a process may have ended just now");
    let wait = &scene.root.explain()[0];
    assert_eq!((&*wait.operation, wait.missing.len()), ("spawn", 0));
    assert!(wait.deadline.is_some_and(|at| at.since(wait.since) < Duration::from_secs(1)));
    scene.wait(1);
    assert_eq!(scene.answer(asked), Some(&refused), "no process is ending");
    assert!(scene.root.explain().is_empty());
}

#[test]
fn a_spawn_waits_for_ends_that_no_daemon_has_noticed() {
    let mut scene = RootScene::up(2);
    let parent = scene.launch(JobRequest::default(), 7);
    let worker = scene.launch(JobRequest::default(), 1);
    let asked = spawn(&mut scene, &parent, 1, None);
    answered(&mut scene);
    assert_eq!(scene.answer(asked), None);
    freed(&mut scene, &worker, &[0], &[]);
    assert!(started(&scene).is_some());

    let asked = spawn(&mut scene, &parent, 1, None);
    answered(&mut scene);
    freed(&mut scene, &parent, &[], &[6]);
    scene.wait(5);
    assert_eq!((scene.answer(asked), started(&scene).is_some()), (None, false), "one is ending after all");
    freed(&mut scene, &parent, &[6], &[]);
    assert!(started(&scene).is_some());
}

#[test]
fn a_spawn_waits_for_finalized_ranks_to_end() {
    let mut scene = RootScene::up(2);
    let nspace = scene.launch(JobRequest::default(), 8);
    let asked = spawn(&mut scene, &nspace, 1, None);
    freed(&mut scene, &nspace, &[], &[7]);
    answered(&mut scene);
    assert_eq!((scene.answer(asked), started(&scene).is_some()), (None, false));
    let wait = &scene.root.explain()[0];
    assert_eq!((&*wait.operation, &*wait.subject), ("spawn", "program"));
    assert_eq!((&wait.asked_by, &wait.missing), (&vec![proc(&nspace, 0)], &vec![proc(&nspace, 7)]));
    freed(&mut scene, &nspace, &[7], &[]);
    assert_eq!(started(&scene).map(|desc| desc.places.node.get(0)), Some(1));
}

#[test]
fn a_spawn_waits_for_a_job_that_is_being_ended() {
    let mut scene = RootScene::up(2);
    let (_, other, _) = waiting_for_another_job(&mut scene);
    scene.end(&other, 4, ExitStatus::Code(3));
    assert!(started(&scene).is_some());
}

#[test]
fn a_spawn_waits_for_a_child_that_was_disconnected() {
    for (last, ends, limit, expected) in [
        (CollectiveKind::Disconnect, true, None, None),
        // As Open MPI disconnects.
        (CollectiveKind::Fence, true, None, None),
        (CollectiveKind::Disconnect, false, None, Some(Status::ERR_JOB_FAILED_TO_MAP)),
        (CollectiveKind::Disconnect, false, Some(3), Some(Status::ERR_TIMEOUT)),
    ] {
        let mut scene = RootScene::up(2);
        let parent = scene.launch(JobRequest::default(), 1);
        spawn(&mut scene, &parent, 7, None);
        let child = started(&scene).expect("it fits").nspace.clone();
        for kind in [CollectiveKind::Connect, last] {
            meet(&mut scene, kind, &[(&parent, 1), (&child, 7)]);
        }
        let asked = spawn(&mut scene, &parent, 7, limit);
        answered(&mut scene);
        scene.wait(2);
        assert_eq!((scene.answer(asked), started(&scene).is_some()), (None, false));
        match ends {
            true => scene.end(&child, 7, ExitStatus::Code(0)),
            false => scene.wait(10),
        }
        assert_eq!(started(&scene).is_some(), ends);
        let answer = expected.map(|status| HostReply::Spawned(Err(status)));
        assert_eq!(scene.answer(asked), answer.as_ref());
    }
}

#[test]
fn a_spawn_does_not_wait_for_a_child_that_is_connected() {
    let mut scene = RootScene::up(2);
    let parent = scene.launch(JobRequest::default(), 1);
    spawn(&mut scene, &parent, 7, None);
    let child = started(&scene).expect("it fits").nspace.clone();
    for kind in [CollectiveKind::Fence, CollectiveKind::Connect] {
        meet(&mut scene, kind, &[(&parent, 1), (&child, 7)]);
    }
    let asked = spawn(&mut scene, &parent, 7, None);
    answered(&mut scene);
    scene.wait(1);
    let refused = HostReply::Spawned(Err(Status::ERR_JOB_FAILED_TO_MAP));
    assert_eq!(scene.answer(asked), Some(&refused));
}

#[test]
fn a_spawn_whose_requester_ends_is_not_launched() {
    for ends_job in [true, false] {
        let mut scene = RootScene::up(2);
        let (parent, other, asked) = waiting_for_another_job(&mut scene);
        match ends_job {
            true => scene.post(0, failed(&parent, 1)),
            false => freed(&mut scene, &parent, &[0], &[]),
        }
        assert_eq!(scene.answer(asked), Some(&HostReply::Spawned(Err(Status::ERR_LOST_CONNECTION))));
        scene.end(&other, 4, ExitStatus::Code(3));
        assert!(started(&scene).is_none());
        assert!(scene.root.explain().is_empty());
    }
}

#[test]
fn a_refused_spawn_names_whom_it_has_waited_for() {
    let mut scene = RootScene::up(2);
    let (_, other, _) = waiting_for_another_job(&mut scene);
    scene.wait(10);
    let expected = format!(", after 10 s of waiting for the end of {other}:1-3");
    let is_note = |wish: &FromRoot| matches!(wish, FromRoot::Report(Report::Note { text, .. }) if text.contains(&expected));
    assert!(scene.wishes.iter().any(is_note), "{:?}", scene.wishes);
}

#[test]
fn spawns_that_wait_for_room_are_refused_when_the_dvm_ends() {
    let mut scene = RootScene::up(2);
    let nspace = scene.launch(JobRequest::default(), 8);
    let asked = spawn(&mut scene, &nspace, 1, None);
    scene.tell(ToRoot::Shutdown);
    assert_eq!(scene.answer(asked), Some(&HostReply::Spawned(Err(Status::ERR_NOT_AVAILABLE))));
}

/// A tool wants ranks to be started again; returns the request.
fn restart(scene: &mut RootScene, nspace: &Nspace, ranks: &[u32]) -> u64 {
    scene.wishes.clear();
    let targets: Vec<ProcId> = ranks.iter().map(|rank| proc(nspace, *rank)).collect();
    scene.ask(0, control(tool(), &targets, Info::new(keys::JOB_CTRL_RESTART, "")))
}

#[test]
fn a_restart_needs_a_slot_if_its_own_was_given_away() {
    for (policy, goes) in [("slot", false), (":oversubscribe", true)] {
        let mut scene = RootScene::up(2);
        scene.connect_tool();
        let map = policy.parse().unwrap();
        let policy = crate::map::Policy { map, ..Default::default() };
        let nspace = scene.launch(JobRequest { policy, ..JobRequest::default() }, 8);
        freed(&mut scene, &nspace, &[1, 2, 6], &[]);
        let other = scene.launch(JobRequest::default(), 1);
        let asked = restart(&mut scene, &nspace, &[1, 2, 6]);
        let (_, op, _) = scene.task_among();
        let again: &[u32] = if goes { &[1, 2, 6] } else { &[1, 6] };
        scene.wishes.clear();
        scene.gathered(op, cleared(again, again));
        let (_, op, _) = scene.task_among();
        let Part::Results(renewed) = done(again) else { unreachable!() };
        let pids = again.iter().map(|rank| (*rank, 500 + rank)).collect();
        scene.gathered(op, Part::Renewed { results: renewed, pids, programs: Programs::default() });
        let expected: &[_] = match goes {
            true => &[named(&nspace, "1-2,6", Status::SUCCESS)],
            false => {
                &[named(&nspace, "2", Status::ERR_OUT_OF_RESOURCE), named(&nspace, "1,6", Status::SUCCESS)]
            }
        };
        assert_eq!(results(scene.answer(asked)), expected);
        assert_eq!(scene.root.dvm.jobs[&nspace].journal.verdict(), None, "the job goes on");
        let in_use = |scene: &RootScene| -> Vec<u32> {
            placing::resources(&scene.root.dvm).1.iter().map(|node| node.in_use()).collect()
        };
        assert_eq!(in_use(&scene), [if goes { 5 } else { 4 }, 4]);
        scene.end(&other, 1, ExitStatus::Code(0));
        assert_eq!(in_use(&scene), [if goes { 4 } else { 3 }, 4]);
    }
}

#[test]
fn a_refused_restart_names_the_node_without_a_slot() {
    let mut scene = RootScene::up(2);
    scene.connect_tool();
    let nspace = scene.launch(JobRequest::default(), 8);
    freed(&mut scene, &nspace, &[2], &[]);
    scene.launch(JobRequest::default(), 1);
    let asked = restart(&mut scene, &nspace, &[2]);
    let Some(HostReply::Infos(status, infos)) = scene.answer(asked) else { panic!("{:?}", scene.wishes) };
    assert_eq!(*status, Status::ERR_OUT_OF_RESOURCE);
    let about: Vec<Info> = infos[0].value.as_array().unwrap().infos().cloned().collect();
    let why = about.find(keys::EVENT_TEXT_MESSAGE).and_then(Value::as_str).unwrap();
    assert!(why.contains("the slot was given to another job, and all 4 of "), "{why}");
    assert!(scene.tasks().is_empty());
}

#[test]
fn the_slot_of_a_rank_is_kept_while_it_is_started_again() {
    let mut scene = RootScene::up(2);
    scene.connect_tool();
    let nspace = scene.launch(JobRequest::default(), 8);
    freed(&mut scene, &nspace, &[2], &[]);
    restart(&mut scene, &nspace, &[2]);
    let (_, clear, _) = scene.task_among();
    spawn(&mut scene, &nspace, 1, None);
    answered(&mut scene);
    assert!(started(&scene).is_none());
    // On its host all have ended meanwhile, so it is not started.
    let mut results = Results::default();
    results.set(&Ranges::single(2), Status::ERR_NOT_FOUND);
    scene.gathered(clear, Part::Cleared { results, ran: Ranges::new() });
    assert!(started(&scene).is_some());
}
