//! Qualified values of peers, including the group information of a group's members, which is qualified by the group's context id.
//!
//! A get with qualifiers finds only such values; a get without them never does.

use std::collections::{BTreeMap, VecDeque};

use phalanx_spec::{Rank, keys};
use phalanx_wire::{Info, Key, ProcId, Value};

use super::space::Space;
use super::{Store, read, write};
use crate::qualified::{Name, opened};

/// The qualified values of one namespace.
#[derive(Debug, Default)]
pub(super) struct Shelf {
    values: BTreeMap<(Rank, Name), Value>,
    /// The oldest first.
    order: VecDeque<(Rank, Name)>,
}

impl Shelf {
    /// Stores a value of a process, replacing the one with the same qualifiers.
    fn keep(&mut self, rank: Rank, name: Name, value: Value) {
        if self.values.insert((rank, name.clone()), value).is_some() {
            return;
        }
        self.order.push_back((rank, name));
        if self.order.len() > MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.values.remove(&oldest);
        }
    }
}

impl Shelf {
    pub(super) fn forget(&mut self, rank: Rank) {
        self.values.retain(|(of, _), _| *of != rank);
        self.order.retain(|(of, _)| *of != rank);
    }
}

impl Space {
    /// Stores the qualified values among these, and returns the others.
    pub(super) fn without_qualified(&self, rank: Rank, mut values: Vec<(Key, Value)>) -> Vec<(Key, Value)> {
        let named = values.extract_if(.., |(key, _)| *key == keys::QUALIFIED_VALUE);
        for (key, qualifiers, value) in named.filter_map(|(_, value)| opened(&value)) {
            write(&self.qualified).keep(rank, Name::new(&key, &qualifiers), value);
        }
        values
    }
}

impl Store {
    pub fn keep_qualified(&self, owner: &ProcId, key: &Key, qualifiers: &[Info], value: Value) {
        let space = self.space_or_new(&owner.nspace);
        write(&space.qualified).keep(owner.rank, Name::new(key, qualifiers), value);
    }

    pub(super) fn qualified_value(&self, owner: &ProcId, name: &Name) -> Option<Value> {
        let space = self.space(owner.nspace.as_str())?;
        self.catch_up(&space, owner.nspace.as_str(), owner.rank);
        read(&space.qualified).values.get(&(owner.rank, name.clone())).cloned()
    }
}

/// The number of values kept: a program that forms groups for ever keeps the latest.
const MOST: usize = 1 << 16;
