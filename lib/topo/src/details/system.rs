//! Facts from the system and the firmware about the machine, its processors and its memory pages.

use std::fs;
use std::path::Path;

use super::{Fact, Pages};
use crate::Topology;
use crate::sysfs::Source;
use crate::tree::Level;

/// hwloc's name for a fact of the machine, and the file that contains it. Serial numbers are left out: only root
/// can read them.
const MACHINE: &[(&str, &str)] = &[
    ("DMIProductName", "sys/class/dmi/id/product_name"),
    ("DMIProductVersion", "sys/class/dmi/id/product_version"),
    ("DMIBoardVendor", "sys/class/dmi/id/board_vendor"),
    ("DMIBoardName", "sys/class/dmi/id/board_name"),
    ("DMIBoardVersion", "sys/class/dmi/id/board_version"),
    ("DMIChassisVendor", "sys/class/dmi/id/chassis_vendor"),
    ("DMIChassisType", "sys/class/dmi/id/chassis_type"),
    ("DMIChassisVersion", "sys/class/dmi/id/chassis_version"),
    ("DMIBIOSVendor", "sys/class/dmi/id/bios_vendor"),
    ("DMIBIOSVersion", "sys/class/dmi/id/bios_version"),
    ("DMIBIOSDate", "sys/class/dmi/id/bios_date"),
    ("DMISysVendor", "sys/class/dmi/id/sys_vendor"),
    ("OSName", "proc/sys/kernel/ostype"),
    ("OSRelease", "proc/sys/kernel/osrelease"),
    ("OSVersion", "proc/sys/kernel/version"),
    ("HostName", "proc/sys/kernel/hostname"),
];

/// hwloc's name for a fact of a package, and its line in /proc/cpuinfo: x86, then ARM.
const PACKAGE: &[(&str, &str)] = &[
    ("CPUVendor", "vendor_id"),
    ("CPUFamilyNumber", "cpu family"),
    ("CPUModelNumber", "model"),
    ("CPUModel", "model name"),
    ("CPUStepping", "stepping"),
    ("CPUImplementer", "CPU implementer"),
    ("CPUArchitecture", "CPU architecture"),
    ("CPUVariant", "CPU variant"),
    ("CPUPart", "CPU part"),
    ("CPURevision", "CPU revision"),
];

impl Source<'_> {
    pub(super) fn is_this_machine(&self) -> bool {
        self.root == Path::new("/")
    }

    pub(super) fn machine_facts(&self) -> Vec<Fact> {
        let mut facts: Vec<Fact> =
            MACHINE.iter().filter_map(|(name, file)| fact(name, self.text(file)?.as_str())).collect();
        // Kernels before 6.1 have no such file.
        let machine = self.text("proc/sys/kernel/arch");
        let machine = machine.or(self.is_this_machine().then(|| std::env::consts::ARCH.to_owned()));
        facts.extend(machine.and_then(|machine| fact("Architecture", &machine)));
        facts.extend(self.control_group().and_then(|group| fact("LinuxCgroup", &group)));
        facts
    }

    /// The control group that decides which CPUs and memory we may use.
    fn control_group(&self) -> Option<String> {
        let groups = self.text("proc/self/cgroup")?;
        // A line is ID:CONTROLLERS:PATH. Version 2 lines name no controllers.
        let of = |wanted: &dyn Fn(&str) -> bool| {
            groups.lines().find_map(|line| {
                let mut parts = line.splitn(3, ':').skip(1);
                parts.next().filter(|controllers| wanted(controllers))?;
                parts.next().map(str::to_owned)
            })
        };
        let unified = || {
            let controllers = self.text("sys/fs/cgroup/cgroup.controllers")?;
            controllers.split_whitespace().any(|one| one == "cpuset").then(|| of(&|none| none.is_empty()))?
        };
        of(&|controllers| controllers.split(',').any(|one| one == "cpuset")).or_else(unified)
    }

    pub(super) fn package_facts(&self, topology: &Topology) -> Vec<Vec<Fact>> {
        let text = self.text("proc/cpuinfo").unwrap_or_default();
        let field = |block: &str, wanted: &str| {
            let mut fields = block.lines().filter_map(|line| line.split_once(':'));
            fields.find(|(name, _)| name.trim() == wanted).map(|(_, value)| value.trim().to_owned())
        };
        let described = topology.objects(Level::Package).iter().map(|package| {
            let first = package.cpus.first().map(|cpu| cpu.to_string());
            let block = text.split("\n\n").find(|block| field(block, "processor") == first);
            let block = block.unwrap_or_default();
            PACKAGE.iter().filter_map(|(name, wanted)| fact(name, &field(block, wanted)?)).collect()
        });
        described.collect()
    }

    /// Reserved huge pages; all other memory is in pages of the usual size.
    pub(super) fn pages(&self, topology: &Topology) -> Vec<(u32, Vec<Pages>)> {
        let Some(usual) = self.page_size() else { return Vec::new() };
        let of_node = topology.memories().iter().map(|memory| {
            let own = format!("sys/devices/system/node/node{}", memory.node);
            let is_numa = self.path(&own).exists();
            let folder = if is_numa { own + "/hugepages" } else { "sys/kernel/mm/hugepages".to_owned() };
            let mut pages: Vec<Pages> = self.huge_pages(&folder);
            pages.sort_by_key(|pages| pages.size);
            let huge =
                pages.iter().map(|pages| pages.size.saturating_mul(pages.count)).fold(0, u64::saturating_add);
            pages.insert(0, Pages { size: usual, count: memory.bytes.saturating_sub(huge) / usual });
            (memory.node, pages)
        });
        of_node.collect()
    }

    fn huge_pages(&self, folder: &str) -> Vec<Pages> {
        let entries = fs::read_dir(self.path(folder)).into_iter().flatten().flatten();
        let sizes = entries.filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let kilobytes: u64 = name.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok()?;
            let count = self.text(&format!("{folder}/{name}/nr_hugepages"))?.trim().parse().ok()?;
            Some(Pages { size: kilobytes.checked_mul(1024)?, count })
        });
        sizes.collect()
    }

    /// The kernel passes it to every program in the auxiliary vector: pairs of words, where 6 means the page size.
    fn page_size(&self) -> Option<u64> {
        const AT_PAGESZ: u64 = 6;
        let told = fs::read(self.path("proc/self/auxv")).ok()?;
        let words: Vec<u64> =
            told.chunks_exact(8).filter_map(|word| Some(u64::from_ne_bytes(word.try_into().ok()?))).collect();
        words.chunks_exact(2).find(|pair| pair[0] == AT_PAGESZ).map(|pair| pair[1]).filter(|size| *size > 0)
    }
}

fn fact(name: &'static str, text: &str) -> Option<Fact> {
    let value = text.trim();
    (!value.is_empty()).then(|| Fact { name, value: value.to_owned() })
}
