//! Nodes that come up or not, or are lost, and the consequences for jobs.

use phalanx_wire::InfoList;

use super::*;

#[test]
fn spawns_wait_while_daemons_are_being_started() {
    let mut told = Told::new(2);
    told.tell(ToRoot::Reports(vec![report(0, &topology())]));
    let spawn = told.spawn_by_tool(None);
    assert_eq!(told.answer(spawn), None);
    let waiting = told.root.explain();
    assert_eq!((&*waiting[0].operation, &*waiting[0].subject), ("spawn", "program"));
    assert_eq!(&*waiting[0].unblocked_by, "the daemons of the DVM being up");
    told.wait(5);
    told.tell(ToRoot::Reports(vec![report(1, &topology())]));
    let begun = |report: &&Report| matches!(report, Report::Spawned { .. });
    assert_eq!(told.reports().iter().filter(|report| begun(report)).count(), 1);
    assert_eq!(told.answer(spawn), None, "its processes do not run yet");
    assert_eq!(told.root.explain().len(), 1);
}

#[test]
fn nodes_are_starting_until_their_daemons_have_reported() {
    let mut told = Told::new(3);
    told.tell(ToRoot::Reports(vec![report(0, &topology())]));
    told.tell(ToRoot::Without(NodeId(2)));
    assert_eq!(states(&mut told), ["up", "starting", "lost"]);
    told.tell(ToRoot::Reports(vec![report(1, &topology())]));
    assert_eq!(states(&mut told), ["up", "up", "lost"]);
}

/// The states of the nodes, from a query.
fn states(told: &mut Told) -> Vec<String> {
    told.wishes.clear();
    let query = Query { keys: vec![query::names::NODES.into()], qualifiers: Vec::new() };
    let asked = told.ask(0, HostOp::Query(Asked { from: tool(), request: Queries { queries: vec![query] } }));
    let op = told.wishes.iter().find_map(|wish| match wish {
        FromRoot::Await(op @ OpId::Task(_), _) => Some(op.clone()),
        _ => None,
    });
    told.gathered(op.expect("a survey of the nodes"), Part::Found(Box::default()));
    let Some(HostReply::Infos(_, infos)) = told.answer(asked) else { panic!("{:?}", told.wishes) };
    let nodes = infos.find(query::names::NODES).and_then(Value::as_array).expect("the nodes");
    let state = |node: &Info| {
        let about: Vec<Info> = node.value.as_array()?.infos().cloned().collect();
        Some(about.find(query::names::STATE)?.as_str()?.to_owned())
    };
    nodes.infos().filter_map(state).collect()
}

#[test]
fn spawns_that_wait_end_with_the_start() {
    let mut told = Told::new(2);
    let (short, long) = (told.spawn_by_tool(Some(2)), told.spawn_by_tool(None));
    told.wait(2);
    assert_eq!(told.answer(short).map(HostReply::status), Some(Status::ERR_TIMEOUT));
    told.tell(ToRoot::BootFailed { error: "n1: no route to host".into() });
    assert_eq!(told.answer(long).map(HostReply::status), Some(Status::ERR_NOT_AVAILABLE));
    let late = told.spawn_by_tool(None);
    assert_eq!(told.answer(late).map(HostReply::status), Some(Status::ERR_NOT_AVAILABLE));
    assert!(told.root.explain().is_empty());
}

#[test]
fn a_late_report_of_a_lost_daemon_counts_for_nobody() {
    let mut told = Told::new(3);
    told.tell(ToRoot::Without(NodeId(1)));
    told.tell(ToRoot::Reports(vec![report(0, &topology()), report(1, &topology())]));
    assert!(!told.reports().contains(&&Report::Ready), "daemon 2 is not there");
    told.tell(ToRoot::Reports(vec![report(2, &topology())]));
    assert!(told.reports().contains(&&Report::Ready));
}

#[test]
fn a_daemon_that_owes_its_topology_is_named() {
    let mut told = Told::new(2);
    let other = Topology::synthetic(1, 1, 1, 2, 1);
    told.tell(ToRoot::Reports(vec![report(0, &topology()), report(1, &other)]));
    let waiting = told.root.explain();
    assert_eq!(&*waiting[0].subject, "the daemon of n1 (sending the topology)");
    told.post(1, Up::Topology { signature: other.signature(), encoded: other.encode() });
    assert!(told.root.explain().is_empty());
}

#[test]
fn the_processes_of_a_lost_node_are_lost() {
    let mut told = Told::up(2);
    let nspace = told.launch(JobRequest::default(), 8);
    told.tell(ToRoot::Without(NodeId(1)));
    told.tell(ToRoot::Lost { node: NodeId(1), why: "it is silent".into() });
    let awaited = |wish: &FromRoot| matches!(wish, FromRoot::Await(OpId::Started(_) | OpId::Ended(_), _));
    assert_eq!(told.wishes.iter().filter(|wish| awaited(wish)).count(), 2);
    told.end(&nspace, 4, ExitStatus::Code(0));
    let Some(JobVerdict::NodeLost { node, why }) = told.verdict() else { panic!("{:?}", told.wishes) };
    assert_eq!((&**node, &**why), ("n1", "it is silent"));
}

#[test]
fn the_end_of_a_job_names_the_lost_node_with_its_ranks() {
    let mut told = Told::up(2);
    let nspace = told.launch(JobRequest::default(), 8);
    told.tell(ToRoot::Lost { node: NodeId(1), why: "it is silent".into() });
    told.end(&nspace, 4, ExitStatus::Code(0));
    let end = told.wishes.iter().find_map(|wish| match wish {
        FromRoot::Report(Report::Ended(end)) => Some(end),
        _ => None,
    });
    let lines = end.expect("an end").lines();
    assert_eq!(lines, ["node n1 was lost, and with it ranks 4-7: it is silent"]);
}

#[test]
fn a_continuing_job_gets_a_note_about_a_lost_node() {
    let mut told = Told::up(2);
    let on_failure = FailurePolicy::Continue;
    let nspace = told.launch(JobRequest { on_failure, ..JobRequest::default() }, 5);
    told.tell(ToRoot::Lost { node: NodeId(1), why: "it is silent".into() });
    let text = "node n1 was lost, and with it rank 4: it is silent";
    let note = Report::Note { nspace: Some(nspace), text: text.into() };
    assert!(told.wishes.iter().any(|wish| matches!(wish, FromRoot::Report(report) if *report == note)));
}
