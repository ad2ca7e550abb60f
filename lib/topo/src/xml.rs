//! The node as hwloc 2 XML: what `lstopo -i` reads and what MPI libraries load instead of looking for themselves.
//!
//! Owns the nesting of elements and the names of attributes. It states what was read and nothing else: no
//! storage, no support flags, no words about the system.

use std::fmt::Write;

use crate::device::{Device, DeviceKind};
use crate::tree::{InstructionCache, Level, Memory, Object};
use crate::{CpuSet, Topology};

impl Topology {
    /// The topology in hwloc's XML, version 2.
    pub fn to_hwloc_xml(&self) -> String {
        let mut writer = Writer::new(self);
        writer.line(0, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>");
        writer.line(0, "<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">");
        writer.line(0, "<topology version=\"2.0\">");
        writer.object(1, 0, &self.objects(Level::Machine)[0]);
        writer.distances();
        writer.line(0, "</topology>");
        writer.text
    }
}

struct Writer<'a> {
    topology: &'a Topology,
    /// The nested levels, outermost first.
    nesting: Vec<Level>,
    /// For each NUMA node with or without CPUs: its memory, its CPUs.
    numas: Vec<(Memory, CpuSet)>,
    text: String,
    /// The last number given to an object; hwloc wants them all different and above 0.
    serial: u32,
    /// By the kernel's number of a NUMA node: the number that was given to it.
    numa_serials: Vec<(u32, u32)>,
}

impl<'a> Writer<'a> {
    fn new(topology: &'a Topology) -> Writer<'a> {
        let objects = topology.objects(Level::Numa);
        let cpus_of =
            |node| objects.iter().find(|object| object.os_index == Some(node)).map(|found| &found.cpus);
        let numas = topology
            .memories()
            .iter()
            .map(|memory| (*memory, cpus_of(memory.node).cloned().unwrap_or_default()));
        Writer {
            topology,
            nesting: topology.nesting(),
            numas: numas.collect(),
            text: String::new(),
            serial: 0,
            numa_serials: Vec::new(),
        }
    }

    fn line(&mut self, indent: usize, text: &str) {
        let _ = writeln!(self.text, "{:1$}{text}", "", indent * 2);
    }

    fn next_serial(&mut self) -> u32 {
        self.serial += 1;
        self.serial
    }

    /// An object of the nesting at `depth` and everything in it.
    fn object(&mut self, indent: usize, depth: usize, object: &Object) {
        let serial = self.next_serial();
        let mut attributes = format!("type=\"{}\"", type_name(object.level));
        if let Some(index) = object.os_index.filter(|_| object.level != Level::Numa) {
            let _ = write!(attributes, " os_index=\"{index}\"");
        }
        attributes += &self.sets(&object.cpus, object.level == Level::Machine);
        let _ = write!(attributes, " gp_index=\"{serial}\"");
        if let Some(cache) = object.cache {
            let depth = match object.level {
                Level::L3 => 3,
                Level::L2 => 2,
                _ => 1,
            };
            let kind = if cache.unified { 0 } else { 1 };
            let _ = write!(
                attributes,
                " cache_size=\"{}\" depth=\"{depth}\" cache_linesize=\"{}\" cache_associativity=\"{}\" cache_type=\"{kind}\"",
                cache.bytes, cache.line, cache.ways
            );
        }
        if object.level == Level::Numa {
            // A group that exists for the memory below it, as hwloc itself makes one.
            attributes += " kind=\"1001\" subkind=\"0\"";
        }
        if object.level == Level::Pu {
            self.line(indent, &format!("<object {attributes}/>"));
            return;
        }
        self.line(indent, &format!("<object {attributes}>"));
        self.memories(indent + 1, object);
        match object.cache.and_then(|cache| cache.instructions) {
            Some(cache) => self.inside_instructions(indent + 1, depth, object, cache),
            None => self.children(indent + 1, depth + 1, &object.cpus),
        }
        self.devices(indent + 1, depth, object);
        self.line(indent, "</object>");
    }

    /// The instruction cache below the data cache that has the same CPUs, and what is in both.
    fn inside_instructions(&mut self, indent: usize, depth: usize, data: &Object, cache: InstructionCache) {
        let serial = self.next_serial();
        let sets = self.sets(&data.cpus, false);
        let InstructionCache { bytes, line, ways } = cache;
        self.line(
            indent,
            &format!(
                "<object type=\"L1iCache\"{sets} gp_index=\"{serial}\" cache_size=\"{bytes}\" depth=\"1\" cache_linesize=\"{line}\" cache_associativity=\"{ways}\" cache_type=\"2\">"
            ),
        );
        self.children(indent + 1, depth + 1, &data.cpus);
        self.line(indent, "</object>");
    }

    /// The objects of the next levels inside `cpus`: of each level those that no outer one has taken up.
    fn children(&mut self, indent: usize, from: usize, cpus: &CpuSet) {
        let topology = self.topology;
        let mut found: Vec<(usize, &Object)> = Vec::new();
        let mut taken = CpuSet::new();
        for (depth, level) in self.nesting.iter().enumerate().skip(from) {
            for object in topology.touching(*level, cpus) {
                let free = object.cpus.is_subset(cpus) && !object.cpus.intersects(&taken);
                if free && self.is_written(object) {
                    taken.add(&object.cpus);
                    found.push((depth, object));
                }
            }
        }
        found.sort_by_key(|(_, object)| object.cpus.first());
        for (depth, object) in found {
            self.object(indent, depth, object);
        }
    }

    /// The NUMA nodes that hang from this object: the outermost below the machine that has their CPUs, otherwise
    /// the machine.
    fn memories(&mut self, indent: usize, object: &Object) {
        let topology = self.topology;
        for (memory, cpus) in self.numas.clone() {
            let same = |level: &Level| topology.objects(*level).iter().find(|other| other.cpus == cpus);
            let home = self.nesting.iter().skip(1).filter_map(same).find(|other| self.is_written(other));
            if home.map_or(object.level != Level::Machine, |home| {
                (home.level, home.logical) != (object.level, object.logical)
            }) {
                continue;
            }
            let serial = self.next_serial();
            self.numa_serials.push((memory.node, serial));
            let near = if cpus.is_empty() { topology.cpus() } else { &cpus };
            let nodes = CpuSet::single(memory.node).to_hwloc();
            self.line(
                indent,
                &format!(
                    "<object type=\"NUMANode\" os_index=\"{}\" cpuset=\"{near}\" complete_cpuset=\"{near}\" nodeset=\"{nodes}\" complete_nodeset=\"{nodes}\" gp_index=\"{serial}\" local_memory=\"{}\"/>",
                    memory.node,
                    memory.bytes,
                    near = near.to_hwloc(),
                ),
            );
        }
    }

    /// Whether the object has an element: a NUMA node has one in the nesting only if nothing else has its CPUs.
    fn is_written(&self, object: &Object) -> bool {
        object.level != Level::Numa || !self.topology.has_twin(object)
    }

    /// CPU and node sets as every object carries them.
    fn sets(&self, cpus: &CpuSet, machine: bool) -> String {
        let near = |(memory, own): &(Memory, CpuSet)| {
            (own.intersects(cpus) || (own.is_empty() && machine)).then_some(memory.node)
        };
        let nodes: CpuSet = self.numas.iter().filter_map(near).collect();
        let (cpus, nodes) = (cpus.to_hwloc(), nodes.to_hwloc());
        let mut text = format!(" cpuset=\"{cpus}\" complete_cpuset=\"{cpus}\"");
        if machine {
            let _ = write!(text, " allowed_cpuset=\"{cpus}\"");
        }
        let _ = write!(text, " nodeset=\"{nodes}\" complete_nodeset=\"{nodes}\"");
        if machine {
            let _ = write!(text, " allowed_nodeset=\"{nodes}\"");
        }
        text
    }

    /// The devices that hang from this object, behind a bridge for each PCI domain.
    fn devices(&mut self, indent: usize, depth: usize, object: &Object) {
        let topology = self.topology;
        let nesting = self.nesting.clone();
        let here = topology.devices().iter().filter(|device| {
            let home = topology.home(device, &nesting);
            home.level == nesting[depth] && home.logical == object.logical
        });
        let here: Vec<&Device> = here.collect();
        for domain in here.chunk_by(|a, b| a.pci.domain == b.pci.domain) {
            let (first, last) = (&domain[0].pci, &domain[domain.len() - 1].pci);
            let serial = self.next_serial();
            let buses = format!("{:04x}:[{:02x}-{:02x}]", first.domain, first.bus, last.bus);
            self.line(
                indent,
                &format!("<object type=\"Bridge\" gp_index=\"{serial}\" bridge_type=\"0-1\" depth=\"0\" bridge_pci=\"{buses}\">"),
            );
            for function in domain.chunk_by(|a, b| a.pci == b.pci) {
                self.function(indent + 1, function);
            }
            self.line(indent, "</object>");
        }
    }

    /// One PCI function with its devices.
    fn function(&mut self, indent: usize, devices: &[&Device]) {
        let pci = &devices[0].pci;
        let [vendor, device, subvendor, subdevice] = pci.ids;
        let serial = self.next_serial();
        self.line(
            indent,
            &format!(
                "<object type=\"PCIDev\" gp_index=\"{serial}\" pci_busid=\"{}\" pci_type=\"{:04x} [{vendor:04x}:{device:04x}] [{subvendor:04x}:{subdevice:04x}] {:02x}\" pci_link_speed=\"0.000000\">",
                pci.address(),
                pci.class,
                pci.revision
            ),
        );
        for device in devices {
            let serial = self.next_serial();
            let (kind, names): (u32, &[&str]) = match device.kind {
                DeviceKind::Gpu => (1, &[]),
                DeviceKind::Network => (2, &["Address"]),
                DeviceKind::OpenFabrics => (3, &["NodeGUID", "SysImageGUID"]),
            };
            let name = escaped(&device.name);
            self.line(
                indent + 1,
                &format!(
                    "<object type=\"OSDev\" gp_index=\"{serial}\" name=\"{name}\" osdev_type=\"{kind}\">"
                ),
            );
            for (info, value) in names.iter().zip(&device.address) {
                self.line(indent + 2, &format!("<info name=\"{info}\" value=\"{}\"/>", escaped(value)));
            }
            self.line(indent + 1, "</object>");
        }
        self.line(indent, "</object>");
    }

    /// The table of distances, where there is more than one NUMA node.
    fn distances(&mut self) {
        let table = self.topology.distances();
        let width = table.nodes().len();
        let known = table.nodes().iter().all(|node| self.numa_serials.iter().any(|(known, _)| known == node));
        if width < 2 || !known {
            return;
        }
        let join = |numbers: Vec<String>| (numbers.join(" ") + " ", numbers.len());
        let (nodes, _) = join(table.nodes().iter().map(u32::to_string).collect());
        let (values, _) = join(table.rows().flatten().map(u16::to_string).collect());
        // Kind 5: from the system, and means latency.
        self.line(
            1,
            &format!("<distances2 type=\"NUMANode\" nbobjs=\"{width}\" kind=\"5\" name=\"NUMALatency\" indexing=\"os\">"),
        );
        self.line(2, &format!("<indexes length=\"{}\">{nodes}</indexes>", nodes.len()));
        self.line(2, &format!("<u64values length=\"{}\">{values}</u64values>", values.len()));
        self.line(1, "</distances2>");
    }
}

fn type_name(level: Level) -> &'static str {
    match level {
        Level::Machine => "Machine",
        Level::Package => "Package",
        Level::Numa => "Group",
        Level::L3 => "L3Cache",
        Level::L2 => "L2Cache",
        Level::L1 => "L1Cache",
        Level::Core => "Core",
        Level::Pu => "PU",
    }
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // Control characters have no form in XML 1.0.
            c if c.is_control() => out.push('?'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests;
