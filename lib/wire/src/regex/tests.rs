use super::*;
use crate::compress::deflate;
use proptest::prelude::*;

fn blob(list: &str) -> Vec<u8> {
    let stream = deflate(list.as_bytes());
    let head = format!("blob:\0component=zlib:\0size={}:\0", stream.len());
    [head.as_bytes(), &stream].concat()
}

#[test]
fn node_maps_are_written_like_this() {
    for (names, map) in [
        (&["node001", "node002", "node003"][..], "pmix[node[3:1-3]]"),
        (&["a", "b", "c"], "pmix[a,b,c]"),
        (&["x01y", "x02y", "x09y"], "pmix[x[2:1-2,9]y]"),
        (&["n9", "n10", "n11"], "pmix[n9,n[2:10-11]]"),
        (&["r1-n03", "r1-n02", "r2-n03"], "pmix[r1-n[2:3,2],r2-n03]"),
        (&["localhost"], "pmix[localhost]"),
        (&["10", "11"], "pmix[[2:10-11]]"),
        (&[], "pmix[]"),
    ] {
        assert_eq!(nodes_to_regex(names).as_deref(), Some(map));
        assert_eq!(regex_to_nodes(map.as_bytes(), 100).unwrap(), names);
        assert_eq!(regex_to_nodes(nodes_to_raw(names).as_bytes(), 100).unwrap(), names);
        assert_eq!(regex_to_nodes(&blob(&names.join(",")), 100).unwrap(), names);
    }
    assert_eq!(nodes_to_regex(&["a,b"]), None);
    assert_eq!(nodes_to_regex(&["a[1]"]), None);
}

#[test]
fn process_maps_are_written_like_this() {
    for (nodes, map, raw) in [
        (vec![vec![0, 1, 2], vec![3, 4, 5]], "pmix[0-2;3-5]", "raw:0,1,2;3,4,5"),
        (vec![vec![0], vec![2, 3, 7]], "pmix[0;2-3,7]", "raw:0;2,3,7"),
        (vec![vec![u32::MAX - 1, u32::MAX]], "pmix[4294967294-4294967295]", "raw:4294967294,4294967295"),
    ] {
        assert_eq!(ppn_to_regex(&nodes), map);
        assert_eq!(ppn_to_raw(&nodes), raw);
        for form in [map.as_bytes(), raw.as_bytes(), &blob(&raw[4..])] {
            assert_eq!(regex_to_ppn(form, 100).as_ref(), Ok(&nodes));
        }
    }
    assert_eq!(regex_to_ppn(b"raw:0-2;3", 100), Ok(vec![vec![0, 1, 2], vec![3]]));
}

#[test]
fn expansions_are_bounded() {
    let many = RegexError::TooMany { limit: 10 };
    assert_eq!(regex_to_nodes(b"pmix[n[1:1-99999999999]]", 10), Err(many.clone()));
    assert_eq!(regex_to_nodes(b"raw:a,b,c,d,e,f,g,h,i,j,k", 10), Err(many.clone()));
    assert_eq!(regex_to_ppn(b"pmix[0-4294967295]", 10), Err(many));
    assert!(regex_to_nodes(b"pmix[n[250000:1-2]]", 10).is_err());
    assert!(matches!(regex_to_nodes(&blob(&"x".repeat(1 << 20)), 10), Err(RegexError::Compressed(_))));
}

#[test]
fn malformed_maps_are_refused() {
    for map in [
        &b""[..],
        b"pmix",
        b"pmix[a",
        b"pmix[a[1]]",
        b"pmix[a[x:1]]",
        b"pmix[a[1:]]",
        b"other[a]",
        b"pmix[\xff]",
        b"blob:\0",
    ] {
        assert!(regex_to_nodes(map, 10).is_err(), "{}", String::from_utf8_lossy(map));
    }
    assert!(regex_to_ppn(b"pmix[3-1]", 10).is_err());
    assert!(regex_to_ppn(b"pmix[x]", 10).is_err());
}

proptest! {
    #[test]
    fn any_list_of_hosts_survives(names in prop::collection::vec("[a-c0-9.-]{1,6}", 0..40)) {
        let map = nodes_to_regex(&names).unwrap();
        prop_assert_eq!(&regex_to_nodes(map.as_bytes(), 40).unwrap(), &names);
        prop_assert_eq!(&regex_to_nodes(nodes_to_raw(&names).as_bytes(), 40).unwrap(), &names);
    }

    #[test]
    fn any_list_of_ranks_survives(nodes in prop::collection::vec(prop::collection::vec(0..50_u32, 1..8), 1..8)) {
        prop_assert_eq!(&regex_to_ppn(ppn_to_regex(&nodes).as_bytes(), 64).unwrap(), &nodes);
        prop_assert_eq!(&regex_to_ppn(ppn_to_raw(&nodes).as_bytes(), 64).unwrap(), &nodes);
    }

    #[test]
    fn parsing_is_total(map in "(pmix|raw:)?[\\[\\]:,;a-b0-9-]{0,30}") {
        let _ = regex_to_nodes(map.as_bytes(), 1000);
        let _ = regex_to_ppn(map.as_bytes(), 1000);
    }
}
