//! The values of one owner.
//!
//! A process of a large job has a handful of values of each of very many owners, so these are kept in lists without spare
//! capacity; only an owner with many has a tree.

use std::collections::BTreeMap;

use phalanx_wire::{Key, Value};

#[derive(Debug)]
pub(super) enum Values {
    /// Sorted by key.
    Few(Vec<(Key, Value)>),
    Many(BTreeMap<Key, Value>),
}

impl Values {
    pub(super) fn get(&self, key: &str) -> Option<&Value> {
        match self {
            Values::Few(list) => {
                let found = list.binary_search_by(|(known, _)| known.as_str().cmp(key)).ok()?;
                list.get(found).map(|(_, value)| value)
            }
            Values::Many(tree) => tree.get(key),
        }
    }

    pub(super) fn insert(&mut self, key: Key, value: Value) {
        match self {
            Values::Few(list) => match list.binary_search_by(|(known, _)| known.cmp(&key)) {
                Ok(found) => {
                    if let Some(known) = list.get_mut(found) {
                        known.1 = value;
                    }
                }
                Err(_) if list.len() == MOST_LISTED => {
                    let mut tree: BTreeMap<Key, Value> = std::mem::take(list).into_iter().collect();
                    tree.insert(key, value);
                    *self = Values::Many(tree);
                }
                Err(place) => {
                    list.reserve_exact(1);
                    list.insert(place, (key, value));
                }
            },
            Values::Many(tree) => {
                tree.insert(key, value);
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        matches!(self, Values::Few(list) if list.is_empty())
    }

    /// In the order of keys.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Key, &Value)> {
        let (list, tree) = match self {
            Values::Few(list) => (Some(list), None),
            Values::Many(tree) => (None, Some(tree)),
        };
        list.into_iter().flatten().map(|(key, value)| (key, value)).chain(tree.into_iter().flatten())
    }
}

impl Default for Values {
    fn default() -> Self {
        Values::Few(Vec::new())
    }
}

impl Extend<(Key, Value)> for Values {
    fn extend<I: IntoIterator<Item = (Key, Value)>>(&mut self, values: I) {
        let values = values.into_iter();
        if let Values::Few(list) = self {
            let (known, all) = (list.len(), list.len() + values.size_hint().0);
            list.reserve_exact(all.min(MOST_LISTED).saturating_sub(known));
        }
        values.for_each(|(key, value)| self.insert(key, value));
    }
}

impl IntoIterator for Values {
    type Item = (Key, Value);
    type IntoIter = std::vec::IntoIter<(Key, Value)>;

    fn into_iter(self) -> Self::IntoIter {
        let all = match self {
            Values::Few(list) => list,
            Values::Many(tree) => tree.into_iter().collect(),
        };
        all.into_iter()
    }
}

impl FromIterator<(Key, Value)> for Values {
    fn from_iter<I: IntoIterator<Item = (Key, Value)>>(values: I) -> Self {
        let mut all = Values::default();
        all.extend(values);
        all
    }
}

const MOST_LISTED: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_and_many_are_the_same_but_for_room() {
        let mut values = Values::default();
        let mut model = BTreeMap::new();
        for n in 0..200_u32 {
            // Every number from 0 to 99 twice, out of order.
            let key = Key::new(&format!("key-{}", n * 37 % 100)).unwrap();
            values.insert(key.clone(), n.into());
            model.insert(key, Value::from(n));
            assert!(values.iter().eq(model.iter()));
            for n in 0..100 {
                let key = format!("key-{n}");
                assert_eq!(values.get(&key), model.get(key.as_str()));
            }
        }
        assert!(matches!(values, Values::Many(_)));
        let listed: Values = model.clone().into_iter().take(5).collect();
        let Values::Few(list) = &listed else { panic!("a tree of five") };
        assert_eq!((list.len(), list.capacity()), (5, 5));
        assert!(!listed.is_empty() && Values::default().is_empty());
    }
}
