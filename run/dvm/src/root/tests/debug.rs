//! Stops for debuggers: the ranks that are missing or held, and the events for the spawner.

use phalanx_core::Event;
use phalanx_spec::Range;
use phalanx_wire::DataArray;

use super::control::{control, done};
use super::restarts::cleared;
use super::*;

/// A tool has spawned a job of so many ranks, of which these are to stop in init.
fn stopped(ranks: u32, stop: impl Into<Value>) -> (RootScene, Nspace) {
    let mut scene = RootScene::up(2);
    scene.connect_tool();
    let info = vec![Info::new(keys::DEBUG_STOP_IN_INIT, stop)];
    let job = JobRequest { info, parent: Some(tool()), ..JobRequest::default() };
    let nspace = scene.launch(job, ranks);
    (scene, nspace)
}

impl RootScene {
    fn raise(&mut self, code: Status, source: ProcId, range: Range, info: Vec<Info>) {
        self.ask(0, HostOp::Notify(Event { code, source, range, info }));
    }

    fn come(&mut self, nspace: &Nspace, rank: u32) {
        let info = vec![Info::new(keys::BREAKPOINT, "pmix-init")];
        self.raise(Status::READY_FOR_DEBUG, proc(nspace, rank), Range::RM, info);
    }

    fn release(&mut self, whom: &ProcId) {
        let info = vec![Info::new(keys::EVENT_CUSTOM_RANGE, whom.clone())];
        self.raise(Status::DEBUGGER_RELEASE, tool(), Range::CUSTOM, info);
    }

    fn over(&mut self, nspace: &Nspace, rank: u32) {
        self.post(0, Up::Over { nspace: nspace.clone(), ranks: Ranges::single(rank) });
    }

    /// Events for the tool since the last call.
    fn told_ready(&mut self) -> usize {
        let is_it = |body: &Down| matches!(body, Down::Event { event, .. } if event.code == Status::READY_FOR_DEBUG && event.range == Range::CUSTOM);
        let count = self.casts().into_iter().filter(|(_, body)| is_it(body)).count();
        self.wishes.clear();
        count
    }

    /// The explanations of its stops.
    fn stops(&self) -> Vec<(String, usize)> {
        let stops = self.root.explain().into_iter().filter(|one| one.operation == "stop for a debugger");
        stops.map(|one| (one.subject, one.missing.len())).collect()
    }
}

#[test]
fn whoever_ends_before_its_stop_is_not_waited_for() {
    let (mut scene, nspace) = stopped(3, true);
    scene.come(&nspace, 0);
    assert_eq!(scene.stops(), [(format!("{nspace}:0 in init"), 2)]);
    scene.over(&nspace, 2);
    assert_eq!(scene.told_ready(), 0);
    scene.come(&nspace, 1);
    assert_eq!((scene.told_ready(), scene.stops()), (1, vec![(format!("{nspace}:0-1 in init"), 0)]));
    // Ranks that end while they are held are not named any more.
    scene.over(&nspace, 0);
    assert_eq!((scene.told_ready(), scene.stops()), (0, vec![(format!("{nspace}:1 in init"), 0)]));
    scene.release(&ProcId::all(&nspace));
    assert_eq!(scene.stops(), []);
    let (mut scene, nspace) = stopped(3, true);
    scene.come(&nspace, 0);
    scene.come(&nspace, 2);
    scene.over(&nspace, 1);
    assert_eq!(scene.told_ready(), 1, "the last that was waited for has ended");
}

#[test]
fn a_debugger_is_told_when_no_rank_will_come_any_more() {
    let (mut scene, nspace) = stopped(3, Rank(1));
    scene.over(&nspace, 0);
    assert_eq!(scene.told_ready(), 0, "that one was not to stop");
    scene.over(&nspace, 1);
    assert_eq!((scene.told_ready(), scene.stops()), (1, Vec::new()));
}

#[test]
fn a_rank_that_is_started_again_comes_to_its_stop_anew() {
    let (mut scene, nspace) = stopped(2, true);
    scene.gathered(
        OpId::Started(nspace.clone()),
        Part::Started {
            pids: vec![(0, 100), (1, 101)],
            programs: Programs::default(),
            failed: false,
            after: Duration::ZERO,
        },
    );
    [0, 1].iter().for_each(|rank| scene.come(&nspace, *rank));
    assert_eq!(scene.told_ready(), 1);
    scene.ask(0, control(tool(), &[proc(&nspace, 1)], Info::new(keys::JOB_CTRL_RESTART, "")));
    assert_eq!(scene.stops(), [(format!("{nspace}:0 in init"), 1)]);
    let clear = scene.task_among().1;
    scene.over(&nspace, 1);
    assert_eq!((scene.told_ready(), scene.stops()), (0, vec![(format!("{nspace}:0 in init"), 1)]));
    scene.gathered(clear, cleared(&[1], &[1]));
    let bodies = scene.casts();
    let [.., (_, Down::Task { id, .. }), (_, Down::Watch { ranks, .. })] = &bodies[..] else {
        panic!("{bodies:?}")
    };
    let renew = OpId::Task(id.clone());
    assert_eq!(ranks.to_string(), "1", "it may end before its stop");
    let Part::Results(results) = done(&[1]) else { unreachable!() };
    scene.gathered(renew, Part::Renewed { results, pids: vec![(1, 501)], programs: Programs::default() });
    assert_eq!(scene.told_ready(), 0);
    scene.come(&nspace, 1);
    assert_eq!((scene.told_ready(), scene.stops()), (1, vec![(format!("{nspace}:0-1 in init"), 0)]));
}

#[test]
fn daemons_tell_of_the_ends_of_those_who_are_to_stop() {
    let mut scene = RootScene::up(2);
    let ranks = DataArray {
        of: phalanx_spec::DataType::PROC_RANK,
        items: [5, 6].map(|n| Value::Rank(Rank(n))).to_vec(),
    };
    let apps = vec![AppSpec { argv: vec![Text::from("program")], procs: Some(8), ..AppSpec::default() }];
    let info = vec![Info::new(keys::DEBUG_STOP_IN_INIT, ranks)];
    let job = JobRequest { apps, info, ..JobRequest::default() };
    scene.tell(ToRoot::Submit { request: 7, job: Box::new(job) });
    let bodies = scene.casts();
    let [.., (_, Down::Start(_)), (to, Down::Watch { ranks, .. })] = &bodies[..] else {
        panic!("{bodies:?}")
    };
    assert_eq!((*to, ranks.to_string()), (&Ranges::single(1), "5-6".to_owned()));
}

#[test]
fn whoever_comes_once_more_is_named_and_told_of_once_more() {
    let (mut scene, nspace) = stopped(2, Rank(1));
    scene.come(&nspace, 1);
    assert_eq!(scene.told_ready(), 1);
    scene.release(&proc(&nspace, 1));
    assert_eq!(scene.stops(), []);
    scene.come(&nspace, 1);
    assert_eq!(scene.stops(), [(format!("{nspace}:1 in init"), 0)]);
    assert!(scene.casts().iter().any(|(_, body)| matches!(body, Down::Watch { .. })), "it may end there");
    assert_eq!(scene.told_ready(), 1);
    scene.over(&nspace, 1);
    assert_eq!(scene.stops(), []);
    // The spawn did not request it, and yet the rank waits.
    scene.come(&nspace, 0);
    assert_eq!((scene.told_ready(), scene.stops()), (1, vec![(format!("{nspace}:0 in init"), 0)]));
}

#[test]
fn a_rank_that_is_let_go_early_does_not_wait_when_it_comes() {
    let (mut scene, nspace) = stopped(3, true);
    scene.come(&nspace, 0);
    scene.release(&proc(&nspace, 1));
    scene.come(&nspace, 1);
    assert_eq!(scene.stops(), [(format!("{nspace}:0 in init"), 1)]);
    // Servers do not keep it for ever.
    scene.release(&proc(&nspace, 2));
    scene.wait(121);
    scene.come(&nspace, 2);
    assert_eq!(scene.stops(), [(format!("{nspace}:0,2 in init"), 0)]);
    // All ranks that wait.
    scene.raise(Status::DEBUGGER_RELEASE, tool(), Range::GLOBAL, Vec::new());
    assert_eq!(scene.stops(), []);
}

/// The programs in a proc table.
fn programs(scene: &mut RootScene, nspace: &Nspace, by: &ProcId) -> Vec<String> {
    let qualifiers = vec![Info::new(keys::NSPACE, nspace.as_str())];
    let queries = vec![Query { keys: vec![keys::QUERY_PROC_TABLE.into()], qualifiers }];
    let asked = scene.ask(0, HostOp::Query(Asked { from: by.clone(), request: Queries { queries } }));
    if scene.answer(asked).is_none() {
        let (_, op, _) = scene.task_among();
        scene.gathered(op, Part::Nothing);
    }
    let Some(HostReply::Infos(Status::SUCCESS, info)) = scene.answer(asked) else {
        panic!("{:?}", scene.wishes)
    };
    let lines = info.first().and_then(|info| info.value.as_array()).map(|array| array.items.iter());
    let program = |line: &Value| match line {
        Value::ProcInfo(line) => line.executable.as_ref().map(Text::to_string_lossy).unwrap_or_default(),
        other => panic!("{other:?}"),
    };
    lines.into_iter().flatten().map(program).collect()
}

#[test]
fn proc_tables_name_the_files_that_were_started() {
    let mut scene = RootScene::up(2);
    let nspace = scene.launch(JobRequest::default(), 4);
    let by = proc(&nspace, 0);
    assert_eq!(programs(&mut scene, &nspace, &by), ["program"; 4], "none has started yet");
    let mut files = Programs::default();
    (0..3).for_each(|rank| files.add("/opt/a/prog".into(), rank));
    files.add("/opt/b/prog".into(), 3);
    assert!(files.weight() < 200);
    let pids = (0..4).map(|rank| (rank, 100 + rank)).collect();
    let started = Part::Started { pids, programs: files, failed: false, after: Duration::ZERO };
    scene.gathered(OpId::Started(nspace.clone()), started);
    let names = ["/opt/a/prog", "/opt/a/prog", "/opt/a/prog", "/opt/b/prog"];
    assert_eq!(programs(&mut scene, &nspace, &by), names);
}
