//! Job data of a process: keys and values made from the table that the host registered.
//!
//! Levels are kept apart as OpenPMIx's hash store wants them: session, node and app values inside arrays, values of single
//! ranks with their rank, the rest loose. Types are those that MPI libraries read (`pmix.job.size` only as UINT32). Values
//! stated by the host override values derived from the processes.
//!
//! That store takes the name of a node and the number of an app out of their arrays and then finds them no more; it finds
//! them as loose values, which it takes for those of the reader's own node and of the only app.
//!
//! A client receives the data of all ranks of a job of up to 4,096 ranks at once. In larger jobs it receives those of its own node, and asks
//! for the rest. Values that ranks seldom want of each other go only to the rank itself: each value costs a client about a microsecond.

use std::sync::Arc;

use phalanx_spec::{DataType, Rank, keys};
use phalanx_topo::Topology;
use phalanx_wire::cmd::get::OwnerData;
use phalanx_wire::cmd::job_data::JobData;
use phalanx_wire::regex::{nodes_to_raw, nodes_to_regex, ppn_to_regex};
use phalanx_wire::{DataArray, Info, Key, Kval, Nspace, ProcId, Value};

use super::debug::{is_stop, stops_of};
use super::limits::{MAX_RANKS_PLACED, MAX_RANKS_TOLD};
use super::peer::Asker;
use super::registry::{Job, index};
use super::resources::{NodeName, Resources};
use super::topology::NodeTopology;
use super::turn::Cx;
use crate::job::JobNode;

/// What describes a job besides the values its host registered.
#[derive(Debug)]
pub(super) struct Describer {
    /// The server's own name.
    server: ProcId,
    keys: Keys,
    pub(super) resources: Resources,
    pub(super) topology: NodeTopology,
}

/// The keys that occur once per rank, so that a million of them are one allocation each.
#[derive(Debug)]
struct Keys {
    app_rank: Key,
    appnum: Key,
    cpuset: Key,
    global_rank: Key,
    hostname: Key,
    local_rank: Key,
    locality: Key,
    node_id: Key,
    node_rank: Key,
    package_rank: Key,
    parent: Key,
    proc_dir: Key,
    rank: Key,
    reincarnation: Key,
    spawned: Key,
}

impl Default for Keys {
    fn default() -> Keys {
        Keys {
            app_rank: Key::of(keys::APP_RANK),
            appnum: Key::of(keys::APPNUM),
            cpuset: Key::of(keys::CPUSET),
            global_rank: Key::of(keys::GLOBAL_RANK),
            hostname: Key::of(keys::HOSTNAME),
            local_rank: Key::of(keys::LOCAL_RANK),
            locality: Key::of(keys::LOCALITY_STRING),
            node_id: Key::of(keys::NODEID),
            node_rank: Key::of(keys::NODE_RANK),
            package_rank: Key::of(keys::PACKAGE_RANK),
            parent: Key::of(keys::PARENT_ID),
            proc_dir: Key::of(keys::PROCDIR),
            rank: Key::of(keys::RANK),
            reincarnation: Key::of(keys::REINCARNATION),
            spawned: Key::of(keys::SPAWNED),
        }
    }
}

/// Values that a rank gets about itself at once, and about other ranks only on request. For each value it receives, a client
/// searches the list of all known keys: with many ranks that is most of the cost of PMIx_Init.
const OWN: [&str; 6] =
    [keys::RANK, keys::PACKAGE_RANK, keys::REINCARNATION, keys::SPAWNED, keys::PARENT_ID, keys::PROCDIR];

impl Describer {
    pub(super) fn new(server: ProcId, topology: Option<Arc<Topology>>) -> Describer {
        let topology = NodeTopology::new(topology);
        Describer { server, keys: Keys::default(), resources: Resources::default(), topology }
    }

    /// The data that every process of this job starts with; each also gets its [`own_data`](Describer::own_data).
    pub(super) fn shared_data(&self, job: &Job) -> JobData {
        let mut data = self.job_data(job);
        for (_, values) in &mut data.procs {
            values.retain(|kval| !is_own(kval));
        }
        data
    }

    /// Data that only the rank itself gets.
    pub(super) fn own_data(&self, job: &Job, rank: Rank) -> Vec<Kval> {
        self.proc_values(job, rank).into_iter().filter(is_own).collect()
    }

    /// All data of a job and its ranks, except the stops for a debugger, which depend on the requesting rank.
    pub(super) fn job_data(&self, job: &Job) -> JobData {
        let told = |rank: Rank| {
            let all = self.proc_values(job, rank);
            if job.size() <= MAX_RANKS_TOLD || job.is_local(rank) {
                return Some((rank, all));
            }
            let place = all.into_iter().filter(|v| v.key == keys::HOSTNAME || v.key == keys::NODEID);
            (job.size() <= MAX_RANKS_PLACED).then(|| (rank, place.collect()))
        };
        let procs = ranks(job).filter_map(told).collect();
        JobData { nspace: job.info().nspace.clone(), values: self.job_values(job), procs }
    }

    /// For a process without a job: a tool is alone in its namespace.
    pub(super) fn lone_job_data(&self, nspace: &Nspace) -> JobData {
        let mut values = vec![
            Kval::new(keys::NSPACE, nspace.as_str()),
            Kval::new(keys::JOBID, nspace.as_str()),
            Kval::new(keys::JOB_SIZE, 1u32),
            Kval::new(keys::MAX_PROCS, 1u32),
        ];
        values.extend(self.server_values());
        overlay(&mut values, self.resources.values());
        JobData { nspace: nspace.clone(), values, procs: Vec::new() }
    }

    /// The same and the stops, for a process of another job, in the form of an answer to a get: ranks as arrays.
    pub(super) fn job_as_owner(&self, job: &Job, asker: Option<&ProcId>) -> OwnerData {
        let data = self.job_data(job);
        let mut values = data.values;
        values.extend(stops_of(job, asker));
        for (rank, proc) in data.procs {
            let rank = Info { key: self.keys.rank.clone(), flags: Default::default(), value: rank.into() };
            let rest = proc.into_iter().filter(|kval| kval.key != keys::RANK).map(as_info);
            let array = DataArray::of_infos(std::iter::once(rank).chain(rest));
            values.push(Kval::new(keys::PROC_INFO_ARRAY, array));
        }
        OwnerData { owner: ProcId::all(&data.nspace), values }
    }

    /// The job, session, node and app levels.
    fn job_values(&self, job: &Job) -> Vec<Kval> {
        let info = job.info();
        let mut by_node = vec![Vec::new(); info.nodes.len()];
        let mut by_app = vec![(0u32, Rank::INVALID); info.apps.len()];
        for (rank, proc) in ranks(job).zip(info.procs.iter()) {
            if let Some(on_node) = at_mut(&mut by_node, proc.node) {
                on_node.push(rank);
            }
            if let Some((size, leader)) = at_mut(&mut by_app, proc.app) {
                *size += 1;
                *leader = (*leader).min(rank);
            }
        }
        let mut values = self.loose_values(job);
        values.retain(|kval| !is_stop(kval.key.as_str()));
        values.push(session_array(job));
        for (node, on_node) in (0u32..).zip(&by_node) {
            values.extend(self.node_array(job, node, on_node));
        }
        for (app, (size, leader)) in (0u32..).zip(&by_app) {
            values.extend(app_array(job, app, *size, *leader));
        }
        values.extend(maps(job, &by_node));
        values.extend(self.own_values(job));
        values
    }

    /// Values of our own node, and of the only app, that clients do not find in the arrays.
    fn own_values(&self, job: &Job) -> Vec<Kval> {
        let mut values = Vec::new();
        if let Some(node) = job.own_node() {
            values.push(Kval { key: self.keys.hostname.clone(), value: (&*node.name).into() });
            values.push(Kval { key: self.keys.node_id.clone(), value: node.id.into() });
            values.extend(own_directories(job));
        }
        if job.info().apps.len() == 1 {
            values.push(Kval { key: self.keys.appnum.clone(), value: 0u32.into() });
        }
        values
    }

    /// The values of the job itself.
    pub(super) fn loose_values(&self, job: &Job) -> Vec<Kval> {
        let info = job.info();
        let size = count(job.size());
        let names: Vec<Arc<str>> = info.nodes.iter().map(|node| node.name).collect();
        let mut values = vec![
            Kval::new(keys::NSPACE, info.nspace.as_str()),
            Kval::new(keys::JOBID, info.nspace.as_str()),
            Kval::new(keys::JOB_SIZE, size),
            Kval::new(keys::MAX_PROCS, size),
            Kval::new(keys::JOB_NUM_APPS, count(info.apps.len())),
            Kval::new(keys::NUM_NODES, count(info.nodes.len())),
            Kval::new(keys::NODE_LIST, names.join(",")),
            Kval::new(keys::NPROC_OFFSET, Rank(0)),
        ];
        values.extend(self.server_values());
        overlay(&mut values, self.resources.values());
        overlay(&mut values, &info.job);
        values
    }

    /// The identity of this server.
    fn server_values(&self) -> [Kval; 2] {
        let me = &self.server;
        [Kval::new(keys::SERVER_NSPACE, me.nspace.as_str()), Kval::new(keys::SERVER_RANK, me.rank)]
    }

    /// `pmix.node.arr` of one node. `on_node`: the ranks there, in order.
    pub(super) fn node_array(&self, job: &Job, node: u32, on_node: &[Rank]) -> Option<Kval> {
        let described = job.node(node)?;
        let size = count(on_node.len());
        let peers: Vec<String> = on_node.iter().map(|rank| rank.0.to_string()).collect();
        let mut values = vec![
            Kval { key: self.keys.hostname.clone(), value: (&*described.name).into() },
            Kval { key: self.keys.node_id.clone(), value: described.id.into() },
            Kval::new(keys::HOSTNAME_ALIASES, aliases(&described.name, job.info().here == Some(node))),
            Kval::new(keys::NODE_SIZE, size),
            Kval::new(keys::LOCAL_SIZE, size),
            Kval::new(keys::LOCAL_PEERS, peers.join(",")),
        ];
        if let Some(leader) = on_node.first() {
            values.push(Kval::new(keys::LOCALLDR, *leader));
        }
        if job.info().here == Some(node) {
            let procs =
                on_node.iter().map(|rank| Value::Proc(ProcId::new(&job.info().nspace, *rank))).collect();
            let array = DataArray { of: DataType::PROC, items: procs };
            values.push(Kval::new(keys::LOCAL_PROCS, array));
            values.extend(own_directories(job));
        }
        overlay(&mut values, &self.resources.of_node(&name_of(&described)));
        overlay(&mut values, &described.values);
        Some(Kval::new(keys::NODE_INFO_ARRAY, DataArray::of_infos(values.into_iter().map(as_info))))
    }

    /// The values of one rank; none if it does not exist.
    pub(super) fn proc_values(&self, job: &Job, rank: Rank) -> Vec<Kval> {
        let Some(proc) = index(rank).and_then(|i| job.info().procs.get(i)) else { return Vec::new() };
        let Some(node) = job.node(proc.node) else { return Vec::new() };
        let keys = &self.keys;
        let kval = |key: &Key, value: Value| Kval { key: key.clone(), value };
        let mut values = vec![
            kval(&keys.rank, rank.into()),
            kval(&keys.hostname, (&*node.name).into()),
            kval(&keys.node_id, node.id.into()),
            kval(&keys.global_rank, rank.into()),
            kval(&keys.appnum, proc.app.into()),
            kval(&keys.app_rank, proc.app_rank.into()),
            kval(&keys.local_rank, proc.local_rank.into()),
            kval(&keys.node_rank, proc.node_rank.into()),
            kval(&keys.reincarnation, proc.reincarnation.into()),
            kval(&keys.spawned, stated(job, phalanx_spec::keys::SPAWNED).is_some_and(|v| v.is_true()).into()),
        ];
        // Clients look for it at their own rank, not at the job.
        if let Some(parent) = stated(job, phalanx_spec::keys::PARENT_ID) {
            values.push(kval(&keys.parent, parent.clone()));
        }
        if let Some(package_rank) = proc.package_rank {
            values.push(kval(&keys.package_rank, package_rank.into()));
        }
        if let Some(cpuset) = &proc.cpuset {
            values.push(kval(&keys.cpuset, (&**cpuset).into()));
        }
        if let Some(locality) = &proc.locality {
            values.push(kval(&keys.locality, (&**locality).into()));
        }
        if job.info().here == Some(proc.node)
            && let Some(dir) = stated(job, phalanx_spec::keys::NSDIR).and_then(Value::as_str)
        {
            values.push(kval(&keys.proc_dir, format!("{dir}/{}", rank.0).into()));
        }
        overlay(&mut values, proc.values.as_deref().unwrap_or_default());
        values
    }
}

/// REQ: the job data of the asker's own namespace.
pub(super) fn on_job_data(cx: &mut Cx<'_>, describer: &Describer, from: Asker) {
    let Some(peer) = cx.peers.conns.peer(from.conn) else { return };
    let (format, topology) = (peer.dialect().format, describer.topology.for_peer(peer));
    let nspace = &from.proc.nspace;
    match cx.peers.jobs.shared(nspace, format, |job| describer.shared_data(job)) {
        Some(job) => {
            let registered = cx.peers.jobs.get(nspace);
            let own = registered.map(|job| describer.own_data(job, from.proc.rank)).unwrap_or_default();
            let mut of_job = registered.map(|job| stops_of(job, Some(&from.proc))).unwrap_or_default();
            of_job.extend(topology);
            let rank = from.proc.rank;
            cx.reply(from, |_| job.body_for(&of_job, rank, &own));
        }
        None => {
            let job = describer.lone_job_data(nspace).encoded(format);
            cx.reply(from, |_| job.body());
        }
    }
}

fn is_own(kval: &Kval) -> bool {
    OWN.iter().any(|key| kval.key == *key)
}

pub(super) fn name_of(node: &JobNode) -> NodeName {
    NodeName { host: Some(node.name.to_string()), id: Some(node.id) }
}

/// The job's directories on this node, from whichever level the host stated them on.
fn own_directories(job: &Job) -> impl Iterator<Item = Kval> {
    [keys::TMPDIR, keys::NSDIR]
        .into_iter()
        .filter_map(|key| stated(job, key).map(|value| Kval { key: Key::of(key), value: value.clone() }))
}

/// A value that the host stated for our own node, the job or its session.
fn stated<'a>(job: &'a Job, key: &str) -> Option<&'a Value> {
    let of_node = job.own_node().into_iter().flat_map(|node| &node.values);
    let all = of_node.chain(job.info().job.iter()).chain(job.info().session.iter());
    all.into_iter().find(|kval| kval.key == *key).map(|kval| &kval.value)
}

/// Other names of a node, for a host that has stated none.
fn aliases(name: &str, own: bool) -> String {
    let short = name.split('.').next().unwrap_or(name);
    if own { format!("{short},localhost") } else { short.to_owned() }
}

/// Which nodes there are and which ranks they have, in the compact notation.
fn maps(job: &Job, by_node: &[Vec<Rank>]) -> Vec<Kval> {
    let names: Vec<Arc<str>> = job.info().nodes.iter().map(|node| node.name).collect();
    let names: Vec<&str> = names.iter().map(|name| &**name).collect();
    let ranks: Vec<Vec<u32>> =
        by_node.iter().map(|ranks| ranks.iter().map(|rank| rank.0).collect()).collect();
    let nodes = nodes_to_regex(&names).unwrap_or_else(|| nodes_to_raw(&names));
    vec![Kval::new(keys::NODE_MAP, nodes), Kval::new(keys::PROC_MAP, ppn_to_regex(&ranks))]
}

/// `pmix.ssn.arr`, its id first.
pub(super) fn session_array(job: &Job) -> Kval {
    // OpenPMIx sends all bits set for a session without a number.
    let size = count(job.size());
    let mut values = vec![
        Kval::new(keys::SESSION_ID, u32::MAX),
        Kval::new(keys::UNIV_SIZE, size),
        Kval::new(keys::MAX_PROCS, size),
    ];
    let allocated: Vec<Arc<str>> = job.info().allocated.iter().collect();
    if !allocated.is_empty() {
        values.push(Kval::new(keys::ALLOCATED_NODELIST, allocated.join(",")));
    }
    overlay(&mut values, &job.info().session);
    Kval::new(keys::SESSION_INFO_ARRAY, DataArray::of_infos(values.into_iter().map(as_info)))
}

/// `pmix.app.arr` of one app.
pub(super) fn app_array(job: &Job, app: u32, size: u32, leader: Rank) -> Option<Kval> {
    let described = at(&job.info().apps, app)?;
    let mut values =
        vec![Kval::new(keys::APPNUM, app), Kval::new(keys::APP_SIZE, size), Kval::new(keys::MAX_PROCS, size)];
    if size > 0 {
        values.push(Kval::new(keys::APPLDR, leader));
    }
    overlay(&mut values, &described.values);
    Some(Kval::new(keys::APP_INFO_ARRAY, DataArray::of_infos(values.into_iter().map(as_info))))
}

/// All ranks of a job.
pub(super) fn ranks(job: &Job) -> impl Iterator<Item = Rank> + use<> {
    (0..count(job.size())).map(Rank)
}

/// Puts `stated` over `values`: equal keys are replaced, others are added.
fn overlay(values: &mut Vec<Kval>, stated: &[Kval]) {
    for kval in stated {
        match values.iter_mut().find(|v| v.key == kval.key) {
            Some(old) => old.value = kval.value.clone(),
            None => values.push(kval.clone()),
        }
    }
}

fn as_info(kval: Kval) -> Info {
    Info { key: kval.key, flags: Default::default(), value: kval.value }
}

fn at<T>(all: &[T], index: u32) -> Option<&T> {
    all.get(usize::try_from(index).ok()?)
}

fn at_mut<T>(all: &mut [T], index: u32) -> Option<&mut T> {
    all.get_mut(usize::try_from(index).ok()?)
}

fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
