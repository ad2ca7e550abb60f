//! Checkpoints that ranks take, and ranks that are started again.

use phalanx_core::Event;
use phalanx_spec::{ProcState, Range};
use phalanx_wire::{DataArray, InfoList};

use super::control::{control, done, named, results};
use super::*;
use crate::msg::{Found, FoundProc, Members, Subject};

fn register(scene: &mut RootScene, rank: ProcId, methods: &[Info]) -> Option<Status> {
    let methods = DataArray::of_infos(methods.iter().cloned());
    let asked = scene.ask(0, control(rank, &[], Info::new(keys::JOB_CTRL_CHECKPOINT_METHOD, methods)));
    scene.answer(asked).map(HostReply::status)
}

fn checkpoint(scene: &mut RootScene, targets: &[ProcId], more: Option<Info>) -> u64 {
    let mut directives = vec![Info::new(keys::JOB_CTRL_CHECKPOINT, "one")];
    directives.extend(more);
    let request = JobControl { targets: targets.to_vec(), directives };
    scene.ask(0, HostOp::from(Asked { from: tool(), request }))
}

fn complete(scene: &mut RootScene, source: ProcId) {
    let (code, range) = (Status::JCTRL_CHECKPOINT_COMPLETE, Range::RM);
    scene.ask(0, HostOp::Notify(Event { code, source, range, info: Vec::new() }));
}

/// The events for single ranks: code and ranks.
fn events(scene: &RootScene) -> Vec<(Status, Vec<u32>)> {
    let events = scene.casts().into_iter().filter_map(|(_, body)| match body {
        Down::Event { event, .. } if event.range == Range::CUSTOM => {
            assert!(event.info.is_set(keys::EVENT_NON_DEFAULT), "MPI libraries abort when they hear of it");
            let procs = msg::procs(event.info.find(keys::EVENT_CUSTOM_RANGE));
            Some((event.code, procs.map(|proc| proc.rank.0).collect()))
        }
        _ => None,
    });
    events.collect()
}

pub(super) fn launched(scene: &mut RootScene, on_failure: FailurePolicy, ranks: u32) -> Nspace {
    scene.connect_tool();
    let nspace = scene.launch(JobRequest { on_failure, ..JobRequest::default() }, ranks);
    let pids = (0..ranks).map(|rank| (rank, 100 + rank)).collect();
    scene.gathered(
        OpId::Started(nspace.clone()),
        Part::Started { pids, programs: Programs::default(), failed: false, after: Duration::ZERO },
    );
    scene.wishes.clear();
    nspace
}

#[test]
fn ranks_are_asked_for_checkpoints_in_the_way_they_prefer() {
    let mut scene = RootScene::up(2);
    let nspace = launched(&mut scene, FailurePolicy::KillJob, 3);
    let signal = Info::new(keys::JOB_CTRL_CHECKPOINT_SIGNAL, 12);
    let event = Info::new(keys::JOB_CTRL_CHECKPOINT_EVENT, true);
    for (rank, methods) in [(0, vec![event.clone(), signal.clone()]), (1, vec![event]), (2, vec![signal])] {
        assert_eq!(register(&mut scene, proc(&nspace, rank), &methods), Some(Status::SUCCESS));
    }
    scene.wishes.clear();
    let asked = checkpoint(&mut scene, &[ProcId::all(&nspace)], None);
    let mut raised = events(&scene);
    raised.sort();
    let code = Status::JCTRL_CHECKPOINT;
    assert_eq!(raised, [(code, vec![0]), (code, vec![1])]);
    let (_, op, task) = scene.task_among();
    let Task::Control { targets, request } = &*task else { panic!("{task:?}") };
    assert_eq!((targets.ranks.to_string(), &request.actions[..]), ("2".into(), &[Control::Signal(12)][..]));
    scene.gathered(op, done(&[2]));
    for rank in 0..3 {
        assert_eq!(scene.answer(asked), None, "{rank} has not said that it is complete");
        complete(&mut scene, proc(&nspace, rank));
    }
    assert_eq!(results(scene.answer(asked)), [named(&nspace, "0-2", Status::SUCCESS)]);
    assert!(scene.root.explain().is_empty());
}

#[test]
fn a_checkpoint_that_some_cannot_take_is_refused() {
    let mut scene = RootScene::up(2);
    let nspace = launched(&mut scene, FailurePolicy::KillJob, 3);
    register(&mut scene, proc(&nspace, 1), &[Info::new(keys::JOB_CTRL_CHECKPOINT_EVENT, true)]);
    scene.wishes.clear();
    let asked = checkpoint(&mut scene, &[ProcId::all(&nspace)], None);
    assert_eq!(results(scene.answer(asked)), [named(&nspace, "0,2", Status::ERR_NOT_SUPPORTED)]);
    assert!(events(&scene).is_empty());
    let chosen = Some(Info::new(keys::JOB_CTRL_CHECKPOINT_EVENT, Status(-3100)));
    checkpoint(&mut scene, &[proc(&nspace, 2)], chosen);
    assert_eq!(events(&scene), [(Status(-3100), vec![2])], "who asks may say how");
}

#[test]
fn ranks_too_slow_for_a_checkpoint_are_named() {
    let mut scene = RootScene::up(2);
    let nspace = launched(&mut scene, FailurePolicy::Continue, 3);
    for rank in 0..3 {
        register(&mut scene, proc(&nspace, rank), &[Info::new(keys::JOB_CTRL_CHECKPOINT_EVENT, true)]);
    }
    let limit = Info::new(keys::JOB_CTRL_CHECKPOINT_TIMEOUT, 5);
    let asked = checkpoint(&mut scene, &[ProcId::all(&nspace)], Some(limit));
    complete(&mut scene, proc(&nspace, 1));
    scene.post(0, failed(&nspace, 0));
    scene.wait(5);
    let expected = [
        named(&nspace, "2", Status::ERR_TIMEOUT),
        named(&nspace, "0", Status::ERR_PROC_ABORTED),
        named(&nspace, "1", Status::SUCCESS),
    ];
    let mut became = results(scene.answer(asked));
    became.sort_by_key(|(_, ranks, _)| expected.iter().position(|(_, other, _)| other == ranks));
    assert_eq!(became, expected);
}

#[test]
fn preemptible_ranks_are_ended_behind_their_checkpoint() {
    let mut scene = RootScene::up(2);
    let nspace = launched(&mut scene, FailurePolicy::KillJob, 2);
    let preempt = |scene: &mut RootScene| {
        scene.wishes.clear();
        scene.ask(0, control(tool(), &[ProcId::all(&nspace)], Info::new(msg::PREEMPT, "night")))
    };
    let asked = preempt(&mut scene);
    assert_eq!(scene.answer(asked).map(HostReply::status), Some(Status::ERR_NOT_SUPPORTED));
    scene.ask(0, control(proc(&nspace, 0), &[], Info::new(keys::JOB_CTRL_PREEMPTIBLE, true)));
    register(&mut scene, proc(&nspace, 0), &[Info::new(keys::JOB_CTRL_CHECKPOINT_EVENT, true)]);
    let asked = preempt(&mut scene);
    let expected =
        [(Status::JCTRL_PREEMPT_ALERT, vec![Rank::WILDCARD.0]), (Status::JCTRL_CHECKPOINT, vec![0])];
    assert_eq!(events(&scene), expected);
    assert!(scene.tasks().is_empty(), "nobody is ended before");
    complete(&mut scene, proc(&nspace, 0));
    let (_, op, task) = scene.task_among();
    let Task::Control { request, .. } = &*task else { panic!("{task:?}") };
    assert_eq!(request.actions, [Control::Terminate { signal: 15 }]);
    scene.gathered(op, done(&[0, 1]));
    assert_eq!(scene.answer(asked).map(HostReply::status), Some(Status::SUCCESS));
}

/// Nothing is left of the old processes of these ranks, of which some ran.
pub(super) fn cleared(ranks: &[u32], ran: &[u32]) -> Part {
    let Part::Results(results) = done(ranks) else { unreachable!() };
    Part::Cleared { results, ran: ran.iter().copied().collect() }
}

/// The only restart in progress goes through its two steps.
pub(super) fn renew(scene: &mut RootScene, nspace: &Nspace, ranks: &[u32]) {
    let is_of = |task: &Task, of: &str| match task {
        Task::Clear { targets: Members { ranks: these, .. } } => {
            of == "clear" && these.iter().eq(ranks.iter().copied())
        }
        Task::Renew { targets: Members { ranks: these, .. } } => {
            of == "renew" && these.iter().eq(ranks.iter().copied())
        }
        _ => false,
    };
    let (_, op, task) = scene.task_among();
    assert!(is_of(&task, "clear"), "{task:?}");
    scene.wishes.clear();
    scene.gathered(op, cleared(ranks, ranks));
    let renewed = scene
        .casts()
        .into_iter()
        .any(|(_, body)| matches!(body, Down::Renewed { nspace: of, .. } if of == nspace));
    assert!(renewed, "{:?}", scene.wishes);
    let (_, op, task) = scene.task_among();
    assert!(is_of(&task, "renew"), "{task:?}");
    scene.wishes.clear();
    let Part::Results(results) = done(ranks) else { unreachable!() };
    let pids = ranks.iter().map(|rank| (*rank, 500 + rank)).collect();
    scene.gathered(op, Part::Renewed { results, pids, programs: Programs::default() });
}

#[test]
fn ranks_start_again_when_the_old_ones_are_gone_everywhere() {
    let mut scene = RootScene::up(2);
    let nspace = launched(&mut scene, FailurePolicy::KillJob, 8);
    let codes = vec![Status::ERR_PROC_RESTART];
    scene.ask(1, HostOp::RegisterEvents(EventsRequest { codes, info: Vec::new() }));
    scene.wishes.clear();
    let restart = Info::new(keys::JOB_CTRL_RESTART, "night");
    let asked = scene.ask(0, control(tool(), &[proc(&nspace, 3), proc(&nspace, 7)], restart.clone()));
    let second = scene.ask(0, control(tool(), &[proc(&nspace, 7)], restart));
    assert_eq!(results(scene.answer(second)), [named(&nspace, "7", Status::ERR_EXISTS)]);
    assert_eq!(scene.root.explain()[0].missing, [proc(&nspace, 3), proc(&nspace, 7)]);
    renew(&mut scene, &nspace, &[3, 7]);
    assert_eq!(results(scene.answer(asked)), [named(&nspace, "3,7", Status::SUCCESS)]);
    let announced = scene.casts().into_iter().filter(|(to, body)| {
        matches!(body, Down::Announce { event, .. } if event.code == Status::ERR_PROC_RESTART)
            && **to == Ranges::single(1)
    });
    assert_eq!(announced.count(), 2);
    assert_eq!(scene.root.dvm.jobs[&nspace].journal.pid(Rank(7)), Some(507));
    scene.end(&nspace, 8, ExitStatus::Code(0));
    assert_eq!(scene.verdict(), Some(&JobVerdict::Success));
}

#[test]
fn a_rank_that_is_being_started_again_can_be_steered() {
    let mut scene = RootScene::up(2);
    let nspace = launched(&mut scene, FailurePolicy::Continue, 8);
    scene.ask(0, control(tool(), &[proc(&nspace, 7)], Info::new(keys::JOB_CTRL_RESTART, "")));
    let checkpointed = checkpoint(&mut scene, &[proc(&nspace, 7)], None);
    assert_eq!(results(scene.answer(checkpointed)), [named(&nspace, "7", Status::ERR_NOT_SUPPORTED)]);
    scene.wishes.clear();
    let killed = scene.ask(0, control(tool(), &[proc(&nspace, 7)], Info::new(keys::JOB_CTRL_KILL, true)));
    let (_, op, task) = scene.task_among();
    assert!(matches!(&*task, Task::Control { targets, .. } if targets.ranks == Ranges::single(7)));
    assert_eq!(scene.answer(killed), None);
    assert!(scene.reports().is_empty(), "nothing is said before it is true");
    scene.gathered(op, done(&[7]));
    assert_eq!(results(scene.answer(killed)), [named(&nspace, "7", Status::SUCCESS)]);
    let said =
        |report: &Report| matches!(report, Report::Note { text, .. } if text.starts_with("rank 7: ended by"));
    let (_, op, task) = scene.task_among();
    assert!(matches!(&*task, Task::Survey(Subject::Procs { .. })), "whether others go on");
    let living = |rank| FoundProc {
        rank,
        state: ProcState::RUNNING,
        stopped: false,
        pid: None,
        status: None,
        usage: None,
    };
    scene.gathered(
        op,
        Part::Found(Box::new(Found { procs: (6..8).map(living).collect(), ..Found::default() })),
    );
    assert!(scene.reports().iter().any(|report| said(report)));
}

#[test]
fn a_rest_that_is_being_killed_does_not_go_on() {
    let mut scene = RootScene::up(2);
    let nspace = launched(&mut scene, FailurePolicy::Continue, 2);
    let living = |rank| FoundProc {
        rank,
        state: ProcState::RUNNING,
        stopped: false,
        pid: None,
        status: None,
        usage: None,
    };
    let looks = [0, 1].map(|rank| {
        scene.wishes.clear();
        scene.ask(0, control(tool(), &[proc(&nspace, rank)], Info::new(keys::JOB_CTRL_KILL, true)));
        let (_, op, _) = scene.task_among();
        scene.wishes.clear();
        scene.gathered(op, done(&[rank]));
        scene.task_among().1
    });
    for look in looks {
        let procs = (0..2).map(living).collect();
        scene.gathered(look, Part::Found(Box::new(Found { procs, ..Found::default() })));
    }
    let notes = scene.reports().into_iter().filter(|report| matches!(report, Report::Note { .. }));
    assert_eq!(notes.count(), 0, "{:?}", scene.wishes);
}

#[test]
fn a_paused_job_that_is_started_again_does_not_pause() {
    let mut scene = RootScene::up(2);
    let nspace = launched(&mut scene, FailurePolicy::Continue, 2);
    let all = [ProcId::all(&nspace)];
    scene.ask(0, control(tool(), &all, Info::new(keys::JOB_CTRL_PAUSE, true)));
    assert_eq!(scene.root.dvm.jobs[&nspace].paused(), Some("paused"));
    scene.wishes.clear();
    scene.ask(0, control(tool(), &all, Info::new(keys::JOB_CTRL_RESTART, "")));
    renew(&mut scene, &nspace, &[0, 1]);
    assert_eq!(scene.root.dvm.jobs[&nspace].paused(), None);
}

#[test]
fn a_restart_that_others_have_begun_ends_no_job() {
    let mut scene = RootScene::up(2);
    let nspace = launched(&mut scene, FailurePolicy::Continue, 8);
    let restart = |scene: &mut RootScene, ranks: &[u32]| {
        scene.wishes.clear();
        let targets: Vec<ProcId> = ranks.iter().map(|rank| proc(&nspace, *rank)).collect();
        let asked = scene.ask(0, control(tool(), &targets, Info::new(keys::JOB_CTRL_RESTART, "")));
        (asked, scene.task_among().1)
    };
    let (first, _) = restart(&mut scene, &[1]);
    let (second, clear) = restart(&mut scene, &[1, 2, 3]);
    // One of them had ended before.
    let mut results_of_both = Results::default();
    results_of_both.set(&Ranges::single(2), Status::SUCCESS);
    results_of_both.set(&Ranges::single(3), Status::ERR_NOT_FOUND);
    scene.wishes.clear();
    scene.gathered(clear, Part::Cleared { results: results_of_both, ran: Ranges::single(2) });
    let Part::Results(results_of_two) = done(&[2]) else { unreachable!() };
    let renewal = scene.task_among().1;
    scene.gathered(
        renewal,
        Part::Renewed { results: results_of_two, pids: vec![(2, 502)], programs: Programs::default() },
    );
    let expected = [("1", Status::ERR_EXISTS), ("2", Status::SUCCESS), ("3", Status::ERR_NOT_FOUND)];
    assert_eq!(scene.answer(second).map(HostReply::status), Some(Status::ERR_PARTIAL_SUCCESS));
    let mut became = results(scene.answer(second));
    became.sort_by(|one, other| one.1.cmp(&other.1));
    assert_eq!(became, expected.map(|(rank, status)| named(&nspace, rank, status)));
    assert_eq!(scene.answer(first), None, "the other goes on");
    let job = &scene.root.dvm.jobs[&nspace];
    assert_eq!((job.journal.verdict(), &job.restarting), (None, &Ranges::single(1)));
}

#[test]
fn a_restart_that_ends_the_job_is_no_partial_success() {
    let mut scene = RootScene::up(2);
    let nspace = launched(&mut scene, FailurePolicy::Continue, 8);
    let targets: Vec<ProcId> = (1..4).map(|rank| proc(&nspace, rank)).collect();
    scene.wishes.clear();
    let request = scene.ask(0, control(tool(), &targets, Info::new(keys::JOB_CTRL_RESTART, "")));
    let clear = scene.task_among().1;
    let mut results = Results::default();
    results.set(&Ranges::single(1), Status::ERR_NOT_FOUND);
    results.set(&[2, 3].into_iter().collect(), Status::SUCCESS);
    scene.wishes.clear();
    scene.gathered(clear, Part::Cleared { results, ran: [2, 3].into_iter().collect() });
    let mut results = Results::default();
    results.set(&Ranges::single(2), Status::SUCCESS);
    results.set(&Ranges::single(3), Status::ERR_JOB_FAILED_TO_LAUNCH);
    let renewal = scene.task_among().1;
    scene.gathered(renewal, Part::Renewed { results, pids: vec![(2, 502)], programs: Programs::default() });
    let status = scene.answer(request).map(HostReply::status);
    assert_eq!(status, Some(Status::ERR_JOB_FAILED_TO_LAUNCH));
    assert!(scene.root.dvm.jobs[&nspace].journal.verdict().is_some());
}

#[test]
fn a_rank_that_fails_is_started_again_until_it_is_given_up() {
    let mut scene = RootScene::up(2);
    let nspace = launched(&mut scene, FailurePolicy::Restart { most: 2 }, 2);
    for time in 1..=2 {
        scene.wishes.clear();
        scene.post(0, failed(&nspace, 1));
        let noted = scene.reports().iter().any(|report| {
            matches!(report, Report::Note { text, .. }
                if text.contains(&format!("rank 1 exited with code 3; it is started again ({time} of 2)")))
        });
        assert!(noted, "{:?}", scene.wishes);
        renew(&mut scene, &nspace, &[1]);
        assert!(scene.root.explain().is_empty());
    }
    scene.wishes.clear();
    scene.post(0, failed(&nspace, 1));
    let ends = |(_, body): &(&Ranges, &Down)| {
        matches!(body, Down::Control { action: Control::Terminate { .. }, .. })
    };
    assert!(scene.casts().iter().any(ends));
    let looks = |(_, task): &(OpId, Arc<Task>)| matches!(**task, Task::Survey(_));
    assert!(scene.tasks().iter().all(looks), "nothing is started again");
    scene.end(&nspace, 2, ExitStatus::Code(3));
    assert!(matches!(scene.verdict(), Some(JobVerdict::Failed { first }) if first.proc.rank == Rank(1)));
}

#[test]
fn a_rank_that_fails_amid_restarts_is_started_once_more() {
    let mut scene = RootScene::up(2);
    let nspace = launched(&mut scene, FailurePolicy::Restart { most: 9 }, 8);
    let restart = Info::new(keys::JOB_CTRL_RESTART, "");
    scene.ask(0, control(tool(), &[proc(&nspace, 1), proc(&nspace, 7)], restart));
    // The old process has failed on its own.
    scene.post(0, failed(&nspace, 1));
    let (_, clear, _) = scene.task_among();
    scene.gathered(clear, cleared(&[1, 7], &[1, 7]));
    let renewal = scene.tasks().into_iter().find(|(_, task)| matches!(**task, Task::Renew { .. })).unwrap().0;
    scene.wishes.clear();
    scene.post(0, failed(&nspace, 1));
    assert!(scene.tasks().is_empty(), "it is still being started");
    let Part::Results(results) = done(&[1, 7]) else { unreachable!() };
    scene.gathered(
        renewal,
        Part::Renewed { results, pids: vec![(1, 501), (7, 507)], programs: Programs::default() },
    );
    renew(&mut scene, &nspace, &[1]);
    assert!(scene.root.explain().is_empty());
}

#[test]
fn latecomers_get_each_failure_and_each_restart() {
    let mut scene = RootScene::up(2);
    let nspace = launched(&mut scene, FailurePolicy::Restart { most: 9 }, 2);
    for _ in 0..3 {
        scene.wishes.clear();
        scene.post(0, failed(&nspace, 1));
        renew(&mut scene, &nspace, &[1]);
        scene.wait(1);
    }
    scene.wishes.clear();
    let codes = vec![Status::ERR_PROC_RESTART, Status::EVENT_PROC_TERMINATED];
    scene.ask(0, HostOp::RegisterEvents(EventsRequest { codes, info: Vec::new() }));
    let announced = scene.casts().into_iter().filter_map(|(_, body)| match body {
        Down::Announce { event, number, .. } => Some((*number, event.code)),
        _ => None,
    });
    let announced: Vec<(u64, Status)> = announced.collect();
    let of = |code| announced.iter().filter(|(_, scene)| *scene == code).count();
    assert_eq!((of(Status::ERR_PROC_RESTART), of(Status::EVENT_PROC_TERMINATED)), (3, 3), "{announced:?}");
    assert!(announced.is_sorted_by(|one, other| one.0 < other.0), "{announced:?}");
}

#[test]
fn a_restarted_rank_gets_the_checkpoint_that_it_has_taken() {
    let mut scene = RootScene::up(2);
    let nspace = launched(&mut scene, FailurePolicy::Restart { most: 1 }, 2);
    for rank in 0..2 {
        register(&mut scene, proc(&nspace, rank), &[Info::new(keys::JOB_CTRL_CHECKPOINT_EVENT, true)]);
    }
    checkpoint(&mut scene, &[ProcId::all(&nspace)], None);
    (0..2).for_each(|rank| complete(&mut scene, proc(&nspace, rank)));
    scene.wishes.clear();
    scene.post(0, failed(&nspace, 1));
    let (_, op, _) = scene.task_among();
    scene.gathered(op, cleared(&[1], &[1]));
    let from = scene.casts().into_iter().find_map(|(_, body)| match body {
        Down::Renewed { from, .. } => from.clone(),
        _ => None,
    });
    assert_eq!(from, Some(Text::from("one")));
}

#[test]
fn a_restart_that_hangs_ends_the_job() {
    let mut scene = RootScene::up(2);
    let nspace = launched(&mut scene, FailurePolicy::KillJob, 2);
    let asked = scene.ask(0, control(tool(), &[proc(&nspace, 1)], Info::new(keys::JOB_CTRL_RESTART, "")));
    scene.wait(121);
    assert_eq!(results(scene.answer(asked)), [named(&nspace, "1", Status::ERR_TIMEOUT)]);
    scene.end(&nspace, 2, ExitStatus::Code(0));
    assert!(matches!(scene.verdict(), Some(JobVerdict::NotStarted { .. })), "{:?}", scene.verdict());
}

#[test]
fn a_restart_goes_on_without_its_requester() {
    let mut scene = RootScene::up(2);
    let nspace = launched(&mut scene, FailurePolicy::KillJob, 2);
    let parent = scene.launch(JobRequest::default(), 1);
    scene.root.dvm.config.rules.steer = crate::config::Steer::Any;
    let restart = Info::new(keys::JOB_CTRL_RESTART, "");
    scene.ask(0, control(proc(&parent, 0), &[proc(&nspace, 1)], restart));
    let (_, clear, _) = scene.task_among();
    scene.end(&parent, 1, ExitStatus::Code(0));
    scene.wishes.clear();
    scene.gathered(clear, cleared(&[1], &[1]));
    assert!(matches!(&*scene.task_among().2, Task::Renew { .. }));
}

#[test]
fn nodes_are_provisioned_by_a_program_of_the_site() {
    let mut scene = RootScene::up(2);
    scene.connect_tool();
    let nspace = scene.launch(JobRequest::default(), 1);
    let ask = |scene: &mut RootScene, by: ProcId| {
        scene.wishes.clear();
        scene.ask(0, control(by, &[], Info::new(keys::JOB_CTRL_PROVISION, "n[1-4]")))
    };
    let why = |scene: &RootScene, asked| match scene.answer(asked) {
        Some(HostReply::Infos(status, infos)) => {
            let why = infos.find(keys::EVENT_TEXT_MESSAGE).and_then(Value::as_str);
            (*status, why.unwrap_or_default().to_owned())
        }
        other => panic!("{other:?}"),
    };
    let asked = ask(&mut scene, tool());
    let (status, said) = why(&scene, asked);
    assert_eq!(status, Status::ERR_NOT_SUPPORTED);
    assert!(said.contains("no program that provisions nodes"), "{said}");
    scene.root.dvm.config.rules.provision = Some("provision".into());
    let other = scene.launch(JobRequest::default(), 1);
    let asked = ask(&mut scene, proc(&nspace, 0));
    assert_eq!(why(&scene, asked).0, Status::ERR_NO_PERMISSIONS, "{other} is not its own");
    let asked = ask(&mut scene, tool());
    let (to, op, task) = scene.task();
    assert!(matches!(&*task, Task::Provision { nodes, image: None, .. } if *nodes == "n[1-4]"));
    assert_eq!(to, Ranges::single(0));
    let mut results = Results::default();
    results.set(&Ranges::single(0), Status::ERROR);
    results.explain(Status::ERROR, "no such image".to_owned());
    scene.gathered(op, Part::Results(results));
    assert_eq!(why(&scene, asked), (Status::ERROR, "no such image".to_owned()));
}

#[test]
fn provisioning_is_cancelled_by_its_name() {
    let mut scene = RootScene::up(2);
    scene.connect_tool();
    scene.root.dvm.config.rules.provision = Some("provision".into());
    let directives = vec![Info::new(keys::JOB_CTRL_PROVISION, "n1"), Info::new(keys::JOB_CTRL_ID, "mine")];
    let request = JobControl { targets: Vec::new(), directives };
    let asked = scene.ask(0, HostOp::from(Asked { from: tool(), request }));
    assert_eq!(scene.root.explain().first().map(|waiting| waiting.subject.clone()), Some("mine: n1".into()));
    scene.ask(0, control(tool(), &[], Info::new(keys::JOB_CTRL_CANCEL, "mine")));
    assert_eq!(scene.answer(asked).map(HostReply::status), Some(Status::ERR_JOB_CANCELED));
}

#[test]
fn a_number_that_is_no_registered_signal_limits_a_checkpoint() {
    let mut scene = RootScene::up(2);
    let nspace = launched(&mut scene, FailurePolicy::KillJob, 1);
    register(&mut scene, proc(&nspace, 0), &[Info::new(keys::JOB_CTRL_CHECKPOINT_EVENT, true)]);
    scene.wishes.clear();
    // As a client of 4.2 gives a limit: in its header both keys are one.
    let number = Some(Info::new(keys::JOB_CTRL_CHECKPOINT_SIGNAL, 5));
    let asked = checkpoint(&mut scene, &[ProcId::all(&nspace)], number.clone());
    assert_eq!(events(&scene), [(Status::JCTRL_CHECKPOINT, vec![Rank::WILDCARD.0])]);
    scene.wait(5);
    assert_eq!(results(scene.answer(asked)), [named(&nspace, "0", Status::ERR_TIMEOUT)]);

    register(&mut scene, proc(&nspace, 0), &[Info::new(keys::JOB_CTRL_CHECKPOINT_SIGNAL, 5)]);
    scene.wishes.clear();
    checkpoint(&mut scene, &[ProcId::all(&nspace)], number);
    let (_, _, task) = scene.task_among();
    let Task::Control { request, .. } = &*task else { panic!("{task:?}") };
    assert_eq!(request.actions, [Control::Signal(5)]);
}

#[test]
fn a_late_command_does_not_hide_why_others_failed() {
    let mut scene = RootScene::up(2);
    scene.connect_tool();
    let request = JobRequest { checkpoint_command: Some("save".into()), ..JobRequest::default() };
    let nspace = scene.launch(request, 2);
    scene.wishes.clear();
    let asked = checkpoint(
        &mut scene,
        &[ProcId::all(&nspace)],
        Some(Info::new(keys::JOB_CTRL_CHECKPOINT_TIMEOUT, 5)),
    );
    let (_, op, _) = scene.task_among();
    scene.wait(6);
    assert_eq!(scene.answer(asked), None, "its daemon ends the late command, and reports");
    let mut all = Results::default();
    all.set(&Ranges::single(0), Status::ERR_TIMEOUT);
    all.set(&Ranges::single(1), Status::ERROR);
    scene.gathered(op, Part::Results(all));
    let mut shown = results(scene.answer(asked));
    shown.sort();
    let mut expected = [named(&nspace, "1", Status::ERROR), named(&nspace, "0", Status::ERR_TIMEOUT)];
    expected.sort();
    assert_eq!(shown, expected);
}

#[test]
fn nothing_is_left_of_a_restart_when_its_job_ends() {
    let mut scene = RootScene::up(2);
    let nspace = launched(&mut scene, FailurePolicy::KillJob, 2);
    let asked = scene.ask(0, control(tool(), &[proc(&nspace, 1)], Info::new(keys::JOB_CTRL_RESTART, "")));
    scene.end(&nspace, 2, ExitStatus::Code(0));
    assert_eq!(results(scene.answer(asked)), [named(&nspace, "1", Status::ERR_PROC_ABORTED)]);
    assert!(scene.root.explain().is_empty());
}
