//! Kinds of CPUs: their frequencies, and the capacity that the kernel reports for them.

use super::{CpuKind, Fact};
use crate::sysfs::Source;
use crate::{CpuSet, Topology};

/// The measures of one CPU; 0 is unknown.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Strength {
    capacity: u64,
    base: u64,
    max: u64,
}

impl Source<'_> {
    pub(super) fn cpu_kinds(&self, topology: &Topology) -> Vec<CpuKind> {
        let strengths: Vec<(u32, Strength)> =
            topology.cpus().iter().map(|cpu| (cpu, self.strength(cpu))).collect();
        let mut kinds: Vec<(Strength, CpuSet)> = Vec::new();
        for (cpu, mut strength) in strengths.iter().copied() {
            strength.max = common_max(&strengths, strength);
            match kinds.iter_mut().find(|(known, _)| *known == strength) {
                Some((_, cpus)) => cpus.insert(cpu),
                None => kinds.push((strength, CpuSet::single(cpu))),
            }
        }
        kinds.retain(|(strength, _)| *strength != Strength::default());
        kinds.sort_by_key(|(strength, _)| *strength);
        let mut capacities: Vec<u64> = kinds.iter().map(|(strength, _)| strength.capacity).collect();
        capacities.dedup();
        let place = |strength: &Strength| capacities.iter().position(|known| *known == strength.capacity);
        let described = kinds.into_iter().map(|(strength, cpus)| CpuKind {
            efficiency: place(&strength).filter(|_| strength.capacity > 0),
            facts: strength.facts(),
            cpus,
        });
        described.collect()
    }

    fn strength(&self, cpu: u32) -> Strength {
        let number = |name: &str| {
            let text = self.text(&format!("sys/devices/system/cpu/cpu{cpu}/{name}"));
            text.and_then(|text| text.trim().parse().ok()).unwrap_or(0)
        };
        Strength {
            capacity: number("cpu_capacity"),
            base: number("cpufreq/base_frequency") / 1000,
            max: number("cpufreq/cpuinfo_max_freq") / 1000,
        }
    }
}

impl Strength {
    fn facts(self) -> Vec<Fact> {
        let all = [
            ("FrequencyMaxMHz", self.max),
            ("FrequencyBaseMHz", self.base),
            ("LinuxCapacity", self.capacity),
        ];
        let known = all.into_iter().filter(|(_, value)| *value > 0);
        known.map(|(name, value)| Fact { name, value: value.to_string() }).collect()
    }
}

/// The lowest maximum of the CPUs with this base frequency, if the highest is less than a tenth above it: some processors
/// boost a few of their cores a little more, which does not make them another kind.
fn common_max(strengths: &[(u32, Strength)], one: Strength) -> u64 {
    let alike =
        || strengths.iter().map(|(_, other)| other).filter(|other| other.base == one.base && other.max > 0);
    let lowest = alike().map(|other| other.max).min().unwrap_or(0);
    let highest = alike().map(|other| other.max).max().unwrap_or(0);
    if one.base > 0 && one.max > 0 && (highest - lowest) * 10 < lowest { lowest } else { one.max }
}
