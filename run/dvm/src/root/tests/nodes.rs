//! Nodes that come up or not, or are lost, and the consequences for jobs.

use phalanx_wire::InfoList;

use super::*;

#[test]
fn spawns_wait_while_daemons_are_being_started() {
    let mut scene = RootScene::new(2);
    scene.tell(ToRoot::Reports(vec![report(0, &topology())]));
    let spawn = scene.spawn_by_tool(None);
    assert_eq!(scene.answer(spawn), None);
    let waiting = scene.root.explain();
    assert_eq!((&*waiting[0].operation, &*waiting[0].subject), ("spawn", "program"));
    assert_eq!(&*waiting[0].unblocked_by, "the daemons of the DVM being up");
    scene.wait(5);
    scene.tell(ToRoot::Reports(vec![report(1, &topology())]));
    let begun = |report: &&Report| matches!(report, Report::Spawned { .. });
    assert_eq!(scene.reports().iter().filter(|report| begun(report)).count(), 1);
    assert_eq!(scene.answer(spawn), None, "its processes do not run yet");
    assert_eq!(scene.root.explain().len(), 1);
}

#[test]
fn nodes_are_starting_until_their_daemons_have_reported() {
    let mut scene = RootScene::new(3);
    scene.tell(ToRoot::Reports(vec![report(0, &topology())]));
    scene.tell(ToRoot::Without(NodeId(2)));
    assert_eq!(states(&mut scene), ["up", "starting", "lost"]);
    scene.tell(ToRoot::Reports(vec![report(1, &topology())]));
    assert_eq!(states(&mut scene), ["up", "up", "lost"]);
}

/// The states of the nodes, from a query.
fn states(scene: &mut RootScene) -> Vec<String> {
    scene.wishes.clear();
    let query = Query { keys: vec![query::names::NODES.into()], qualifiers: Vec::new() };
    let asked =
        scene.ask(0, HostOp::Query(Asked { from: tool(), request: Queries { queries: vec![query] } }));
    let op = scene.wishes.iter().find_map(|wish| match wish {
        FromRoot::Await(op @ OpId::Task(_), _) => Some(op.clone()),
        _ => None,
    });
    scene.gathered(op.expect("a survey of the nodes"), Part::Found(Box::default()));
    let Some(HostReply::Infos(_, infos)) = scene.answer(asked) else { panic!("{:?}", scene.wishes) };
    let nodes = infos.find(query::names::NODES).and_then(Value::as_array).expect("the nodes");
    let state = |node: &Info| {
        let about: Vec<Info> = node.value.as_array()?.infos().cloned().collect();
        Some(about.find(query::names::STATE)?.as_str()?.to_owned())
    };
    nodes.infos().filter_map(state).collect()
}

#[test]
fn spawns_that_wait_end_with_the_start() {
    let mut scene = RootScene::new(2);
    let (short, long) = (scene.spawn_by_tool(Some(2)), scene.spawn_by_tool(None));
    scene.wait(2);
    assert_eq!(scene.answer(short).map(HostReply::status), Some(Status::ERR_TIMEOUT));
    scene.tell(ToRoot::BootFailed { error: "n1: no route to host".into() });
    assert_eq!(scene.answer(long).map(HostReply::status), Some(Status::ERR_NOT_AVAILABLE));
    let late = scene.spawn_by_tool(None);
    assert_eq!(scene.answer(late).map(HostReply::status), Some(Status::ERR_NOT_AVAILABLE));
    assert!(scene.root.explain().is_empty());
}

#[test]
fn a_late_report_of_a_lost_daemon_counts_for_nobody() {
    let mut scene = RootScene::new(3);
    scene.tell(ToRoot::Without(NodeId(1)));
    scene.tell(ToRoot::Reports(vec![report(0, &topology()), report(1, &topology())]));
    assert!(!scene.reports().contains(&&Report::Ready), "daemon 2 is not there");
    scene.tell(ToRoot::Reports(vec![report(2, &topology())]));
    assert!(scene.reports().contains(&&Report::Ready));
}

#[test]
fn a_daemon_that_owes_its_topology_is_named() {
    let mut scene = RootScene::new(2);
    let other = Topology::synthetic(1, 1, 1, 2, 1);
    scene.tell(ToRoot::Reports(vec![report(0, &topology()), report(1, &other)]));
    let waiting = scene.root.explain();
    assert_eq!(&*waiting[0].subject, "the daemon of n1 (sending the topology)");
    scene.post(1, Up::Topology { signature: other.signature(), encoded: other.encode() });
    assert!(scene.root.explain().is_empty());
}

#[test]
fn the_processes_of_a_lost_node_are_lost() {
    let mut scene = RootScene::up(2);
    let nspace = scene.launch(JobRequest::default(), 8);
    scene.tell(ToRoot::Without(NodeId(1)));
    scene.tell(ToRoot::Lost { node: NodeId(1), why: "it is silent".into() });
    let awaited = |wish: &FromRoot| matches!(wish, FromRoot::Await(OpId::Started(_) | OpId::Ended(_), _));
    assert_eq!(scene.wishes.iter().filter(|wish| awaited(wish)).count(), 2);
    scene.end(&nspace, 4, ExitStatus::Code(0));
    let Some(JobVerdict::NodeLost { node, why }) = scene.verdict() else { panic!("{:?}", scene.wishes) };
    assert_eq!((&**node, &**why), ("n1", "it is silent"));
}

#[test]
fn the_end_of_a_job_names_the_lost_node_with_its_ranks() {
    let mut scene = RootScene::up(2);
    let nspace = scene.launch(JobRequest::default(), 8);
    scene.tell(ToRoot::Lost { node: NodeId(1), why: "it is silent".into() });
    scene.end(&nspace, 4, ExitStatus::Code(0));
    let end = scene.wishes.iter().find_map(|wish| match wish {
        FromRoot::Report(Report::Ended(end)) => Some(end),
        _ => None,
    });
    let lines = end.expect("an end").lines();
    assert_eq!(lines, ["node n1 was lost, and with it ranks 4-7: it is silent"]);
}

#[test]
fn a_continuing_job_gets_a_note_about_a_lost_node() {
    let mut scene = RootScene::up(2);
    let on_failure = FailurePolicy::Continue;
    let nspace = scene.launch(JobRequest { on_failure, ..JobRequest::default() }, 5);
    scene.tell(ToRoot::Lost { node: NodeId(1), why: "it is silent".into() });
    let text = "node n1 was lost, and with it rank 4: it is silent";
    let note = Report::Note { nspace: Some(nspace), text: text.into() };
    assert!(scene.wishes.iter().any(|wish| matches!(wish, FromRoot::Report(report) if *report == note)));
}
