use crate::device::PciId;
use crate::tree::Parts;
use crate::{CpuSet, Device, DeviceKind, Topology};

/// The names of all elements with their depth of nesting, one `object` by its type.
fn outline(xml: &str) -> Vec<(usize, String)> {
    let mut outline = Vec::new();
    for line in xml.lines().map(str::trim_end) {
        let depth = (line.len() - line.trim_start().len()) / 2;
        if let Some(rest) = line.trim_start().strip_prefix("<object type=\"") {
            outline.push((depth, rest.split('"').next().unwrap().to_owned()));
        }
    }
    outline
}

#[test]
fn elements_nest() {
    let xml = Topology::synthetic(1, 1, 1, 1, 2).to_hwloc_xml();
    let expected = ["Machine", "Package", "NUMANode", "L3Cache", "L2Cache", "L1Cache", "Core", "PU", "PU"];
    let depths = [1, 2, 3, 3, 4, 5, 6, 7, 7];
    let expected: Vec<_> = depths.into_iter().zip(expected.map(str::to_owned)).collect();
    assert_eq!(outline(&xml), expected);
    assert_eq!(xml.matches("<object ").count(), xml.matches("</object>").count() + xml.matches("/>").count());
}

#[test]
fn memory_has_a_group_only_where_nothing_else_fits() {
    let count = |topology: Topology, what: &str| {
        outline(&topology.to_hwloc_xml()).iter().filter(|(_, name)| name == what).count()
    };
    assert_eq!(count(Topology::synthetic(2, 2, 2, 2, 1), "Group"), 4);
    assert_eq!(count(Topology::synthetic(2, 2, 2, 2, 1), "NUMANode"), 4);
    assert_eq!(count(Topology::synthetic(2, 2, 1, 2, 1), "Group"), 0);
    assert_eq!(count(Topology::synthetic(2, 2, 1, 2, 1), "NUMANode"), 4);
    assert_eq!(count(Topology::synthetic(2, 1, 1, 2, 1), "Group"), 0);
}

#[test]
fn numbers_are_all_different() {
    let xml = Topology::synthetic(2, 2, 2, 2, 2).to_hwloc_xml();
    let numbers: Vec<&str> =
        xml.split("gp_index=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let distinct: std::collections::BTreeSet<_> = numbers.iter().collect();
    assert_eq!(distinct.len(), numbers.len());
    assert!(
        xml.contains("<u64values length=\"48\">10 12 32 32 12 10 32 32 32 32 10 12 32 32 12 10 </u64values>")
    );
}

#[test]
fn names_from_the_system_are_escaped() {
    let device = Device {
        kind: DeviceKind::Network,
        name: "a\"<b>&\u{1}".into(),
        pci: PciId::from_address("0000:01:00.0").unwrap(),
        cpus: CpuSet::single(0),
        address: vec!["02:00:00:00:00:01".into()],
    };
    let parts = Parts { cpus: CpuSet::single(0), devices: vec![device], ..Parts::default() };
    let xml = Topology::assemble(parts).to_hwloc_xml();
    assert!(xml.contains("name=\"a&quot;&lt;b&gt;&amp;?\""), "{xml}");
}

#[test]
fn memory_stands_around_in_the_older_form() {
    let xml = Topology::synthetic(2, 1, 1, 1, 1).to_hwloc1_xml();
    let inside = ["Cache", "Cache", "Cache", "Core", "PU"];
    let package = ["NUMANode", "Socket"].into_iter().chain(inside).map(str::to_owned);
    let package: Vec<_> = (2..).zip(package).collect();
    let expected = [vec![(1, "Machine".to_owned())], package.clone(), package].concat();
    assert_eq!(outline(&xml), expected);
    assert!(xml.contains("<distances nbobjs=\"2\" relative_depth=\"2\" latency_base=\"1.000000\">"), "{xml}");
    let values: Vec<&str> =
        xml.split("latency value=\"").skip(1).filter_map(|rest| rest.split('.').next()).collect();
    assert_eq!(values, ["10", "32", "32", "10"]);
    assert!(!xml.contains("gp_index") && !xml.contains("cpukind"));
}
