//! The readers of what processes log.

use super::*;
use phalanx_wire::cmd::log::Log;

impl RootScene {
    /// The result for a process on the root's node that logs this to standard error.
    fn logs(&mut self, from: &ProcId, text: &str) -> Status {
        let data = vec![Info::new(keys::LOG_STDERR, text)];
        let request = Log { data, directives: Vec::new(), timestamp: 0 };
        let request = self.ask(0, HostOp::Log(Asked { from: from.clone(), request }));
        self.answer(request).map_or(Status::ERROR, HostReply::status)
    }

    /// A tool on the root's node spawns a job and reads its standard error.
    fn spawn_with_stderr(&mut self) -> Nspace {
        self.connect_tool();
        let app = phalanx_wire::App { argv: vec!["program".into()], max_procs: 1, ..Default::default() };
        let job = vec![Info::new(keys::FWD_STDERR, true)];
        let request =
            self.ask(0, HostOp::Spawn(Asked { from: tool(), request: Spawn { job, apps: vec![app] } }));
        let nspace = self.reports().into_iter().find_map(|report| match report {
            Report::Spawned { nspace, .. } => Some(nspace.clone()),
            _ => None,
        });
        let nspace = nspace.unwrap_or_else(|| panic!("{:?}", self.wishes));
        self.gathered(
            OpId::Started(nspace.clone()),
            Part::Started {
                pids: vec![(0, 9)],
                programs: Programs::default(),
                failed: false,
                after: Duration::ZERO,
            },
        );
        assert!(self.answer(request).is_some());
        self.wishes.clear();
        nspace
    }

    fn shown(&self) -> Vec<&[u8]> {
        let shown = self.reports().into_iter().filter_map(|report| match report {
            Report::Logged { text, .. } => Some(&**text),
            _ => None,
        });
        shown.collect()
    }

    fn forwarded(&self) -> Vec<&[u8]> {
        let pieces = self.casts().into_iter().filter_map(|(_, body)| match body {
            Down::Output(piece) => Some(&*piece.data),
            _ => None,
        });
        pieces.collect()
    }
}

#[test]
fn a_tool_that_runs_a_job_reads_what_its_ranks_log() {
    let mut scene = RootScene::up(2);
    let nspace = scene.spawn_with_stderr();
    assert_eq!(scene.logs(&proc(&nspace, 0), "text"), Status::SUCCESS);
    assert_eq!((scene.forwarded(), scene.shown()), (vec![&b"text\n"[..]], vec![]));
}

#[test]
fn unread_logs_are_shown_to_the_user_of_the_dvm() {
    let mut scene = RootScene::up(2);
    scene.connect_tool();
    let nspace = scene.launch(JobRequest::default(), 1);
    for from in [proc(&nspace, 0), tool()] {
        scene.wishes.clear();
        assert_eq!(scene.logs(&from, "text"), Status::SUCCESS);
        assert_eq!(scene.shown(), [b"text\n"]);
    }
    scene.wishes.clear();
    assert_eq!(scene.logs(&tool(), "a\u{1b}[2Jb"), Status::SUCCESS);
    assert_eq!(scene.shown(), [b"a\\u001b[2Jb\n"]);
    scene.root.dvm.config.rules.unheard = true;
    scene.wishes.clear();
    assert_eq!(scene.logs(&tool(), "text"), Status::ERR_NOT_AVAILABLE);
    assert!(scene.shown().is_empty());
}

#[test]
fn logs_for_a_reader_that_reads_nothing_are_refused_at_last() {
    let mut scene = RootScene::up(2);
    let nspace = scene.spawn_with_stderr();
    let text = "x".repeat(1 << 20);
    let answers: Vec<Status> = (0..16)
        .map(|_| {
            scene.wishes.clear();
            scene.logs(&proc(&nspace, 0), &text)
        })
        .collect();
    assert_eq!(answers.first(), Some(&Status::SUCCESS));
    assert_eq!(answers.last(), Some(&Status::ERR_OUT_OF_RESOURCE));
}
