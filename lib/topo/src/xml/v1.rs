//! The format of hwloc 1: a NUMA node encloses the objects with its CPUs. Of several in one place, the first encloses them, and the others
//! follow it without CPUs. There are no kinds of CPUs.

use super::element::{Element, Kind, Sets};
use super::writer::{Attributes, Writer, measures};
use crate::{CpuSet, Topology};

pub(super) fn written(topology: &Topology, machine: &Element) -> String {
    let mut writer = Writer::default();
    writer.line("<?xml version=\"1.0\" encoding=\"UTF-8\"?>");
    writer.line("<!DOCTYPE topology SYSTEM \"hwloc.dtd\">");
    writer.open("topology", Attributes::default());
    writer.open("object", attributes(machine, false));
    contents(&mut writer, machine);
    distances(&mut writer, topology, machine);
    // The machine encloses its memory, and the first memory encloses all the rest.
    match machine.memories.split_first() {
        None => inside(&mut writer, machine),
        Some((first, others)) => {
            open(&mut writer, first);
            inside(&mut writer, machine);
            writer.close("object");
            others.iter().for_each(|other| without_cpus(&mut writer, other));
        }
    }
    writer.close("object");
    writer.close("topology");
    writer.text
}

/// The objects in this one that are not memory.
fn inside(writer: &mut Writer, element: &Element) {
    for child in &element.children {
        match child.memories.split_first() {
            None => object(writer, child),
            Some((first, others)) => {
                let is_grouped = element.children.len() > 1 && !others.is_empty();
                if is_grouped {
                    let mut group = Attributes::default().with("type", "Group");
                    child.sets.iter().for_each(|sets| put_sets(&mut group, sets, false));
                    writer.open("object", group.with("depth", GROUP_DEPTH));
                }
                open(writer, first);
                object(writer, child);
                writer.close("object");
                others.iter().for_each(|other| without_cpus(writer, other));
                if is_grouped {
                    writer.close("object");
                }
            }
        }
    }
    element.devices.iter().for_each(|device| object(writer, device));
}

fn object(writer: &mut Writer, element: &Element) {
    if matches!(element.kind, Kind::Pu) {
        writer.empty("object", attributes(element, false));
        return;
    }
    open(writer, element);
    inside(writer, element);
    writer.close("object");
}

fn open(writer: &mut Writer, element: &Element) {
    writer.open("object", attributes(element, false));
    contents(writer, element);
}

fn without_cpus(writer: &mut Writer, element: &Element) {
    writer.open("object", attributes(element, true));
    contents(writer, element);
    writer.close("object");
}

fn contents(writer: &mut Writer, element: &Element) {
    writer.contents(element);
    if let Some(subtype) = element.subtype {
        writer.fact("Type", subtype);
    }
}

fn attributes(element: &Element, is_without_cpus: bool) -> Attributes {
    let mut attributes = Attributes::default().with("type", type_name(&element.kind));
    if let Some(index) = element.os_index {
        attributes.put("os_index", index);
    }
    element.sets.iter().for_each(|sets| put_sets(&mut attributes, sets, is_without_cpus));
    if let Some(name) = &element.name {
        attributes.put_text("name", name);
    }
    measures(&element.kind, &mut attributes);
    if matches!(element.kind, Kind::Group) {
        attributes.put("depth", GROUP_DEPTH);
    }
    attributes
}

fn put_sets(attributes: &mut Attributes, sets: &Sets, is_without_cpus: bool) {
    let cpus = if is_without_cpus { CpuSet::new() } else { sets.cpus.clone() };
    let cpus = cpus.to_hwloc();
    for set in ["cpuset", "complete_cpuset", "online_cpuset", "allowed_cpuset"] {
        attributes.put(set, &cpus);
    }
    let nodes = sets.nodes.to_hwloc();
    for set in ["nodeset", "complete_nodeset", "allowed_nodeset"] {
        attributes.put(set, &nodes);
    }
}

/// The table of distances, in the order of the NUMA nodes in the document, if each has been written.
fn distances(writer: &mut Writer, topology: &Topology, machine: &Element) {
    let mut nodes = Vec::new();
    let depth = list_memories(machine, 0, &mut nodes);
    let table = topology.distances();
    if nodes.len() < 2 || nodes.len() != table.nodes().len() {
        return;
    }
    let pairs = || nodes.iter().flat_map(|from| nodes.iter().map(|to| table.get(*from, *to)));
    let Some(values) = pairs().collect::<Option<Vec<u16>>>() else { return };
    let attributes = Attributes::default().with("nbobjs", nodes.len()).with("relative_depth", depth);
    writer.open("distances", attributes.with("latency_base", "1.000000"));
    for value in values {
        writer.empty("latency", Attributes::default().with("value", format_args!("{value}.000000")));
    }
    writer.close("distances");
}

/// Adds the kernel's numbers of all memory in this object; returns its greatest depth below the machine.
fn list_memories(element: &Element, depth: u32, nodes: &mut Vec<u32>) -> u32 {
    nodes.extend(element.memories.iter().filter_map(|memory| memory.os_index));
    let own = if element.memories.is_empty() { 0 } else { depth + 1 };
    element.children.iter().map(|child| list_memories(child, depth + 1, nodes)).fold(own, u32::max)
}

/// The nesting depth of a group in hwloc 1; ours are never nested.
const GROUP_DEPTH: u32 = 0;

fn type_name(kind: &Kind) -> &'static str {
    match kind {
        Kind::Machine => "Machine",
        Kind::Package => "Socket",
        Kind::Group => "Group",
        Kind::Numa { .. } => "NUMANode",
        Kind::Cache { .. } => "Cache",
        Kind::Core => "Core",
        Kind::Pu => "PU",
        Kind::Bridge { .. } => "Bridge",
        Kind::Function { .. } => "PCIDev",
        Kind::Device { .. } => "OSDev",
    }
}
