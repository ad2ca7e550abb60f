//! What the host registers about the machine rather than a job: resources, which every job gets, and inventories, which are
//! kept for queries.
//!
//! Both are values of nodes, named by hostname or by number; resources may also be values of no particular node. Values that
//! a job states itself override both.

use phalanx_spec::{Status, keys};
use phalanx_wire::{DataArray, Info, InfoList, Key, Kval, Value};
use tracing::warn;

use super::registry::Jobs;

#[derive(Debug, Default)]
pub(super) struct Resources {
    values: Vec<Kval>,
    nodes: Nodes,
    inventory: Nodes,
}

#[derive(Debug, Default)]
struct Nodes(Vec<(NodeName, Vec<Kval>)>);

/// The name of a node: hostname, number, or both.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct NodeName {
    pub(super) host: Option<String>,
    pub(super) id: Option<u32>,
}

impl Resources {
    pub(super) fn register(&mut self, jobs: &mut Jobs, info: Vec<Info>) -> Status {
        if let Some(unfit) = info.iter().find(|info| OF_GROUPS.contains(&info.key.as_str())) {
            warn!(key = %unfit.key, "resources of a group cannot be registered without that group: refused");
            return Status::ERR_NOT_SUPPORTED;
        }
        for info in info {
            match node_in(&info) {
                Some((node, values)) => self.nodes.add(as_jobs_say(jobs, node), values),
                None if info.key == keys::NODE_INFO_ARRAY => return nameless(),
                // The identity of the requester.
                None if info.key == keys::USERID || info.key == keys::GRPID => {}
                None => put(&mut self.values, Kval { key: info.key, value: info.value }),
            }
        }
        jobs.forget_encodings();
        Status::SUCCESS
    }

    /// Removes values by key; only the values that name a node matter.
    pub(super) fn deregister(&mut self, jobs: &mut Jobs, info: &[Info]) -> Status {
        for info in info {
            match node_in(info) {
                Some((node, gone)) => self.nodes.remove(&as_jobs_say(jobs, node), &gone),
                None => self.values.retain(|kval| kval.key != info.key),
            }
        }
        jobs.forget_encodings();
        Status::SUCCESS
    }

    /// `directives` may name the node for values outside of node arrays; the default is ours, `hostname`.
    pub(super) fn deliver_inventory(
        &mut self,
        jobs: &Jobs,
        hostname: &str,
        info: Vec<Info>,
        directives: &[Info],
    ) -> Status {
        let meant = NodeName::named(directives)
            .unwrap_or_else(|| NodeName { host: Some(hostname.to_owned()), id: None });
        let meant = as_jobs_say(jobs, meant);
        for info in info {
            match node_in(&info) {
                Some((node, values)) => self.inventory.add(as_jobs_say(jobs, node), values),
                None if info.key == keys::NODE_INFO_ARRAY => return nameless(),
                None => {
                    let value = Kval { key: info.key, value: info.value };
                    self.inventory.add(meant.clone(), vec![value]);
                }
            }
        }
        Status::SUCCESS
    }

    /// What is known of these nodes, one array each.
    pub(super) fn inventory_of(&self, hosts: Vec<String>) -> Vec<Info> {
        let nodes = hosts.into_iter().map(|host| NodeName { host: Some(host), id: None });
        nodes.filter_map(|node| self.node_array(&node)).map(as_info).collect()
    }

    /// The answer to a query about a named node.
    pub(super) fn answer_to(&self, key: &str, qualifiers: &[Info]) -> Option<Info> {
        let array = self.node_array(&NodeName::named(qualifiers)?)?;
        if key == keys::NODE_INFO_ARRAY {
            return Some(as_info(array));
        }
        array.value.as_array()?.infos().find(|info| info.key == *key).cloned()
    }

    /// Values of no node in particular.
    pub(super) fn values(&self) -> &[Kval] {
        &self.values
    }

    /// The values of this node for every job that has it.
    pub(super) fn of_node(&self, node: &NodeName) -> Vec<Kval> {
        self.nodes.of(node)
    }

    /// All that is known of a node, as an array with its name; `None` if nothing is.
    pub(super) fn node_array(&self, node: &NodeName) -> Option<Kval> {
        let (resources, inventory) = (self.nodes.of(node), self.inventory.of(node));
        if resources.is_empty() && inventory.is_empty() {
            return None;
        }
        let known = [&self.nodes, &self.inventory].into_iter().flat_map(|nodes| nodes.all(node));
        let mut values = Vec::new();
        known.flat_map(|(name, _)| name.values()).for_each(|kval| put(&mut values, kval));
        inventory.into_iter().chain(resources).for_each(|kval| put(&mut values, kval));
        Some(array_of(values))
    }

    /// Adds to a node's array what only its inventory has.
    pub(super) fn complete(&self, array: &mut Kval, node: &NodeName) {
        let Value::DataArray(told) = &mut array.value else { return };
        for kval in self.inventory.of(node) {
            if !told.infos().any(|info| info.key == kval.key) {
                told.items.push(Value::Info(Box::new(as_info(kval))));
            }
        }
    }
}

impl Nodes {
    /// Several if one was named by hostname and one by number before a job showed that they are one node; the latest last.
    fn all<'a>(&'a self, node: &'a NodeName) -> impl Iterator<Item = &'a (NodeName, Vec<Kval>)> {
        self.0.iter().filter(|(known, _)| known.means(node))
    }

    fn of(&self, node: &NodeName) -> Vec<Kval> {
        let mut values = Vec::new();
        self.all(node).flat_map(|(_, some)| some).for_each(|kval| put(&mut values, kval.clone()));
        values
    }

    fn add(&mut self, mut node: NodeName, values: Vec<Kval>) {
        let mut kept = Vec::new();
        for (name, before) in self.0.extract_if(.., |(known, _)| known.means(&node)).collect::<Vec<_>>() {
            node.host = node.host.or(name.host);
            node.id = node.id.or(name.id);
            kept.extend(before);
        }
        let mut merged = Vec::with_capacity(kept.len() + values.len());
        kept.into_iter().chain(values).for_each(|kval| put(&mut merged, kval));
        self.0.push((node, merged));
    }

    /// Removes these keys; without any, the whole node.
    fn remove(&mut self, node: &NodeName, gone: &[Kval]) {
        for (_, kept) in self.0.iter_mut().filter(|(known, _)| known.means(node)) {
            kept.retain(|kval| !gone.is_empty() && !gone.iter().any(|gone| gone.key == kval.key));
        }
        self.0.retain(|(_, values)| !values.is_empty());
    }
}

impl NodeName {
    /// The node that directives name.
    pub(super) fn named(info: &[Info]) -> Option<NodeName> {
        let host = info.find(keys::HOSTNAME).and_then(Value::as_str).map(str::to_owned);
        let id = info.find(keys::NODEID).and_then(Value::as_u32);
        (host.is_some() || id.is_some()).then_some(NodeName { host, id })
    }

    fn means(&self, other: &NodeName) -> bool {
        match (&self.host, &other.host) {
            (Some(one), Some(other)) => one == other,
            _ => self.id.is_some() && self.id == other.id,
        }
    }

    fn values(&self) -> Vec<Kval> {
        let host = self.host.iter().map(|host| Kval::new(keys::HOSTNAME, host.as_str()));
        host.chain(self.id.map(|id| Kval::new(keys::NODEID, id))).collect()
    }
}

/// Adds the node's other name, unless jobs disagree about it: some hosts number the nodes of each job.
fn as_jobs_say(jobs: &Jobs, mut node: NodeName) -> NodeName {
    let nodes = jobs.iter().flat_map(|job| job.info().nodes.iter());
    let mut same = nodes.filter(|one| node.host.as_deref() == Some(&*one.name) || node.id == Some(one.id));
    if let Some(first) = same.next()
        && same.all(|other| other.name == first.name && other.id == first.id)
    {
        node.host.get_or_insert_with(|| first.name.to_string());
        node.id.get_or_insert(first.id);
    }
    node
}

/// The node that an array is about, with its other values.
fn node_in(info: &Info) -> Option<(NodeName, Vec<Kval>)> {
    let array = info.value.as_array().filter(|_| info.key == keys::NODE_INFO_ARRAY)?;
    let members: Vec<Info> = array.infos().cloned().collect();
    let node = NodeName::named(&members)?;
    let rest = members.into_iter().filter(|one| one.key != keys::HOSTNAME && one.key != keys::NODEID);
    Some((node, rest.map(|one| Kval { key: one.key, value: one.value }).collect()))
}

fn nameless() -> Status {
    warn!("values of a node that they do not name: refused");
    Status::ERR_BAD_PARAM
}

fn array_of(values: Vec<Kval>) -> Kval {
    let key = Key::of(keys::NODE_INFO_ARRAY);
    Kval { key, value: DataArray::of_infos(values.into_iter().map(as_info)).into() }
}

fn put(values: &mut Vec<Kval>, kval: Kval) {
    match values.iter_mut().find(|old| old.key == kval.key) {
        Some(old) => old.value = kval.value,
        None => values.push(kval),
    }
}

fn as_info(kval: Kval) -> Info {
    Info { key: kval.key, flags: Default::default(), value: kval.value }
}

/// Attributes that hosts of other implementations return after a group was formed.
const OF_GROUPS: &[&str] =
    &[keys::GROUP_INFO, keys::GROUP_INFO_ARRAY, keys::GROUP_ENDPT_DATA, keys::GROUP_JOB_INFO];
