//! Distances on one node: between NUMA nodes by the firmware's table, to devices by the number of levels
//! to climb.
//!
//! The table (10 for the node itself, larger is farther, no unit) comes from the kernel's `node*/distance` files.
//! Device distances have no unit either; they are counted as in the reference implementation,
//! so that a program that compares them sees the same order under either.

use crate::tree::Level;
use crate::{CpuSet, Device, Object, Topology};

/// Reported by PMIx for an unknown distance.
pub const UNKNOWN_DISTANCE: u16 = u16::MAX;

/// The firmware's table of distances between NUMA nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NumaDistances {
    nodes: Vec<u32>,
    /// Row by row.
    values: Vec<u16>,
}

impl NumaDistances {
    /// A table over `nodes` (the kernel's numbers), filled by `value(from, to)`.
    pub fn from_fn(nodes: Vec<u32>, value: impl Fn(u32, u32) -> u16) -> NumaDistances {
        let values = nodes.iter().flat_map(|from| nodes.iter().map(|to| value(*from, *to))).collect();
        NumaDistances { nodes, values }
    }

    /// A table from its rows, one value for each pair; empty if the size does not fit.
    pub(crate) fn from_rows(nodes: Vec<u32>, values: Vec<u16>) -> NumaDistances {
        if values.len() == nodes.len() * nodes.len() {
            NumaDistances { nodes, values }
        } else {
            NumaDistances::default()
        }
    }

    /// The NUMA nodes in the table, by the kernel's numbers; empty where the kernel has no table.
    pub fn nodes(&self) -> &[u32] {
        &self.nodes
    }

    /// From one NUMA node's CPUs to another's memory.
    pub fn get(&self, from: u32, to: u32) -> Option<u16> {
        let place = |node: u32| self.nodes.iter().position(|known| *known == node);
        self.values.get(place(from)? * self.nodes.len() + place(to)?).copied()
    }

    /// The rows, in the order of [`NumaDistances::nodes`].
    pub fn rows(&self) -> impl Iterator<Item = &[u16]> {
        self.values.chunks(self.nodes.len().max(1))
    }
}

/// The distance from a process to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceDistance<'a> {
    /// The device.
    pub device: &'a Device,
    /// From the nearest of the process's CPUs; [`UNKNOWN_DISTANCE`] where the process has none here.
    pub nearest: u16,
    /// From the farthest of them.
    pub farthest: u16,
}

impl Topology {
    /// The distance of every device from the process bound to `cpus`, in the order of [`Topology::devices`]
    /// (`PMIX_DEVICE_DISTANCES`). The distance to a CPU that shares an object with the device is the height of that object above
    /// the hardware threads; a CPU that shares only the node is farther than any of those.
    pub fn device_distances<'a>(&'a self, cpus: &CpuSet) -> Vec<DeviceDistance<'a>> {
        let nesting = self.nesting();
        let levels = nesting.len() as u16;
        let mine: Vec<u32> = cpus.and(self.cpus()).iter().collect();
        let measure = |device: &'a Device| {
            let home = self.home(&device.cpus, &nesting);
            let distance = |cpu: &u32| match self.shared_depth(*cpu, home, &nesting) {
                0 => levels - 1 + levels,
                depth => levels - depth,
            };
            let all = || mine.iter().map(distance);
            let unknown = || UNKNOWN_DISTANCE;
            DeviceDistance {
                device,
                nearest: all().min().unwrap_or_else(unknown),
                farthest: all().max().unwrap_or_else(unknown),
            }
        };
        self.devices().iter().map(measure).collect()
    }

    /// The levels that are nested in each other on this node, the machine first. NUMA nodes are outside of that
    /// order, as in hwloc 2, and count only where no other object has the same CPUs.
    pub(crate) fn nesting(&self) -> Vec<Level> {
        let widest = |level: &Level| self.objects(*level).iter().map(|object| object.cpus.count()).max();
        let mut levels: Vec<Level> =
            BESIDE_NUMA.into_iter().filter(|level| !self.objects(*level).is_empty()).collect();
        if !self.objects(Level::Numa).iter().all(|numa| self.has_twin(numa)) {
            levels.push(Level::Numa);
        }
        levels.sort_by_key(|level| (std::cmp::Reverse(widest(level)), *level));
        levels.insert(0, Level::Machine);
        levels.push(Level::Pu);
        levels
    }

    /// Whether an object of another level has exactly the CPUs of this NUMA node.
    pub(crate) fn has_twin(&self, numa: &Object) -> bool {
        let twin = |level: &Level| self.objects(*level).iter().any(|object| object.cpus == numa.cpus);
        &numa.cpus == self.cpus() || BESIDE_NUMA.iter().any(twin)
    }

    /// The object that a device near these CPUs hangs from: the outermost with exactly them, otherwise the smallest that contains them.
    pub(crate) fn home(&self, near: &CpuSet, nesting: &[Level]) -> &Object {
        let machine = || &self.objects(Level::Machine)[0];
        let of_level = |level: &Level, cpus: &CpuSet| {
            self.objects(*level).iter().find(|object| cpus.is_subset(&object.cpus))
        };
        let around = nesting.iter().filter_map(|level| of_level(level, near));
        if near.is_empty() {
            return machine();
        }
        // `min_by_key` takes the first of equals, which is the outermost.
        around.min_by_key(|object| object.cpus.count()).unwrap_or_else(machine)
    }

    /// The depth in `nesting` of the innermost object that contains both the CPU and the device's home.
    fn shared_depth(&self, cpu: u32, home: &Object, nesting: &[Level]) -> u16 {
        let depth_of_home = nesting.iter().position(|level| *level == home.level).unwrap_or(0);
        let shares = |level: &Level| {
            self.objects(*level)
                .iter()
                .any(|object| object.cpus.contains(cpu) && home.cpus.is_subset(&object.cpus))
        };
        (0..=depth_of_home).rev().find(|depth| nesting.get(*depth).is_some_and(shares)).unwrap_or(0) as u16
    }
}

/// The levels between the machine and the hardware threads without the NUMA nodes.
const BESIDE_NUMA: [Level; 5] = [Level::Package, Level::L3, Level::L2, Level::L1, Level::Core];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{DeviceKind, PciId};
    use crate::tree::Parts;

    #[test]
    fn table() {
        let topology = Topology::synthetic(2, 2, 1, 2, 1);
        let table = topology.distances();
        assert_eq!(table.nodes(), [0, 1, 2, 3]);
        assert_eq!((table.get(0, 0), table.get(0, 1), table.get(0, 2)), (Some(10), Some(12), Some(32)));
        assert_eq!(table.get(0, 9), None);
        assert_eq!(table.rows().next().unwrap(), [10, 12, 32, 32]);
    }

    #[test]
    fn levels_nest_by_size() {
        let usual = [Level::Machine, Level::Package, Level::L3, Level::L2, Level::L1, Level::Core, Level::Pu];
        assert_eq!(Topology::synthetic(2, 1, 1, 2, 1).nesting(), usual);
        // Two NUMA nodes with two caches each in a package: no other object has their CPUs.
        assert_eq!(
            Topology::synthetic(2, 2, 2, 2, 1).nesting()[..3],
            [Level::Machine, Level::Package, Level::Numa]
        );
    }

    #[test]
    fn devices_are_nearer_inside_their_package() {
        let plain = Topology::synthetic(2, 1, 1, 2, 1);
        let near = |cpus: &str| Device {
            kind: DeviceKind::Network,
            name: "eth0".into(),
            pci: PciId::default(),
            cpus: cpus.parse().unwrap(),
            address: vec![],
        };
        let kept = Level::ALL.iter().filter(|level| !matches!(level, Level::Machine | Level::Pu));
        let topology = Topology::assemble(Parts {
            objects: kept.flat_map(|level| plain.objects(*level)).cloned().collect(),
            cpus: plain.cpus().clone(),
            devices: vec![near("2-3"), near("0-3"), near("")],
            ..Parts::default()
        });
        let at = |cpus: &str| {
            let distances = topology.device_distances(&cpus.parse().unwrap());
            distances.iter().map(|d| (d.nearest, d.farthest)).collect::<Vec<_>>()
        };
        // 7 levels; the package is at depth 1, the hardware threads at 6.
        assert_eq!(at("2"), [(6, 6), (13, 13), (13, 13)]);
        assert_eq!(at("0"), [(13, 13), (13, 13), (13, 13)]);
        assert_eq!(at("1-2"), [(6, 13), (13, 13), (13, 13)]);
        assert_eq!(at("")[0], (UNKNOWN_DISTANCE, UNKNOWN_DISTANCE));
    }
}
