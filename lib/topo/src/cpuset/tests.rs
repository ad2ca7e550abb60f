use super::*;
use proptest::prelude::*;

fn set(text: &str) -> CpuSet {
    CpuSet::from_list(text).unwrap()
}

#[test]
fn lists_are_read_and_written() {
    assert_eq!(set("0-3,8").iter().collect::<Vec<_>>(), [0, 1, 2, 3, 8]);
    assert_eq!(set(" 8 , 0-2,3\n").to_string(), "0-3,8");
    assert_eq!(set("").count(), 0);
    assert_eq!(set("\n").to_string(), "");
    assert_eq!(set("63-64").ranges().collect::<Vec<_>>(), [(63, 64)]);
}

#[test]
fn bad_lists_say_where() {
    let at = |text: &str| CpuSet::from_list(text).unwrap_err();
    assert_eq!(at("0,x"), CpuSetError::NotANumber { text: "0,x".into(), at: 2 });
    assert_eq!(at("0-3,9-x"), CpuSetError::NotANumber { text: "0-3,9-x".into(), at: 6 });
    assert_eq!(at("1,,2"), CpuSetError::NotANumber { text: "1,,2".into(), at: 2 });
    assert_eq!(at("5-2"), CpuSetError::Backwards { text: "5-2".into(), at: 0 });
    assert_eq!(at("4-"), CpuSetError::OpenEnded { text: "4-".into() });
    assert!(matches!(at("65536"), CpuSetError::TooLarge { .. }));
    assert!(matches!(at("99999999999999999999"), CpuSetError::TooLarge { .. }));
    assert_eq!(at("0,x").to_string(), "\"0,x\": expected a CPU number at column 3, as in \"0-3,8\"");
}

#[test]
fn masks_are_read_and_written() {
    assert_eq!(CpuSet::from_mask("00ff,ffffffff\n").unwrap(), set("0-39"));
    assert_eq!(CpuSet::from_mask("0x00000003").unwrap(), set("0-1"));
    assert_eq!(CpuSet::from_mask("0x1,,0x1").unwrap(), set("0,64"));
    assert_eq!(set("0-39").to_mask(), "ff,ffffffff");
    assert_eq!(set("0-39").to_hwloc(), "0x000000ff,0xffffffff");
    assert_eq!(set("").to_mask(), "0");
    assert_eq!(set("").to_hwloc(), "0x0");
    for bad in ["zz", "1,g", "123456789", "0xf...f,0x1", "+1"] {
        assert!(CpuSet::from_mask(bad).is_err(), "{bad}");
    }
    let long = "0,".repeat(3000) + "1";
    assert!(matches!(CpuSet::from_mask(&long), Err(CpuSetError::TooLarge { .. })));
}

#[test]
fn numbers_out_of_range_are_left_out() {
    assert!(CpuSet::single(MAX_CPUS).is_empty());
    assert_eq!(CpuSet::range(MAX_CPUS - 1, u32::MAX).count(), 1);
    assert!(CpuSet::range(5, 4).is_empty());
}

#[test]
fn order_is_that_of_the_members() {
    let mut sets = [set("2-3"), set("0,64"), set("0-1"), set("")];
    sets.sort();
    assert_eq!(sets.map(|s| s.to_string()), ["", "0-1", "0,64", "2-3"]);
}

fn any_set() -> impl Strategy<Value = CpuSet> {
    proptest::collection::vec((0u32..300, 0u32..70), 0..8).prop_map(|ranges| {
        let mut set = CpuSet::new();
        ranges.iter().for_each(|(first, len)| set.insert_range(*first, first + len));
        set
    })
}

proptest! {
    #[test]
    fn text_forms_round_trip(a in any_set()) {
        prop_assert_eq!(&CpuSet::from_list(&a.to_string()).unwrap(), &a);
        prop_assert_eq!(&CpuSet::from_mask(&a.to_mask()).unwrap(), &a);
        prop_assert_eq!(&CpuSet::from_mask(&a.to_hwloc()).unwrap(), &a);
        prop_assert_eq!(&a.iter().collect::<CpuSet>(), &a);
    }

    #[test]
    fn operations_agree_with_members(a in any_set(), b in any_set()) {
        let members = |set: &CpuSet| set.iter().collect::<std::collections::BTreeSet<u32>>();
        let (x, y) = (members(&a), members(&b));
        prop_assert_eq!(members(&a.and(&b)), x.intersection(&y).copied().collect());
        prop_assert_eq!(members(&a.or(&b)), x.union(&y).copied().collect());
        prop_assert_eq!(members(&a.andnot(&b)), x.difference(&y).copied().collect());
        prop_assert_eq!(a.is_subset(&b), x.is_subset(&y));
        prop_assert_eq!(a.intersects(&b), !x.is_disjoint(&y));
        prop_assert_eq!(a.count() as usize, x.len());
        prop_assert_eq!(a.first(), x.first().copied());
        prop_assert_eq!(a.last(), x.last().copied());
        prop_assert_eq!(a.cmp(&b), x.iter().cmp(y.iter()));
        prop_assert_eq!(a.and(&b).or(&a.andnot(&b)), a);
    }

    #[test]
    fn no_text_panics(text in ".{0,40}") {
        let _ = CpuSet::from_list(&text);
        let _ = CpuSet::from_mask(&text);
    }
}
