use super::*;
use crate::sysfs::tests::{DEVICES, tree, two_sockets};

const SYSTEM: &str = "
    proc/sys/kernel/ostype: Linux
    proc/sys/kernel/hostname: a<b>
    proc/sys/kernel/arch: riscv64
    proc/self/cgroup: 0::/user.slice
    sys/fs/cgroup/cgroup.controllers: cpu cpuset io
    sys/class/dmi/id/board_name: X11
    proc/cpuinfo: processor: 0\\nvendor_id: V\\nmodel\\t: 7\\nmodel name: The M\\n\\nprocessor: 1\\nmodel name: Other\\n
    sys/devices/system/cpu/cpu0/cache/index3/id: 12
    sys/devices/system/cpu/cpu1/cache/index3/id: 13
";

const DISKS: &str = "
    sys/class/block/loop0 -> ../../devices/virtual/block/loop0
    sys/class/block/sda -> ../../devices/pci0000:00/0000:00:05.0/ata1/block/sda
    sys/class/block/sda1 -> ../../devices/pci0000:00/0000:00:05.0/ata1/block/sda/sda1
    sys/class/block/sdb -> ../../devices/pci0000:00/0000:00:06.0/usb1/block/sdb
    sys/class/block/nvme0n1 -> ../../devices/pci0000:80/0000:80:01.0/0000:82:00.0/nvme/nvme0/nvme0n1
    sys/devices/pci0000:00/0000:00:05.0/ata1/block/sda/size: 1000
    sys/devices/pci0000:00/0000:00:05.0/ata1/block/sda/dev: 8:0
    sys/devices/pci0000:00/0000:00:05.0/ata1/block/sda/queue/hw_sector_size: 512
    sys/devices/pci0000:00/0000:00:05.0/ata1/block/sda/sda1/partition: 1
    sys/devices/pci0000:80/0000:80:01.0/0000:82:00.0/nvme/nvme0/nvme0n1/size: 8
    sys/bus/pci/devices/0000:82:00.0 -> ../../../devices/pci0000:80/0000:80:01.0/0000:82:00.0
    sys/devices/pci0000:80/0000:80:01.0/0000:82:00.0/current_link_speed: 8.0 GT/s PCIe
    sys/devices/pci0000:80/0000:80:01.0/0000:82:00.0/current_link_width: 4
    sys/devices/pci0000:80/0000:80:01.0/0000:82:00.0/local_cpulist: 1,3
    run/udev/data/b8:0: S:disk\\nE:ID_VENDOR=ATA\\nE:ID_MODEL=ST4000\\nE:ID_TYPE=disk\\nE:ID_SERIAL_SHORT=Z1
";

fn details(lines: &str) -> (Topology, Details) {
    let root = tree(lines);
    let topology = Topology::read(root.path()).unwrap();
    let details = Details::of(&topology);
    (topology, details)
}

fn told(facts: &[Fact]) -> Vec<(&str, &str)> {
    facts.iter().map(|fact| (fact.name, fact.value.as_str())).collect()
}

#[test]
fn the_system_and_its_processors_are_named() {
    let (topology, details) = details(&(two_sockets() + SYSTEM));
    let machine = [
        ("DMIBoardName", "X11"),
        ("OSName", "Linux"),
        ("HostName", "a<b>"),
        ("Architecture", "riscv64"),
        ("LinuxCgroup", "/user.slice"),
    ];
    assert_eq!(told(&details.machine), machine);
    let packages = topology.objects(Level::Package);
    let first = [("CPUVendor", "V"), ("CPUModelNumber", "7"), ("CPUModel", "The M")];
    assert_eq!(told(details.package(&packages[0])), first);
    assert_eq!(told(details.package(&packages[1])), [("CPUModel", "Other")]);
}

#[test]
fn caches_have_numbers_and_measures() {
    let (topology, details) = details(&(two_sockets() + SYSTEM));
    let last = details.cache(&topology.objects(Level::L3)[1]).unwrap();
    assert_eq!((last.id, last.line, last.ways, last.purpose), (Some(13), 64, 11, Purpose::Unified));
    for data in topology.objects(Level::L1) {
        assert_eq!(details.cache(data).unwrap().purpose, Purpose::Data);
        assert_eq!(details.instructions(data).unwrap().bytes, 64 << 10);
    }
    assert_eq!(details.instructions(&topology.objects(Level::L2)[0]), None);
}

#[test]
fn caches_are_found_where_few_cpus_are_allowed() {
    let root = tree(&two_sockets());
    let topology = Topology::read(root.path()).unwrap().restrict(&"2,4,5".parse().unwrap());
    let details = Details::of(&topology);
    for level in [Level::L1, Level::L2, Level::L3] {
        for object in topology.objects(level) {
            assert_eq!(details.cache(object).unwrap().line, 64, "{object:?}");
        }
    }
    assert!(topology.objects(Level::L1).iter().all(|data| details.instructions(data).is_some()));
}

#[test]
fn disks_are_listed_with_their_bus() {
    let (_, details) = details(&(two_sockets() + DISKS));
    let names: Vec<_> =
        details.storage.iter().map(|disk| (disk.name.as_str(), disk.cpus.to_string())).collect();
    assert_eq!(names, [("sda", "0-6".to_owned()), ("nvme0n1", "1,3".to_owned())]);
    let facts = [
        ("Size", "500"),
        ("SectorSize", "512"),
        ("LinuxDeviceID", "8:0"),
        ("Vendor", "Seagate"),
        ("Model", "ST4000"),
        ("SerialNumber", "Z1"),
    ];
    assert_eq!(told(&details.storage[0].facts), facts);
    assert_eq!((details.storage[0].subtype, details.storage[1].subtype), (Some("Disk"), Some("Disk")));
    let speed = details.function(&details.storage[1].pci).link_speed;
    assert!((speed - 3.938).abs() < 0.001, "{speed}");
}

#[test]
fn functions_have_their_revision() {
    let (topology, details) = details(&(two_sockets() + DEVICES));
    let of = |place: usize| details.function(&topology.devices()[place].pci).revision;
    assert_eq!((of(0), of(1)), (0x1a, 0));
}

#[test]
fn kinds_of_cpus_are_ranked() {
    let mut lines = two_sockets();
    for (cpu, capacity, max) in [(0, 1024, 5000), (1, 1024, 5200), (2, 400, 3000), (3, 400, 3000)] {
        let at = format!("sys/devices/system/cpu/cpu{cpu}");
        lines += &format!("{at}/cpu_capacity: {capacity}\n{at}/cpufreq/cpuinfo_max_freq: {max}000\n");
        lines += &format!("{at}/cpufreq/base_frequency: {capacity}000\n");
    }
    let (_, details) = details(&lines);
    let kinds: Vec<_> = details
        .kinds
        .iter()
        .map(|kind| (kind.cpus.to_string(), kind.efficiency, told(&kind.facts)))
        .collect();
    let facts = |max, capacity| {
        vec![("FrequencyMaxMHz", max), ("FrequencyBaseMHz", capacity), ("LinuxCapacity", capacity)]
    };
    let slow = ("2-3".to_owned(), Some(0), facts("3000", "400"));
    assert_eq!(kinds, [slow, ("0-1".to_owned(), Some(1), facts("5000", "1024"))]);
}

#[test]
fn huge_pages_are_counted_apart() {
    let root =
        tree(&(two_sockets() + "sys/devices/system/node/node0/hugepages/hugepages-1024kB/nr_hugepages: 3\n"));
    let auxv: Vec<u8> = [3, 0, 6, 4096, 0, 0].into_iter().flat_map(u64::to_ne_bytes).collect();
    std::fs::create_dir_all(root.path().join("proc/self")).unwrap();
    std::fs::write(root.path().join("proc/self/auxv"), auxv).unwrap();
    let details = Details::of(&Topology::read(root.path()).unwrap());
    assert_eq!(details.pages(0), [Pages { size: 4096, count: 256 }, Pages { size: 1 << 20, count: 3 }]);
    assert_eq!(details.pages(1), [Pages { size: 4096, count: 1024 }]);
    assert_eq!(details.pages(9), []);
}

#[test]
fn a_topology_from_elsewhere_has_no_details() {
    let topology = Topology::synthetic(1, 1, 1, 1, 1);
    let details = Details::of(&topology);
    assert!(details.machine.is_empty() && details.cache(&topology.objects(Level::L1)[0]).is_none());
}
