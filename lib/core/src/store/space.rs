//! One namespace: its realms (session, job, node, app) and the values of each rank.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::RwLock;

use phalanx_spec::{Rank, keys};
use phalanx_wire::{DataArray, Key, Text, Value};

use super::collected::Shelf;
use super::qualified;
use super::values::Values;

#[derive(Debug, Default)]
pub(super) struct Space {
    pub(super) job: RwLock<JobRealms>,
    pub(super) ranks: RwLock<BTreeMap<u32, Owned>>,
    pub(super) shelf: Shelf,
    pub(super) qualified: RwLock<qualified::Shelf>,
}

/// The values of one rank.
#[derive(Debug, Default)]
pub(super) struct Owned {
    pub(super) values: Values,
    /// The number of the latest file that has nothing newer.
    pub(super) upto: u32,
}

/// Values of the job as a whole, and of its nodes and apps.
#[derive(Debug, Default)]
pub(super) struct JobRealms {
    pub(super) session: Values,
    pub(super) job: Values,
    nodes: Vec<NodeRealm>,
    /// Indexes into `nodes` by name and by number.
    by_name: BTreeMap<String, usize>,
    by_id: BTreeMap<u32, usize>,
    pub(super) apps: BTreeMap<u32, Values>,
}

#[derive(Debug, Default)]
pub(super) struct NodeRealm {
    pub(super) values: Values,
}

impl Owned {
    /// Adds values that are as new as the file of that number.
    pub(super) fn take(&mut self, values: Vec<(Key, Value)>, upto: u32) {
        self.values.extend(values);
        self.upto = self.upto.max(upto);
    }
}

impl Space {
    pub(super) fn rank_value(&self, rank: Rank, key: &str) -> Option<Value> {
        super::read(&self.ranks).get(&rank.0)?.values.get(key).cloned()
    }
}

impl JobRealms {
    pub(super) fn node_named(&self, name: &str) -> Option<&NodeRealm> {
        self.nodes.get(*self.by_name.get(name)?)
    }

    pub(super) fn node_numbered(&self, id: u32) -> Option<&NodeRealm> {
        self.nodes.get(*self.by_id.get(&id)?)
    }

    /// In the order in which they were received.
    pub(super) fn node_names(&self) -> Vec<String> {
        let name = |node: &NodeRealm| node.values.get(keys::HOSTNAME)?.as_str().map(str::to_owned);
        self.nodes.iter().filter_map(name).collect()
    }

    /// Stores one value of the job; arrays of realms are split up.
    pub(super) fn take(&mut self, key: Key, value: Value) {
        match (key.as_str(), value) {
            (keys::NODE_INFO_ARRAY, Value::DataArray(array)) => self.take_node(values_of(&array)),
            (keys::APP_INFO_ARRAY, Value::DataArray(array)) => {
                let values = values_of(&array);
                let number = values.get(keys::APPNUM).and_then(Value::as_u32).unwrap_or(0);
                self.apps.entry(number).or_default().extend(values);
            }
            (keys::SESSION_INFO_ARRAY, Value::DataArray(array)) => self.session.extend(values_of(&array)),
            (keys::JOB_INFO_ARRAY, Value::DataArray(array)) => self.job.extend(values_of(&array)),
            (_, value) => {
                self.job.insert(key, value);
            }
        }
    }

    fn take_node(&mut self, values: Values) {
        let name = values.get(keys::HOSTNAME).and_then(Value::as_str).map(str::to_owned);
        let id = values.get(keys::NODEID).and_then(Value::as_u32);
        let known = name.as_ref().and_then(|n| self.by_name.get(n)).or_else(|| self.by_id.get(&id?)).copied();
        let at = known.unwrap_or_else(|| {
            self.nodes.push(NodeRealm::default());
            self.nodes.len() - 1
        });
        self.by_name.extend(name.map(|name| (name, at)));
        self.by_id.extend(id.map(|id| (id, at)));
        if let Some(node) = self.nodes.get_mut(at) {
            node.values.extend(values);
        }
    }
}

fn values_of(array: &DataArray) -> Values {
    array.infos().map(|info| (info.key.clone(), info.value.clone())).collect()
}

/// One allocation for each distinct key, and for each distinct text that a host provides about processes.
#[derive(Debug, Default)]
pub(super) struct Pool {
    keys: BTreeSet<Key>,
    texts: BTreeSet<Text>,
}

impl Pool {
    pub(super) fn shared(&mut self, key: Key) -> Key {
        shared(&mut self.keys, key)
    }

    pub(super) fn shared_text(&mut self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(shared(&mut self.texts, text)),
            other => other,
        }
    }
}

fn shared<T: Ord + Clone>(known: &mut BTreeSet<T>, one: T) -> T {
    if let Some(known) = known.get(&one) {
        return known.clone();
    }
    known.insert(one.clone());
    one
}
