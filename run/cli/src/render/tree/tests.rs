use super::*;

#[test]
fn a_tree() {
    insta::assert_snapshot!(topology("n1", &Topology::synthetic(2, 1, 2, 2, 2)));
}

#[test]
fn as_json() {
    let json = topology_json("n1", &Topology::synthetic(1, 1, 1, 1, 2));
    insta::assert_json_snapshot!(json);
}
