//! Facts of a node that only the XML contains: storage, instruction caches, page sizes, names of the system and of the processors.
//!
//! Owns these facts and how to find them for an object of a [`Topology`]. They are read when XML is requested,
//! not at launch: that takes more files than all the rest. Facts whose files are missing are left out.
//!
//! Next stop: [`crate::xml`] attaches them to the objects.

use crate::device::PciId;
use crate::sysfs::Source;
use crate::tree::{Level, Object};
use crate::{CpuSet, Topology};

mod caches;
mod devices;
mod kinds;
mod system;

/// All facts found; none for a topology that was not read here.
#[derive(Debug, Default)]
pub(crate) struct Details {
    /// Facts of the machine.
    pub(crate) machine: Vec<Fact>,
    /// Facts of each package, in logical order.
    packages: Vec<Vec<Fact>>,
    caches: Vec<CacheDetails>,
    /// By the kernel's number of the NUMA node.
    pages: Vec<(u32, Vec<Pages>)>,
    /// Kinds of CPUs, the slowest first.
    pub(crate) kinds: Vec<CpuKind>,
    functions: Vec<(PciId, FunctionDetails)>,
    /// Sorted by bus address and name.
    pub(crate) storage: Vec<Storage>,
}

/// hwloc's name of a fact, and its value here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fact {
    pub(crate) name: &'static str,
    pub(crate) value: String,
}

/// How many pages of one size a NUMA node has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pages {
    pub(crate) size: u64,
    pub(crate) count: u64,
}

/// What a cache holds; the numbers are hwloc's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Unified = 0,
    Data = 1,
    Instructions = 2,
}

/// One cache; 0 is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CacheDetails {
    level: Level,
    pub(crate) purpose: Purpose,
    /// Those that the topology contains.
    cpus: CpuSet,
    pub(crate) id: Option<u32>,
    pub(crate) bytes: u64,
    pub(crate) line: u32,
    pub(crate) ways: u32,
    /// Whether it also holds everything in the caches below it.
    pub(crate) is_inclusive: Option<bool>,
}

/// CPUs of the same kind.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CpuKind {
    pub(crate) cpus: CpuSet,
    /// Its rank among the kinds, if the kernel ranks them.
    pub(crate) efficiency: Option<usize>,
    pub(crate) facts: Vec<Fact>,
}

/// One PCI function.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct FunctionDetails {
    pub(crate) revision: u8,
    /// Gigabytes per second.
    pub(crate) link_speed: f64,
}

/// One block device on a bus.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Storage {
    pub(crate) name: String,
    pub(crate) pci: PciId,
    pub(crate) cpus: CpuSet,
    /// hwloc's word for the kind of storage, if the system reports it.
    pub(crate) subtype: Option<&'static str>,
    pub(crate) facts: Vec<Fact>,
}

impl Details {
    pub(crate) fn of(topology: &Topology) -> Details {
        let Some(root) = topology.origin() else { return Details::default() };
        let source = Source { root };
        let storage = source.storage(topology);
        Details {
            machine: source.machine_facts(),
            packages: source.package_facts(topology),
            caches: source.cache_details(topology),
            pages: source.pages(topology),
            kinds: source.cpu_kinds(topology),
            functions: source.functions(topology, &storage),
            storage,
        }
    }

    pub(crate) fn package(&self, object: &Object) -> &[Fact] {
        self.packages.get(object.logical as usize).map(Vec::as_slice).unwrap_or_default()
    }

    pub(crate) fn pages(&self, node: u32) -> &[Pages] {
        let found = self.pages.iter().find(|(known, _)| *known == node);
        found.map(|(_, pages)| pages.as_slice()).unwrap_or_default()
    }

    /// The details of an object of a cache level.
    pub(crate) fn cache(&self, object: &Object) -> Option<&CacheDetails> {
        self.cache_at(object, |purpose| purpose != Purpose::Instructions)
    }

    /// The instruction cache of the same CPUs.
    pub(crate) fn instructions(&self, object: &Object) -> Option<&CacheDetails> {
        self.cache_at(object, |purpose| purpose == Purpose::Instructions)
    }

    fn cache_at(&self, object: &Object, suits: impl Fn(Purpose) -> bool) -> Option<&CacheDetails> {
        let mut there = self.caches.iter().filter(|cache| cache.level == object.level);
        there.find(|cache| suits(cache.purpose) && cache.cpus == object.cpus)
    }

    pub(crate) fn function(&self, pci: &PciId) -> FunctionDetails {
        let found = self.functions.iter().find(|(known, _)| known == pci);
        found.map(|(_, details)| *details).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
