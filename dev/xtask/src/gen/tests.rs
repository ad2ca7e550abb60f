use super::*;

#[test]
fn the_checked_in_sources_are_current() {
    let root = crate::root();
    let stale = stale(root).unwrap();
    assert!(stale.is_empty(), "{}", explain(root, &stale));
}
