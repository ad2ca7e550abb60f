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
use crate::ranges::Ranges;
use crate::report::Placed;
use crate::root::dvm::Dvm;
use crate::root::jobs::RootJob;
use crate::root::premises::Premises;

/// The placement of a job that would start now, and its inputs. The error is for the user.
pub(super) fn place(dvm: &Dvm, job: &JobRequest) -> Result<(Placed, Premises), String> {
    place_among(dvm, job, RootJob::has_slot)
}

/// Whether the job could be placed if only these ranks of other jobs were there.
pub(super) fn fits_among(dvm: &Dvm, job: &JobRequest, is_there: impl Fn(&RootJob, u32) -> bool) -> bool {
    place_among(dvm, job, is_there).is_ok()
}

fn place_among(
    dvm: &Dvm,
    job: &JobRequest,
    is_there: impl Fn(&RootJob, u32) -> bool,
) -> Result<(Placed, Premises), String> {
    if job.apps.is_empty() || job.apps.iter().any(|app| app.argv.is_empty()) {
        return Err("the job names no program".to_owned());
    }
    let apps = job.apps.iter().map(|app| request(dvm, app)).collect::<Result<_, _>>()?;
    let (ids, nodes) = resources_beside(dvm, is_there);
    let ids = ids.iter().map(|id| id.0).collect();
    let premises = Premises::new(ids, &nodes, apps, job.policy.clone());
    Ok((premises.map(nodes)?, premises))
}

/// Makes the same map again.
pub(super) fn place_again(dvm: &Dvm, premises: &Premises) -> Result<Placed, String> {
    let node = |(index, number): (u32, u32)| resource(dvm, NodeId(number), premises.taken_on(index));
    premises.map((0..).zip(premises.nodes.iter()).filter_map(node).collect())
}

/// The nodes' numbers and resources, with what other jobs have taken.
pub(super) fn resources(dvm: &Dvm) -> (Vec<NodeId>, Vec<NodeResources>) {
    resources_beside(dvm, RootJob::has_slot)
}

fn resources_beside(
    dvm: &Dvm,
    is_there: impl Fn(&RootJob, u32) -> bool,
) -> (Vec<NodeId>, Vec<NodeResources>) {
    let mut taken = taken(dvm, is_there);
    let takes_ranks = |node: &NodeId| *node != NodeId::ROOT || dvm.config.takes_ranks;
    let resource = |node: NodeId| Some((node, resource(dvm, node, taken.remove(&node).unwrap_or_default())?));
    dvm.nodes.living().filter(takes_ranks).filter_map(resource).unzip()
}

/// The numbers of the ranks on each node, and the CPUs to which they are bound.
fn taken(dvm: &Dvm, is_there: impl Fn(&RootJob, u32) -> bool) -> BTreeMap<NodeId, (Ranges, CpuSet)> {
    let mut taken: BTreeMap<NodeId, (Ranges, CpuSet)> = BTreeMap::new();
    for job in dvm.jobs.values() {
        let desc = &job.desc;
        let cpus_of = |binding: &Binding| CpuSet::from_list(binding.cpuset.as_deref()?).ok();
        let bound: Vec<Option<CpuSet>> = desc.places.bindings.iter().map(cpus_of).collect();
        for rank in (0..desc.size).filter(|rank| is_there(job, *rank)) {
            let (numbers, cpus) = taken.entry(NodeId(desc.places.node.get(rank))).or_default();
            numbers.insert(desc.places.node_rank.get(rank));
            if let Some(Some(set)) = bound.get(desc.places.binding.get(rank) as usize) {
                cpus.add(set);
            }
        }
    }
    taken
}

/// The resources of a node, with the given use.
fn resource(dvm: &Dvm, node: NodeId, (numbers, busy): (Ranges, CpuSet)) -> Option<NodeResources> {
    let (report, topology) = dvm.nodes.look_of(node)?;
    let called = node.0.checked_sub(1).and_then(|at| dvm.config.called.get(at as usize).cloned());
    Some(NodeResources {
        slots: report.slots,
        max_slots: report.max_slots,
        numbers,
        busy,
        launcher: report.hostname == dvm.config.hostname,
        called,
        ..NodeResources::new(&*report.hostname, topology.clone())
    })
}

/// The root's host has names that mean another host everywhere else. On command lines `px` itself replaces them.
fn by_its_name(dvm: &Dvm, mut entry: HostEntry) -> HostEntry {
    let is_here = |name: &str| match name.parse::<IpAddr>() {
        Ok(address) => address.is_loopback() || dvm.config.addresses.contains(&address),
        Err(_) => {
            name.eq_ignore_ascii_case("localhost") || name.eq_ignore_ascii_case("localhost.localdomain")
        }
    };
    if let Host::Name(name) = &mut entry.host
        && is_here(name)
    {
        *name = dvm.config.hostname.to_string();
    }
    entry
}

/// What an app context wants, without the hosts that were left out when the DVM began.
fn request(dvm: &Dvm, app: &AppSpec) -> Result<AppRequest, String> {
    let is_there = |entry: &&HostEntry| match &entry.host {
        Host::Name(name) => !dvm.nodes.was_left_out(name),
        _ => true,
    };
    let hosts = app.hosts.iter().filter(is_there).cloned();
    let hosts: Vec<HostEntry> = hosts.map(|entry| by_its_name(dvm, entry)).collect();
    for entry in &hosts {
        if let Host::Name(name) = &entry.host
            && dvm.nodes.has_lost(name)
        {
            return Err(format!("host {name} was lost"));
        }
    }
    if hosts.is_empty() && !app.hosts.is_empty() {
        return Err("none of the hosts of the job has come up".to_owned());
    }
    Ok(AppRequest { procs: app.procs, hosts, policy: app.policy.clone() })
}
