//! Reading the hardware from Linux's files below a directory.
//!
//! Owns which file holds what, and what to assume where a file is missing: containers and old kernels hide any of
//! them. Only the list of online CPUs is indispensable. Every launch runs this code, so it reads a file
//! once per object that it describes, not once per CPU, and skips values that change with time or that only the XML needs
//! (see `details.rs`).
//!
//! Next stop: [`Topology::assemble`] numbers the objects found here.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::device::{Device, DeviceKind, PciId};
use crate::tree::{Cache, Level, Memory, Object, Origin, Parts};
use crate::{CpuSet, NumaDistances, Topology, TopologyError};

impl Topology {
    /// Reads the node's hardware below `root`: `/` for this machine. The result contains all online CPUs;
    /// [`Topology::restrict`] reduces it to those that a process may use.
    pub fn read(root: &Path) -> Result<Topology, TopologyError> {
        let source = Source { root };
        let origin = Origin(Some(root.to_owned()));
        let mut parts = Parts { cpus: source.online()?, origin, ..Parts::default() };
        source.cpus(&mut parts)?;
        source.memory(&mut parts)?;
        source.devices(&mut parts);
        Ok(Topology::assemble(parts))
    }
}

/// The directory below which everything is read.
pub(crate) struct Source<'a> {
    pub(crate) root: &'a Path,
}

impl Source<'_> {
    /// The online CPUs from sysfs, otherwise those that `/proc/cpuinfo` describes.
    fn online(&self) -> Result<CpuSet, TopologyError> {
        const ONLINE: &str = "sys/devices/system/cpu/online";
        const CPUINFO: &str = "proc/cpuinfo";
        if let Some(cpus) = self.list(ONLINE)?.filter(|cpus| !cpus.is_empty()) {
            return Ok(cpus);
        }
        let text = self.text(CPUINFO).unwrap_or_default();
        let cpus: CpuSet = cpuinfo(&text).map(|cpu| cpu.processor).collect();
        if cpus.is_empty() {
            return Err(TopologyError::NoCpus { tried: vec![self.path(ONLINE), self.path(CPUINFO)] });
        }
        Ok(cpus)
    }

    /// Packages, cores and caches.
    fn cpus(&self, parts: &mut Parts) -> Result<(), TopologyError> {
        let online = parts.cpus.clone();
        let first = online.first().unwrap_or(0);
        if self.text(&format!("sys/devices/system/cpu/cpu{first}/topology/core_id")).is_none() {
            self.described(parts);
            return Ok(());
        }
        let mut known: [CpuSet; 2] = Default::default();
        let mut caches: [CpuSet; MOST_CACHES] = Default::default();
        for cpu in online.iter() {
            let folder = format!("sys/devices/system/cpu/cpu{cpu}/topology");
            let levels = [
                (Level::Package, "physical_package_id", ["package_cpus_list", "core_siblings_list"]),
                (Level::Core, "core_id", ["core_cpus_list", "thread_siblings_list"]),
            ];
            for ((level, id, lists), known) in levels.into_iter().zip(&mut known) {
                if known.contains(cpu) {
                    continue;
                }
                let mut cpus = CpuSet::single(cpu);
                for list in lists {
                    if let Some(listed) = self.list(&format!("{folder}/{list}"))? {
                        cpus.add(&listed);
                        break;
                    }
                }
                cpus.subtract(known);
                known.add(&cpus);
                // Machines that do not have this level write -1.
                let os_index = self.text(&format!("{folder}/{id}")).and_then(|text| text.trim().parse().ok());
                parts.objects.push(Object { level, logical: 0, os_index, cpus, cache: None });
            }
            self.caches(cpu, &mut caches, parts)?;
        }
        Ok(())
    }

    /// The caches of one CPU that no earlier CPU has led to. `known`: by the kernel's index, the CPUs whose
    /// cache of that index has been seen.
    fn caches(
        &self,
        cpu: u32,
        known: &mut [CpuSet; MOST_CACHES],
        parts: &mut Parts,
    ) -> Result<(), TopologyError> {
        let mut before = CpuSet::single(cpu);
        for (index, known) in known.iter_mut().enumerate() {
            if known.contains(cpu) {
                continue;
            }
            let folder = format!("sys/devices/system/cpu/cpu{cpu}/cache/index{index}");
            let Some(kind) = self.text(&format!("{folder}/type")) else { break };
            if kind.trim() == "Instruction" {
                // It belongs to the CPUs of the data cache, which the kernel lists before it.
                known.add(&before);
                continue;
            }
            let level = match self.text(&format!("{folder}/level")).unwrap_or_default().trim() {
                "1" => Level::L1,
                "2" => Level::L2,
                "3" => Level::L3,
                _ => continue,
            };
            let Some(cpus) = self.list(&format!("{folder}/shared_cpu_list"))? else { continue };
            known.add(&cpus);
            before = cpus.clone();
            let bytes = bytes(&self.text(&format!("{folder}/size")).unwrap_or_default());
            let cache = Cache { bytes, unified: kind.trim() == "Unified" };
            parts.objects.push(Object { level, logical: 0, os_index: None, cpus, cache: Some(cache) });
        }
        Ok(())
    }

    /// Packages and cores where sysfs does not describe them: from `/proc/cpuinfo`, where each CPU may name its
    /// package and core; one that does not counts as a core of its own in the one package.
    fn described(&self, parts: &mut Parts) {
        let text = self.text("proc/cpuinfo").unwrap_or_default();
        let described: Vec<Described> = cpuinfo(&text).collect();
        for cpu in parts.cpus.iter() {
            let of_cpu = described.iter().find(|known| known.processor == cpu);
            let package = of_cpu.and_then(|known| known.package);
            let core = of_cpu.and_then(|known| known.core);
            let mates = |same: &dyn Fn(&Described) -> bool| -> CpuSet {
                described.iter().filter(|other| same(other)).map(|other| other.processor).collect()
            };
            let in_package = mates(&|other| other.package == package);
            let in_core = mates(&|other| other.package == package && other.core == core);
            let (in_package, in_core) = match (package, core) {
                (Some(_), Some(_)) => (in_package, in_core),
                (Some(_), None) => (in_package, CpuSet::single(cpu)),
                (None, _) => (parts.cpus.clone(), CpuSet::single(cpu)),
            };
            for (level, os_index, cpus) in
                [(Level::Package, package, in_package), (Level::Core, core, in_core)]
            {
                if cpus.first() == Some(cpu) {
                    parts.objects.push(Object { level, logical: 0, os_index, cpus, cache: None });
                }
            }
        }
    }

    /// NUMA nodes, their memory and distances. A kernel without them has one node with everything.
    fn memory(&self, parts: &mut Parts) -> Result<(), TopologyError> {
        let nodes = self.list("sys/devices/system/node/online")?.unwrap_or_default();
        let mut rows = Vec::new();
        for node in nodes.iter() {
            let folder = format!("sys/devices/system/node/node{node}");
            let Some(cpus) = self.list(&format!("{folder}/cpulist"))? else { continue };
            let bytes = self.text(&format!("{folder}/meminfo")).map_or(0, |text| total_memory(&text));
            parts.memories.push(Memory { node, bytes });
            // The distance to itself is 10; the file is needed only if there are several nodes.
            let row = match nodes.count() {
                1 => Some("10".to_owned()),
                _ => self.text(&format!("{folder}/distance")),
            };
            let row = row.unwrap_or_default();
            rows.push(row.split_whitespace().filter_map(|word| word.parse().ok()).collect::<Vec<u16>>());
            parts.objects.push(numa(node, cpus));
        }
        if parts.memories.is_empty() {
            let bytes = self.text("proc/meminfo").map_or(0, |text| total_memory(&text));
            parts.memories.push(Memory { node: 0, bytes });
            parts.objects.push(numa(0, parts.cpus.clone()));
        }
        // A row has one value for each online node, in their order.
        if rows.iter().all(|row| row.len() == rows.len()) {
            let nodes = parts.memories.iter().map(|memory| memory.node).collect();
            parts.distances = NumaDistances::from_rows(nodes, rows.concat());
        }
        Ok(())
    }

    /// Network and compute devices on PCI. A device that cannot be described is skipped.
    fn devices(&self, parts: &mut Parts) {
        let classes = [
            ("sys/class/net", DeviceKind::Network),
            ("sys/class/infiniband", DeviceKind::OpenFabrics),
            ("sys/class/drm", DeviceKind::Gpu),
        ];
        for (class, kind) in classes {
            let Ok(entries) = fs::read_dir(self.path(class)) else { continue };
            for entry in entries.flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                // A card without a render node only drives a screen.
                if kind == DeviceKind::Gpu && !name.starts_with("renderD") {
                    continue;
                }
                let Ok(target) = fs::read_link(entry.path()) else { continue };
                parts.devices.extend(self.device(kind, name, &target, parts));
            }
        }
        parts.devices.sort_by(|a, b| (&a.pci, a.kind, &a.name).cmp(&(&b.pci, b.kind, &b.name)));
    }

    /// One device, from the target of its entry in a class: `../../devices/pci0000:00/0000:00:03.0/net/eth0`.
    fn device(&self, kind: DeviceKind, name: String, target: &Path, parts: &Parts) -> Option<Device> {
        let (pci, cpus) = self.bus_place(target, &parts.cpus)?;
        let files: &[&str] = match kind {
            DeviceKind::Gpu => &[],
            DeviceKind::Network => &["address"],
            DeviceKind::OpenFabrics => &["node_guid", "sys_image_guid"],
        };
        let entry = format!("sys/{}", target.to_str()?.trim_start_matches("../"));
        let told = files.iter().filter_map(|file| self.text(&format!("{entry}/{file}")));
        let address = told.map(|text| text.trim().to_owned()).collect();
        Some(Device { kind, name, pci, cpus, address })
    }

    /// The PCI function that a class entry leads to, and which of `all` CPUs are near it.
    pub(crate) fn bus_place(&self, target: &Path, all: &CpuSet) -> Option<(PciId, CpuSet)> {
        let mut steps: Vec<&str> = target.to_str()?.trim_start_matches("../").split('/').collect();
        // The last bus address on the way is the device's; the earlier ones are bridges.
        let place = steps.iter().rposition(|step| PciId::from_address(step).is_some())?;
        let mut pci = PciId::from_address(steps[place])?;
        steps.truncate(place + 1);
        let folder = format!("sys/{}", steps.join("/"));
        describe_pci(&mut pci, &self.text(&format!("{folder}/uevent")).unwrap_or_default());
        let near = self.list(&format!("{folder}/local_cpulist")).ok().flatten().unwrap_or_default().and(all);
        Some((pci, if near.is_empty() { all.clone() } else { near }))
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.root.join(below)
    }

    /// A file's text; `None` if it cannot be read, which is normal for any single file.
    pub(crate) fn text(&self, below: &str) -> Option<String> {
        let mut file = File::open(self.path(below)).ok()?;
        let mut text = Vec::new();
        if below.starts_with("sys/") {
            // One read returns the whole content of such a file if it is less than a page. Querying its size and reading to its
            // end would be half of the system calls of a launch.
            let mut page = [0; 4096];
            let count = file.read(&mut page).ok()?;
            text.extend_from_slice(&page[..count]);
            if count < page.len() {
                return String::from_utf8(text).ok();
            }
        }
        file.read_to_end(&mut text).ok()?;
        String::from_utf8(text).ok()
    }

    /// A file with a list of CPUs or nodes; `None` if it does not exist.
    pub(crate) fn list(&self, below: &str) -> Result<Option<CpuSet>, TopologyError> {
        let Some(text) = self.text(below) else { return Ok(None) };
        CpuSet::from_list(&text).map(Some).map_err(|_| TopologyError::Content {
            path: self.path(below),
            what: "a list such as 0-3,8",
            found: text.trim().chars().take(80).collect(),
        })
    }
}

/// The kernel assigns a CPU an index for each of L1d, L1i, L2, L3 and at most one more.
pub(crate) const MOST_CACHES: usize = 6;

fn numa(node: u32, cpus: CpuSet) -> Object {
    Object { level: Level::Numa, logical: 0, os_index: Some(node), cpus, cache: None }
}

/// A size as the cache files write it: `48K`, `2M`.
pub(crate) fn bytes(text: &str) -> u64 {
    let text = text.trim();
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = match text.as_bytes().last() {
        Some(b'K') => 1 << 10,
        Some(b'M') => 1 << 20,
        Some(b'G') => 1 << 30,
        _ => 1,
    };
    digits.parse::<u64>().unwrap_or(0).saturating_mul(unit)
}

/// The `MemTotal` of a `meminfo` file in bytes: `Node 0 MemTotal:  6514900 kB`.
fn total_memory(text: &str) -> u64 {
    let total = text.lines().find_map(|line| line.split_once("MemTotal:"));
    let kilobytes = total.and_then(|(_, rest)| rest.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or(0).saturating_mul(1024)
}

/// Class and ids from a PCI function's `uevent` file.
fn describe_pci(pci: &mut PciId, text: &str) {
    for (key, value) in text.lines().filter_map(|line| line.split_once('=')) {
        let pair = || {
            let (vendor, device) = value.split_once(':')?;
            Some([u16::from_str_radix(vendor, 16).ok()?, u16::from_str_radix(device, 16).ok()?])
        };
        match key {
            // Class, subclass and interface, without leading zeros: 20000 is Ethernet.
            "PCI_CLASS" => pci.class = u32::from_str_radix(value, 16).map_or(0, |class| (class >> 8) as u16),
            "PCI_ID" => pci.ids[..2].copy_from_slice(&pair().unwrap_or_default()),
            "PCI_SUBSYS_ID" => pci.ids[2..].copy_from_slice(&pair().unwrap_or_default()),
            _ => {}
        }
    }
}

/// One processor of `/proc/cpuinfo`.
struct Described {
    processor: u32,
    package: Option<u32>,
    core: Option<u32>,
}

fn cpuinfo(text: &str) -> impl Iterator<Item = Described> + '_ {
    text.split("\n\n").filter_map(|block| {
        let field = |name: &str| {
            let fields = block.lines().filter_map(|line| line.split_once(':'));
            let mut found = fields.filter(|(key, _)| key.trim() == name);
            found.next().and_then(|(_, value)| value.trim().parse::<u32>().ok())
        };
        Some(Described {
            processor: field("processor")?,
            package: field("physical id"),
            core: field("core id"),
        })
    })
}

#[cfg(test)]
pub(crate) mod tests;
