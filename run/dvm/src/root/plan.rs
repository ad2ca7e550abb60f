//! The plan of a job: the places of its ranks, and all that the standard requires a host to provide about it.

use std::collections::BTreeMap;
use std::sync::Arc;

use phalanx_spec::{IofChannel, keys};
use phalanx_topo::{CpuSet, Level, Topology};
use phalanx_wire::{InfoList, Kval, Nspace, Text};

use crate::hosts::Slots;
use crate::id::NodeId;
use crate::job::{AppSpec, JobRequest};
use crate::map::{JobMap, NodeResources};
use crate::models;
use crate::msg::{AppDesc, Binding, JobDesc, Places};
use crate::ranges::Ranges;
use crate::report::Placed;
use crate::root::debug;
use crate::root::dvm::Dvm;
use crate::root::lifecycle::{SESSION, reported_ends};
use crate::root::query::names;

/// The description of a job with this placement.
pub(super) fn plan(
    dvm: &Dvm,
    number: u32,
    job: &JobRequest,
    placed: &Placed,
    allocated: &Ranges,
) -> Result<JobDesc, String> {
    let name = format!("{}@{number}", dvm.config.dvm);
    let nspace = Nspace::new(&name).map_err(|error| format!("naming the job {name:?}: {error}"))?;
    let Placed { nodes, map } = placed;
    let ids: Vec<NodeId> = allocated.iter().map(NodeId).collect();
    let id = |index: u32| ids.get(index as usize).copied().unwrap_or(NodeId::ROOT);
    Ok(JobDesc {
        number,
        parent: job.parent.clone(),
        size: map.procs.len() as u32,
        nodes: map.nodes.iter().map(|load| id(load.node).0).collect::<Ranges>(),
        crowded: crowded(map, id),
        places: places(map, nodes, id),
        env: job.env.clone(),
        apps: job.apps.iter().zip(app_sizes(map)).map(|(app, size)| describe(app, size, &job.env)).collect(),
        stdin: job.stdin,
        forward: job.forward.unwrap_or(IofChannel::ALL),
        diag: job.diag,
        on_failure: job.on_failure,
        reported_ends: reported_ends(&job.info),
        kill_after: job.kill_after,
        checkpoint_command: job.checkpoint_command.clone(),
        restart_command: job.restart_command.clone(),
        job: job_values(&nspace, job, map),
        session: session_values(nodes, map),
        allocated: allocated.clone(),
        nspace,
    })
}

/// The values that do not follow from the placement.
fn job_values(nspace: &Nspace, job: &JobRequest, map: &JobMap) -> Arc<[Kval]> {
    let mut values = vec![
        Kval::new(keys::JOBID, nspace.as_str()),
        Kval::new(keys::MAX_PROCS, map.procs.len() as u32),
        Kval::new(keys::SPAWNED, job.parent.is_some()),
        Kval::new(keys::TDIR_RMCLEAN, true),
        Kval::new(keys::HOSTNAME_KEEP_FQDN, true),
    ];
    if let Some(app) = map.apps.first() {
        values.push(Kval::new(keys::MAPBY, app.map.to_string()));
        values.push(Kval::new(keys::RANKBY, app.rank.to_string()));
        values.push(Kval::new(keys::BINDTO, app.bind.to_string()));
    }
    values.extend(job.parent.clone().map(|parent| Kval::new(keys::PARENT_ID, parent)));
    values.extend(job.info.find(names::IGNORED).map(|value| Kval::new(names::IGNORED, value.clone())));
    values.extend(debug::job_values(&job.info));
    values.extend(models::job_values(&app_sizes(map)));
    values.into()
}

fn session_values(nodes: &[NodeResources], map: &JobMap) -> Arc<[Kval]> {
    // Without stated slots, there may be more ranks than CPUs: count at least those that run.
    let slots_of = |node: &NodeResources| match node.slots {
        Slots::Stated(slots) => slots,
        Slots::Unstated | Slots::Mentioned(_) => node.topology.cpus().count(),
    };
    let slots: u32 = nodes.iter().map(slots_of).sum();
    let universe = slots.max(map.procs.len() as u32);
    [
        Kval::new(keys::SESSION_ID, SESSION),
        Kval::new(keys::UNIV_SIZE, universe),
        Kval::new(keys::MAX_PROCS, universe),
        // Libpmix 4.2 looks for it among the session's values. Ranks that do not find it remove the directory with
        // everything in it.
        Kval::new(keys::TDIR_RMCLEAN, true),
        Kval::new(keys::RM_NAME, "phalanx"),
        Kval::new(keys::RM_VERSION, env!("CARGO_PKG_VERSION")),
    ]
    .into()
}

/// The daemons with more ranks than CPUs.
fn crowded(map: &JobMap, id: impl Fn(u32) -> NodeId) -> Ranges {
    map.nodes.iter().filter(|load| load.procs > load.cpus).map(|load| id(load.node).0).collect()
}

/// How many ranks each app context has.
fn app_sizes(map: &JobMap) -> Vec<u32> {
    let mut sizes = vec![0; map.apps.len()];
    for placement in &map.procs {
        if let Some(size) = sizes.get_mut(placement.app as usize) {
            *size += 1;
        }
    }
    sizes
}

/// The key of a binding: equal CPUs on equal hardware.
type Alike = (*const Topology, Option<CpuSet>);

/// The placements as columns. Bindings that are equal on equal hardware are described once.
fn places(map: &JobMap, nodes: &[NodeResources], id: impl Fn(u32) -> NodeId) -> Places {
    let mut known: BTreeMap<Alike, (u32, Option<u32>)> = BTreeMap::new();
    let mut bindings = Vec::new();
    let mut on_package: BTreeMap<(u32, u32), u32> = BTreeMap::new();
    let (mut binding, mut package_rank) = (Vec::new(), Vec::new());
    for placed in &map.procs {
        let topology = nodes.get(placed.node as usize).map(|node| &node.topology);
        // Equal topologies are one object at the root; its address is only compared, and only here.
        let key = (topology.map_or(std::ptr::null(), Arc::as_ptr), placed.cpus.clone());
        let (index, package) = *known.entry(key).or_insert_with(|| {
            bindings.push(describe_binding(topology, placed.cpus.as_ref()));
            (
                bindings.len() as u32 - 1,
                topology.zip(placed.cpus.as_ref()).and_then(|(t, cpus)| package(t, cpus)),
            )
        });
        binding.push(index);
        package_rank.push(package.map_or(0, |package| {
            let count = on_package.entry((placed.node, package)).or_default();
            *count += 1;
            *count
        }));
    }
    Places {
        node: map.procs.iter().map(|placed| id(placed.node).0).collect(),
        app: map.procs.iter().map(|placed| placed.app).collect(),
        app_rank: map.procs.iter().map(|placed| placed.app_rank).collect(),
        local_rank: map.procs.iter().map(|placed| u32::from(placed.local_rank)).collect(),
        node_rank: map.procs.iter().map(|placed| u32::from(placed.node_rank)).collect(),
        package_rank: package_rank.into_iter().collect(),
        binding: binding.into_iter().collect(),
        bindings,
    }
}

fn describe_binding(topology: Option<&Arc<Topology>>, cpus: Option<&CpuSet>) -> Binding {
    // An unbound process has no locality: to Open MPI 5, its mere presence means that the process is bound.
    let locality = topology.zip(cpus).map(|(topology, cpus)| topology.locality_string(cpus).into());
    Binding { cpuset: cpus.map(|cpus| cpus.to_string().into()), locality }
}

/// The package that a process is bound to, if it is just one.
fn package(topology: &Topology, cpus: &CpuSet) -> Option<u32> {
    let mut packages = topology.touching(Level::Package, cpus);
    let first = packages.next()?.logical;
    packages.next().is_none().then_some(first)
}

fn describe(app: &AppSpec, size: u32, env: &[Text]) -> AppDesc {
    let argv: Vec<String> = app.argv.iter().map(Text::to_string_lossy).collect();
    let mut values = vec![Kval::new(keys::APP_ARGV, argv.join(" "))];
    let pwd = |entry: &Text| Some(Text::from_bytes(entry.as_bytes().strip_prefix(b"PWD=")?));
    let cwd = app.cwd.clone().or_else(|| env.iter().find_map(pwd));
    values.extend(cwd.map(|cwd| Kval::new(keys::WDIR, cwd)));
    AppDesc {
        argv: app.argv.clone().into(),
        env: app.env.clone(),
        changes: app.changes.clone(),
        cwd: app.cwd.clone(),
        prefix: app.prefix.clone(),
        values,
        size,
    }
}
