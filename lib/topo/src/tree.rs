//! The objects of one node by level, in the order of a walk through the machine.
//!
//! Owns numbering (logical order is that of a walk through the machine from the outermost level inwards, as in
//! hwloc, not that of the kernel's numbers), restricting to the CPUs that a job may use, and the signature that
//! identifies equal nodes. A topology is plain data: it never changes and never looks anything up, but it remembers
//! where it was read, for the facts that only its XML contains.
//!
//! Comes from [`crate::sysfs`], from another daemon ([`Topology::decode`]) or from [`Topology::synthetic`].

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::{CpuSet, Device, NumaDistances};

/// A kind of object, outermost first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// The whole node.
    Machine,
    /// One processor package, in a socket.
    Package,
    /// CPUs that are near the same memory.
    Numa,
    /// CPUs that share a third-level cache.
    L3,
    /// CPUs that share a second-level cache.
    L2,
    /// CPUs that share a first-level data cache.
    L1,
    /// A core.
    Core,
    /// A hardware thread, which the kernel calls a CPU.
    Pu,
}

impl Level {
    /// All levels, outermost first.
    pub const ALL: [Level; 8] = [
        Level::Machine,
        Level::Package,
        Level::Numa,
        Level::L3,
        Level::L2,
        Level::L1,
        Level::Core,
        Level::Pu,
    ];

    /// The word that users write and read.
    pub const fn name(self) -> &'static str {
        match self {
            Level::Machine => "node",
            Level::Package => "package",
            Level::Numa => "numa",
            Level::L3 => "l3cache",
            Level::L2 => "l2cache",
            Level::L1 => "l1cache",
            Level::Core => "core",
            Level::Pu => "hwthread",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A word that names no [`Level`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownLevel(pub String);

impl fmt::Display for UnknownLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Level::ALL.map(Level::name).join(", ");
        write!(f, "\"{}\" is not a hardware object; known are {names}", self.0)
    }
}

impl std::error::Error for UnknownLevel {}

impl FromStr for Level {
    type Err = UnknownLevel;

    /// The names of [`Level::name`] and the other usual spellings, in any case.
    fn from_str(word: &str) -> Result<Level, UnknownLevel> {
        Ok(match word.to_ascii_lowercase().as_str() {
            "node" | "machine" | "board" => Level::Machine,
            "package" | "socket" | "pkg" => Level::Package,
            "numa" | "numanode" => Level::Numa,
            "l3cache" | "l3" => Level::L3,
            "l2cache" | "l2" => Level::L2,
            "l1cache" | "l1" | "l1dcache" => Level::L1,
            "core" => Level::Core,
            "hwthread" | "pu" | "thread" | "hwt" => Level::Pu,
            _ => return Err(UnknownLevel(word.to_owned())),
        })
    }
}

/// One object of one level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// Its level.
    pub level: Level,
    /// Its number among the objects of its level, from 0.
    pub logical: u32,
    /// The kernel's number: CPU, NUMA node, package or core id (core ids repeat between packages). Caches have
    /// none.
    pub os_index: Option<u32>,
    /// The CPUs in it.
    pub cpus: CpuSet,
    /// The properties of the cache, for the cache levels.
    pub cache: Option<Cache>,
}

/// The properties of a cache; 0 is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cache {
    /// Capacity in bytes.
    pub bytes: u64,
    /// Whether it holds instructions too.
    pub unified: bool,
}

/// The memory of one NUMA node. Nodes without CPUs (high-bandwidth or remote memory) have an entry here and no
/// [`Object`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// The kernel's number of the NUMA node.
    pub node: u32,
    /// Its size in bytes; 0 is unknown.
    pub bytes: u64,
}

/// The hardware of one node, limited to the CPUs that may be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// By [`Level`], each in logical order.
    levels: [Vec<Object>; 8],
    memories: Vec<Memory>,
    distances: NumaDistances,
    devices: Vec<Device>,
    origin: Origin,
}

/// The directory from which a topology was read; none for one from elsewhere. It does not distinguish
/// topologies: all are equal.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origin(pub(crate) Option<PathBuf>);

impl PartialEq for Origin {
    fn eq(&self, _: &Origin) -> bool {
        true
    }
}

impl Eq for Origin {}

/// The results of a reader, in any order; [`Topology::assemble`] sorts and numbers them.
#[derive(Default)]
pub(crate) struct Parts {
    /// Everything except the machine and the hardware threads.
    pub(crate) objects: Vec<Object>,
    pub(crate) cpus: CpuSet,
    pub(crate) memories: Vec<Memory>,
    pub(crate) distances: NumaDistances,
    pub(crate) devices: Vec<Device>,
    pub(crate) origin: Origin,
}

impl Topology {
    /// A regular machine, its CPUs numbered in the order of the walk: for tests and for simulated nodes. Every
    /// core has an L2 and an L1 cache of its own; each count is at least 1.
    pub fn synthetic(
        packages: u32,
        numa_per_package: u32,
        l3_per_numa: u32,
        cores_per_l3: u32,
        pus_per_core: u32,
    ) -> Topology {
        let counts = [packages, numa_per_package, l3_per_numa, cores_per_l3, pus_per_core].map(|n| n.max(1));
        let width = |from: usize| counts[from..].iter().product::<u32>();
        let total = width(0);
        let mut parts = Parts { cpus: CpuSet::range(0, total - 1), ..Parts::default() };
        let steps = [
            (Level::Package, width(1)),
            (Level::Numa, width(2)),
            (Level::L3, width(3)),
            (Level::L2, width(4)),
            (Level::L1, width(4)),
            (Level::Core, width(4)),
        ];
        for (level, width) in steps {
            let cache = match level {
                Level::L3 => Some(Cache { bytes: 32 << 20, unified: true }),
                Level::L2 => Some(Cache { bytes: 1 << 20, unified: true }),
                Level::L1 => Some(Cache { bytes: 32 << 10, unified: false }),
                _ => None,
            };
            for n in 0..total / width {
                let cpus = CpuSet::range(n * width, (n + 1) * width - 1);
                let os_index = cache.is_none().then_some(n);
                parts.objects.push(Object { level, logical: 0, os_index, cpus, cache });
            }
        }
        let nodes = counts[0] * counts[1];
        parts.memories = (0..nodes).map(|node| Memory { node, bytes: 16 << 30 }).collect();
        let package = |node: u32| node / counts[1];
        parts.distances =
            NumaDistances::from_fn((0..nodes).collect(), |a, b| match (a == b, package(a) == package(b)) {
                (true, _) => 10,
                (false, true) => 12,
                (false, false) => 32,
            });
        Topology::assemble(parts)
    }

    /// Numbers the objects that were read. CPUs outside `parts.cpus` are left out, and so are objects without CPUs and those
    /// that share some with an earlier object of their level (firmware that contradicts itself).
    pub(crate) fn assemble(parts: Parts) -> Topology {
        let Parts { objects, cpus, memories, distances, devices, origin } = parts;
        let mut levels: [Vec<Object>; 8] = Default::default();
        let mut taken: [CpuSet; 8] = Default::default();
        for mut object in objects {
            let level = object.level as usize;
            object.cpus = object.cpus.and(&cpus);
            if !object.cpus.is_empty() && !object.cpus.intersects(&taken[level]) {
                taken[level].add(&object.cpus);
                levels[level].push(object);
            }
        }
        let position = walk(&cpus, &levels);
        let pus = cpus.iter().map(|cpu| Object {
            level: Level::Pu,
            logical: 0,
            os_index: Some(cpu),
            cpus: CpuSet::single(cpu),
            cache: None,
        });
        levels[Level::Pu as usize] = pus.collect();
        for level in &mut levels {
            level.sort_by_cached_key(|object| {
                object.cpus.iter().filter_map(|cpu| position.get(cpu as usize)).min().copied()
            });
            level.iter_mut().zip(0..).for_each(|(object, logical)| object.logical = logical);
        }
        let machine = Object { level: Level::Machine, logical: 0, os_index: Some(0), cpus, cache: None };
        levels[Level::Machine as usize] = vec![machine];
        Topology { levels, memories, distances, devices, origin }
    }

    /// The objects of one level in logical order; empty if the node does not report them (a virtual machine may have
    /// no caches). There is always exactly one machine.
    pub fn objects(&self, level: Level) -> &[Object] {
        &self.levels[level as usize]
    }

    /// All hardware threads that are online and, after [`Topology::restrict`], allowed.
    pub fn cpus(&self) -> &CpuSet {
        // `assemble` adds the machine, and nothing removes it.
        &self.levels[Level::Machine as usize][0].cpus
    }

    /// The memory of every NUMA node, by the kernel's numbers.
    pub fn memories(&self) -> &[Memory] {
        &self.memories
    }

    /// The distances between the NUMA nodes.
    pub fn distances(&self) -> &NumaDistances {
        &self.distances
    }

    /// Network and compute devices on a bus, sorted by bus address and name.
    pub fn devices(&self) -> &[Device] {
        &self.devices
    }

    /// The topology that is left when only `allowed` may be used: objects shrink, those without CPUs disappear, and the rest
    /// is renumbered, as hwloc does under an inherited cpuset. Memory and devices stay.
    pub fn restrict(&self, allowed: &CpuSet) -> Topology {
        if self.cpus().is_subset(allowed) {
            return self.clone();
        }
        let kept = self.levels.iter().flatten();
        let kept = kept.filter(|object| !matches!(object.level, Level::Machine | Level::Pu));
        let mut devices = self.devices.clone();
        devices.iter_mut().for_each(|device| device.cpus = device.cpus.and(allowed));
        Topology::assemble(Parts {
            objects: kept.cloned().collect(),
            cpus: self.cpus().and(allowed),
            memories: self.memories.clone(),
            distances: self.distances.clone(),
            devices,
            origin: self.origin.clone(),
        })
    }

    /// The directory to read for the facts that only the XML contains.
    pub(crate) fn origin(&self) -> Option<&Path> {
        self.origin.0.as_deref()
    }

    /// The smallest object that contains all of `set`, the innermost of several; none for the empty set and for
    /// CPUs that this node does not have.
    pub fn covering(&self, set: &CpuSet) -> Option<&Object> {
        let first = set.first()?;
        let covers = |object: &&Object| object.cpus.contains(first) && set.is_subset(&object.cpus);
        let candidates = self.levels.iter().rev().filter_map(|level| level.iter().find(covers));
        candidates.min_by_key(|object| object.cpus.count())
    }

    /// The objects of a level that have a CPU in `set`, in logical order.
    pub fn touching<'a>(&'a self, level: Level, set: &'a CpuSet) -> impl Iterator<Item = &'a Object> + 'a {
        self.objects(level).iter().filter(|object| object.cpus.intersects(set))
    }

    /// The number of objects of each level, outermost first, e.g. `1S:1N:2L3:8L2:8L1:8C:16T`. Levels that the node
    /// does not have are left out.
    pub fn summary(&self) -> String {
        let counted = [
            (Level::Package, "S"),
            (Level::Numa, "N"),
            (Level::L3, "L3"),
            (Level::L2, "L2"),
            (Level::L1, "L1"),
            (Level::Core, "C"),
            (Level::Pu, "T"),
        ];
        let counted = counted.map(|(level, code)| (self.objects(level).len(), code));
        let counted = counted.iter().filter(|(count, _)| *count > 0);
        counted.map(|(count, code)| format!("{count}{code}")).collect::<Vec<_>>().join(":")
    }

    /// Equal for nodes that look the same to mapping, binding and locality: the summary and a hash of
    /// everything except what is specific to one machine (addresses of devices, exact memory sizes). It distinguishes
    /// honest nodes; it proves nothing about a dishonest one.
    pub fn signature(&self) -> String {
        let mut twin = self.clone();
        twin.memories.iter_mut().for_each(|memory| memory.bytes = 0);
        twin.devices.iter_mut().for_each(Device::forget_identity);
        format!("{}-{:016x}", self.summary(), fnv1a(&twin.encode()))
    }
}

/// The position of every CPU in a walk through the machine: CPUs of one object stay together, and objects are ordered
/// by their lowest CPU.
fn walk(cpus: &CpuSet, levels: &[Vec<Object>; 8]) -> Vec<u32> {
    let last = cpus.last().map_or(0, |last| last as usize + 1);
    // NUMA nodes may be larger or smaller than packages and caches: the larger level is entered first.
    let mut order: Vec<&Vec<Object>> = levels.iter().filter(|level| !level.is_empty()).collect();
    order.sort_by_key(|level| std::cmp::Reverse(level.iter().map(|object| object.cpus.count()).max()));
    let mut keys: Vec<Vec<u32>> = vec![Vec::with_capacity(order.len()); last];
    for (depth, level) in order.iter().enumerate() {
        for object in level.iter() {
            let first = object.cpus.first().unwrap_or(0);
            for cpu in object.cpus.iter() {
                if let Some(key) = keys.get_mut(cpu as usize) {
                    key.resize(depth, u32::MAX);
                    key.push(first);
                }
            }
        }
    }
    let mut walked: Vec<u32> = cpus.iter().collect();
    walked.sort_by(|a, b| (&keys[*a as usize], a).cmp(&(&keys[*b as usize], b)));
    let mut position = vec![u32::MAX; last];
    walked.iter().zip(0..).for_each(|(cpu, place)| position[*cpu as usize] = place);
    position
}

fn fnv1a(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests;
