//! What processes were waiting for when the end of their job was decided.

use super::*;
use crate::job::Waited;
use crate::msg::{Found, Stuck, Subject};

fn stuck(operation: &str, ranks: &[u32], seconds: u64) -> Stuck {
    let (operation, subject) = (operation.to_owned(), "of all".to_owned());
    let ranks = ranks.iter().copied().collect();
    Stuck { operation, subject, ranks, longest: Duration::from_secs(seconds) }
}

#[test]
fn daemons_look_before_they_end_a_failed_job() {
    let mut scene = RootScene::up(2);
    let nspace = scene.launch(JobRequest::default(), 3);
    let pids = vec![(0, 9), (1, 10), (2, 11)];
    scene.gathered(
        OpId::Started(nspace.clone()),
        Part::Started { pids, programs: Programs::default(), failed: false, after: Duration::ZERO },
    );
    scene.wishes.clear();
    scene.post(0, failed(&nspace, 1));
    let orders: Vec<&Down> = scene.casts().into_iter().map(|(_, body)| body).collect();
    let [Down::Task { id, task }, Down::Control { .. }] = orders[..] else { panic!("{orders:?}") };
    assert!(matches!(&**task, Task::Survey(Subject::Stuck { nspace: of }) if *of == nspace));
    let op = OpId::Task(id.clone());
    let found = Found { stuck: vec![stuck("fence", &[0, 2], 12)], ..Found::default() };
    scene.gathered(op, Part::Found(Box::new(found)));
    assert!(scene.root.explain().is_empty(), "nobody waits for it");
    scene.end(&nspace, 3, ExitStatus::Code(0));
    let ends = scene.reports().into_iter().filter_map(|report| match report {
        Report::Ended(end) => Some((**end).clone()),
        _ => None,
    });
    let end = { ends }.next_back().expect("the job has ended");
    let expected = Waited {
        ranks: "0,2".into(),
        operation: "fence".into(),
        subject: "of all".into(),
        longest: Duration::from_secs(12),
    };
    assert_eq!(end.waited, [expected]);
    assert_eq!(
        end.lines().last().unwrap(),
        "ranks 0, 2 had been waiting in fence for 12 s; rank 1 had not come"
    );
}

#[test]
fn a_job_can_end_before_its_daemons_report_their_last_look() {
    let mut scene = RootScene::up(2);
    let nspace = scene.launch(JobRequest::default(), 1);
    let started = Part::Started {
        pids: vec![(0, 9)],
        programs: Programs::default(),
        failed: false,
        after: Duration::ZERO,
    };
    scene.gathered(OpId::Started(nspace.clone()), started);
    scene.post(0, failed(&nspace, 0));
    scene.end(&nspace, 1, ExitStatus::Code(3));
    assert!(scene.root.explain().is_empty());
}

#[test]
fn equal_waits_of_ranks_are_reported_once() {
    let mut all = vec![stuck("fence", &[0], 1)];
    Stuck::merge(&mut all, vec![stuck("get", &[3], 5), stuck("fence", &[1, 2], 3)]);
    assert_eq!(all, [stuck("fence", &[0, 1, 2], 3), stuck("get", &[3], 5)]);
}
