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
    /// What other jobs had taken: on the node with this index, and on the following ones up to the next entry.
    taken: Vec<(u32, Taken)>,
}

/// What ranks have taken of a node: see [`NodeResources`].
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Taken {
    pub(super) numbers: Ranges,
    pub(super) doubled: u32,
    pub(super) busy: CpuSet,
}

impl Taken {
    fn on(node: &NodeResources) -> Taken {
        Taken { numbers: node.numbers.clone(), doubled: node.doubled, busy: node.busy.clone() }
    }
}

impl Premises {
    /// `ids`: the numbers of `nodes`.
    pub(super) fn new(
        ids: Ranges,
        nodes: &[NodeResources],
        apps: Vec<AppRequest>,
        policy: Policy,
    ) -> Premises {
        let mut taken: Vec<(u32, Taken)> = Vec::new();
        for (index, node) in (0..).zip(nodes) {
            let here = Taken::on(node);
            if taken.last().is_none_or(|(_, before)| *before != here) {
                taken.push((index, here));
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

    pub(super) fn taken_on(&self, index: u32) -> Taken {
        let after = self.taken.partition_point(|(first, _)| *first <= index);
        let entry = after.checked_sub(1).and_then(|at| self.taken.get(at));
        entry.map(|(_, taken)| taken.clone()).unwrap_or_default()
    }

    /// Whether the job may have more ranks than slots, if its user has said so.
    pub(super) fn oversubscribe(&self) -> Option<bool> {
        self.policy.map.oversubscribe
    }

    /// The policy by which the ranks of this app context were placed.
    pub(super) fn policy_of(&self, app: u32) -> &Policy {
        let own = self.apps.get(app as usize).and_then(|app| app.policy.as_ref());
        own.unwrap_or(&self.policy)
    }

    /// About how many bytes it takes.
    pub(super) fn weight(&self) -> usize {
        let hosts: usize = self.apps.iter().map(|app| size_of_val(&*app.hosts)).sum();
        let spans: usize = self.taken.iter().map(|(_, taken)| taken.numbers.spans().count()).sum();
        size_of::<Premises>() + hosts + size_of_val(&*self.taken) + spans * size_of::<(u32, u32)>()
    }
}
