//! Values that this process has put and not yet committed.
//!
//! A put is visible to its own process at once, so it goes into the store as well; the stage only holds what the next commit
//! must send. Putting a key again before the commit replaces the value and its scope.

use std::collections::{BTreeMap, BTreeSet};

use phalanx_spec::{Scope, keys};
use phalanx_wire::{Key, Kval, ProcId, Value};

use super::{Store, lock};
use crate::qualified::{Name, name_of};

#[derive(Debug, Default)]
pub(super) struct Stage {
    /// One entry per key and set of qualifiers.
    values: BTreeMap<(Key, Option<Name>), (Scope, Value)>,
    /// Keys of values for other nodes, committed or not.
    offered: BTreeSet<Key>,
}

impl Store {
    /// Stores a value for this process and stages it for the next commit, unless its scope keeps it inside this process.
    pub fn put(&self, scope: Scope, kval: Kval) {
        if scope != Scope::INTERNAL {
            let name = if kval.key == keys::QUALIFIED_VALUE { name_of(&kval.value) } else { None };
            let mut stage = lock(&self.stage);
            match scope {
                Scope::LOCAL => stage.offered.remove(&kval.key),
                _ => stage.offered.insert(kval.key.clone()),
            };
            stage.values.insert((kval.key.clone(), name), (scope, kval.value.clone()));
        }
        self.insert_rank(&self.me.nspace, self.me.rank, [kval]);
    }

    /// Takes what was put since the last call, by scope. A scope without values is left out.
    pub fn take_staged(&self) -> Vec<(Scope, Vec<Kval>)> {
        let staged = std::mem::take(&mut lock(&self.stage).values);
        let mut buckets: BTreeMap<Scope, Vec<Kval>> = BTreeMap::new();
        for ((key, _), (scope, value)) in staged {
            buckets.entry(scope).or_default().push(Kval { key, value });
        }
        buckets.into_iter().collect()
    }

    /// The values that this process has put for other nodes under keys that are not reserved.
    pub fn offered(&self) -> Vec<Kval> {
        let keys: Vec<Key> =
            lock(&self.stage).offered.iter().filter(|key| !key.is_reserved()).cloned().collect();
        let ProcId { nspace, rank } = &self.me;
        let value = |key: &Key| self.value(nspace.as_str(), *rank, key.as_str());
        keys.into_iter().filter_map(|key| Some(Kval { value: value(&key)?, key })).collect()
    }
}
