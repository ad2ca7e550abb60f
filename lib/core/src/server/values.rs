//! Values that local processes have put and committed.
//!
//! A rank has two sets of values: for processes of this node and for those of others. A value of scope GLOBAL is in both.
//! Gets read from here; fences and direct modex send the remote set to other nodes through `modex`.

use std::collections::BTreeMap;

use phalanx_spec::{Scope, Status, keys};
use phalanx_wire::{Info, Key, Kval, Value};

use super::limits::MAX_COMMITTED;
use crate::qualified::{Name, name_of, opened};

/// The values that a process committed for one side.
#[derive(Debug, Default)]
pub(super) struct Values {
    by_key: BTreeMap<Key, Held>,
    /// In the form in which they were put.
    qualified: BTreeMap<Name, Value>,
    /// The number of changes, and at which change each present key was last put.
    changes: u64,
    by_change: BTreeMap<u64, Key>,
    qualified_changed: u64,
}

#[derive(Debug)]
struct Held {
    value: Value,
    changed: u64,
}

#[derive(Debug, Default)]
pub(super) struct Committed {
    happened: bool,
    /// Values were lost, because a commit was unreadable or exceeded the limit: each reason once, the last one at the end.
    refused: Vec<Status>,
    local: Values,
    remote: Values,
    bytes: usize,
}

impl Committed {
    /// Whether there was a commit at all, even an empty one.
    pub(super) fn happened(&self) -> bool {
        self.happened
    }

    pub(super) fn note_commit(&mut self) {
        self.happened = true;
    }

    /// Why a value may be missing although it was committed.
    pub(super) fn refused(&self) -> Option<Status> {
        self.refused.last().copied()
    }

    /// Whether the reason is new.
    pub(super) fn note_refused(&mut self, status: Status) -> bool {
        let before = self.refused.len();
        self.refused.retain(|known| *known != status);
        let is_new = self.refused.len() == before;
        self.refused.push(status);
        self.happened = true;
        is_new
    }

    /// For processes of this node.
    pub(super) fn local(&self) -> &Values {
        &self.local
    }

    /// For processes of other nodes.
    pub(super) fn remote(&self) -> &Values {
        &self.remote
    }

    /// The values for one side, then the other side's: processes of this node, or (`remote`) of other nodes.
    pub(super) fn sides(&self, remote: bool) -> (&Values, &Values) {
        if remote { (&self.remote, &self.local) } else { (&self.local, &self.remote) }
    }

    /// Stores one bucket. Refuses all of it if it would exceed the limit.
    pub(super) fn store(&mut self, scope: Scope, values: Vec<Kval>) -> Result<(), Status> {
        let added: usize = values.iter().map(|kval| kval.key.as_str().len() + weight(&kval.value)).sum();
        if self.bytes.saturating_add(added) > MAX_COMMITTED {
            return Err(Status::ERR_OUT_OF_RESOURCE);
        }
        for kval in values {
            match scope {
                Scope::LOCAL => self.put(kval, true, false),
                Scope::REMOTE => self.put(kval, false, true),
                Scope::GLOBAL => self.put(kval, true, true),
                _ => return Err(Status::ERR_BAD_PARAM),
            }
        }
        Ok(())
    }

    fn put(&mut self, kval: Kval, local: bool, remote: bool) {
        let Kval { key, mut value } = kval;
        // A global value comes twice, once per bucket: both sets then share it.
        let name = if key == keys::QUALIFIED_VALUE { name_of(&value) } else { None };
        let known = self.local.get(&key, name.as_ref());
        if let (false, Some(same)) = (local, known.filter(|other| **other == value)) {
            value = same.clone();
        }
        for (wanted, set) in [(local, &mut self.local), (remote, &mut self.remote)] {
            if wanted {
                self.bytes += key.as_str().len() + weight(&value);
                if let Some(old) = set.insert(key.clone(), name.clone(), value.clone()) {
                    self.bytes = self.bytes.saturating_sub(key.as_str().len() + weight(&old));
                }
            }
        }
    }
}

impl Values {
    fn get(&self, key: &Key, name: Option<&Name>) -> Option<&Value> {
        match name {
            Some(name) => self.qualified.get(name),
            None => self.by_key.get(key).map(|held| &held.value),
        }
    }

    fn insert(&mut self, key: Key, name: Option<Name>, value: Value) -> Option<Value> {
        self.changes += 1;
        let changed = self.changes;
        if let Some(name) = name {
            self.qualified_changed = changed;
            return self.qualified.insert(name, value);
        }
        self.by_change.insert(changed, key.clone());
        let old = self.by_key.insert(key, Held { value, changed })?;
        self.by_change.remove(&old.changed);
        Some(old.value)
    }

    /// The number of the newest change.
    pub(super) fn newest(&self) -> u64 {
        self.changes
    }

    /// Values newer than `told`, and the value of `key`, which the asker may have lost.
    pub(super) fn since(&self, told: u64, key: &Key) -> Vec<Kval> {
        let asked = self.by_key.get(key).filter(|held| held.changed <= told);
        let asked = asked.map(|held| Kval { key: key.clone(), value: held.value.clone() });
        asked.into_iter().chain(self.newer(told)).collect()
    }

    pub(super) fn newer(&self, told: u64) -> impl Iterator<Item = Kval> {
        let kval = |key: &Key| Some(Kval { key: key.clone(), value: self.by_key.get(key)?.value.clone() });
        let newer = self.by_change.range(told + 1..).filter_map(move |(_, key)| kval(key));
        let qualified = self.qualified.values().filter(move |_| self.qualified_changed > told);
        newer.chain(qualified.map(|value| Kval::new(keys::QUALIFIED_VALUE, value.clone())))
    }

    /// Whether there is a value of this key with any qualifiers.
    pub(super) fn has_qualified(&self, key: &Key) -> bool {
        self.qualified.values().filter_map(opened).any(|(named, ..)| named == *key)
    }

    /// Whether there is a value of this key with exactly these qualifiers.
    pub(super) fn has(&self, key: &Key, name: Option<&Name>) -> bool {
        // Another server asks for all qualified values.
        self.get(key, name).is_some() || (*key == keys::QUALIFIED_VALUE && !self.qualified.is_empty())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_key.is_empty() && self.qualified.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Value> {
        self.by_key.values().map(|held| &held.value).chain(self.qualified.values())
    }

    /// In the form in which they were committed.
    pub(super) fn kvals(&self) -> impl Iterator<Item = Kval> {
        let by_key =
            self.by_key.iter().map(|(key, held)| Kval { key: key.clone(), value: held.value.clone() });
        by_key.chain(self.qualified.values().map(|value| Kval::new(keys::QUALIFIED_VALUE, value.clone())))
    }
}

impl<const N: usize> From<[(Key, Value); N]> for Values {
    fn from(values: [(Key, Value); N]) -> Values {
        let mut all = Values::default();
        for (key, value) in values {
            all.insert(key, None, value);
        }
        all
    }
}

/// Roughly how many bytes a value occupies.
pub(super) fn weight(value: &Value) -> usize {
    let text = |t: &Option<phalanx_wire::Text>| t.as_ref().map_or(0, |t| t.as_bytes().len());
    let inner = match value {
        Value::String(t) => t.as_bytes().len(),
        Value::CompressedString(b)
        | Value::ByteObject(b)
        | Value::Regex(b)
        | Value::CompressedByteObject(b)
        | Value::DataBuffer(b) => b.len(),
        Value::Buffer(b) => b.bytes.len(),
        Value::Value(v) => weight(v),
        Value::Info(i) => i.key.as_str().len() + weight(&i.value),
        Value::Kval(k) => k.key.as_str().len() + weight(&k.value),
        Value::Pdata(p) => p.key.as_str().len() + weight(&p.value),
        Value::DataArray(a) => a.items.iter().map(weight).sum(),
        Value::Proc(p) => p.nspace.as_str().len(),
        Value::ProcNspace(n) => n.as_str().len(),
        Value::Topology(t) => text(&t.xml) + t.support.len(),
        Value::Endpoint(e) => text(&e.uuid) + text(&e.os_name) + e.bytes.len(),
        Value::Query(q) => q.qualifiers.iter().map(|i| weight(&i.value)).sum(),
        Value::App(a) => {
            a.argv.iter().chain(&a.env).map(|t| t.as_bytes().len()).sum::<usize>()
                + a.info.iter().map(|i| weight(&i.value)).sum::<usize>()
        }
        _ => 64,
    };
    size_of::<Value>() + inner
}

pub(super) fn weight_of_infos(info: &[Info]) -> usize {
    info.iter().map(|info| info.key.as_str().len() + weight(&info.value)).sum()
}
