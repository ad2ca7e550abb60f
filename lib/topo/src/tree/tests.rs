use super::*;

fn set(text: &str) -> CpuSet {
    text.parse().unwrap()
}

#[test]
fn names_are_read_in_all_usual_spellings() {
    for level in Level::ALL {
        assert_eq!(level.name().parse(), Ok(level));
        assert_eq!(level.name().to_uppercase().parse(), Ok(level));
    }
    assert_eq!("socket".parse(), Ok(Level::Package));
    assert_eq!("L3".parse(), Ok(Level::L3));
    let error = "sokcet".parse::<Level>().unwrap_err();
    assert!(
        error.to_string().starts_with("\"sokcet\" is not a hardware object; known are node, package, numa")
    );
}

#[test]
fn synthetic_nodes_have_what_was_asked_for() {
    let topology = Topology::synthetic(2, 2, 2, 4, 2);
    assert_eq!(topology.summary(), "2S:4N:8L3:32L2:32L1:32C:64T");
    assert_eq!(topology.cpus(), &set("0-63"));
    assert_eq!(topology.objects(Level::Numa)[3].cpus, set("48-63"));
    assert_eq!(topology.objects(Level::Core)[5].cpus, set("10-11"));
    assert_eq!(topology.objects(Level::Pu)[17].os_index, Some(17));
    assert_eq!(Topology::synthetic(1, 1, 1, 1, 0).summary(), "1S:1N:1L3:1L2:1L1:1C:1T");
}

#[test]
fn logical_order_is_that_of_the_walk() {
    // Packages with alternating CPU numbers and distant siblings, as on many two-socket servers.
    let object =
        |level, cpus: &str| Object { level, logical: 0, os_index: None, cpus: set(cpus), cache: None };
    let topology = Topology::assemble(Parts {
        objects: vec![
            object(Level::Core, "3,7"),
            object(Level::Core, "2,6"),
            object(Level::Package, "1,3,5,7"),
            object(Level::Core, "1,5"),
            object(Level::Package, "0,2,4,6"),
            object(Level::Core, "0,4"),
        ],
        cpus: set("0-7"),
        ..Parts::default()
    });
    let sets =
        |level| topology.objects(level).iter().map(|object| object.cpus.to_string()).collect::<Vec<_>>();
    assert_eq!(sets(Level::Package), ["0,2,4,6", "1,3,5,7"]);
    assert_eq!(sets(Level::Core), ["0,4", "2,6", "1,5", "3,7"]);
    assert_eq!(sets(Level::Pu), ["0", "4", "2", "6", "1", "5", "3", "7"]);
    assert_eq!(topology.objects(Level::Pu)[1].logical, 1);
}

#[test]
fn contradictions_are_left_out() {
    let object =
        |cpus: &str| Object { level: Level::L2, logical: 0, os_index: None, cpus: set(cpus), cache: None };
    let parts = Parts {
        objects: vec![object("0-1"), object("1-2"), object("9"), object("2-3")],
        cpus: set("0-3"),
        ..Parts::default()
    };
    let topology = Topology::assemble(parts);
    assert_eq!(topology.objects(Level::L2).len(), 2);
    assert_eq!(topology.summary(), "2L2:4T");
}

#[test]
fn restricting_shrinks_and_renumbers() {
    let topology = Topology::synthetic(2, 1, 2, 2, 2);
    // One thread of core 1, all of the second package's last cache.
    let left = topology.restrict(&set("3,12-15,99"));
    assert_eq!(left.summary(), "2S:2N:2L3:3L2:3L1:3C:5T");
    assert_eq!(left.cpus(), &set("3,12-15"));
    let cores: Vec<_> =
        left.objects(Level::Core).iter().map(|core| (core.logical, core.cpus.to_string())).collect();
    assert_eq!(cores, [(0, "3".to_owned()), (1, "12-13".to_owned()), (2, "14-15".to_owned())]);
    assert_eq!(left.objects(Level::Core)[0].os_index, Some(1), "the kernel's numbers stay");
    assert_eq!(topology.restrict(topology.cpus()), topology);
    let nothing = topology.restrict(&CpuSet::new());
    assert!(nothing.cpus().is_empty());
    assert_eq!(nothing.summary(), "");
    assert_eq!(nothing.covering(&set("0")), None);
}

#[test]
fn covering_is_the_smallest() {
    let topology = Topology::synthetic(2, 1, 2, 2, 2);
    let level = |cpus: &str| topology.covering(&set(cpus)).map(|object| (object.level, object.logical));
    assert_eq!(level("3"), Some((Level::Pu, 3)));
    assert_eq!(level("2-3"), Some((Level::Core, 1)));
    assert_eq!(level("2,4"), Some((Level::Numa, 0)));
    assert_eq!(level("1-2"), Some((Level::L3, 0)));
    assert_eq!(level("7-8"), Some((Level::Machine, 0)));
    assert_eq!(level("16"), None);
    assert_eq!(level(""), None);
}

#[test]
fn signatures_tell_shapes_apart_and_not_machines() {
    let topology = Topology::synthetic(2, 1, 1, 4, 2);
    let mut twin = topology.clone();
    twin.memories[0].bytes += 4096;
    assert_ne!(twin, topology);
    assert_eq!(twin.signature(), topology.signature());
    assert!(topology.signature().starts_with("2S:2N:2L3:8L2:8L1:8C:16T-"));
    // The same counts, wired differently.
    let other = topology.restrict(&set("0-7")).signature();
    assert_ne!(other, topology.restrict(&set("8-15")).signature());
}
