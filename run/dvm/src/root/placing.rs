//! The placement of a job's ranks: decided for a job that is to start, and shown on request, before or after.
//!
//! Equal inputs yield equal maps. So only the inputs of a job's map are kept, and the map is made again for each request.

use std::collections::BTreeMap;
use std::net::IpAddr;

use phalanx_topo::CpuSet;

use crate::hosts::{Host, HostEntry};
use crate::id::NodeId;
use crate::job::{AppSpec, JobRequest};
use crate::map::{AppRequest, NodeResources};
use crate::msg::Binding;
use crate::report::Placed;
use crate::root::Root;
use crate::root::premises::Premises;

impl Root {
    /// The placement of a job that would start now, and its inputs. The error is for the user.
    pub(super) fn place(&self, job: &JobRequest) -> Result<(Placed, Premises), String> {
        if job.apps.is_empty() || job.apps.iter().any(|app| app.argv.is_empty()) {
            return Err("the job names no program".to_owned());
        }
        let apps = job.apps.iter().map(|app| self.request(app)).collect::<Result<_, _>>()?;
        let (ids, nodes) = self.resources();
        let ids = ids.iter().map(|id| id.0).collect();
        let premises = Premises::new(ids, &nodes, apps, job.policy.clone());
        Ok((premises.map(nodes)?, premises))
    }

    /// Makes the same map again.
    pub(super) fn place_again(&self, premises: &Premises) -> Result<Placed, String> {
        let node = |(index, number): (u32, u32)| {
            self.resource(NodeId(number), premises.in_use_of(index), premises.busy_of(index))
        };
        premises.map((0..).zip(premises.nodes.iter()).filter_map(node).collect())
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
            launcher: report.hostname == self.config.hostname,
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
