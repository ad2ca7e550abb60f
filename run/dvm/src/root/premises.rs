//! The inputs of a job's map. Equal inputs yield equal maps, so they are kept instead of the map.

use phalanx_topo::CpuSet;

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
    /// The ranks of other jobs, and the CPUs to which they were bound: on the node with this index, and on the following ones
    /// up to the next entry.
    taken: Vec<(u32, (Ranges, CpuSet))>,
}

impl Premises {
    /// `ids`: the numbers of `nodes`.
    pub(super) fn new(
        ids: Ranges,
        nodes: &[NodeResources],
        apps: Vec<AppRequest>,
        policy: Policy,
    ) -> Premises {
        let mut taken: Vec<(u32, (Ranges, CpuSet))> = Vec::new();
        for (index, node) in (0..).zip(nodes) {
            let is_same = |before: &(Ranges, CpuSet)| before.0 == node.numbers && before.1 == node.busy;
            if taken.last().is_none_or(|(_, before)| !is_same(before)) {
                taken.push((index, (node.numbers.clone(), node.busy.clone())));
            }
        }
        Premises { nodes: ids, apps, policy, taken }
    }

    /// The map that they give. The error is for the user.
    pub(super) fn map(&self, nodes: Vec<NodeResources>) -> Result<Placed, String> {
        let map = map_job(&nodes, &self.apps, &self.policy).map_err(|error| match error.hint() {
            Some(hint) => format!("{error}\nhint: {hint}"),
            None => error.to_string(),
        })?;
        Ok(Placed { nodes, map })
    }

    pub(super) fn taken_on(&self, index: u32) -> (Ranges, CpuSet) {
        let after = self.taken.partition_point(|(first, _)| *first <= index);
        let entry = after.checked_sub(1).and_then(|at| self.taken.get(at));
        entry.map(|(_, taken)| taken.clone()).unwrap_or_default()
    }

    /// Whether the job may have more ranks than slots, if its user has said so.
    pub(super) fn oversubscribe(&self) -> Option<bool> {
        self.policy.map.oversubscribe
    }

    /// About how many bytes it takes.
    pub(super) fn weight(&self) -> usize {
        let hosts: usize = self.apps.iter().map(|app| size_of_val(&*app.hosts)).sum();
        let spans: usize = self.taken.iter().map(|(_, (numbers, _))| numbers.spans().count()).sum();
        size_of::<Premises>() + hosts + size_of_val(&*self.taken) + spans * size_of::<(u32, u32)>()
    }
}
