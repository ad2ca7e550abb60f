//! What two processes of one node share: as PMIx's bits and as the string that processes exchange.
//!
//! The string (`PMIX_LOCALITY_STRING`) lists for each level the logical numbers of the objects that a process's
//! CPUs touch: `SK0:L30:L20-1:L10-1:CR0-1:HT0-1:NM0`. Servers of the reference implementation send it bare,
//! Open MPI takes every part up to a colon as one level, and OpenPMIx 4 and 5 require the prefix `hwloc:` to
//! compare; so it is written bare and read either way.

use crate::tree::Level;
use crate::{CpuSet, Topology, TopologyError};

/// `PMIX_LOCALITY_SHARE_HWTHREAD`.
pub const SHARE_HWTHREAD: u16 = 0x0001;
/// `PMIX_LOCALITY_SHARE_CORE`.
pub const SHARE_CORE: u16 = 0x0002;
/// `PMIX_LOCALITY_SHARE_L1CACHE`.
pub const SHARE_L1CACHE: u16 = 0x0004;
/// `PMIX_LOCALITY_SHARE_L2CACHE`.
pub const SHARE_L2CACHE: u16 = 0x0008;
/// `PMIX_LOCALITY_SHARE_L3CACHE`.
pub const SHARE_L3CACHE: u16 = 0x0010;
/// `PMIX_LOCALITY_SHARE_PACKAGE`.
pub const SHARE_PACKAGE: u16 = 0x0020;
/// `PMIX_LOCALITY_SHARE_NUMA`.
pub const SHARE_NUMA: u16 = 0x0040;
/// `PMIX_LOCALITY_SHARE_NODE`.
pub const SHARE_NODE: u16 = 0x4000;

/// Level, code in the string, bit; in the order of the string.
const LEVELS: [(Level, &str, u16); 7] = [
    (Level::Package, "SK", SHARE_PACKAGE),
    (Level::L3, "L3", SHARE_L3CACHE),
    (Level::L2, "L2", SHARE_L2CACHE),
    (Level::L1, "L1", SHARE_L1CACHE),
    (Level::Core, "CR", SHARE_CORE),
    (Level::Pu, "HT", SHARE_HWTHREAD),
    (Level::Numa, "NM", SHARE_NUMA),
];

impl Topology {
    /// What two processes bound to `a` and `b` on this node share, as `PMIX_LOCALITY_*` bits. A process without
    /// CPUs of its own reliably shares only the node.
    pub fn locality(&self, a: &CpuSet, b: &CpuSet) -> u16 {
        let meet = |(level, _, bit): &(Level, &str, u16)| {
            let met = self.touching(*level, a).any(|object| object.cpus.intersects(b));
            if met { *bit } else { 0 }
        };
        LEVELS.iter().map(meet).fold(SHARE_NODE, |bits, bit| bits | bit)
    }

    /// The locality string of a process bound to `cpus`. Empty if it is not bound: such a process has no
    /// `PMIX_LOCALITY_STRING`.
    pub fn locality_string(&self, cpus: &CpuSet) -> String {
        let mut text = String::new();
        for (level, code, _) in LEVELS {
            let touched: CpuSet = self.touching(level, cpus).map(|object| object.logical).collect();
            if !touched.is_empty() {
                let colon = if text.is_empty() { "" } else { ":" };
                text.push_str(&format!("{colon}{code}{touched}"));
            }
        }
        text
    }

    /// What two processes of one node share, from their locality strings. Levels that only one of them mentions,
    /// or that are not known here, are not shared.
    pub fn relative_locality(a: &str, b: &str) -> Result<u16, TopologyError> {
        let (a, b) = (parts(a)?, parts(b)?);
        let mut bits = SHARE_NODE;
        for (code, objects) in &a {
            let bit = LEVELS.iter().find(|(_, known, _)| known == code).map_or(0, |(_, _, bit)| *bit);
            if b.iter().any(|(other, theirs)| other == code && theirs.intersects(objects)) {
                bits |= bit;
            }
        }
        Ok(bits)
    }
}

/// Splits a locality string: two characters of code, then a list of numbers, per level.
fn parts(text: &str) -> Result<Vec<(&str, CpuSet)>, TopologyError> {
    let bare = match text.get(..6) {
        Some(prefix) if prefix.eq_ignore_ascii_case("hwloc:") => &text[6..],
        _ => text,
    };
    let part = |part| match str::split_at_checked(part, 2) {
        Some((code, list)) if !list.is_empty() => CpuSet::from_list(list).ok().map(|set| (code, set)),
        _ => None,
    };
    let bad = |part: &str| TopologyError::Locality { text: shortened(text), part: shortened(part) };
    bare.split(':').map(|text| part(text).ok_or_else(|| bad(text))).collect()
}

fn shortened(text: &str) -> String {
    text.chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn strings_name_every_level() {
        let topology = Topology::synthetic(2, 1, 1, 2, 2);
        assert_eq!(topology.locality_string(&"0-1".parse().unwrap()), "SK0:L30:L20:L10:CR0:HT0-1:NM0");
        assert_eq!(topology.locality_string(&"5".parse().unwrap()), "SK1:L31:L22:L12:CR2:HT5:NM1");
        assert_eq!(
            topology.locality_string(&"0,7".parse().unwrap()),
            "SK0-1:L30-1:L20,3:L10,3:CR0,3:HT0,7:NM0-1"
        );
        assert_eq!(topology.locality_string(&CpuSet::new()), "");
    }

    #[test]
    fn strings_of_the_reference_implementation() {
        let both = |a, b| Topology::relative_locality(a, b).unwrap();
        assert_eq!(both("CR0:HT0:NM0", "CR1:HT1:NM0"), SHARE_NODE | SHARE_NUMA);
        assert_eq!(both("hwloc:SK0:L30:CR0", "SK0:L31:CR1"), SHARE_NODE | SHARE_PACKAGE);
        assert_eq!(both("SK0:XX0", "XX0:SK1"), SHARE_NODE);
        for bad in ["", "SK", "SKx", "SK0:", "hwloc:", "S\u{e4}0", "SK0-"] {
            assert!(Topology::relative_locality(bad, "SK0").is_err(), "{bad}");
        }
    }

    fn cpus() -> impl Strategy<Value = CpuSet> {
        proptest::collection::vec(0u32..48, 0..5).prop_map(|cpus| cpus.into_iter().collect())
    }

    proptest! {
        #[test]
        fn both_ways_agree(a in cpus(), b in cpus()) {
            let topology = Topology::synthetic(2, 2, 2, 3, 2);
            let direct = topology.locality(&a, &b);
            prop_assert_eq!(direct, topology.locality(&b, &a));
            if !a.is_empty() && !b.is_empty() {
                let strings = [topology.locality_string(&a), topology.locality_string(&b)];
                prop_assert_eq!(Topology::relative_locality(&strings[0], &strings[1]).unwrap(), direct);
            }
        }

        #[test]
        fn no_string_panics(a in ".{0,30}", b in "[A-Z0-9:,-]{0,30}") {
            let _ = Topology::relative_locality(&a, &b);
            let _ = Topology::relative_locality(&b, &b);
        }
    }
}
