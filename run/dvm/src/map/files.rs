//! Placements from files: sequences and rankfiles, already parsed.
//!
//! Turns logical numbers of cores and packages into CPUs of one node.

use std::collections::BTreeMap;
use std::fmt;

use phalanx_topo::{CpuSet, Level, Topology};

use crate::hosts::Host;

/// One entry per rank, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sequence {
    /// The file's name, for messages.
    pub file: String,
    /// In order.
    pub entries: Vec<SequenceEntry>,
}

/// Ranks by their number.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rankfile {
    /// The file's name, for messages.
    pub file: String,
    /// By rank.
    pub ranks: BTreeMap<u32, SequenceEntry>,
}

/// The place of one rank.
#[derive(Clone, Debug, PartialEq)]
pub struct SequenceEntry {
    /// Its node.
    pub host: Host,
    /// Its CPUs; `None`: by `--bind-to`.
    pub cpus: Option<CpuList>,
    /// The line of the file, from 1.
    pub line: u32,
}

/// CPUs by logical numbers; only a topology turns them into CPUs of a node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CpuList {
    /// The union of these.
    pub items: Vec<CpuItem>,
}

/// A part of a [`CpuList`]. All sets are of logical numbers.
#[derive(Clone, Debug, PartialEq)]
pub enum CpuItem {
    /// Cores, or hardware threads where those count as CPUs: `0,2-3`.
    Cpus(CpuSet),
    /// Whole packages: `P0`, `0:*`.
    Packages(CpuSet),
    /// CPUs in packages, counted from each package's first: `1:0-2`.
    InPackages { packages: CpuSet, cpus: CpuSet },
}

impl CpuList {
    /// The CPUs on a node, by the kernel's numbers; the error is the object that the node lacks.
    pub(super) fn resolve(&self, topology: &Topology, unit: Level) -> Result<CpuSet, (Level, u32)> {
        let mut found = CpuSet::new();
        let units = topology.objects(unit);
        let package = |number: u32| {
            let object = topology.objects(Level::Package).get(number as usize);
            object.ok_or((Level::Package, number))
        };
        for item in &self.items {
            match item {
                CpuItem::Cpus(numbers) => {
                    for number in numbers.iter() {
                        found.add(&units.get(number as usize).ok_or((unit, number))?.cpus);
                    }
                }
                CpuItem::Packages(numbers) => {
                    for number in numbers.iter() {
                        found.add(&package(number)?.cpus);
                    }
                }
                CpuItem::InPackages { packages, cpus } => {
                    for outer in packages.iter() {
                        let inside: Vec<_> = topology.touching(unit, &package(outer)?.cpus).collect();
                        for number in cpus.iter() {
                            found.add(&inside.get(number as usize).ok_or((unit, number))?.cpus);
                        }
                    }
                }
            }
        }
        Ok(found)
    }
}

impl fmt::Display for CpuList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, item) in self.items.iter().enumerate() {
            let semicolon = if index == 0 { "" } else { ";" };
            match item {
                CpuItem::Cpus(cpus) => write!(f, "{semicolon}{cpus}")?,
                CpuItem::Packages(packages) => write!(f, "{semicolon}P{packages}")?,
                CpuItem::InPackages { packages, cpus } => write!(f, "{semicolon}{packages}:{cpus}")?,
            }
        }
        Ok(())
    }
}
