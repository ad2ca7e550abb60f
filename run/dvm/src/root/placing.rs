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
use crate::root::premises::{Premises, Taken};

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

/// Those of `ranks`, which have given their slots back, for which there is none now, and the reason.
pub(super) fn without_slot(dvm: &Dvm, job: &RootJob, ranks: &Ranges) -> (Ranges, String) {
    let (mut without, mut why) = (Ranges::new(), String::new());
    let Some(premises) = job.journal.premises().filter(|_| !ranks.is_empty()) else { return (without, why) };
    let places = &job.desc.places;
    let mut taken = taken(dvm, RootJob::has_slot);
    for rank in ranks.iter() {
        let id = NodeId(places.node.get(rank));
        let taken = taken.entry(id).or_default();
        // Nothing is started on a lost node, which has its own result.
        let Some(node) = resource(dvm, id, taken.clone()) else { continue };
        let most = node.most(premises.policy_of(places.app.get(rank)));
        if node.in_use() < most {
            taken.doubled += 1;
            continue;
        }
        without.insert(rank);
        if why.is_empty() {
            let name = &node.name;
            why = format!("the slot was given to another job, and all {most} of {name} are in use");
        }
    }
    (without, why)
}

/// What the ranks on each node have taken.
fn taken(dvm: &Dvm, is_there: impl Fn(&RootJob, u32) -> bool) -> BTreeMap<NodeId, Taken> {
    let mut taken: BTreeMap<NodeId, Taken> = BTreeMap::new();
    for job in dvm.jobs.values() {
        let desc = &job.desc;
        let cpus_of = |binding: &Binding| CpuSet::from_list(binding.cpuset.as_deref()?).ok();
        let bound: Vec<Option<CpuSet>> = desc.places.bindings.iter().map(cpus_of).collect();
        for rank in (0..desc.size).filter(|rank| is_there(job, *rank)) {
            let here = taken.entry(NodeId(desc.places.node.get(rank))).or_default();
            let number = desc.places.node_rank.get(rank);
            here.doubled += u32::from(here.numbers.contains(number));
            here.numbers.insert(number);
            if let Some(Some(set)) = bound.get(desc.places.binding.get(rank) as usize) {
                here.busy.add(set);
            }
        }
    }
    taken
}

/// The resources of a node, with the given use.
fn resource(dvm: &Dvm, node: NodeId, Taken { numbers, doubled, busy }: Taken) -> Option<NodeResources> {
    let (report, topology) = dvm.nodes.look_of(node)?;
    let called = node.0.checked_sub(1).and_then(|at| dvm.config.called.get(at as usize).cloned());
    Some(NodeResources {
        slots: report.slots,
        max_slots: report.max_slots,
        numbers,
        doubled,
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
