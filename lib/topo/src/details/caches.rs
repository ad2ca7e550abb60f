//! Caches: number, lines, ways, and the instruction caches.

use std::collections::BTreeMap;

use super::{CacheDetails, Purpose};
use crate::sysfs::{MOST_CACHES, Source, bytes};
use crate::tree::Level;
use crate::{CpuSet, Topology};

impl Source<'_> {
    pub(super) fn cache_details(&self, topology: &Topology) -> Vec<CacheDetails> {
        let mut known: [CpuSet; MOST_CACHES] = Default::default();
        let mut found = Vec::new();
        for cpu in topology.cpus().iter() {
            for (index, known) in known.iter_mut().enumerate().filter(|(_, known)| !known.contains(cpu)) {
                let folder = format!("sys/devices/system/cpu/cpu{cpu}/cache/index{index}");
                let Some(cache) = self.one_cache(&folder, topology) else { break };
                known.add(&cache.cpus);
                found.push(cache);
            }
        }
        self.tell_inclusion(&mut found);
        found
    }

    fn one_cache(&self, folder: &str, topology: &Topology) -> Option<CacheDetails> {
        let text = |name| self.text(&format!("{folder}/{name}"));
        let number = |name| text(name).and_then(|text| text.trim().parse().ok());
        let level = match text("level")?.trim() {
            "1" => Level::L1,
            "2" => Level::L2,
            "3" => Level::L3,
            _ => return None,
        };
        let purpose = match text("type")?.trim() {
            "Instruction" => Purpose::Instructions,
            "Data" => Purpose::Data,
            _ => Purpose::Unified,
        };
        Some(CacheDetails {
            level,
            purpose,
            cpus: self.list(&format!("{folder}/shared_cpu_list")).ok()??.and(topology.cpus()),
            id: number("id"),
            bytes: bytes(&text("size").unwrap_or_default()),
            line: number("coherency_line_size").unwrap_or(0),
            ways: number("ways_of_associativity").unwrap_or(0),
            is_inclusive: None,
        })
    }

    /// The kernel does not report inclusion, but x86 processors do, to any program.
    fn tell_inclusion(&self, caches: &mut [CacheDetails]) {
        let told = if self.is_this_machine() { inclusions() } else { BTreeMap::new() };
        for cache in caches {
            let level = match cache.level {
                Level::L1 => 1,
                Level::L2 => 2,
                _ => 3,
            };
            cache.is_inclusive = told.get(&(level, cache.purpose as u32)).copied();
        }
    }
}

/// Whether a cache is inclusive, by its level and purpose.
#[cfg(target_arch = "x86_64")]
fn inclusions() -> BTreeMap<(u32, u32), bool> {
    use core::arch::x86_64::__cpuid_count as cpuid;
    const INTEL: u32 = 4;
    const AMD: u32 = 0x8000_001d;
    // AMD processors have the leaf if this bit is set.
    let is_amd = cpuid(0x8000_0000, 0).eax >= AMD && cpuid(0x8000_0001, 0).ecx & (1 << 22) != 0;
    let leaf = if is_amd { AMD } else { INTEL };
    if !is_amd && cpuid(0, 0).eax < INTEL {
        return BTreeMap::new();
    }
    let caches = (0..MOST_CACHES as u32).map(|index| cpuid(leaf, index));
    let caches = caches.take_while(|answer| answer.eax & 0x1f != 0);
    // The processor numbers data, instructions, unified from 1.
    caches.map(|answer| (((answer.eax >> 5) & 7, (answer.eax & 0x1f) % 3), answer.edx & 2 != 0)).collect()
}

#[cfg(not(target_arch = "x86_64"))]
fn inclusions() -> BTreeMap<(u32, u32), bool> {
    BTreeMap::new()
}
