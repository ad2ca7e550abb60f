//! The inputs of a job's map. Equal inputs yield equal maps, so they are kept instead of the map.

use phalanx_topo::CpuSet;

use crate::column::Column;
use crate::map::{AppRequest, NodeResources, Policy, map_job};
use crate::ranges::Ranges;
use crate::report::Placed;

/// The inputs of a job's map, apart from those that stay constant while the DVM lives.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Premises {
    /// The nodes available at the time.
    pub(super) nodes: Ranges,
    apps: Vec<AppRequest>,
    policy: Policy,
    /// The number of ranks of other jobs on each node, in the order of `nodes`.
    in_use: Column,
    /// The CPUs to which those were bound: on the node with this index, and on the following ones up to the next entry.
    busy: Vec<(u32, CpuSet)>,
}

impl Premises {
    /// `ids`: the numbers of `nodes`.
    pub(super) fn new(
        ids: Ranges,
        nodes: &[NodeResources],
        apps: Vec<AppRequest>,
        policy: Policy,
    ) -> Premises {
        let mut busy: Vec<(u32, CpuSet)> = Vec::new();
        for (index, node) in (0..).zip(nodes) {
            if busy.last().is_none_or(|(_, before)| *before != node.busy) {
                busy.push((index, node.busy.clone()));
            }
        }
        let in_use = nodes.iter().map(|node| node.in_use).collect();
        Premises { nodes: ids, apps, policy, in_use, busy }
    }

    /// The map that they give. The error is for the user.
    pub(super) fn map(&self, nodes: Vec<NodeResources>) -> Result<Placed, String> {
        let map = map_job(&nodes, &self.apps, &self.policy).map_err(|error| match error.hint() {
            Some(hint) => format!("{error}\nhint: {hint}"),
            None => error.to_string(),
        })?;
        Ok(Placed { nodes, map })
    }

    pub(super) fn in_use_of(&self, index: u32) -> u32 {
        self.in_use.get(index)
    }

    pub(super) fn busy_of(&self, index: u32) -> CpuSet {
        let after = self.busy.partition_point(|(first, _)| *first <= index);
        let entry = after.checked_sub(1).and_then(|at| self.busy.get(at));
        entry.map(|(_, cpus)| cpus.clone()).unwrap_or_default()
    }

    /// Whether the job may have more ranks than slots, if its user has said so.
    pub(super) fn oversubscribe(&self) -> Option<bool> {
        self.policy.map.oversubscribe
    }

    /// About how many bytes it takes.
    pub(super) fn weight(&self) -> usize {
        let hosts: usize = self.apps.iter().map(|app| size_of_val(&*app.hosts)).sum();
        size_of::<Premises>() + hosts + self.in_use.weight() + size_of_val(&*self.busy)
    }
}
