//! A node's hardware as one app context sees it: what `--cpu-set` leaves of it, cut into the CPUs and objects that placing
//! needs. Nodes with the same hardware share one.

use std::sync::Arc;

use phalanx_topo::{CpuSet, Level, Topology};

use super::MapError;
use super::defaults::Settled;
use super::{BindTo, MapBy, NodeResources, Policy};

/// The hardware of one or more nodes.
pub(super) struct Shape {
    pub(super) topology: Arc<Topology>,
    /// The CPUs, in logical order.
    pub(super) units: Vec<CpuSet>,
    pub(super) unit: Level,
    /// The objects to map by; the machine if mapping is not by object.
    pub(super) places: Vec<Part>,
    /// The objects to bind to; none if there are none, or ranks are not bound.
    pub(super) targets: Vec<Part>,
    /// By CPU: the target that it belongs to.
    targets_of: Vec<Option<usize>>,
    /// The packages; a rank of several CPUs should stay within one.
    pub(super) packages: Vec<Part>,
}

/// An object, with the indices of the CPUs in it.
pub(super) struct Part {
    pub(super) cpus: CpuSet,
    pub(super) units: Vec<usize>,
}

impl Shape {
    pub(super) fn new(topology: Arc<Topology>, settled: &Settled) -> Shape {
        let units: Vec<CpuSet> =
            topology.objects(settled.unit).iter().map(|object| object.cpus.clone()).collect();
        let place = match settled.map {
            MapBy::Object(level) | MapBy::PerResource { level, .. } => level,
            _ => Level::Machine,
        };
        let target = match settled.bind {
            BindTo::Object(level) => Some(level),
            BindTo::None => None,
        };
        let places = parts(&topology, &units, place);
        let targets = target.map(|level| parts(&topology, &units, level)).unwrap_or_default();
        let packages = if settled.pe > 1 { parts(&topology, &units, Level::Package) } else { Vec::new() };
        let mut targets_of = vec![None; units.len()];
        for (index, target) in targets.iter().enumerate().rev() {
            target.units.iter().for_each(|unit| targets_of[*unit] = Some(index));
        }
        Shape { topology, units, unit: settled.unit, places, targets, targets_of, packages }
    }

    /// What a rank with this CPU is bound to: the first target that overlaps the CPU, otherwise the CPU itself.
    pub(super) fn target_of(&self, unit: usize) -> &CpuSet {
        match self.targets_of[unit] {
            Some(target) => &self.targets[target].cpus,
            None => &self.units[unit],
        }
    }

    /// How many CPUs are not in `taken`.
    pub(super) fn free(&self, taken: &CpuSet) -> u32 {
        self.units.iter().filter(|unit| !unit.intersects(taken)).count() as u32
    }

    /// How many ranks of `pe` CPUs each fit near the objects to map by, besides what is taken.
    pub(super) fn room(&self, taken: &CpuSet, pe: u32) -> u32 {
        let free =
            |part: &Part| part.units.iter().filter(|unit| !self.units[**unit].intersects(taken)).count();
        self.places.iter().map(|part| free(part) as u32 / pe).sum()
    }
}

fn parts(topology: &Topology, units: &[CpuSet], level: Level) -> Vec<Part> {
    let part = |cpus: &CpuSet| {
        let inside = units.iter().enumerate().filter(|(_, unit)| unit.intersects(cpus));
        Part { cpus: cpus.clone(), units: inside.map(|(index, _)| index).collect() }
    };
    topology.objects(level).iter().map(|object| part(&object.cpus)).collect()
}

/// The topology of every node of `nodes` (indices into `all`) under the policy's `--cpu-set`: the distinct topologies, and for
/// each node the index of its own.
pub(super) fn topologies(
    all: &[NodeResources],
    nodes: impl Iterator<Item = u32>,
    policy: &Policy,
) -> Result<(Vec<Arc<Topology>>, Vec<u32>), MapError> {
    let mut distinct: Vec<Arc<Topology>> = Vec::new();
    let mut known = std::collections::BTreeMap::new();
    let mut own = Vec::new();
    for node in nodes {
        let node = &all[node as usize];
        // The address only recognises shared topologies; the order of the map is never used.
        let place = match known.get(&Arc::as_ptr(&node.topology)) {
            Some(place) => *place,
            None => {
                let place = distinct.len() as u32;
                distinct.push(under(node, policy)?);
                known.insert(Arc::as_ptr(&node.topology), place);
                place
            }
        };
        own.push(place);
    }
    Ok((distinct, own))
}

fn under(node: &NodeResources, policy: &Policy) -> Result<Arc<Topology>, MapError> {
    let Some(cpu_set) = &policy.cpu_set else { return Ok(node.topology.clone()) };
    let left = node.topology.restrict(cpu_set);
    if left.cpus().is_empty() {
        return Err(MapError::EmptyCpuSet {
            node: node.name.clone(),
            cpu_set: cpu_set.to_string(),
            allowed: node.topology.cpus().to_string(),
        });
    }
    Ok(Arc::new(left))
}
