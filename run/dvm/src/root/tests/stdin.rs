//! Standard input: how much of it is read, and for whom.

use phalanx_core::host::StdinRequest;
use phalanx_wire::Blob;
use phalanx_wire::cmd::iof::{Push, UNTIL_READ};

use super::*;
use crate::msg::StdinTarget;

/// A job of two ranks, which read all of the input and have started.
fn reading() -> (RootScene, Nspace) {
    let mut scene = RootScene::up(2);
    let nspace = scene.launch(JobRequest { stdin: StdinTarget::All, ..JobRequest::default() }, 2);
    scene.gathered(
        OpId::Started(nspace.clone()),
        Part::Started {
            pids: (0..2).map(|r| (r, r)).collect(),
            programs: Programs::default(),
            failed: false,
            after: Duration::ZERO,
        },
    );
    (scene, nspace)
}

impl RootScene {
    fn user_has(&mut self, nspace: &Nspace, data: &[u8]) {
        self.tell(ToRoot::Stdin { nspace: nspace.clone(), data: data.into() });
    }

    fn taken(&mut self, nspace: &Nspace, rank: u32, bytes: usize) {
        self.wishes.clear();
        self.post(0, Up::StdinTaken { nspace: nspace.clone(), rank: Rank(rank), bytes });
    }

    fn credit(&self) -> usize {
        let credit = |wish: &FromRoot| match wish {
            FromRoot::StdinCredit { bytes, .. } => *bytes,
            _ => 0,
        };
        self.wishes.iter().map(credit).sum()
    }

    fn read(&self) -> Vec<usize> {
        let read = self.wishes.iter().filter_map(|wish| match wish {
            FromRoot::StdinRead { bytes, .. } => Some(*bytes),
            _ => None,
        });
        read.collect()
    }

    fn push(&mut self, nspace: &Nspace, data: &[u8]) -> u64 {
        self.connect_tool();
        self.wishes.clear();
        let push = Push {
            targets: vec![ProcId::all(nspace)],
            data: Blob::from(data),
            directives: vec![Info::new(UNTIL_READ, true)],
        };
        self.ask(0, HostOp::PushStdin(StdinRequest { from: tool(), request: push }))
    }

    fn status(&self, request: u64) -> Option<Status> {
        match self.answer(request)? {
            HostReply::Done(status) => Some(*status),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn little_input_is_shown_before_a_rank_reads() {
    let (mut scene, nspace) = reading();
    assert_eq!(scene.credit(), 4096);
    scene.user_has(&nspace, &[1; 100]);
    scene.taken(&nspace, 0, 30);
    assert_eq!((scene.read(), scene.credit()), (vec![30], 0));
    scene.taken(&nspace, 1, 20);
    assert_eq!(scene.read(), [], "another rank has read as much");
    scene.taken(&nspace, 1, 80);
    assert_eq!(scene.read(), [70]);
    assert_eq!(scene.credit(), Limits::default().stdin_window - 4096 + 30);
    scene.user_has(&nspace, &[2; 100]);
    scene.taken(&nspace, 1, 100);
    assert_eq!(scene.read(), []);
}

#[test]
fn pushes_before_the_first_piece_do_not_count_as_it() {
    let (mut scene, nspace) = reading();
    scene.push(&nspace, &[1; 50]);
    scene.user_has(&nspace, &[2; 10]);
    scene.taken(&nspace, 0, 50);
    assert_eq!(scene.read(), []);
    scene.taken(&nspace, 0, 10);
    assert_eq!(scene.read(), [10]);
}

#[test]
fn a_question_for_input_is_answered_when_a_rank_waits() {
    let (mut scene, nspace) = reading();
    scene.wishes.clear();
    scene.user_has(&nspace, b"");
    assert!(matches!(scene.casts()[..], [(_, Down::Stdin { data, .. })] if data.is_empty()));
    let question = scene.push(&nspace, b"");
    assert!(
        scene.casts().iter().any(|(_, body)| matches!(body, Down::Stdin { data, .. } if data.is_empty()))
    );
    assert_eq!(scene.status(question), None);
    scene.taken(&nspace, 1, 0);
    assert_eq!((scene.read(), scene.status(question)), (vec![0], Some(Status::SUCCESS)));
}

#[test]
fn a_push_until_read_is_answered_with_what_was_read() {
    let (mut scene, nspace) = reading();
    let all = scene.push(&nspace, b"four");
    assert_eq!(scene.status(all), None);
    scene.taken(&nspace, 0, 4);
    assert_eq!(scene.status(all), Some(Status::SUCCESS));
    let (some, none) = (scene.push(&nspace, b"some"), scene.push(&nspace, b"none"));
    scene.taken(&nspace, 0, 3);
    assert_eq!(scene.status(some), None);
    scene.wishes.clear();
    scene.end(&nspace, 2, ExitStatus::Code(0));
    assert_eq!((scene.status(some), scene.status(none)), (Some(Status(3)), Some(Status::ERR_NOT_FOUND)));
}

#[test]
fn a_push_until_read_ends_with_its_readers_or_its_tool() {
    let (mut scene, nspace) = reading();
    let unread = scene.push(&nspace, b"data");
    scene.post(0, Up::StdinRefused { nspace: nspace.clone(), rank: Rank(0) });
    assert_eq!(scene.status(unread), None);
    scene.post(0, Up::StdinRefused { nspace, rank: Rank(1) });
    assert_eq!(scene.status(unread), Some(Status::ERR_NOT_FOUND));
    let (mut scene, nspace) = reading();
    let question = scene.push(&nspace, b"");
    scene.post(0, Up::ToolLeft { proc: tool() });
    assert_eq!(scene.status(question), Some(Status::ERR_LOST_CONNECTION));
}
