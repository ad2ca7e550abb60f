//! A host's registration of a job: from the attributes of the standard to the table that a server works with.
//!
//! Hosts describe jobs differently: with maps or without, values of a realm in an array of it or loose, numbers in any
//! width. Where a host contradicts itself the maps win: Slurm 22.05 gives every rank the number of its own node. A second
//! registration of a job adds to the first.

use std::collections::BTreeMap;
use std::sync::Arc;

use phalanx_core::{JobApp, JobInfo, JobNode, JobProc};
use phalanx_spec::{DataType, Rank, Status, attribute, keys};
use phalanx_wire::regex::{RegexError, regex_to_nodes, regex_to_ppn};
use phalanx_wire::{Info, Kval, Nspace, Value};

/// The server's own node.
pub(crate) struct OwnNode<'a> {
    pub(crate) hostname: &'a str,
    pub(crate) node_id: Option<u32>,
}

/// Builds the table of a job. `local`: how many of its processes are here, if the host states it.
pub(crate) fn job(
    nspace: &Nspace,
    local: Option<u32>,
    infos: &[Info],
    place: &OwnNode<'_>,
    earlier: Option<&JobInfo>,
) -> Result<JobInfo, Status> {
    let mut draft = earlier.map_or_else(Draft::default, Draft::of);
    draft.maps(infos)?;
    draft.take(infos);
    draft.finish(nspace, local, place)
}

#[derive(Default)]
struct Draft {
    size: Option<u32>,
    job: Vec<Kval>,
    session: Vec<Kval>,
    /// Values of the own node that stand loose among those of the job.
    own: Vec<Kval>,
    own_index: Option<u32>,
    /// A rank that the host places here.
    own_peer: Option<u32>,
    /// Loose values of an app, which is the only one.
    of_app: Vec<Kval>,
    nodes: Vec<Node>,
    by_name: BTreeMap<String, u32>,
    apps: BTreeMap<u32, Vec<Kval>>,
    procs: BTreeMap<u32, Proc>,
}

#[derive(Default)]
struct Node {
    name: String,
    id: Option<u32>,
    values: Vec<Kval>,
}

#[derive(Default)]
struct Proc {
    node: Option<u32>,
    node_id: Option<u32>,
    app: Option<u32>,
    app_rank: Option<Rank>,
    local_rank: Option<u16>,
    node_rank: Option<u16>,
    package_rank: Option<u16>,
    cpuset: Option<Arc<str>>,
    locality: Option<Arc<str>>,
    reincarnation: u32,
    values: Vec<Kval>,
}

impl Draft {
    /// The content of an earlier registration.
    fn of(job: &JobInfo) -> Draft {
        let node =
            |node: JobNode| Node { name: node.name.to_string(), id: Some(node.id), values: node.values };
        let proc = |proc: JobProc| Proc {
            node: Some(proc.node),
            node_id: None,
            app: Some(proc.app),
            app_rank: Some(proc.app_rank),
            local_rank: Some(proc.local_rank),
            node_rank: Some(proc.node_rank),
            package_rank: proc.package_rank,
            cpuset: proc.cpuset,
            locality: proc.locality,
            reincarnation: proc.reincarnation,
            values: proc.values.as_deref().unwrap_or_default().to_vec(),
        };
        Draft {
            size: u32::try_from(job.procs.len()).ok(),
            job: job.job.to_vec(),
            session: job.session.to_vec(),
            own: Vec::new(),
            own_index: job.here,
            own_peer: None,
            of_app: Vec::new(),
            nodes: job.nodes.iter().map(node).collect(),
            by_name: job.nodes.iter().map(|node| node.name.to_string()).zip(0..).collect(),
            apps: (0..).zip(job.apps.iter().map(|app| app.values.clone())).collect(),
            procs: (0..).zip(job.procs.iter().map(proc)).collect(),
        }
    }

    /// Reads the nodes and the ranks' locations, before anything that refers to them.
    fn maps(&mut self, infos: &[Info]) -> Result<(), Status> {
        let infos: Vec<&Info> = infos.iter().flat_map(|info| inside(info, keys::JOB_INFO_ARRAY)).collect();
        let find = |key: &str| infos.iter().find(|info| info.key == *key).map(|info| &info.value);
        if let Some(map) = find(keys::NODE_MAP) {
            let names = regex_to_nodes(&bytes(map)?, MOST).map_err(unreadable)?;
            for name in names {
                self.node(&name);
            }
        }
        if let Some(map) = find(keys::PROC_MAP) {
            let nodes = regex_to_ppn(&bytes(map)?, MOST).map_err(unreadable)?;
            if self.nodes.is_empty() {
                (0..nodes.len()).for_each(|index| {
                    self.node(&format!("node{index}"));
                });
            }
            for (node, rank) in
                (0..).zip(nodes).flat_map(|(node, ranks)| ranks.into_iter().map(move |r| (node, r)))
            {
                self.proc(rank)?.node = Some(node);
            }
        }
        Ok(())
    }

    fn take(&mut self, infos: &[Info]) {
        for info in infos {
            match info.key.as_str() {
                keys::SESSION_INFO_ARRAY => members(info).for_each(|one| put(&mut self.session, one)),
                keys::JOB_INFO_ARRAY => {
                    let all: Vec<Info> = members(info).cloned().collect();
                    self.take(&all);
                }
                keys::NODE_INFO_ARRAY => self.take_node(info),
                keys::APP_INFO_ARRAY => {
                    let number = members(info).find(|one| one.key == keys::APPNUM);
                    let number = number.and_then(|one| one.value.as_u32()).unwrap_or(0);
                    let app = self.apps.entry(number).or_default();
                    members(info).for_each(|one| put(app, one));
                }
                keys::PROC_INFO_ARRAY => self.take_proc(info),
                keys::NODE_MAP | keys::PROC_MAP => {}
                _ => self.take_loose(info),
            }
        }
    }

    fn take_loose(&mut self, info: &Info) {
        match info.key.as_str() {
            keys::JOB_SIZE => self.size = info.value.as_u32().or(self.size),
            keys::UNIV_SIZE | keys::SESSION_ID => put(&mut self.session, info),
            keys::NSPACE => return,
            keys::LOCAL_PEERS => {
                let first = info.value.as_str().and_then(|peers| peers.split([',', '-']).next());
                self.own_peer = first.and_then(|rank| rank.trim().parse().ok()).or(self.own_peer);
            }
            _ => {}
        }
        match info.key.as_str() {
            key if OF_NODE.contains(&key) => put(&mut self.own, info),
            key if OF_APP.contains(&key) => put(&mut self.of_app, info),
            _ => put(&mut self.job, info),
        }
    }

    fn take_node(&mut self, array: &Info) {
        let find = |key: &str| members(array).find(|one| one.key == *key).map(|one| &one.value);
        let id = find(keys::NODEID).and_then(Value::as_u32);
        let index = match find(keys::HOSTNAME).and_then(Value::as_str) {
            Some(name) => Some(self.node(name)),
            None => id.and_then(|id| self.node_numbered(id)),
        };
        let node = index.and_then(|index| at_mut(&mut self.nodes, index));
        let Some(node) = node else {
            return tracing::warn!("values of a node that they do not name: ignored");
        };
        node.id = id.or(node.id);
        members(array)
            .filter(|one| one.key != keys::HOSTNAME && one.key != keys::NODEID)
            .for_each(|one| put(&mut node.values, one));
    }

    fn take_proc(&mut self, array: &Info) {
        let rank = members(array).find(|one| one.key == keys::RANK).and_then(|one| one.value.as_rank());
        let Some(rank) = rank.filter(|rank| rank.is_process()) else {
            return tracing::warn!("values of a process that they do not name: ignored");
        };
        let host = members(array).find(|one| one.key == keys::HOSTNAME).and_then(|one| one.value.as_str());
        let node = host.map(|host| self.node(host));
        let Ok(proc) = self.proc(rank.0) else {
            return tracing::warn!(rank = rank.0, "values of a process beyond what a job can have: ignored");
        };
        proc.node = proc.node.or(node);
        for one in members(array) {
            let value = &one.value;
            let short = value.as_u32().and_then(|number| u16::try_from(number).ok());
            match one.key.as_str() {
                keys::RANK | keys::HOSTNAME => {}
                keys::NODEID => proc.node_id = value.as_u32(),
                keys::APPNUM => proc.app = value.as_u32(),
                keys::APP_RANK => proc.app_rank = value.as_rank(),
                keys::LOCAL_RANK => proc.local_rank = short,
                keys::NODE_RANK => proc.node_rank = short,
                keys::PACKAGE_RANK => proc.package_rank = short,
                keys::CPUSET => proc.cpuset = value.as_str().map(Arc::from),
                keys::LOCALITY_STRING => proc.locality = value.as_str().map(Arc::from),
                keys::REINCARNATION => proc.reincarnation = value.as_u32().unwrap_or(0),
                // With a single namespace it equals the rank; with several, the spawner numbers them.
                keys::GLOBAL_RANK if value.as_rank() == Some(rank) => {}
                _ => put(&mut proc.values, one),
            }
        }
    }

    /// The index of a node; a node that is not named yet is added.
    fn node(&mut self, name: &str) -> u32 {
        if let Some(index) = self.by_name.get(name) {
            return *index;
        }
        let index = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
        self.nodes.push(Node { name: name.to_owned(), ..Node::default() });
        self.by_name.insert(name.to_owned(), index);
        index
    }

    fn node_numbered(&self, id: u32) -> Option<u32> {
        let stated = (0..).zip(&self.nodes).find(|(_, node)| node.id == Some(id)).map(|(index, _)| index);
        stated.or_else(|| at(&self.nodes, id).filter(|node| node.id.is_none()).map(|_| id))
    }

    fn proc(&mut self, rank: u32) -> Result<&mut Proc, Status> {
        if usize::try_from(rank).is_ok_and(|rank| rank < MOST) {
            Ok(self.procs.entry(rank).or_default())
        } else {
            Err(Status::ERR_BAD_PARAM)
        }
    }

    fn finish(mut self, nspace: &Nspace, local: Option<u32>, place: &OwnNode<'_>) -> Result<JobInfo, Status> {
        let told = self.procs.keys().next_back().map_or(0, |last| last + 1);
        let here = local.unwrap_or(0);
        let size = self.size.unwrap_or(told.max(here)).max(told);
        if usize::try_from(size).is_ok_and(|size| size > MOST) {
            return Err(Status::ERR_BAD_PARAM);
        }
        self.place_the_rest(size, here, place);
        let own = self.own_node(local, place);
        if let Some(node) = own.and_then(|own| at_mut(&mut self.nodes, own)) {
            for kval in std::mem::take(&mut self.own) {
                match kval.key.as_str() {
                    keys::NODEID => node.id = node.id.or(kval.value.as_u32()),
                    keys::HOSTNAME => {}
                    _ => set(&mut node.values, kval),
                }
            }
        }
        let ids = self.ids();
        let procs = self.numbered(size);
        let apps = procs.iter().map(|proc| proc.app + 1).chain(self.apps.keys().map(|app| app + 1)).max();
        let stated = self.job.iter().find(|kval| kval.key == keys::JOB_NUM_APPS);
        let apps = apps.or(stated.and_then(|kval| kval.value.as_u32())).unwrap_or(1).min(size.max(1));
        let loose = std::mem::take(&mut self.of_app);
        match apps {
            1 => loose.into_iter().for_each(|kval| set(self.apps.entry(0).or_default(), kval)),
            _ => loose.into_iter().for_each(|kval| set(&mut self.job, kval)),
        }
        let apps = (0..apps).map(|app| JobApp { values: self.apps.remove(&app).unwrap_or_default() });
        let nodes = self.nodes.into_iter().zip(ids);
        let nodes =
            nodes.map(|(node, id)| JobNode { name: node.name.into(), id, values: node.values }).collect();
        Ok(JobInfo {
            nspace: nspace.clone(),
            job: self.job.into(),
            session: self.session.into(),
            allocated: Vec::new().into(),
            nodes,
            apps: apps.collect(),
            procs: procs.into(),
            here: own,
        })
    }

    /// Places the remaining ranks: as many here as the host states, and the others on an unknown node.
    fn place_the_rest(&mut self, size: u32, here: u32, place: &OwnNode<'_>) {
        let placed = |draft: &Draft, rank| draft.procs.get(&rank).is_some_and(|proc| proc.node.is_some());
        let lost: Vec<u32> = (0..size).filter(|rank| !placed(self, *rank)).collect();
        if lost.is_empty() && !self.nodes.is_empty() {
            return;
        }
        let all_here = u32::try_from(lost.len()).is_ok_and(|lost| lost <= here);
        let node = match self.nodes.len() {
            1 => 0,
            _ if all_here => self.node(place.hostname),
            _ => self.node(UNKNOWN),
        };
        for rank in lost {
            self.procs.entry(rank).or_default().node = Some(node);
        }
    }

    /// The server's own node.
    fn own_node(&self, local: Option<u32>, place: &OwnNode<'_>) -> Option<u32> {
        let short = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
        let index = |wanted: &dyn Fn(&Node) -> bool| {
            (0..).zip(&self.nodes).find(|(_, node)| wanted(node)).map(|(index, _)| index)
        };
        let loose =
            self.own.iter().find(|kval| kval.key == keys::NODEID).and_then(|kval| kval.value.as_u32());
        let peer = self.own_peer.and_then(|rank| self.procs.get(&rank)).and_then(|proc| proc.node);
        peer.or(self.own_index)
            .or_else(|| self.by_name.get(place.hostname).copied())
            .or_else(|| index(&|node| short(&node.name) == short(place.hostname)))
            .or_else(|| place.node_id.and_then(|id| self.node_numbered(id)))
            .or_else(|| loose.and_then(|id| self.node_numbered(id)))
            .or_else(|| index(&|node| local > Some(0) && self.nodes.len() == 1 && node.name != UNKNOWN))
    }

    /// The numbers of the nodes: the host's, if it states one per node; otherwise their positions in the map.
    fn ids(&self) -> Vec<u32> {
        let mut ids: Vec<Option<u32>> = self.nodes.iter().map(|node| node.id).collect();
        for proc in self.procs.values() {
            if let Some(id) = proc.node.and_then(|node| at_mut(&mut ids, node)) {
                *id = id.or(proc.node_id);
            }
        }
        let mut seen: Vec<u32> = ids.iter().flatten().copied().collect();
        seen.sort_unstable();
        seen.dedup();
        let stated = seen.len() == ids.len();
        (0..).zip(ids).map(|(index, id)| id.filter(|_| stated).unwrap_or(index)).collect()
    }

    /// The processes by rank, with numbers that the host has left out.
    fn numbered(&mut self, size: u32) -> Vec<JobProc> {
        let mut on_node = vec![0u16; self.nodes.len()];
        let mut of_app: BTreeMap<u32, u32> = BTreeMap::new();
        let apps = self.app_of_rank();
        (0..size)
            .map(|rank| {
                let proc = self.procs.remove(&rank).unwrap_or_default();
                let node = proc.node.unwrap_or(0);
                let next_here = at_mut(&mut on_node, node).map_or(0, |next| {
                    let mine = *next;
                    *next = next.saturating_add(1);
                    mine
                });
                let app = proc.app.unwrap_or_else(|| apps(rank)).min(size.saturating_sub(1));
                let next_of_app = of_app.entry(app).or_default();
                let app_rank = proc.app_rank.unwrap_or(Rank(*next_of_app));
                *next_of_app += 1;
                let local_rank = proc.local_rank.unwrap_or(next_here);
                JobProc {
                    node,
                    app,
                    app_rank,
                    local_rank,
                    node_rank: proc.node_rank.unwrap_or(local_rank),
                    package_rank: proc.package_rank,
                    cpuset: proc.cpuset,
                    locality: proc.locality,
                    reincarnation: proc.reincarnation,
                    values: Some(proc.values).filter(|values| !values.is_empty()).map(Vec::into_boxed_slice),
                }
            })
            .collect()
    }

    /// Derives the app of a rank from the apps' leaders: an app reaches up to the next one's leader.
    fn app_of_rank(&self) -> impl Fn(u32) -> u32 + use<> {
        let leader = |values: &Vec<Kval>| {
            values.iter().find(|kval| kval.key == keys::APPLDR).and_then(|kval| kval.value.as_u32())
        };
        let leaders: BTreeMap<u32, u32> =
            self.apps.iter().filter_map(|(app, values)| Some((leader(values)?, *app))).collect();
        move |rank| leaders.range(..=rank).next_back().map_or(0, |(_, app)| *app)
    }
}

/// The members of an array with that key; other infos stand for themselves.
fn inside<'a>(info: &'a Info, array: &str) -> Vec<&'a Info> {
    if info.key == *array { members(info).collect() } else { vec![info] }
}

fn members(info: &Info) -> impl Iterator<Item = &Info> {
    info.value.as_array().into_iter().flat_map(|array| array.infos())
}

fn put(values: &mut Vec<Kval>, info: &Info) {
    set(values, Kval { key: info.key.clone(), value: in_its_type(info) });
}

fn set(values: &mut Vec<Kval>, kval: Kval) {
    match values.iter_mut().find(|old| old.key == kval.key) {
        Some(old) => old.value = kval.value,
        None => values.push(kval),
    }
}

/// Converts numbers to the width that clients read.
fn in_its_type(info: &Info) -> Value {
    let wanted = attribute(info.key.as_str()).map(|attribute| attribute.data_type);
    let number = info.value.as_u32();
    match (wanted, number) {
        (Some(DataType::UINT32), Some(number)) => Value::Uint32(number),
        (Some(DataType::UINT16), Some(number)) => {
            u16::try_from(number).map_or(Value::Uint32(number), Value::Uint16)
        }
        (Some(DataType::PROC_RANK), Some(number)) => Value::Rank(Rank(number)),
        _ => info.value.clone(),
    }
}

fn bytes(map: &Value) -> Result<Vec<u8>, Status> {
    match map {
        Value::Regex(blob) | Value::ByteObject(blob) => Ok(blob.as_bytes().to_vec()),
        Value::String(text) => Ok(text.as_bytes().to_vec()),
        _ => Err(Status::ERR_BAD_PARAM),
    }
}

fn unreadable(error: RegexError) -> Status {
    tracing::warn!(%error, "a map of a job cannot be read");
    Status::ERR_BAD_PARAM
}

fn at<T>(all: &[T], index: u32) -> Option<&T> {
    all.get(usize::try_from(index).ok()?)
}

fn at_mut<T>(all: &mut [T], index: u32) -> Option<&mut T> {
    all.get_mut(usize::try_from(index).ok()?)
}

/// The node of ranks without a location.
const UNKNOWN: &str = "unknown";

/// Maximum number of ranks of a job, and of nodes.
const MOST: usize = 1 << 24;

/// Keys of a node that hosts put among those of the job.
const OF_NODE: &[&str] = &[
    keys::LOCAL_SIZE,
    keys::NODE_SIZE,
    keys::LOCAL_PEERS,
    keys::LOCAL_PROCS,
    keys::LOCAL_CPUSETS,
    keys::LOCALLDR,
    keys::NODEID,
    keys::HOSTNAME,
];

/// Keys of an app that hosts put among those of a job with one app.
const OF_APP: &[&str] = &[keys::APP_SIZE, keys::APPLDR, keys::APP_ARGV, keys::APP_MAP_TYPE];

#[cfg(test)]
mod tests;
