use std::sync::Arc;

use phalanx_dvm::map::{AppRequest, Policy, map_job};

use super::*;

fn with(procs: u32, map_by: &str, bind_to: &str, check: impl FnOnce(&Decided<'_>)) {
    let nodes = [NodeResources::new("n1", Arc::new(Topology::synthetic(2, 1, 1, 4, 2)))];
    let apps = [AppRequest { procs: Some(procs), ..AppRequest::default() }];
    let mut policy = Policy { map: map_by.parse().expect("a policy"), ..Policy::default() };
    policy.bind = bind_to.parse().expect("an object");
    let map = map_job(&nodes, &apps, &policy).expect("a map");
    let argvs = [vec!["./a.out".into(), "two words".into()]];
    check(&Decided { nodes: &nodes, map: &map, argvs: &argvs });
}

#[test]
fn a_map() {
    with(3, "package", "core", |decided| insta::assert_snapshot!(map(decided)));
}

#[test]
fn a_map_as_json() {
    with(2, "slot:pe=2", "core", |decided| insta::assert_json_snapshot!(map_json(decided)));
}

#[test]
fn pictures_of_bindings() {
    with(3, "core", "core", |decided| insta::assert_snapshot!(bindings(decided)));
    with(2, "package", "package", |decided| insta::assert_snapshot!(bindings(decided)));
    with(2, "core", "none", |decided| insta::assert_snapshot!(bindings(decided)));
    with(2, "slot:pe=3", "core", |decided| insta::assert_json_snapshot!(bindings_json(decided)));
}

#[test]
fn an_allocation() {
    with(1, "core", "core", |decided| {
        let mut nodes = decided.nodes.to_vec();
        nodes.push(NodeResources {
            slots: Slots::Stated(4),
            max_slots: Some(6),
            name: "n2".into(),
            ..nodes[0].clone()
        });
        insta::assert_snapshot!(allocation(&nodes));
        insta::assert_json_snapshot!(allocation_json(&nodes));
    });
}
