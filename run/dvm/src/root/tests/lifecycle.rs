//! Events of a job's life: which are raised, their recipients, and their contents.

use super::*;
use phalanx_core::Event;
use phalanx_wire::InfoList;

/// A root with wall time, with daemon 1 registered for all events of jobs.
fn listened_to() -> RootScene {
    let mut scene = RootScene::up(2);
    scene.root.dvm.config.clock = Duration::from_secs(1_000_000);
    let codes = crate::root::lifecycle::CODES.to_vec();
    scene.ask(1, HostOp::RegisterEvents(EventsRequest { codes, info: Vec::new() }));
    scene.wishes.clear();
    scene
}

impl RootScene {
    /// The events announced since the last check.
    fn heard(&mut self) -> Vec<Event> {
        let announced = self.casts().into_iter().filter_map(|(to, body)| match body {
            Down::Announce { event, .. } => Some((to.clone(), Event::clone(event))),
            _ => None,
        });
        let heard = announced.map(|(to, event)| {
            assert_eq!(to, Ranges::single(1));
            event
        });
        let heard = heard.collect();
        self.wishes.clear();
        heard
    }

    fn heard_codes(&mut self) -> Vec<Status> {
        self.heard().iter().map(|event| event.code).collect()
    }

    fn started(&mut self, nspace: &Nspace, running: u32, failed: bool) {
        let pids = (0..running).map(|rank| (rank, 100 + rank)).collect();
        self.gathered(
            OpId::Started(nspace.clone()),
            Part::Started { pids, programs: Programs::default(), failed, after: Duration::ZERO },
        );
    }

    /// Lines for the user.
    fn notes(&self) -> Vec<String> {
        let notes = self.reports().into_iter().filter_map(|report| match report {
            Report::Note { text, .. } => Some(text.clone()),
            _ => None,
        });
        notes.collect()
    }
}

fn asking(keys: &[&'static str]) -> JobRequest {
    let info = keys.iter().map(|key| Info::new(key, true)).collect();
    JobRequest { info, ..JobRequest::default() }
}

fn ended(nspace: &Nspace, rank: u32, code: i32, lost_connection: bool) -> ProcEnd {
    let Up::Failed(end) = failed(nspace, rank) else { unreachable!("it makes failures") };
    ProcEnd { status: Some(ExitStatus::Code(code)), lost_connection, ..end }
}

#[test]
fn the_stages_of_a_job_are_announced_with_their_times() {
    let mut scene = listened_to();
    let nspace = scene.launch(JobRequest::default(), 2);
    scene.wait(3);
    scene.post(0, Up::Began { nspace: nspace.clone() });
    let mut begun = scene.heard();
    scene.wait(2);
    scene.started(&nspace, 2, false);
    begun.extend(scene.heard());
    assert_eq!(
        begun.iter().map(|event| event.code).collect::<Vec<_>>(),
        [Status::EVENT_JOB_START, Status::LAUNCH_COMPLETE]
    );
    scene.wait(4);
    scene.end(&nspace, 2, ExitStatus::Code(0));
    let over = scene.heard();
    assert_eq!(over[0].code, Status::EVENT_JOB_END);
    assert_eq!(over[0].info.find(keys::JOB_TERM_STATUS), Some(&Value::Status(Status::SUCCESS)));
    assert_eq!(over[0].info.find(keys::PROCID), None);
    for (event, at) in begun.iter().zip([3, 5]).chain(over.iter().zip([9])) {
        assert_eq!(event.info.find(keys::NSPACE).and_then(Value::as_str), Some(nspace.as_str()));
        assert_eq!(event.info.find(keys::EVENT_TIMESTAMP), Some(&Value::Time(1_000_000 + at)));
        assert!(event.info.is_set(keys::EVENT_NON_DEFAULT), "default handlers are spared it");
    }
}

#[test]
fn launches_that_miss_a_process_are_never_complete() {
    let mut scene = listened_to();
    let nspace = scene.launch(JobRequest::default(), 2);
    scene.started(&nspace, 1, true);
    assert_eq!(scene.heard_codes(), [Status::EVENT_JOB_START]);
    let nspace = scene.launch(JobRequest::default(), 2);
    scene.started(&nspace, 0, true);
    assert_eq!(scene.heard_codes(), []);
}

#[test]
fn the_end_of_a_job_names_the_first_failed_rank_and_cause() {
    for (code, lost, status) in
        [(3, false, Status::ERR_JOB_NON_ZERO_TERM), (0, true, Status::ERR_JOB_TERM_WO_SYNC)]
    {
        let mut scene = listened_to();
        let nspace = scene.launch(JobRequest::default(), 2);
        scene.started(&nspace, 2, false);
        scene.wishes.clear();
        scene.post(0, Up::Failed(ended(&nspace, 1, code, lost)));
        let first = scene.heard_codes();
        let without_sync = lost.then_some(Status::ERR_PROC_TERM_WO_SYNC);
        let expected: Vec<_> = [Status::EVENT_PROC_TERMINATED].into_iter().chain(without_sync).collect();
        assert_eq!(first, expected);
        scene.end(&nspace, 2, ExitStatus::Code(0));
        let over = scene.heard();
        let of = |key| over[0].info.find(key);
        assert_eq!(of(keys::JOB_TERM_STATUS), Some(&Value::Status(status)));
        assert_eq!(of(keys::PROCID), Some(&Value::from(proc(&nspace, 1))));
    }
}

#[test]
fn the_end_of_a_killed_job_names_victim_and_requester() {
    let mut scene = listened_to();
    let nspace = scene.launch(JobRequest::default(), 3);
    scene.started(&nspace, 3, false);
    let kill = Info::new(keys::JOB_CTRL_KILL, true);
    scene.ask(0, super::control::control(proc(&nspace, 0), &[ProcId::all(&nspace)], kill));
    scene.wishes.clear();
    let group = |ranks: &[u32], seconds: u64| EndGroup {
        ranks: ranks.iter().copied().collect(),
        status: Some(ExitStatus::Signal { number: 9, core_dumped: false }),
        killed_by_us: true,
        lost_connection: false,
        connected: true,
        after: Duration::from_secs(seconds),
    };
    let ends = Ends { groups: vec![group(&[0, 2], 3), group(&[1], 2)], ..Ends::default() };
    scene.gathered(OpId::Ended(nspace.clone()), Part::Ends(Box::new(ends)));
    while scene.root.go_on(scene.now, &mut scene.wishes) {}
    scene.tell(ToRoot::Forgotten(nspace.clone()));
    let over = scene.heard();
    let of = |key| over[0].info.find(key);
    assert_eq!(of(keys::JOB_TERM_STATUS), Some(&Value::Status(Status::ERR_JOB_KILLED_BY_CMD)));
    assert_eq!(of(keys::PROCID), Some(&Value::from(proc(&nspace, 1))));
    assert_eq!(of(query::names::WANTED_BY), Some(&Value::from(proc(&nspace, 0))));
}

#[test]
fn ends_of_processes_are_announced_one_by_one_if_wanted() {
    let mut scene = listened_to();
    let nspace = scene.launch(asking(&[keys::NOTIFY_PROC_TERMINATION]), 2);
    let desc = scene.root.dvm.desc(&nspace).map(|desc| desc.reported_ends);
    assert_eq!(desc, Some(crate::msg::ReportedEnds::All), "daemons tell of all");
    scene.started(&nspace, 2, false);
    scene.wishes.clear();
    for rank in [1, 0] {
        scene.post(0, Up::Left(ended(&nspace, rank, 0, false)));
        let heard = scene.heard();
        assert_eq!(heard.len(), 1);
        assert_eq!((heard[0].code, &heard[0].source), (Status::EVENT_PROC_TERMINATED, &proc(&nspace, rank)));
        assert_eq!(heard[0].info.find(keys::EXIT_CODE), Some(&Value::Int(0)));
    }
    let of_failures = scene.launch(asking(&[keys::NOTIFY_PROC_ABNORMAL_TERMINATION]), 1);
    let desc = scene.root.dvm.desc(&of_failures).map(|desc| desc.reported_ends);
    assert_eq!(desc, Some(crate::msg::ReportedEnds::Bad));
}

#[test]
fn the_life_of_a_job_is_logged_if_wanted() {
    let mut scene = RootScene::up(2);
    let nspace = scene.launch(asking(&[keys::LOG_JOB_EVENTS, keys::LOG_PROC_TERMINATION]), 1);
    scene.started(&nspace, 1, false);
    scene.post(0, Up::Left(ended(&nspace, 0, 0, false)));
    scene.end(&nspace, 1, ExitStatus::Code(0));
    let expected = [
        "the first process has started",
        "all processes have started",
        "rank 0 (on n0) has ended with status 0",
        "all processes have ended: success",
    ];
    assert_eq!(scene.notes(), expected.map(|text| format!("job {nspace}: {text}")));
}

#[test]
fn the_start_and_the_end_of_the_session_are_announced() {
    let mut scene = RootScene::new(2);
    let codes = vec![Status::EVENT_SESSION_START, Status::EVENT_SESSION_END];
    scene.ask(1, HostOp::RegisterEvents(EventsRequest { codes, info: Vec::new() }));
    scene.wishes.clear();
    scene.tell(ToRoot::Reports((0..2).map(|node| report(node, &topology())).collect()));
    assert_eq!(scene.heard_codes(), [Status::EVENT_SESSION_START]);
    // The session lasts until its jobs have ended.
    let codes = vec![Status::EVENT_JOB_END];
    scene.ask(1, HostOp::RegisterEvents(EventsRequest { codes, info: Vec::new() }));
    let nspace = scene.launch(JobRequest::default(), 1);
    scene.started(&nspace, 1, false);
    scene.wishes.clear();
    scene.tell(ToRoot::Shutdown);
    assert_eq!(scene.heard_codes(), []);
    scene.end(&nspace, 1, ExitStatus::Code(0));
    let mut heard = scene.heard();
    assert_eq!(heard.remove(0).code, Status::EVENT_JOB_END);
    assert_eq!(heard.iter().map(|event| event.code).collect::<Vec<_>>(), [Status::EVENT_SESSION_END]);
    assert_eq!(heard[0].info.find(keys::SESSION_ID), Some(&Value::from(0u32)));
}
