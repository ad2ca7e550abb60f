use super::*;
use std::os::unix::fs::symlink;
use tempfile::TempDir;

/// A directory with the given files; `path -> target` makes a symbolic link, `path: text` a file.
pub(crate) fn tree(lines: &str) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    for line in lines.lines().map(str::trim_start).filter(|line| !line.is_empty()) {
        let (path, link) = match line.split_once(" -> ") {
            Some((path, target)) => (path, Some(target)),
            None => (line.split_once(": ").unwrap().0, None),
        };
        let full = root.path().join(path);
        fs::create_dir_all(full.parent().unwrap()).unwrap();
        match link {
            Some(target) => symlink(target, full).unwrap(),
            None => {
                let text = line[path.len() + 2..].replace("\\n", "\n").replace("\\t", "\t");
                fs::write(full, text + "\n").unwrap();
            }
        }
    }
    root
}

fn read(lines: &str) -> Topology {
    Topology::read(tree(lines).path()).unwrap()
}

fn sets(topology: &Topology, level: Level) -> Vec<String> {
    topology.objects(level).iter().map(|object| object.cpus.to_string()).collect()
}

/// Two sockets of two cores with two threads each, numbered as firmware often does: sockets alternate, siblings
/// come in the second half. CPU 7 is offline.
pub(crate) fn two_sockets() -> String {
    let mut lines = String::from("sys/devices/system/cpu/online: 0-6\nsys/devices/system/cpu/present: 0-7\n");
    let mut file = |path: String, text: &str| lines.push_str(&format!("{path}: {text}\n"));
    for cpu in 0..7 {
        let (package, core) = (cpu % 2, cpu % 4);
        let siblings = if core == 3 { "3".to_owned() } else { format!("{core},{}", core + 4) };
        let socket = if package == 0 { "0,2,4,6" } else { "1,3,5" };
        let at = format!("sys/devices/system/cpu/cpu{cpu}");
        file(format!("{at}/topology/physical_package_id"), &package.to_string());
        file(format!("{at}/topology/package_cpus_list"), socket);
        file(format!("{at}/topology/core_id"), &(core / 2).to_string());
        file(format!("{at}/topology/core_cpus_list"), &siblings);
        let caches = [
            ("1", "Data", siblings.as_str(), "32K"),
            ("1", "Instruction", siblings.as_str(), "64K"),
            ("2", "Unified", siblings.as_str(), "1024K"),
            ("3", "Unified", socket, "22528K"),
        ];
        for (index, (level, kind, shared, size)) in caches.into_iter().enumerate() {
            let at = format!("{at}/cache/index{index}");
            file(format!("{at}/level"), level);
            file(format!("{at}/type"), kind);
            file(format!("{at}/shared_cpu_list"), shared);
            file(format!("{at}/size"), size);
            file(format!("{at}/coherency_line_size"), "64");
            file(format!("{at}/ways_of_associativity"), "11");
        }
    }
    // The third NUMA node is memory without CPUs.
    file("sys/devices/system/node/online".into(), "0-2");
    for (node, cpus, distance) in [(0, "0,2,4,6", "10 21 17"), (1, "1,3,5", "21 10 28"), (2, "", "17 28 10")]
    {
        let at = format!("sys/devices/system/node/node{node}");
        file(format!("{at}/cpulist"), cpus);
        file(format!("{at}/distance"), distance);
        file(
            format!("{at}/meminfo"),
            &format!("Node {node} MemTotal:       {} kB\\nNode {node} MemFree: 1 kB", 4096),
        );
    }
    lines
}

pub(crate) const DEVICES: &str = "
    sys/class/net/lo -> ../../devices/virtual/net/lo
    sys/class/net/ib0 -> ../../devices/pci0000:80/0000:80:01.0/0000:81:00.0/net/ib0
    sys/class/net/eth0 -> ../../devices/pci0000:00/0000:00:03.0/virtio1/net/eth0
    sys/class/infiniband/mlx5_0 -> ../../devices/pci0000:80/0000:80:01.0/0000:81:00.0/infiniband/mlx5_0
    sys/class/drm/card0 -> ../../devices/pci0000:00/0000:00:04.0/drm/card0
    sys/class/drm/renderD128 -> ../../devices/pci0000:00/0000:00:04.0/drm/renderD128
    sys/devices/pci0000:00/0000:00:03.0/virtio1/net/eth0/address: 02:fc:00:00:00:01
    sys/bus/pci/devices/0000:00:03.0 -> ../../../devices/pci0000:00/0000:00:03.0
    sys/devices/pci0000:00/0000:00:03.0/revision: 0x1a
    sys/devices/pci0000:00/0000:00:03.0/uevent: DRIVER=virtio-pci\\nPCI_CLASS=20000\\nPCI_ID=1AF4:1041\\nPCI_SUBSYS_ID=1AF4:1100
    sys/devices/pci0000:80/0000:80:01.0/0000:81:00.0/local_cpulist: 1,3,5,7
    sys/devices/pci0000:80/0000:80:01.0/0000:81:00.0/uevent: PCI_CLASS=20700\\nPCI_ID=15B3:101B
    sys/devices/pci0000:80/0000:80:01.0/0000:81:00.0/infiniband/mlx5_0/node_guid: 0c42:a103:0065:2b1a
    sys/devices/pci0000:80/0000:80:01.0/0000:81:00.0/infiniband/mlx5_0/sys_image_guid: 0c42:a103:0065:2b1b
    sys/devices/pci0000:00/0000:00:04.0/local_cpulist: 0,2
";

#[test]
fn two_sockets_with_an_offline_thread() {
    let topology = read(&two_sockets());
    assert_eq!(topology.summary(), "2S:2N:2L3:4L2:4L1:4C:7T");
    assert_eq!(sets(&topology, Level::Package), ["0,2,4,6", "1,3,5"]);
    assert_eq!(sets(&topology, Level::Core), ["0,4", "2,6", "1,5", "3"]);
    assert_eq!(sets(&topology, Level::Pu), ["0", "4", "2", "6", "1", "5", "3"]);
    let core_ids: Vec<_> = topology.objects(Level::Core).iter().map(|core| core.os_index).collect();
    assert_eq!(core_ids, [Some(0), Some(1), Some(0), Some(1)]);
    let cache = |bytes, unified| Cache { bytes, unified };
    assert_eq!(topology.objects(Level::L3)[1].cache, Some(cache(22 << 20, true)));
    for data in topology.objects(Level::L1) {
        assert_eq!(data.cache, Some(cache(32 << 10, false)));
    }
    assert_eq!(Topology::decode(&topology.encode()).unwrap(), topology);
    assert_eq!(topology.memories()[2], Memory { node: 2, bytes: 4 << 20 });
    assert_eq!(topology.distances().get(0, 2), Some(17));
    assert_eq!(topology.distances().get(1, 2), Some(28));
}

#[test]
fn devices_know_their_neighbours() {
    let topology = read(&(two_sockets() + DEVICES));
    let seen: Vec<_> =
        topology.devices().iter().map(|d| (d.name.as_str(), d.pci.address(), d.cpus.to_string())).collect();
    let expected = [
        ("eth0", "0000:00:03.0", "0-6"),
        ("renderD128", "0000:00:04.0", "0,2"),
        ("ib0", "0000:81:00.0", "1,3,5"),
        ("mlx5_0", "0000:81:00.0", "1,3,5"),
    ];
    assert_eq!(seen, expected.map(|(name, bus, cpus)| (name, bus.to_owned(), cpus.to_owned())));
    let eth0 = &topology.devices()[0];
    assert_eq!((eth0.pci.class, eth0.pci.ids), (0x0200, [0x1af4, 0x1041, 0x1af4, 0x1100]));
    assert_eq!(eth0.uuid("n").as_deref(), Some("ipv4://02:fc:00:00:00:01"));
    assert_eq!(topology.devices()[2].uuid("n"), None);
    let fabric = topology.devices()[3].uuid("n");
    assert_eq!(fabric.as_deref(), Some("fab://0c42:a103:0065:2b1a::0c42:a103:0065:2b1b"));
    let nearest: Vec<_> = topology.device_distances(&CpuSet::single(1)).iter().map(|d| d.nearest).collect();
    assert_eq!(nearest, [13, 13, 6, 6]);
}

#[test]
fn addresses_do_not_change_the_signature() {
    let here = read(&(two_sockets() + DEVICES));
    let there = read(&(two_sockets() + &DEVICES.replace("00:00:00:01", "00:00:00:02")));
    assert_ne!(here, there);
    assert_eq!(here.signature(), there.signature());
    assert_eq!(Topology::decode(&here.encode()).unwrap(), here);
}

#[test]
fn old_kernels_use_other_names() {
    let lines = two_sockets().replace("package_cpus_list", "core_siblings_list");
    let lines = lines.replace("core_cpus_list", "thread_siblings_list");
    assert_eq!(read(&lines), read(&two_sockets()));
}

#[test]
fn a_container_without_topology_is_described_by_cpuinfo() {
    let cpu = |cpu, package, core| {
        format!("processor\\t: {cpu}\\nphysical id\\t: {package}\\ncore id\\t: {core}\\n\\n")
    };
    let cpuinfo: String = [(0, 0, 0), (1, 0, 0), (2, 1, 0), (3, 1, 1)].map(|(n, p, c)| cpu(n, p, c)).concat();
    let topology = read(&format!("proc/cpuinfo: {cpuinfo}\nproc/meminfo: MemTotal:  1024 kB"));
    assert_eq!(topology.summary(), "2S:1N:3C:4T");
    assert_eq!(sets(&topology, Level::Core), ["0-1", "2", "3"]);
    assert_eq!(topology.memories(), [Memory { node: 0, bytes: 1 << 20 }]);
    assert_eq!(topology.locality_string(&CpuSet::single(3)), "SK1:CR2:HT3:NM0");
}

#[test]
fn a_bare_list_of_cpus_is_enough() {
    let topology = read("sys/devices/system/cpu/online: 0,2-3");
    assert_eq!(topology.summary(), "1S:1N:3C:3T");
    assert_eq!(sets(&topology, Level::Core), ["0", "2", "3"]);
    let arm =
        "processor\\t: 0\\nBogoMIPS\\t: 100\\n\\nprocessor\\t: 1\\nBogoMIPS\\t: 100\\n\\nHardware\\t: x";
    assert_eq!(read(&format!("proc/cpuinfo: {arm}")).summary(), "1S:1N:2C:2T");
}

#[test]
fn packages_without_a_number_are_packages() {
    let lines = "sys/devices/system/cpu/online: 0-1
        sys/devices/system/cpu/cpu0/topology/physical_package_id: -1
        sys/devices/system/cpu/cpu0/topology/core_id: 0
        sys/devices/system/cpu/cpu0/topology/core_cpus_list: 0
        sys/devices/system/cpu/cpu0/topology/package_cpus_list: 0-1
        sys/devices/system/cpu/cpu1/topology/core_id: 1
        sys/devices/system/cpu/cpu1/topology/core_cpus_list: 1";
    let topology = read(lines);
    assert_eq!(topology.summary(), "1S:1N:2C:2T");
    assert_eq!(topology.objects(Level::Package)[0].os_index, None);
}

#[test]
fn failures_name_the_file() {
    let empty = tempfile::tempdir().unwrap();
    let error = Topology::read(empty.path()).unwrap_err().to_string();
    assert!(error.contains("/sys/devices/system/cpu/online or "), "{error}");
    assert!(error.contains("/proc/cpuinfo"), "{error}");
    let broken = tree("sys/devices/system/cpu/online: all of them");
    let error = Topology::read(broken.path()).unwrap_err().to_string();
    assert!(error.ends_with("cpu/online: expected a list such as 0-3,8, found \"all of them\""), "{error}");
}

#[test]
fn this_machine_is_readable() {
    let topology = Topology::read(Path::new("/")).unwrap();
    assert_eq!(topology.objects(Level::Pu).len() as u32, topology.cpus().count());
    assert!(!topology.objects(Level::Core).is_empty());
    assert!(!topology.objects(Level::Package).is_empty());
    assert!(!topology.objects(Level::Numa).is_empty());
}
