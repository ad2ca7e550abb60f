//! The objects nested as in hwloc 2: normal ones inside each other, memory and devices beside those.

use crate::details::{CacheDetails, Details, Fact, FunctionDetails, Pages, Purpose};
use crate::device::{Device, DeviceKind, PciId};
use crate::tree::{Level, Memory, Object};
use crate::{CpuSet, Topology};

/// One object with everything inside it.
pub(super) struct Element {
    pub(super) kind: Kind,
    pub(super) os_index: Option<u32>,
    pub(super) sets: Option<Sets>,
    pub(super) name: Option<String>,
    pub(super) subtype: Option<&'static str>,
    pub(super) facts: Vec<Fact>,
    pub(super) memories: Vec<Element>,
    pub(super) children: Vec<Element>,
    pub(super) devices: Vec<Element>,
}

/// The kind of an element.
pub(super) enum Kind {
    Machine,
    Package,
    /// It exists for the memory that hangs from it; hwloc itself also creates one.
    Group,
    Numa {
        bytes: u64,
        pages: Vec<Pages>,
    },
    Cache {
        level: u32,
        purpose: Purpose,
        bytes: u64,
        line: u32,
        ways: u32,
    },
    Core,
    Pu,
    /// From the processors to a PCI domain, with its first and last bus.
    Bridge {
        domain: u32,
        buses: [u8; 2],
    },
    Function {
        pci: PciId,
        details: FunctionDetails,
    },
    /// hwloc's number for a kind of device.
    Device {
        number: u32,
    },
}

/// The CPUs and the NUMA nodes of an object.
#[derive(Clone)]
pub(super) struct Sets {
    pub(super) cpus: CpuSet,
    pub(super) nodes: CpuSet,
}

impl Element {
    /// The machine and everything in it.
    pub(super) fn machine(topology: &Topology, details: &Details) -> Element {
        let nesting = topology.nesting();
        let nodes = topology.objects(Level::Numa);
        let cpus_of =
            |node| nodes.iter().find(|object| object.os_index == Some(node)).map(|found| &found.cpus);
        let numas = topology.memories().iter();
        let numas = numas.map(|memory| (*memory, cpus_of(memory.node).cloned().unwrap_or_default()));
        let maker =
            Maker { topology, details, nesting, numas: numas.collect(), devices: devices(topology, details) };
        let mut machine = maker.object(0, &topology.objects(Level::Machine)[0]);
        machine.facts.clone_from(&details.machine);
        machine
    }

    fn new(kind: Kind, sets: Option<Sets>) -> Element {
        Element {
            kind,
            os_index: None,
            sets,
            name: None,
            subtype: None,
            facts: Vec::new(),
            memories: Vec::new(),
            children: Vec::new(),
            devices: Vec::new(),
        }
    }

    fn cache(level: u32, sets: Sets, details: &CacheDetails) -> Element {
        let CacheDetails { purpose, bytes, line, ways, .. } = *details;
        let mut element = Element::new(Kind::Cache { level, purpose, bytes, line, ways }, Some(sets));
        element.os_index = details.id;
        let inclusive = details.is_inclusive.map(|yes| u32::from(yes).to_string());
        element.facts.extend(inclusive.map(|value| Fact { name: "Inclusive", value }));
        element
    }
}

/// Makes the elements of one topology.
struct Maker<'a> {
    topology: &'a Topology,
    details: &'a Details,
    /// The nested levels, outermost first.
    nesting: Vec<Level>,
    /// For each NUMA node with or without CPUs: its memory, its CPUs.
    numas: Vec<(Memory, CpuSet)>,
    devices: Vec<OnBus>,
}

impl Maker<'_> {
    /// An object of the nesting at `depth` and everything in it.
    fn object(&self, depth: usize, object: &Object) -> Element {
        let sets = self.sets(&object.cpus, object.level == Level::Machine);
        let mut element = match (object.level, object.cache) {
            (Level::L3 | Level::L2 | Level::L1, Some(cache)) => {
                let level = cache_level(object.level);
                match self.details.cache(object) {
                    Some(details) => Element::cache(level, sets.clone(), details),
                    None => {
                        let purpose = if cache.unified { Purpose::Unified } else { Purpose::Data };
                        let kind = Kind::Cache { level, purpose, bytes: cache.bytes, line: 0, ways: 0 };
                        Element::new(kind, Some(sets.clone()))
                    }
                }
            }
            (level, _) => {
                let mut element = Element::new(plain(level), Some(sets.clone()));
                element.os_index = object.os_index.filter(|_| level != Level::Numa);
                element
            }
        };
        if object.level == Level::Package {
            element.facts = self.details.package(object).to_vec();
        }
        element.memories = self.memories(object);
        element.devices = self.devices(depth, object);
        element.children = self.children(depth + 1, &object.cpus);
        if let Some(cache) = self.details.instructions(object) {
            // It is nested in the data cache with the same CPUs, and takes over that cache's children.
            let mut inner = Element::cache(cache_level(object.level), sets, cache);
            inner.children = std::mem::take(&mut element.children);
            element.children.push(inner);
        }
        element
    }

    /// The objects of the next levels inside `cpus`: of each level those that no outer object has taken.
    fn children(&self, from: usize, cpus: &CpuSet) -> Vec<Element> {
        let mut found: Vec<(usize, &Object)> = Vec::new();
        let mut taken = CpuSet::new();
        for (depth, level) in self.nesting.iter().enumerate().skip(from) {
            for object in self.topology.touching(*level, cpus) {
                let free = object.cpus.is_subset(cpus) && !object.cpus.intersects(&taken);
                if free && self.is_written(object) {
                    taken.add(&object.cpus);
                    found.push((depth, object));
                }
            }
        }
        found.sort_by_key(|(_, object)| object.cpus.first());
        found.into_iter().map(|(depth, object)| self.object(depth, object)).collect()
    }

    /// The NUMA nodes that hang from this object: the outermost below the machine that has their CPUs, otherwise
    /// the machine.
    fn memories(&self, object: &Object) -> Vec<Element> {
        let topology = self.topology;
        let mut found = Vec::new();
        for (memory, cpus) in &self.numas {
            let same = |level: &Level| topology.objects(*level).iter().find(|other| &other.cpus == cpus);
            let home = self.nesting.iter().skip(1).filter_map(same).find(|other| self.is_written(other));
            if home.map_or(object.level != Level::Machine, |home| {
                (home.level, home.logical) != (object.level, object.logical)
            }) {
                continue;
            }
            let near = if cpus.is_empty() { topology.cpus() } else { cpus };
            let sets = Sets { cpus: near.clone(), nodes: CpuSet::single(memory.node) };
            let pages = self.details.pages(memory.node).to_vec();
            let mut element = Element::new(Kind::Numa { bytes: memory.bytes, pages }, Some(sets));
            element.os_index = Some(memory.node);
            found.push(element);
        }
        found
    }

    /// Whether the object has an element: a NUMA node has one in the nesting only if no other object has its CPUs.
    fn is_written(&self, object: &Object) -> bool {
        object.level != Level::Numa || !self.topology.has_twin(object)
    }

    fn sets(&self, cpus: &CpuSet, is_machine: bool) -> Sets {
        let near = |(memory, own): &(Memory, CpuSet)| {
            (own.intersects(cpus) || (own.is_empty() && is_machine)).then_some(memory.node)
        };
        Sets { cpus: cpus.clone(), nodes: self.numas.iter().filter_map(near).collect() }
    }

    /// The devices that hang from this object, behind a bridge for each PCI domain.
    fn devices(&self, depth: usize, object: &Object) -> Vec<Element> {
        let here = self.devices.iter().filter(|device| {
            let home = self.topology.home(&device.cpus, &self.nesting);
            home.level == self.nesting[depth] && home.logical == object.logical
        });
        let here: Vec<&OnBus> = here.collect();
        let domains = here.chunk_by(|a, b| a.pci.domain == b.pci.domain).map(|domain| {
            let (first, last) = (&domain[0].pci, &domain[domain.len() - 1].pci);
            let mut bridge =
                Element::new(Kind::Bridge { domain: first.domain, buses: [first.bus, last.bus] }, None);
            let functions = domain.chunk_by(|a, b| a.pci == b.pci);
            bridge.devices = functions.map(|devices| self.function(devices)).collect();
            bridge
        });
        domains.collect()
    }

    /// One PCI function with its devices.
    fn function(&self, devices: &[&OnBus]) -> Element {
        let pci = devices[0].pci.clone();
        let details = self.details.function(&pci);
        let mut function = Element::new(Kind::Function { pci, details }, None);
        function.devices = devices
            .iter()
            .map(|device| {
                let mut element = Element::new(Kind::Device { number: device.number }, None);
                element.name = Some(device.name.clone());
                element.subtype = device.subtype;
                element.facts.clone_from(&device.facts);
                element
            })
            .collect();
        function
    }
}

/// A device of any kind.
struct OnBus {
    number: u32,
    name: String,
    pci: PciId,
    cpus: CpuSet,
    subtype: Option<&'static str>,
    facts: Vec<Fact>,
}

/// All devices, sorted by bus address and name.
fn devices(topology: &Topology, details: &Details) -> Vec<OnBus> {
    let told = topology.devices().iter().map(|device| OnBus {
        number: match device.kind {
            DeviceKind::Gpu => 1,
            DeviceKind::Network => 2,
            DeviceKind::OpenFabrics => 3,
        },
        name: device.name.clone(),
        pci: device.pci.clone(),
        cpus: device.cpus.clone(),
        subtype: None,
        facts: addresses(device),
    });
    let storage = details.storage.iter().map(|device| OnBus {
        number: 0,
        name: device.name.clone(),
        pci: device.pci.clone(),
        cpus: device.cpus.clone(),
        subtype: device.subtype,
        facts: device.facts.clone(),
    });
    let mut all: Vec<OnBus> = told.chain(storage).collect();
    all.sort_by(|a, b| (&a.pci, a.number, &a.name).cmp(&(&b.pci, b.number, &b.name)));
    all
}

fn addresses(device: &Device) -> Vec<Fact> {
    let names: &[&str] = match device.kind {
        DeviceKind::Gpu => &[],
        DeviceKind::Network => &["Address"],
        DeviceKind::OpenFabrics => &["NodeGUID", "SysImageGUID"],
    };
    names.iter().zip(&device.address).map(|(name, value)| Fact { name, value: value.clone() }).collect()
}

fn cache_level(level: Level) -> u32 {
    match level {
        Level::L3 => 3,
        Level::L2 => 2,
        _ => 1,
    }
}

/// The kind of a level without properties of its own.
fn plain(level: Level) -> Kind {
    match level {
        Level::Machine => Kind::Machine,
        Level::Package => Kind::Package,
        Level::Core => Kind::Core,
        Level::Pu => Kind::Pu,
        Level::Numa | Level::L3 | Level::L2 | Level::L1 => Kind::Group,
    }
}
