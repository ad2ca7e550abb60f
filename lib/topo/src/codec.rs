//! A topology as bytes, for one daemon to send to another.
//!
//! Numbers are in base 128, least significant first; a CPU set is its ranges, each as the gap before it and its
//! length. Hardware threads and the machine are not sent: they follow from the online CPUs, as all logical numbers
//! follow from the sets. Received data is assembled again, so a decoded topology has the same guarantees as one
//! that was read here, whatever the bytes claim.

use crate::device::{Device, DeviceKind, PciId};
use crate::tree::{Cache, Level, Memory, Object, Parts};
use crate::{CpuSet, MAX_CPUS, NumaDistances, Topology, TopologyError};

/// First bytes: the kind of data, and the version of the format.
const MAGIC: &[u8] = b"topo\x03";

/// How many 64-bit words all CPU sets together may occupy (16 MiB): a few bytes can ask for a large set.
const WORDS: usize = 1 << 21;

const LEVELS: [Level; 6] = [Level::Package, Level::Numa, Level::L3, Level::L2, Level::L1, Level::Core];

impl Topology {
    /// The compact form; the same bytes for equal topologies.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        put_set(&mut out, self.cpus());
        for level in LEVELS {
            put(&mut out, self.objects(level).len() as u64);
            for object in self.objects(level) {
                put_object(&mut out, object);
            }
        }
        put(&mut out, self.memories().len() as u64);
        for memory in self.memories() {
            put(&mut out, memory.node.into());
            put(&mut out, memory.bytes);
        }
        put(&mut out, self.distances().nodes().len() as u64);
        self.distances().nodes().iter().for_each(|node| put(&mut out, (*node).into()));
        self.distances().rows().flatten().for_each(|value| put(&mut out, (*value).into()));
        put(&mut out, self.devices().len() as u64);
        for device in self.devices() {
            put_device(&mut out, device);
        }
        out
    }

    /// Reads the compact form. Memory is bounded by the number of bytes given and a fixed budget.
    pub fn decode(bytes: &[u8]) -> Result<Topology, TopologyError> {
        let mut reader = Reader { bytes, at: 0, words: WORDS };
        for expected in MAGIC {
            if reader.byte()? != *expected {
                return Err(reader.error("not a topology of this version"));
            }
        }
        let mut parts = Parts { cpus: reader.set()?, ..Parts::default() };
        for level in LEVELS {
            for _ in 0..reader.count()? {
                parts.objects.push(reader.object(level)?);
            }
        }
        for _ in 0..reader.count()? {
            parts.memories.push(Memory { node: reader.small()?, bytes: reader.number()? });
        }
        let nodes = (0..reader.count()?).map(|_| reader.small()).collect::<Result<Vec<u32>, _>>()?;
        let width = nodes.len();
        if width * width > bytes.len() {
            return Err(reader.error("a table of distances larger than the message"));
        }
        let values = (0..width * width).map(|_| reader.number().map(|value| value.min(0xffff) as u16));
        let values = values.collect::<Result<Vec<u16>, _>>()?;
        parts.distances = NumaDistances::from_rows(nodes, values);
        for _ in 0..reader.count()? {
            parts.devices.push(reader.device()?);
        }
        if reader.at != bytes.len() {
            return Err(reader.error("bytes after the end"));
        }
        Ok(Topology::assemble(parts))
    }
}

fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    put(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

fn put_set(out: &mut Vec<u8>, set: &CpuSet) {
    put(out, set.ranges().count() as u64);
    let mut next = 0;
    for (first, last) in set.ranges() {
        put(out, (first - next).into());
        put(out, (last - first).into());
        next = last + 1;
    }
}

fn put_object(out: &mut Vec<u8>, object: &Object) {
    put(out, object.os_index.map_or(0, |index| u64::from(index) + 1));
    put_set(out, &object.cpus);
    match object.cache {
        None => put(out, 0),
        Some(cache) => {
            put(out, 1 + u64::from(cache.unified));
            put(out, cache.bytes);
        }
    }
}

fn put_device(out: &mut Vec<u8>, device: &Device) {
    put(out, device.kind.bit());
    put_text(out, &device.name);
    let pci = &device.pci;
    [pci.domain, pci.bus.into(), pci.slot.into(), pci.function.into(), pci.class.into()]
        .into_iter()
        .chain(pci.ids.map(u32::from))
        .for_each(|number| put(out, number.into()));
    put_set(out, &device.cpus);
    put(out, device.address.len() as u64);
    device.address.iter().for_each(|address| put_text(out, address));
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Remainder of [`WORDS`].
    words: usize,
}

impl Reader<'_> {
    fn error(&self, what: &'static str) -> TopologyError {
        TopologyError::Decode { what, at: self.at }
    }

    fn byte(&mut self) -> Result<u8, TopologyError> {
        let byte = self.bytes.get(self.at).ok_or_else(|| self.error("the message ends too early"))?;
        self.at += 1;
        Ok(*byte)
    }

    fn number(&mut self) -> Result<u64, TopologyError> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(self.error("a number of more than 64 bits"))
    }

    fn small(&mut self) -> Result<u32, TopologyError> {
        self.number()?.try_into().map_err(|_| self.error("a number of more than 32 bits"))
    }

    fn narrow(&mut self) -> Result<u16, TopologyError> {
        self.number()?.try_into().map_err(|_| self.error("a number of more than 16 bits"))
    }

    /// A number of items that take at least a byte each.
    fn count(&mut self) -> Result<usize, TopologyError> {
        let count = self.number()?;
        match usize::try_from(count) {
            Ok(count) if count <= self.bytes.len() - self.at => Ok(count),
            _ => Err(self.error("more entries than bytes")),
        }
    }

    fn text(&mut self) -> Result<String, TopologyError> {
        let length = self.count()?;
        let bytes = self.bytes.get(self.at..self.at + length).unwrap_or_default();
        let text = std::str::from_utf8(bytes).map_err(|_| self.error("a text that is not UTF-8"))?;
        self.at += length;
        Ok(text.to_owned())
    }

    fn set(&mut self) -> Result<CpuSet, TopologyError> {
        let mut set = CpuSet::new();
        let mut next = 0u64;
        for _ in 0..self.count()? {
            let first = next.saturating_add(self.number()?);
            let last = first.saturating_add(self.number()?);
            if last >= MAX_CPUS.into() {
                return Err(self.error("a CPU number that is too large"));
            }
            set.insert_range(first as u32, last as u32);
            next = last + 1;
        }
        self.words = match self.words.checked_sub(set.weight()) {
            Some(rest) => rest,
            None => return Err(self.error("more CPU sets than a node can have")),
        };
        Ok(set)
    }

    fn object(&mut self, level: Level) -> Result<Object, TopologyError> {
        let os_index = match self.number()? {
            0 => None,
            index => match u32::try_from(index - 1) {
                Ok(index) => Some(index),
                Err(_) => return Err(self.error("a number of more than 32 bits")),
            },
        };
        let cpus = self.set()?;
        let cache = match self.number()? {
            0 => None,
            kind @ (1 | 2) => Some(Cache { bytes: self.number()?, unified: kind == 2 }),
            _ => return Err(self.error("an unknown kind of cache")),
        };
        Ok(Object { level, logical: 0, os_index, cpus, cache })
    }

    fn device(&mut self) -> Result<Device, TopologyError> {
        let bit = self.number()?;
        let kind = DeviceKind::ALL.into_iter().find(|kind| kind.bit() == bit);
        let kind = kind.ok_or_else(|| self.error("an unknown kind of device"))?;
        let name = self.text()?;
        let pci = PciId {
            domain: self.small()?,
            bus: self.narrow()? as u8,
            slot: self.narrow()? as u8,
            function: self.narrow()? as u8,
            class: self.narrow()?,
            ids: [self.narrow()?, self.narrow()?, self.narrow()?, self.narrow()?],
        };
        let cpus = self.set()?;
        let address = (0..self.count()?).map(|_| self.text()).collect::<Result<_, _>>()?;
        Ok(Device { kind, name, pci, cpus, address })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn large_nodes_stay_small() {
        let topology = Topology::synthetic(2, 4, 2, 8, 2);
        let bytes = topology.encode();
        assert!(bytes.len() < 4096, "{} bytes for 256 CPUs", bytes.len());
        assert_eq!(Topology::decode(&bytes).unwrap(), topology);
    }

    #[test]
    fn hostile_bytes_are_refused() {
        let good = Topology::synthetic(1, 1, 1, 2, 2).encode();
        for end in 0..good.len() {
            assert!(Topology::decode(&good[..end]).is_err(), "cut at {end}");
        }
        assert!(Topology::decode(&[good.as_slice(), &[0]].concat()).is_err());
        // One range per set, each a single very high CPU: the budget must stop it, not the machine's memory.
        let mut greedy = MAGIC.to_vec();
        put_set(&mut greedy, &CpuSet::single(0));
        put(&mut greedy, 50_000);
        for _ in 0..50_000 {
            put(&mut greedy, 0);
            put_set(&mut greedy, &CpuSet::single(MAX_CPUS - 1));
            put(&mut greedy, 0);
        }
        let error = Topology::decode(&greedy).unwrap_err();
        assert!(
            matches!(error, TopologyError::Decode { what: "more CPU sets than a node can have", .. }),
            "{error}"
        );
    }

    proptest! {
        #[test]
        fn round_trips(
            counts in (1u32..3, 1u32..3, 1u32..4, 1u32..5, 1u32..3),
            kept in proptest::collection::vec(any::<bool>(), 64),
        ) {
            let (a, b, c, d, e) = counts;
            let allowed: CpuSet = (0..64).filter(|cpu| kept[*cpu as usize]).collect();
            let topology = Topology::synthetic(a, b, c, d, e).restrict(&allowed);
            let back = Topology::decode(&topology.encode()).unwrap();
            prop_assert_eq!(back.signature(), topology.signature());
            prop_assert_eq!(back, topology);
        }

        #[test]
        fn any_change_is_survived(at in any::<prop::sample::Index>(), byte: u8) {
            let mut bytes = Topology::synthetic(2, 1, 1, 2, 2).encode();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            if let Ok(topology) = Topology::decode(&bytes) {
                let _ = (topology.signature(), topology.to_hwloc_xml(), topology.device_distances(topology.cpus()));
            }
        }

        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = Topology::decode(&[MAGIC, &bytes].concat());
        }
    }
}
