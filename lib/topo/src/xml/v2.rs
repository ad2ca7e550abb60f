//! The format of hwloc 2: memory beside the objects, caches by name, a number for each object.

use super::element::{Element, Kind};
use super::writer::{Attributes, Writer, measures};
use crate::Topology;
use crate::details::{CpuKind, Purpose};

pub(super) fn written(topology: &Topology, machine: &Element, kinds: &[CpuKind]) -> String {
    let mut writer = Writer::default();
    writer.line("<?xml version=\"1.0\" encoding=\"UTF-8\"?>");
    writer.line("<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">");
    writer.open("topology", Attributes::default().with("version", "2.0"));
    object(&mut writer, machine, &mut 0);
    distances(&mut writer, topology);
    for kind in kinds {
        cpu_kind(&mut writer, kind);
    }
    writer.close("topology");
    writer.text
}

/// `serial` is the last number given to an object; hwloc requires distinct numbers above 0.
fn object(writer: &mut Writer, element: &Element, serial: &mut u32) {
    *serial += 1;
    let attributes = attributes(element, *serial);
    if matches!(element.kind, Kind::Pu) {
        writer.empty("object", attributes);
        return;
    }
    writer.open("object", attributes);
    writer.contents(element);
    for inner in element.memories.iter().chain(&element.children).chain(&element.devices) {
        object(writer, inner, serial);
    }
    writer.close("object");
}

fn attributes(element: &Element, serial: u32) -> Attributes {
    let mut attributes = Attributes::default().with("type", type_name(&element.kind));
    if let Some(index) = element.os_index {
        attributes.put("os_index", index);
    }
    if let Some(sets) = &element.sets {
        let is_machine = matches!(element.kind, Kind::Machine);
        let (cpus, nodes) = (sets.cpus.to_hwloc(), sets.nodes.to_hwloc());
        for (set, value) in [("cpuset", cpus), ("nodeset", nodes)] {
            attributes.put(set, &value);
            attributes.put(&format!("complete_{set}"), &value);
            if is_machine {
                attributes.put(&format!("allowed_{set}"), &value);
            }
        }
    }
    attributes.put("gp_index", serial);
    if let Some(name) = &element.name {
        attributes.put_text("name", name);
    }
    if let Some(subtype) = element.subtype {
        attributes.put_text("subtype", subtype);
    }
    measures(&element.kind, &mut attributes);
    if matches!(element.kind, Kind::Group) {
        attributes.put("kind", 1001);
        attributes.put("subkind", 0);
    }
    attributes
}

/// The table of distances, where there is more than one NUMA node.
fn distances(writer: &mut Writer, topology: &Topology) {
    let table = topology.distances();
    let width = table.nodes().len();
    let is_known = |node: &u32| topology.memories().iter().any(|memory| memory.node == *node);
    if width < 2 || !table.nodes().iter().all(is_known) {
        return;
    }
    let join = |numbers: Vec<String>| numbers.join(" ") + " ";
    let nodes = join(table.nodes().iter().map(u32::to_string).collect());
    let values = join(table.rows().flatten().map(u16::to_string).collect());
    // Kind 5: reported by the system, and a latency.
    let attributes = Attributes::default().with("type", "NUMANode").with("nbobjs", width).with("kind", 5);
    writer.open("distances2", attributes.with("name", "NUMALatency").with("indexing", "os"));
    writer.line(&format!("<indexes length=\"{}\">{nodes}</indexes>", nodes.len()));
    writer.line(&format!("<u64values length=\"{}\">{values}</u64values>", values.len()));
    writer.close("distances2");
}

fn cpu_kind(writer: &mut Writer, kind: &CpuKind) {
    let mut attributes = Attributes::default().with("cpuset", kind.cpus.to_hwloc());
    if let Some(efficiency) = kind.efficiency {
        attributes.put("forced_efficiency", efficiency);
    }
    writer.open("cpukind", attributes);
    writer.facts(&kind.facts);
    writer.close("cpukind");
}

fn type_name(kind: &Kind) -> String {
    let name = match kind {
        Kind::Machine => "Machine",
        Kind::Package => "Package",
        Kind::Group => "Group",
        Kind::Numa { .. } => "NUMANode",
        Kind::Cache { level, purpose, .. } => {
            let instructions = if *purpose == Purpose::Instructions { "i" } else { "" };
            return format!("L{level}{instructions}Cache");
        }
        Kind::Core => "Core",
        Kind::Pu => "PU",
        Kind::Bridge { .. } => "Bridge",
        Kind::Function { .. } => "PCIDev",
        Kind::Device { .. } => "OSDev",
    };
    name.to_owned()
}
