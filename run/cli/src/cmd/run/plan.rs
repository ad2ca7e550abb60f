//! `--dry-run`: shows the map that the node or the running DVM would make, and starts nothing; and `--display`.

use std::sync::Arc;

use phalanx_dvm::map::{AppRequest, JobMap, NodeResources, map_job};
use phalanx_dvm::{JobRequest, Placed};
use phalanx_node::Machine;
use phalanx_topo::Topology;

use crate::args::Display;
use crate::cmd::run::far;
use crate::failure::Failure;
use crate::render::decided::{self, Decided};
use crate::render::{hint, tree};
use crate::resolve::{Here, Hosts, Run};

/// Shows what would be done.
pub(crate) fn dry_run(run: &Run, here: &Here) -> Result<u8, Failure> {
    let Placed { nodes, map } = match &run.far {
        Some(server) => far::dry_run(run, server)?,
        None => without_dvm(run, here)?,
    };
    if !run.voice.quiet && !run.voice.json {
        map.notes.iter().for_each(|note| hint::say(&hint::note(note, false)));
    }
    let mut display = run.display.clone();
    if !display.contains(&Display::Map) {
        display.push(Display::Map);
    }
    crate::cmd::print(&show(&display, &nodes, &map, &run.request, run.voice.json))
}

/// As a DVM of its own would place the job, as far as that is known without starting one.
fn without_dvm(run: &Run, here: &Here) -> Result<Placed, Failure> {
    let topology = match run.topology_root.as_path() {
        root if root.as_os_str() == "/" => Machine::read()?.topology,
        root => {
            Arc::new(Topology::read(root).map_err(|e| Failure::new("cannot read the topology").because(e))?)
        }
    };
    let nodes = nodes(&run.hosts, here, &topology);
    let mut map = make(&run.request, &nodes)?;
    if !run.hosts.fleet.hosts.is_empty() {
        let note = "the hardware of other hosts is not known yet: it is assumed to be like that of this one";
        map.notes.push(note.to_owned());
    }
    Ok(Placed { nodes, map })
}

/// The nodes of a DVM, assuming that all its hosts are alike.
fn nodes(hosts: &Hosts, here: &Here, topology: &Arc<Topology>) -> Vec<NodeResources> {
    let own = NodeResources {
        slots: hosts.slots,
        max_slots: hosts.max_slots,
        launcher: true,
        ..NodeResources::new(here.hostname.clone(), topology.clone())
    };
    let others = hosts.fleet.hosts.iter().map(|host| NodeResources {
        launcher: *host.name == here.hostname,
        slots: host.slots,
        max_slots: host.max_slots,
        ..NodeResources::new(&*host.name, topology.clone())
    });
    hosts.takes_ranks.then_some(own).into_iter().chain(others).collect()
}

/// The map of a request.
fn make(request: &JobRequest, nodes: &[NodeResources]) -> Result<JobMap, Failure> {
    let app = |app: &phalanx_dvm::AppSpec| AppRequest {
        procs: app.procs,
        hosts: app.hosts.clone(),
        policy: app.policy.clone(),
    };
    let apps: Vec<AppRequest> = request.apps.iter().map(app).collect();
    let map = map_job(nodes, &apps, &request.policy)
        .map_err(|e| e.hint().into_iter().fold(Failure::new(e.to_string()), Failure::hint))?;
    request.stdin.check(map.procs.len() as u64).map_err(Failure::new)?;
    Ok(map)
}

/// The parts that `--display` lists, in its order; parts in text are separated by an empty line.
pub(crate) fn show(
    display: &[Display],
    nodes: &[NodeResources],
    map: &JobMap,
    request: &JobRequest,
    as_json: bool,
) -> String {
    let argvs: Vec<Vec<String>> =
        request.apps.iter().map(|app| app.argv.iter().map(|arg| arg.to_string_lossy()).collect()).collect();
    let decided = Decided { nodes, map, argvs: &argvs };
    let mut sections: Vec<String> = Vec::new();
    for what in display {
        match (what, as_json) {
            (Display::Map, false) => sections.push(decided::map(&decided)),
            (Display::Map, true) => sections.push(format!("{}\n", decided::map_json(&decided))),
            (Display::Bindings, false) => sections.push(decided::bindings(&decided)),
            (Display::Bindings, true) => sections.push(format!("{}\n", decided::bindings_json(&decided))),
            (Display::Allocation, false) => sections.push(decided::allocation(nodes)),
            (Display::Allocation, true) => sections.push(format!("{}\n", decided::allocation_json(nodes))),
            (Display::Topology, false) => {
                sections.extend(nodes.iter().map(|node| tree::topology(&node.name, &node.topology)));
            }
            (Display::Topology, true) => {
                let lines =
                    nodes.iter().map(|node| format!("{}\n", tree::topology_json(&node.name, &node.topology)));
                sections.extend(lines);
            }
        }
    }
    sections.join(if as_json { "" } else { "\n" })
}
