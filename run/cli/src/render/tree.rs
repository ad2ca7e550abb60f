//! A node's hardware as a tree: each object under the smallest one that contains it.

use phalanx_topo::{DeviceKind, Level, Object, Topology};
use serde_json::{Value, json};

use crate::render::words;

/// The tree of one node, hardware threads as part of their core's line.
pub(crate) fn topology(name: &str, topology: &Topology) -> String {
    let memory: u64 = topology.memories().iter().map(|memory| memory.bytes).sum();
    let mut text = format!("{name}: CPUs {}", topology.cpus());
    if memory > 0 {
        text.push_str(&format!(", {} of memory", words::bytes(memory)));
    }
    text.push('\n');
    let mut objects: Vec<&Object> = Level::ALL
        .iter()
        .filter(|level| is_shown(**level))
        .flat_map(|level| topology.objects(*level))
        .collect();
    // In the order of a walk: by first CPU, the larger object first, and among equal ones the outer level.
    objects.sort_by_key(|object| (object.cpus.first(), std::cmp::Reverse(object.cpus.count()), object.level));
    let mut around: Vec<&Object> = Vec::new();
    for object in objects {
        while around.last().is_some_and(|outer| !object.cpus.is_subset(&outer.cpus)) {
            around.pop();
        }
        text.push_str(&"  ".repeat(around.len() + 1));
        text.push_str(&line(object, topology));
        text.push('\n');
        around.push(object);
    }
    for device in topology.devices() {
        text.push_str(&format!("  {} {}", kind(device.kind), device.name));
        if !device.cpus.is_empty() {
            text.push_str(&format!(" near CPUs {}", device.cpus));
        }
        text.push('\n');
    }
    text
}

/// `{"type":"topology","node":...,"objects":[...]}`, the objects of all levels, outermost level first.
pub(crate) fn topology_json(name: &str, topology: &Topology) -> Value {
    let objects = Level::ALL.iter().flat_map(|level| topology.objects(*level)).map(|object| {
        json!({
            "level": object.level.name(),
            "number": object.logical,
            "os_index": object.os_index,
            "cpus": object.cpus.to_string(),
            "cache_bytes": object.cache.map(|cache| cache.bytes).filter(|bytes| *bytes > 0),
        })
    });
    let memories = topology.memories().iter().map(|m| json!({ "numa_node": m.node, "bytes": m.bytes }));
    json!({
        "type": "topology",
        "node": name,
        "summary": topology.summary(),
        "objects": objects.collect::<Vec<_>>(),
        "memories": memories.collect::<Vec<_>>(),
    })
}

fn kind(kind: DeviceKind) -> &'static str {
    match kind {
        DeviceKind::Gpu => "gpu",
        DeviceKind::Network => "network",
        DeviceKind::OpenFabrics => "fabric",
    }
}

/// A first or second level cache adds nothing to its core.
fn is_shown(level: Level) -> bool {
    matches!(level, Level::Package | Level::Numa | Level::L3 | Level::Core)
}

fn line(object: &Object, topology: &Topology) -> String {
    let mut line = format!("{} {}", object.level, object.logical);
    match object.level {
        Level::Numa => {
            let memory = topology.memories().iter().find(|memory| Some(memory.node) == object.os_index);
            if let Some(memory) = memory.filter(|memory| memory.bytes > 0) {
                line.push_str(&format!(" ({})", words::bytes(memory.bytes)));
            }
        }
        Level::Core => line.push_str(&format!(": CPUs {}", object.cpus)),
        _ => {}
    }
    if let Some(cache) = object.cache.filter(|cache| cache.bytes > 0) {
        line.push_str(&format!(" ({})", words::bytes(cache.bytes)));
    }
    line
}

#[cfg(test)]
mod tests;
