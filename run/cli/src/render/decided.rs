//! What was decided about a job, as `--display` and `--dry-run` show it: map, bindings, allocation.

use phalanx_dvm::hosts::Slots;
use phalanx_dvm::map::{JobMap, NodeResources, Placement};
use phalanx_topo::{CpuSet, Level, Topology};
use phalanx_wire::plain;
use serde_json::{Value, json};

use crate::render::table::{Column, Table};
use crate::render::words;

/// A job's map and what it was made from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decided<'a> {
    pub(crate) nodes: &'a [NodeResources],
    pub(crate) map: &'a JobMap,
    /// The command line of each app context.
    pub(crate) argvs: &'a [Vec<String>],
}

impl Decided<'_> {
    fn node(&self, placement: &Placement) -> Option<&NodeResources> {
        self.nodes.get(placement.node as usize)
    }

    fn node_name(&self, placement: &Placement) -> String {
        self.node(placement).map_or_else(|| "?".into(), |node| node.name.clone())
    }

    fn program(&self, placement: &Placement) -> String {
        self.argvs.get(placement.app as usize).and_then(|argv| argv.first()).cloned().unwrap_or_default()
    }
}

/// The place of each rank, and the rule for it.
pub(crate) fn map(decided: &Decided<'_>) -> String {
    let map = decided.map;
    let mut text =
        format!("{} on {}\n", words::count(map.procs.len(), "rank"), words::count(map.nodes.len(), "node"));
    for (app, argv) in map.apps.iter().zip(decided.argvs) {
        text.push_str(&format!(
            "{}: mapped by {}{}, ranked by {}, bound to {}{}\n",
            plain::line(&words::shell_line(argv)),
            app.map,
            if app.span { " across nodes" } else { "" },
            app.rank,
            app.bind,
            if app.pe > 1 { format!(", {} CPUs each", app.pe) } else { String::new() },
        ));
    }
    text.push('\n');
    let mut table = Table::new(&[
        Column::Right("RANK"),
        Column::Left("NODE"),
        Column::Left("CPUS"),
        Column::Left("PROGRAM"),
        Column::Left("RULE"),
    ]);
    for placement in &map.procs {
        table.row([
            placement.rank.to_string(),
            decided.node_name(placement),
            cpus(placement.cpus.as_ref()),
            decided.program(placement),
            placement.rule.to_string(),
        ]);
    }
    text + &table.text()
}

pub(crate) fn map_json(decided: &Decided<'_>) -> Value {
    let map = decided.map;
    let apps = map.apps.iter().zip(decided.argvs).enumerate().map(|(index, (app, argv))| {
        json!({
            "app": index,
            "argv": argv,
            "first_rank": app.first_rank,
            "ranks": app.procs,
            "map_by": app.map.to_string(),
            "span": app.span,
            "rank_by": app.rank.to_string(),
            "bind_to": app.bind.to_string(),
            "cpus_per_rank": app.pe,
            "hwthreads": app.hwthreads,
        })
    });
    let nodes = map.nodes.iter().map(|load| {
        json!({
            "node": decided.nodes.get(load.node as usize).map(|node| &node.name),
            "slots": load.slots,
            "cpus": load.cpus,
            "ranks": load.procs,
            "oversubscribed": load.oversubscribed,
        })
    });
    let procs = map.procs.iter().map(|placement| {
        json!({
            "rank": placement.rank,
            "app": placement.app,
            "app_rank": placement.app_rank,
            "node": decided.node_name(placement),
            "local_rank": placement.local_rank,
            "node_rank": placement.node_rank,
            "cpus": placement.cpus.as_ref().map(CpuSet::to_string),
            "rule": placement.rule.to_string(),
        })
    });
    json!({
        "type": "map",
        "apps": apps.collect::<Vec<_>>(),
        "nodes": nodes.collect::<Vec<_>>(),
        "procs": procs.collect::<Vec<_>>(),
        "notes": map.notes,
    })
}

/// Which CPUs each rank is bound to, with a picture: `[B/././.]` is the first of four cores.
pub(crate) fn bindings(decided: &Decided<'_>) -> String {
    let mut table = Table::new(&[
        Column::Right("RANK"),
        Column::Left("NODE"),
        Column::Left("CPUS"),
        Column::Left("OBJECT"),
        Column::Left("PICTURE"),
    ]);
    for placement in &decided.map.procs {
        let topology = decided.node(placement).map(|node| &*node.topology);
        let bound = placement.cpus.as_ref().zip(topology);
        table.row([
            placement.rank.to_string(),
            decided.node_name(placement),
            cpus(placement.cpus.as_ref()),
            bound.map_or_else(|| "-".into(), |(cpus, topology)| object(cpus, topology)),
            bound.map_or_else(String::new, |(cpus, topology)| picture(cpus, topology)),
        ]);
    }
    table.text()
}

pub(crate) fn bindings_json(decided: &Decided<'_>) -> Value {
    let procs = decided.map.procs.iter().map(|placement| {
        let topology = decided.node(placement).map(|node| &*node.topology);
        let bound = placement.cpus.as_ref().zip(topology);
        json!({
            "rank": placement.rank,
            "node": decided.node_name(placement),
            "cpus": placement.cpus.as_ref().map(CpuSet::to_string),
            "object": bound.map(|(cpus, topology)| object(cpus, topology)),
        })
    });
    json!({ "type": "bindings", "procs": procs.collect::<Vec<_>>() })
}

/// The nodes, and how many ranks each takes.
pub(crate) fn allocation(nodes: &[NodeResources]) -> String {
    let mut table = Table::new(&[
        Column::Left("NODE"),
        Column::Right("SLOTS"),
        Column::Right("MOST"),
        Column::Right("IN USE"),
        Column::Left("CPUS"),
    ]);
    for node in nodes {
        table.row([
            node.name.clone(),
            stated(node.slots).map_or_else(|| "not stated".into(), |slots| slots.to_string()),
            node.max_slots.map_or_else(|| "-".into(), |most| most.to_string()),
            node.in_use().to_string(),
            cpus(Some(node.topology.cpus())),
        ]);
    }
    table.text()
}

pub(crate) fn allocation_json(nodes: &[NodeResources]) -> Value {
    let nodes = nodes.iter().map(|node| {
        json!({
            "node": node.name,
            "slots": stated(node.slots),
            "max_slots": node.max_slots,
            "in_use": node.in_use(),
            "cpus": node.topology.cpus().to_string(),
        })
    });
    json!({ "type": "allocation", "nodes": nodes.collect::<Vec<_>>() })
}

fn stated(slots: Slots) -> Option<u32> {
    match slots {
        Slots::Unstated => None,
        Slots::Mentioned(slots) | Slots::Stated(slots) => Some(slots),
    }
}

fn cpus(cpus: Option<&CpuSet>) -> String {
    cpus.map_or_else(|| "unbound".into(), CpuSet::to_string)
}

/// `core 3`, or the object around CPUs that are not a whole object: `in package 0`.
fn object(cpus: &CpuSet, topology: &Topology) -> String {
    // Of objects with the same CPUs, the most informative comes first; the whole node is never named.
    const TELLING: [Level; 7] =
        [Level::Package, Level::Numa, Level::L3, Level::Core, Level::L2, Level::L1, Level::Pu];
    let whole = TELLING.iter().flat_map(|level| topology.objects(*level)).find(|object| object.cpus == *cpus);
    match (whole, topology.covering(cpus)) {
        (Some(object), _) => format!("{} {}", object.level, object.logical),
        (None, Some(object)) => format!("in {} {}", object.level, object.logical),
        (None, None) => "-".into(),
    }
}

/// Packages in brackets, cores between slashes, a letter for each hardware thread.
fn picture(cpus: &CpuSet, topology: &Topology) -> String {
    let core =
        |core: &CpuSet| core.iter().map(|cpu| if cpus.contains(cpu) { 'B' } else { '.' }).collect::<String>();
    let packages = topology.objects(Level::Package);
    let package = |package: &CpuSet| {
        let cores: Vec<String> = topology.touching(Level::Core, package).map(|c| core(&c.cpus)).collect();
        format!("[{}]", if cores.is_empty() { core(package) } else { cores.join("/") })
    };
    match packages {
        [] => package(topology.cpus()),
        packages => packages.iter().map(|p| package(&p.cpus)).collect(),
    }
}

#[cfg(test)]
mod tests;
