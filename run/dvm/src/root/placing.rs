//! The placement of a job's ranks: decided for a job that is to start, and shown on request, before or after.
//!
//! Equal inputs yield equal maps. So only the inputs of a job's map are kept, and the map is made again for each request.

use std::collections::BTreeMap;
use std::net::IpAddr;

use phalanx_topo::CpuSet;

use crate::column::Column;
use crate::hosts::{Host, HostEntry};
use crate::id::NodeId;
use crate::job::{AppSpec, JobRequest};
use crate::map::{AppRequest, NodeResources, Policy, map_job};
use crate::msg::Binding;
use crate::ranges::Ranges;
use crate::report::Placed;
use crate::root::Root;

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
    fn busy_of(&self, index: u32) -> CpuSet {
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

impl Root {
    /// The placement of a job that would start now, and its inputs. The error is for the user.
    pub(super) fn place(&self, job: &JobRequest) -> Result<(Placed, Premises), String> {
        if job.apps.is_empty() || job.apps.iter().any(|app| app.argv.is_empty()) {
            return Err("the job names no program".to_owned());
        }
        let apps = job.apps.iter().map(|app| self.request(app)).collect::<Result<_, _>>()?;
        let (ids, nodes) = self.resources();
        let mut busy: Vec<(u32, CpuSet)> = Vec::new();
        for (index, node) in (0..).zip(&nodes) {
            if busy.last().is_none_or(|(_, before)| *before != node.busy) {
                busy.push((index, node.busy.clone()));
            }
        }
        let premises = Premises {
            nodes: ids.iter().map(|id| id.0).collect(),
            apps,
            policy: job.policy.clone(),
            in_use: nodes.iter().map(|node| node.in_use).collect(),
            busy,
        };
        Ok((map(nodes, &premises)?, premises))
    }

    /// Makes the same map again.
    pub(super) fn place_again(&self, premises: &Premises) -> Result<Placed, String> {
        let node = |(index, number): (u32, u32)| {
            self.resource(NodeId(number), premises.in_use.get(index), premises.busy_of(index))
        };
        map((0..).zip(premises.nodes.iter()).filter_map(node).collect(), premises)
    }

    /// The nodes' numbers and resources, with what other jobs have taken.
    pub(super) fn resources(&self) -> (Vec<NodeId>, Vec<NodeResources>) {
        let mut taken = self.taken();
        let takes_ranks = |node: &NodeId| *node != NodeId::ROOT || self.config.takes_ranks;
        let resource = |node: NodeId| {
            let (in_use, busy) = taken.remove(&node).unwrap_or_default();
            Some((node, self.resource(node, in_use, busy)?))
        };
        self.nodes.living().filter(takes_ranks).filter_map(resource).unzip()
    }

    /// The number of processes on each node, and the CPUs to which they are bound.
    fn taken(&self) -> BTreeMap<NodeId, (u32, CpuSet)> {
        let mut taken: BTreeMap<NodeId, (u32, CpuSet)> = BTreeMap::new();
        for desc in self.jobs.values().map(|job| &job.desc) {
            let cpus_of = |binding: &Binding| CpuSet::from_list(binding.cpuset.as_deref()?).ok();
            let bound: Vec<Option<CpuSet>> = desc.places.bindings.iter().map(cpus_of).collect();
            for rank in 0..desc.size {
                let (procs, cpus) = taken.entry(NodeId(desc.places.node.get(rank))).or_default();
                *procs += 1;
                if let Some(Some(set)) = bound.get(desc.places.binding.get(rank) as usize) {
                    cpus.add(set);
                }
            }
        }
        taken
    }

    /// The resources of a node, with the given use.
    fn resource(&self, node: NodeId, in_use: u32, busy: CpuSet) -> Option<NodeResources> {
        let (report, topology) = self.nodes.look_of(node)?;
        let called = node.0.checked_sub(1).and_then(|at| self.config.called.get(at as usize).cloned());
        Some(NodeResources {
            slots: report.slots,
            max_slots: report.max_slots,
            in_use,
            busy,
            launcher: node == NodeId::ROOT,
            called,
            ..NodeResources::new(&*report.hostname, topology.clone())
        })
    }

    /// The root's host has names that mean another host everywhere else. On command lines `px` itself replaces them.
    fn by_its_name(&self, mut entry: HostEntry) -> HostEntry {
        let is_here = |name: &str| match name.parse::<IpAddr>() {
            Ok(address) => address.is_loopback() || self.config.addresses.contains(&address),
            Err(_) => {
                name.eq_ignore_ascii_case("localhost") || name.eq_ignore_ascii_case("localhost.localdomain")
            }
        };
        if let Host::Name(name) = &mut entry.host
            && is_here(name)
        {
            *name = self.config.hostname.to_string();
        }
        entry
    }

    /// What an app context wants, without the hosts that were left out when the DVM began.
    fn request(&self, app: &AppSpec) -> Result<AppRequest, String> {
        let is_there = |entry: &&HostEntry| match &entry.host {
            Host::Name(name) => !self.nodes.was_left_out(name),
            _ => true,
        };
        let hosts = app.hosts.iter().filter(is_there).cloned();
        let hosts: Vec<HostEntry> = hosts.map(|entry| self.by_its_name(entry)).collect();
        for entry in &hosts {
            if let Host::Name(name) = &entry.host
                && self.nodes.has_lost(name)
            {
                return Err(format!("host {name} was lost"));
            }
        }
        if hosts.is_empty() && !app.hosts.is_empty() {
            return Err("none of the hosts of the job has come up".to_owned());
        }
        Ok(AppRequest { procs: app.procs, hosts, policy: app.policy.clone() })
    }
}

fn map(nodes: Vec<NodeResources>, premises: &Premises) -> Result<Placed, String> {
    let map = map_job(&nodes, &premises.apps, &premises.policy).map_err(|error| match error.hint() {
        Some(hint) => format!("{error}\nhint: {hint}"),
        None => error.to_string(),
    })?;
    Ok(Placed { nodes, map })
}
