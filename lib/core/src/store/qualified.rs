//! Values that hold under a condition: of one key a process may have several, told apart by qualifiers. What the members of a
//! group say of themselves when it forms is qualified by the group's context id.
//!
//! A get that names qualifiers finds such values and no others; a get that names none never finds them.

use std::collections::VecDeque;

use phalanx_spec::Rank;
use phalanx_wire::{Info, InfoFlags, Key, ProcId, Value};

use super::{Store, read, write};

#[derive(Debug)]
pub(super) struct Qualified {
    rank: Rank,
    key: Key,
    /// Sorted by key; flags do not count.
    qualifiers: Vec<Info>,
    value: Value,
}

/// Those of one namespace, the oldest first.
pub(super) type Shelf = VecDeque<Qualified>;

impl Store {
    /// Keeps a value of a process, in the place of the one with the same qualifiers.
    pub fn keep_qualified(&self, owner: &ProcId, key: Key, qualifiers: &[Info], value: Value) {
        let one = Qualified { rank: owner.rank, key, qualifiers: told_apart(qualifiers), value };
        let space = self.space_or_new(&owner.nspace);
        let mut known = write(&space.qualified);
        match known.iter_mut().find(|other| other.is_named(one.rank, &one.key, &one.qualifiers)) {
            Some(same) => same.value = one.value,
            None => {
                if known.len() == MOST {
                    known.pop_front();
                }
                known.push_back(one);
            }
        }
    }

    pub(super) fn qualified_value(&self, owner: &ProcId, key: &Key, qualifiers: &[Info]) -> Option<Value> {
        let space = self.space(owner.nspace.as_str())?;
        let known = read(&space.qualified);
        let found = known.iter().rev().find(|one| one.is_named(owner.rank, key, qualifiers))?;
        Some(found.value.clone())
    }
}

impl Qualified {
    fn is_named(&self, rank: Rank, key: &Key, qualifiers: &[Info]) -> bool {
        self.rank == rank && self.key == *key && self.qualifiers == qualifiers
    }
}

/// Qualifiers in the form in which they are compared.
pub(super) fn told_apart(qualifiers: &[Info]) -> Vec<Info> {
    let plain = |info: &Info| Info { flags: InfoFlags::empty(), ..info.clone() };
    let mut all: Vec<Info> = qualifiers.iter().map(plain).collect();
    all.sort_by(|one, other| one.key.cmp(&other.key));
    all
}

/// Programs that form groups for ever keep the latest.
const MOST: usize = 1 << 16;
