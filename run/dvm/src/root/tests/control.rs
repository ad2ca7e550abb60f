//! Job control: permissions, the daemons' tasks, the reply, and queries for named requests.

use phalanx_wire::InfoList;

use super::*;
use crate::config::Steer;
use crate::msg::{Pauser, STANDS_STILL};

/// Job, ranks, and their result.
pub(super) type Became = (String, String, Status);

pub(super) fn results(reply: Option<&HostReply>) -> Vec<Became> {
    let Some(HostReply::Infos(_, infos)) = reply else { panic!("{reply:?}") };
    let scene = infos.iter().filter(|info| info.key == *query::names::RESULT).map(|info| {
        let about: Vec<Info> = info.value.as_array().unwrap().infos().cloned().collect();
        let text = |key| about.find(key).and_then(Value::as_str).unwrap().to_owned();
        let Some(Value::Status(status)) = about.find(query::names::STATUS) else { panic!("{about:?}") };
        (text(keys::NSPACE), text(query::names::WHICH), *status)
    });
    scene.collect()
}

pub(super) fn named(nspace: &Nspace, ranks: &str, status: Status) -> Became {
    (nspace.to_string(), ranks.to_owned(), status)
}

/// The state of a named request, from a query.
fn request(scene: &mut RootScene, id: &str) -> Option<(String, Vec<Became>)> {
    let qualifiers = vec![Info::new(keys::JOB_CTRL_ID, id)];
    let query = Query { keys: vec![query::names::REQUESTS.into()], qualifiers };
    let asked =
        scene.ask(0, HostOp::Query(Asked { from: tool(), request: Queries { queries: vec![query] } }));
    let Some(HostReply::Infos(_, infos)) = scene.answer(asked) else { panic!("{:?}", scene.wishes) };
    let request = infos.first()?.value.as_array()?.infos().next()?.clone();
    let about: Vec<Info> = request.value.as_array()?.infos().cloned().collect();
    let state = about.find(query::names::STATE).and_then(Value::as_str)?.to_owned();
    Some((state, results(Some(&HostReply::Infos(Status::SUCCESS, about)))))
}

pub(super) fn done(ranks: &[u32]) -> Part {
    let mut results = Results::default();
    results.set(&ranks.iter().copied().collect(), Status::SUCCESS);
    Part::Results(results)
}

pub(super) fn control(from: ProcId, targets: &[ProcId], directive: Info) -> HostOp {
    HostOp::from(Asked {
        from,
        request: JobControl { targets: targets.to_vec(), directives: vec![directive] },
    })
}

#[test]
fn job_control_is_answered_when_all_daemons_have_done_it() {
    let mut scene = RootScene::up(2);
    let nspace = scene.launch(JobRequest::default(), 8);
    let pause = Info::new(keys::JOB_CTRL_PAUSE, true);
    let request = scene.ask(0, control(proc(&nspace, 0), &[proc(&nspace, 3), proc(&nspace, 7)], pause));
    let (to, op, task) = scene.task();
    let Task::Control { request: asked, .. } = &*task else { panic!("{task:?}") };
    assert_eq!((to, &asked.actions[..]), (Ranges::first(2), &[Control::Suspend][..]));
    assert!(scene.wishes.iter().any(|wish| matches!(wish, FromRoot::Await(awaited, _) if *awaited == op)));
    assert_eq!(scene.answer(request), None);
    assert_eq!(scene.root.explain()[0].asked_by, [proc(&nspace, 0)]);
    assert_eq!(scene.root.explain()[0].missing, [proc(&nspace, 3), proc(&nspace, 7)]);
    scene.gathered(op, done(&[3, 7]));
    assert_eq!(scene.answer(request).map(HostReply::status), Some(Status::SUCCESS));
    let waits: Vec<String> = scene.root.explain().iter().map(|wait| wait.subject.clone()).collect();
    assert_eq!(waits, [format!("{nspace}:3,7")], "the pause");
}

#[test]
fn session_control_is_done_to_all_jobs() {
    let mut scene = RootScene::up(2);
    scene.connect_tool();
    for size in [2, 5] {
        scene.launch(JobRequest::default(), size);
    }
    let ask = |scene: &mut RootScene, session, directives| {
        let request = SessionControl { session, directives };
        scene.ask(0, HostOp::from(Asked { from: tool(), request }))
    };
    let pause = vec![Info::new(keys::SESSION_PAUSE, true)];
    for (session, directives, expected) in [
        (3, pause.clone(), Status::ERR_NOT_FOUND),
        (0, Vec::new(), Status::ERR_NOT_SUPPORTED),
        (0, vec![Info::new(keys::SESSION_SIGNAL, 99)], Status::ERR_BAD_PARAM),
    ] {
        let refused = ask(&mut scene, session, directives);
        assert_eq!(scene.answer(refused).map(HostReply::status), Some(expected));
    }
    for session in [0, u32::MAX] {
        scene.wishes.clear();
        let request = ask(&mut scene, session, pause.clone());
        let tasks = scene.casts().into_iter().filter_map(|(_, body)| match body {
            Down::Task { id, task } => Some((id.clone(), task.clone())),
            _ => None,
        });
        let tasks: Vec<_> = tasks.collect();
        assert_eq!(tasks.len(), 2);
        for (id, task) in tasks {
            assert_eq!(scene.answer(request), None, "not all daemons have done it");
            let Task::Control { targets, request: asked } = &*task else { panic!("{task:?}") };
            assert_eq!(asked.actions, [Control::Suspend]);
            let mut results = Results::default();
            results.set(&targets.ranks, Status::SUCCESS);
            let among = id.daemons.clone();
            let op = Arc::new(OpId::Task(id));
            scene.tell(ToRoot::Gathered { op, among, missing: Ranges::new(), part: Part::Results(results) });
        }
        assert_eq!(scene.answer(request).map(HostReply::status), Some(Status::SUCCESS));
    }
}

#[test]
fn job_control_tells_that_a_node_was_lost() {
    let mut scene = RootScene::up(2);
    let nspace = scene.launch(JobRequest::default(), 8);
    for (targets, expected) in
        [(vec![3, 7], Status::ERR_PARTIAL_SUCCESS), (vec![7], Status::ERR_LOST_CONNECTION)]
    {
        scene.wishes.clear();
        let targets: Vec<ProcId> = targets.into_iter().map(|rank| proc(&nspace, rank)).collect();
        let signal = Info::new(keys::JOB_CTRL_SIGNAL, 10);
        let request = scene.ask(0, control(proc(&nspace, 0), &targets, signal));
        let (among, op, _) = scene.task();
        let (op, part) = (Arc::new(op), done(&[3]));
        scene.tell(ToRoot::Gathered { op, among, missing: Ranges::single(1), part });
        assert_eq!(scene.answer(request).map(HostReply::status), Some(expected));
    }
}

#[test]
fn a_cleanup_that_all_want_is_entered_once() {
    let mut scene = RootScene::up(2);
    let nspace = scene.launch(JobRequest::default(), 8);
    let ask = |scene: &mut RootScene, rank| {
        let path = Info::new(keys::REGISTER_CLEANUP, "/scratch/x/y");
        scene.ask(0, control(proc(&nspace, rank), &[], path))
    };
    let (first, second) = (ask(&mut scene, 0), ask(&mut scene, 1));
    let (_, op, _) = scene.task();
    scene.gathered(op, done(&[0, 1, 2, 3, 4, 5, 6, 7]));
    let third = ask(&mut scene, 2);
    let tasks = scene.casts().iter().filter(|(_, body)| matches!(body, Down::Task { .. })).count();
    assert_eq!(tasks, 1);
    for request in [first, second, third] {
        assert_eq!(scene.answer(request).map(HostReply::status), Some(Status::SUCCESS));
    }
}

#[test]
fn a_cleanup_of_a_process_that_fails_meanwhile_is_answered() {
    let mut scene = RootScene::up(2);
    let nspace = scene.launch(JobRequest { on_failure: FailurePolicy::Continue, ..JobRequest::default() }, 8);
    let path = Info::new(keys::REGISTER_CLEANUP, "/scratch/x/y");
    let request = scene.ask(0, control(proc(&nspace, 0), &[proc(&nspace, 7)], path));
    assert_eq!(scene.answer(request), None);
    scene.post(1, failed(&nspace, 7));
    assert_eq!(scene.answer(request).map(HostReply::status), Some(Status::ERR_PROC_ABORTED));
}

#[test]
fn job_control_tells_of_targets_that_have_ended() {
    for (gone, expected) in [(vec![3, 7], Status::ERR_NOT_FOUND), (vec![7], Status::SUCCESS)] {
        let mut scene = RootScene::up(2);
        let nspace = scene.launch(JobRequest::default(), 8);
        let signal = Info::new(keys::JOB_CTRL_SIGNAL, 10);
        let request = scene.ask(0, control(proc(&nspace, 0), &[proc(&nspace, 3), proc(&nspace, 7)], signal));
        let (_, op, _) = scene.task();
        let mut results = Results::default();
        for rank in [3, 7] {
            let status = if gone.contains(&rank) { Status::ERR_NOT_FOUND } else { Status::SUCCESS };
            results.set(&Ranges::single(rank), status);
        }
        scene.gathered(op, Part::Results(results));
        assert_eq!(scene.answer(request).map(HostReply::status), Some(expected));
    }
}

#[test]
fn job_whose_ranks_all_pause_is_paused() {
    let mut scene = RootScene::up(2);
    let nspace = scene.launch(JobRequest::default(), 8);
    let pids = (0..8).map(|rank| (rank, 100 + rank)).collect();
    scene.gathered(
        OpId::Started(nspace.clone()),
        Part::Started { pids, programs: Programs::default(), failed: false, after: Duration::ZERO },
    );
    let state = |scene: &mut RootScene| {
        let query = Query { keys: vec![query::names::JOBS.into()], qualifiers: Vec::new() };
        let request = scene.ask(
            0,
            HostOp::Query(Asked { from: proc(&nspace, 0), request: Queries { queries: vec![query] } }),
        );
        let Some(HostReply::Infos(_, infos)) = scene.answer(request) else { panic!("{:?}", scene.wishes) };
        let job = infos[0].value.as_array().unwrap().infos().next().unwrap();
        let state = job.value.as_array().unwrap().infos().find(|info| info.key == *query::names::STATE);
        state.unwrap().value.as_str().unwrap().to_owned()
    };
    let whole = ProcId::all(&nspace);
    let (pause, resume) = (keys::JOB_CTRL_PAUSE, keys::JOB_CTRL_RESUME);
    for (whom, what, expected) in [
        (proc(&nspace, 3), pause, "running"),
        (whole.clone(), pause, "paused"),
        (proc(&nspace, 5), resume, "running"),
        (proc(&nspace, 5), pause, "paused"),
        (whole, resume, "running"),
    ] {
        scene.ask(0, control(proc(&nspace, 0), &[whom], Info::new(what, true)));
        assert_eq!(state(&mut scene), expected, "{what}");
    }
    // The user of px does it with Ctrl-Z.
    scene.tell(ToRoot::Control { nspace: nspace.clone(), action: Control::Suspend });
    assert_eq!(state(&mut scene), "suspended");
    // A request does not end that pause, nor the user that of a request.
    for (request, user, expected) in [
        (resume, Control::Suspend, "suspended"),
        (pause, Control::Suspend, "paused, suspended"),
        (pause, Control::Resume, "paused"),
        (resume, Control::Resume, "running"),
    ] {
        scene.ask(0, control(proc(&nspace, 0), &[ProcId::all(&nspace)], Info::new(request, true)));
        scene.tell(ToRoot::Control { nspace: nspace.clone(), action: user });
        assert_eq!(state(&mut scene), expected, "{request}, {user:?}");
    }
}

#[test]
fn the_end_of_a_stopped_launcher_ends_its_pauses() {
    let mut scene = RootScene::up(2);
    scene.connect_tool();
    let nspace = scene.launch(JobRequest::default(), 4);
    let directives = [keys::JOB_CTRL_PAUSE, STANDS_STILL].map(|key| Info::new(key, true)).to_vec();
    let request = JobControl { targets: vec![ProcId::all(&nspace)], directives };
    scene.ask(0, HostOp::from(Asked { from: tool(), request }));
    let (_, op, _) = scene.task();
    scene.gathered(op, done(&[0, 1, 2, 3]));
    scene.wishes.clear();
    scene.post(0, Up::ToolLeft { proc: tool() });
    let pauser = Pauser::Launcher(tool());
    let resumes = |body: &Down| {
        let resume = Down::Control {
            nspace: nspace.clone(),
            ranks: Some(Ranges::first(4)),
            action: Control::Resume,
            pauser: pauser.clone(),
        };
        format!("{body:?}") == format!("{resume:?}")
    };
    assert!(scene.casts().into_iter().any(|(_, body)| resumes(body)), "{:?}", scene.wishes);
}

#[test]
fn one_request_names_ranks_of_several_jobs() {
    let mut scene = RootScene::up(2);
    scene.connect_tool();
    let (one, other) = (scene.launch(JobRequest::default(), 3), scene.launch(JobRequest::default(), 3));
    let targets = [proc(&one, 0), proc(&one, 2), ProcId::all(&other)];
    let asked = scene.ask(0, control(tool(), &targets, Info::new(keys::JOB_CTRL_PAUSE, true)));
    let tasks: Vec<_> = scene.tasks();
    assert_eq!(tasks.len(), 2);
    for (op, task) in tasks {
        let Task::Control { targets, .. } = &*task else { panic!("{task:?}") };
        let mut results = Results::default();
        results.set(&targets.ranks, Status::SUCCESS);
        scene.gathered(op, Part::Results(results));
    }
    let well = [named(&one, "0,2", Status::SUCCESS), named(&other, "0-2", Status::SUCCESS)];
    assert_eq!(results(scene.answer(asked)), well);
    // One of the jobs is over: the other is reached.
    scene.end(&one, 3, ExitStatus::Code(0));
    scene.wishes.clear();
    let asked = scene.ask(0, control(tool(), &targets, Info::new(keys::JOB_CTRL_RESUME, true)));
    let (_, op, _) = scene.task();
    scene.gathered(op, done(&[0, 1, 2]));
    let partly = [named(&one, "0,2", Status::ERR_NOT_FOUND), named(&other, "0-2", Status::SUCCESS)];
    assert_eq!(results(scene.answer(asked)), partly);
    assert_eq!(scene.answer(asked).map(HostReply::status), Some(Status::SUCCESS));
}

#[test]
fn targets_that_nobody_knows_are_named_and_nothing_is_done() {
    let mut scene = RootScene::up(2);
    let nspace = scene.launch(JobRequest::default(), 3);
    let nobody = Nspace::new("nobody@1").unwrap();
    let targets = [proc(&nspace, 1), proc(&nspace, 7), proc(&nobody, 4)];
    let asked = scene.ask(0, control(proc(&nspace, 0), &targets, Info::new(keys::JOB_CTRL_KILL, true)));
    assert_eq!(scene.answer(asked).map(HostReply::status), Some(Status::ERR_BAD_PARAM));
    let unknown = [named(&nspace, "7", Status::ERR_BAD_PARAM), named(&nobody, "4", Status::ERR_NOT_FOUND)];
    assert_eq!(results(scene.answer(asked)), unknown);
    assert!(scene.tasks().is_empty(), "{:?}", scene.wishes);
}

#[test]
fn ranks_steer_their_own_job_and_those_it_has_spawned() {
    for steer in [Steer::Own, Steer::Any] {
        let mut scene = RootScene::up(2);
        scene.root.dvm.config.rules.steer = steer;
        let (mine, other) = (scene.launch(JobRequest::default(), 1), scene.launch(JobRequest::default(), 1));
        let child = scene.launch(JobRequest { parent: Some(proc(&mine, 0)), ..JobRequest::default() }, 1);
        let pause = || Info::new(keys::JOB_CTRL_PAUSE, true);
        for (target, own) in [(&mine, true), (&child, true), (&other, false)] {
            let asked = scene.ask(0, control(proc(&mine, 0), &[ProcId::all(target)], pause()));
            let refused = (!own && steer == Steer::Own).then_some(Status::ERR_NO_PERMISSIONS);
            assert_eq!(scene.answer(asked).map(HostReply::status), refused, "{target} {steer:?}");
        }
        // A child may not act on its parent.
        let asked = scene.ask(0, control(proc(&child, 0), &[ProcId::all(&mine)], pause()));
        assert_eq!(scene.answer(asked).is_some(), steer == Steer::Own);
        let stop = Info::new(keys::JOB_CTRL_TERMINATE, true);
        let dvm = ProcId::all(&Nspace::new("dvm").unwrap());
        let asked = scene.ask(0, control(proc(&mine, 0), &[dvm], stop));
        let refused = (steer == Steer::Own).then_some(Status::ERR_NO_PERMISSIONS);
        assert_eq!(scene.answer(asked).map(HostReply::status), refused.or(Some(Status::SUCCESS)));
    }
}

#[test]
fn a_request_with_a_name_is_known_for_a_while() {
    let mut scene = RootScene::up(2);
    scene.connect_tool();
    let nspace = scene.launch(JobRequest::default(), 3);
    assert_eq!(request(&mut scene, "mine"), None);
    scene.wishes.clear();
    let directives = vec![Info::new(keys::JOB_CTRL_PAUSE, true), Info::new(keys::JOB_CTRL_ID, "mine")];
    let targets = vec![proc(&nspace, 1), proc(&nspace, 2)];
    scene.ask(0, HostOp::from(Asked { from: tool(), request: JobControl { targets, directives } }));
    let (_, op, _) = scene.task();
    let open = [named(&nspace, "1-2", Status::OPERATION_IN_PROGRESS)];
    assert_eq!(request(&mut scene, "mine"), Some(("under way".to_owned(), open.to_vec())));
    scene.gathered(op, done(&[1]));
    let over = [named(&nspace, "2", Status::ERR_NOT_FOUND), named(&nspace, "1", Status::SUCCESS)];
    let known = Some(("done".to_owned(), over.to_vec()));
    assert_eq!(request(&mut scene, "mine"), known);
    scene.wait(599);
    assert_eq!(request(&mut scene, "mine"), known);
    scene.wait(2);
    assert_eq!(request(&mut scene, "mine"), None);
}

#[test]
fn a_tool_cancels_what_others_have_asked_for() {
    let mut scene = RootScene::up(2);
    scene.connect_tool();
    let nspace = scene.launch(JobRequest::default(), 3);
    let ask = |scene: &mut RootScene| {
        let directives = vec![Info::new(keys::JOB_CTRL_PAUSE, true), Info::new(keys::JOB_CTRL_ID, "slow")];
        let request = JobControl { targets: Vec::new(), directives };
        scene.ask(0, HostOp::from(Asked { from: proc(&nspace, 0), request }))
    };
    let cancel = |scene: &mut RootScene, by: ProcId| {
        let asked = scene.ask(0, control(by, &[], Info::new(keys::JOB_CTRL_CANCEL, "slow")));
        scene.answer(asked).map(HostReply::status)
    };
    let asked = ask(&mut scene);
    assert_eq!(cancel(&mut scene, proc(&nspace, 1)), Some(Status::ERR_NOT_FOUND), "it is not its own");
    assert_eq!(cancel(&mut scene, tool()), Some(Status::SUCCESS));
    assert_eq!(scene.answer(asked).map(HostReply::status), Some(Status::ERR_JOB_CANCELED));
}
