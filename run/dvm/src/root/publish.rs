//! Published data, held by the root: who may see what, how long it lives, who waits for it.
//!
//! The range of a publication says who may find it, that of a lookup whose publications are looked at: both have to agree. The
//! store is bounded in bytes; lookups that wait are bounded by their number, and found by their keys.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use phalanx_core::{HostReply, Time, Waiting};
use phalanx_spec::{Persistence, Range, Status, keys};
use phalanx_wire::{Info, InfoList, Key, Nspace, Pdata, ProcId, Value};

use crate::id::NodeId;
use crate::msg::procs;
use crate::root::answer::Answer;
use crate::root::timer::Timer;
use crate::root::{Cx, Root};

pub(crate) const PUBLISH_ATTRIBUTES: &[&str] =
    &[keys::RANGE, keys::PERSISTENCE, keys::EVENT_CUSTOM_RANGE, keys::ACCESS_USERIDS];
pub(crate) const LOOKUP_ATTRIBUTES: &[&str] = &[keys::RANGE, keys::WAIT, keys::TIMEOUT];
pub(crate) const UNPUBLISH_ATTRIBUTES: &[&str] = &[keys::RANGE];

#[derive(Debug, Default)]
pub(super) struct Store {
    entries: BTreeMap<u64, Entry>,
    by_key: BTreeMap<Key, BTreeSet<u64>>,
    last_entry: u64,
    bytes: usize,
    waiting: BTreeMap<u64, Lookup>,
    /// Those that wait for a key, or did when they came.
    awaited: BTreeMap<Key, BTreeSet<u64>>,
    last_lookup: u64,
}

#[derive(Debug)]
struct Entry {
    from: ProcId,
    node: NodeId,
    uid: u32,
    key: Key,
    value: Value,
    range: Range,
    /// For [`Range::CUSTOM`].
    readers: Vec<ProcId>,
    /// Users other than the publisher's that may read.
    uids: Vec<u64>,
    persistence: Persistence,
    bytes: usize,
}

#[derive(Debug)]
struct Lookup {
    answer: Answer,
    from: ProcId,
    uid: u32,
    keys: Vec<Key>,
    range: Range,
    /// How many of the keys it waits for.
    wanted: usize,
    since: Time,
    until: Option<Time>,
}

impl Root {
    #[allow(clippy::too_many_arguments)] // The upcall's own fields.
    pub(super) fn publish(
        &mut self,
        cx: &mut Cx<'_>,
        from: &ProcId,
        uid: u32,
        data: &[Info],
        range: Range,
        persistence: Persistence,
        info: &[Info],
    ) -> Status {
        let Some(node) = self.node_of(from) else { return Status::ERR_NOT_FOUND };
        let limit = self.config.limits.published;
        let store = &mut self.store;
        let range = if range == Range::UNDEF { Range::SESSION } else { range };
        let bytes: usize = data.iter().map(weight).sum();
        if store.bytes.saturating_add(bytes) > limit {
            return Status::ERR_OUT_OF_RESOURCE;
        }
        let mut new = BTreeSet::new();
        let taken = |key: &Key| store.named(key).any(|(_, entry)| entry.overlaps(from, node, range));
        if !data.iter().all(|item| new.insert(&item.key) && !taken(&item.key)) {
            return Status::ERR_DUPLICATE_KEY;
        }
        let readers: Vec<ProcId> = procs(info.find(keys::EVENT_CUSTOM_RANGE)).collect();
        let uids: Vec<u64> = numbers(info.find(keys::ACCESS_USERIDS)).collect();
        for item in data {
            store.insert(Entry {
                from: from.clone(),
                node,
                uid,
                key: item.key.clone(),
                value: item.value.clone(),
                range,
                readers: readers.clone(),
                uids: uids.clone(),
                persistence,
                bytes: weight(item),
            });
        }
        let served = data.iter().filter_map(|item| store.awaited.get(&item.key)).flatten().copied();
        let served: BTreeSet<u64> = served.collect();
        served.into_iter().for_each(|id| self.serve_lookup(cx, id));
        Status::SUCCESS
    }

    #[allow(clippy::too_many_arguments)] // The upcall's own fields.
    pub(super) fn lookup(
        &mut self,
        cx: &mut Cx<'_>,
        answer: Answer,
        from: &ProcId,
        uid: u32,
        keys: &[Key],
        range: Range,
        info: &[Info],
    ) {
        let wanted = match info.find(keys::WAIT).map(|value| (value.as_u64(), value.is_true())) {
            None => 0,
            Some((Some(0), _)) | Some((None, true)) => keys.len(),
            Some((Some(count), _)) => (count as usize).min(keys.len()),
            Some((None, false)) => 0,
        };
        let seconds = info.find(keys::TIMEOUT).and_then(Value::as_u64).filter(|seconds| *seconds > 0);
        let lookup = Lookup {
            answer,
            from: from.clone(),
            uid,
            keys: keys.to_vec(),
            range,
            wanted,
            since: cx.now,
            until: seconds.map(|seconds| cx.now.after(Duration::from_secs(seconds))),
        };
        if self.node_of(from).is_none() {
            return lookup.answer.done(cx, Status::ERR_NOT_FOUND);
        }
        let Some(lookup) = self.try_lookup(cx, lookup) else { return };
        if self.store.waiting.len() >= MOST_WAITING {
            return lookup.answer.done(cx, Status::ERR_OUT_OF_RESOURCE);
        }
        self.store.last_lookup += 1;
        let id = self.store.last_lookup;
        let until = lookup.until;
        self.store.put_waiting(id, lookup);
        if let Some(until) = until {
            self.timers.set(until, Timer::Lookup(id));
        }
    }

    /// Answers a lookup unless it has to wait; then it comes back.
    fn try_lookup(&mut self, cx: &mut Cx<'_>, lookup: Lookup) -> Option<Lookup> {
        let Some(node) = self.node_of(&lookup.from) else {
            lookup.answer.done(cx, Status::ERR_NOT_FOUND);
            return None;
        };
        let found: Vec<u64> =
            lookup.keys.iter().filter_map(|key| self.store.find(key, &lookup, node)).collect();
        if found.len() < lookup.wanted {
            return Some(lookup);
        }
        let data: Vec<Pdata> =
            found.iter().filter_map(|id| Some(self.store.entries.get(id)?.to_pdata())).collect();
        let is_read = |entry: &Entry| entry.persistence == Persistence::FIRST_READ;
        for id in found {
            if self.store.entries.get(&id).is_some_and(is_read) {
                self.store.take(id);
            }
        }
        let result = match data.len() {
            0 => Err(Status::ERR_NOT_FOUND),
            _ => Ok(data),
        };
        lookup.answer.give(cx, HostReply::Lookup(result));
        None
    }

    /// Something that it waits for was published.
    fn serve_lookup(&mut self, cx: &mut Cx<'_>, id: u64) {
        let Some(lookup) = self.store.take_waiting(id) else { return };
        if let Some(waits) = self.try_lookup(cx, lookup) {
            self.store.put_waiting(id, waits);
        }
    }

    pub(super) fn on_lookup_over(&mut self, cx: &mut Cx<'_>, id: u64) {
        let Some(lookup) = self.store.take_waiting(id) else { return };
        self.end_lookup(cx, lookup, Status::ERR_TIMEOUT);
    }

    fn end_lookup(&mut self, cx: &mut Cx<'_>, lookup: Lookup, status: Status) {
        lookup.answer.give(cx, HostReply::Lookup(Err(status)));
    }

    /// Nobody is left to be told: the servers that have asked must not wait for it.
    fn end_lookups(&mut self, cx: &mut Cx<'_>, gone: impl Fn(&ProcId) -> bool) {
        let ids = self.store.waiting.iter().filter(|(_, lookup)| gone(&lookup.from)).map(|(id, _)| *id);
        let ids: BTreeSet<u64> = ids.collect();
        if ids.is_empty() {
            return;
        }
        let ended: Vec<Lookup> = ids.iter().filter_map(|id| self.store.take_waiting(*id)).collect();
        self.timers.cancel(|timer| matches!(timer, Timer::Lookup(id) if ids.contains(id)));
        ended.into_iter().for_each(|lookup| self.end_lookup(cx, lookup, Status::ERR_NOT_FOUND));
    }

    pub(super) fn unpublish(&mut self, from: &ProcId, uid: u32, keys: &[Key], range: Range) -> Status {
        let anywhere = range == Range::UNDEF;
        self.store.remove(|entry| {
            let own = entry.from == *from && entry.uid == uid;
            own && (anywhere || entry.range == range) && (keys.is_empty() || keys.contains(&entry.key))
        });
        Status::SUCCESS
    }

    /// The job is over: what was to live no longer goes, and nobody of it waits.
    pub(super) fn withdraw_published(&mut self, cx: &mut Cx<'_>, nspace: &Nspace) {
        let outlives = |p| p == Persistence::INDEF || p == Persistence::SESSION;
        self.store.remove(|entry| entry.from.nspace == *nspace && !outlives(entry.persistence));
        self.end_lookups(cx, |from| from.nspace == *nspace);
    }

    /// A process has ended.
    pub(super) fn withdraw_published_by(&mut self, cx: &mut Cx<'_>, proc: &ProcId) {
        self.store.remove(|entry| entry.from == *proc && entry.persistence == Persistence::PROC);
        self.end_lookups(cx, |from| from == proc);
    }

    pub(super) fn explain_lookups(&self) -> Vec<Waiting> {
        let waiting = |lookup: &Lookup| Waiting {
            operation: "lookup",
            subject: lookup.keys.iter().map(Key::as_str).collect::<Vec<_>>().join(" "),
            asked_by: vec![lookup.from.clone()],
            missing: Vec::new(),
            since: lookup.since,
            deadline: lookup.until,
            unblocked_by: "somebody publishing the keys",
        };
        self.store.waiting.values().map(waiting).collect()
    }
}

impl Store {
    fn insert(&mut self, entry: Entry) {
        self.last_entry += 1;
        self.bytes += entry.bytes;
        self.by_key.entry(entry.key.clone()).or_default().insert(self.last_entry);
        self.entries.insert(self.last_entry, entry);
    }

    fn take(&mut self, id: u64) {
        let Some(entry) = self.entries.remove(&id) else { return };
        self.bytes -= entry.bytes;
        drop_from(&mut self.by_key, &entry.key, id);
    }

    fn remove(&mut self, chosen: impl Fn(&Entry) -> bool) {
        let gone: Vec<u64> =
            self.entries.iter().filter(|(_, entry)| chosen(entry)).map(|(id, _)| *id).collect();
        gone.into_iter().for_each(|id| self.take(id));
    }

    /// What was published under a key, the oldest first.
    fn named(&self, key: &Key) -> impl Iterator<Item = (u64, &Entry)> {
        let ids = self.by_key.get(key).into_iter().flatten();
        ids.filter_map(|id| Some((*id, self.entries.get(id)?)))
    }

    /// What was published for just the range that is looked at goes before the rest.
    fn find(&self, key: &Key, lookup: &Lookup, node: NodeId) -> Option<u64> {
        let answers = || self.named(key).filter(|(_, entry)| entry.answers(lookup, node));
        let (id, _) =
            answers().find(|(_, entry)| entry.range == lookup.range).or_else(|| answers().next())?;
        Some(id)
    }

    fn put_waiting(&mut self, id: u64, lookup: Lookup) {
        for key in &lookup.keys {
            self.awaited.entry(key.clone()).or_default().insert(id);
        }
        self.waiting.insert(id, lookup);
    }

    fn take_waiting(&mut self, id: u64) -> Option<Lookup> {
        let lookup = self.waiting.remove(&id)?;
        lookup.keys.iter().for_each(|key| drop_from(&mut self.awaited, key, id));
        Some(lookup)
    }

    /// Whether anything waits on behalf of a job that is over.
    pub(super) fn waits_for_any_of(&self, nspace: &Nspace) -> bool {
        self.waiting.values().any(|lookup| lookup.from.nspace == *nspace)
    }
}

fn drop_from(index: &mut BTreeMap<Key, BTreeSet<u64>>, key: &Key, id: u64) {
    if let Some(ids) = index.get_mut(key) {
        ids.remove(&id);
        if ids.is_empty() {
            index.remove(key);
        }
    }
}

impl Entry {
    fn answers(&self, lookup: &Lookup, node: NodeId) -> bool {
        (self.uid == lookup.uid || self.uids.contains(&u64::from(lookup.uid)))
            && self.is_looked_at(lookup, node)
            && self.is_visible_to(&lookup.from, node)
    }

    /// Whether its publisher is in the range that the lookup names, seen from whoever looks.
    fn is_looked_at(&self, lookup: &Lookup, node: NodeId) -> bool {
        match lookup.range {
            Range::PROC_LOCAL => self.from == lookup.from,
            Range::LOCAL => self.node == node,
            Range::NAMESPACE => self.from.nspace == lookup.from.nspace,
            // A lookup names nobody.
            Range::CUSTOM => self.range == Range::CUSTOM,
            Range::UNDEF | Range::SESSION | Range::GLOBAL => true,
            _ => false,
        }
    }

    fn is_visible_to(&self, proc: &ProcId, node: NodeId) -> bool {
        match self.range {
            Range::PROC_LOCAL => self.from == *proc,
            Range::LOCAL => self.node == node,
            Range::NAMESPACE => self.from.nspace == proc.nspace,
            Range::CUSTOM => self.from == *proc || self.readers.iter().any(|reader| reader.covers(proc)),
            Range::SESSION | Range::GLOBAL => true,
            // Meant for the resource manager alone.
            _ => false,
        }
    }

    /// Whether a second entry of the same key could be mistaken for this one by somebody.
    fn overlaps(&self, from: &ProcId, node: NodeId, range: Range) -> bool {
        if self.range != range {
            return false;
        }
        match range {
            Range::PROC_LOCAL => self.from == *from,
            Range::LOCAL => self.node == node,
            Range::NAMESPACE => self.from.nspace == from.nspace,
            _ => true,
        }
    }

    fn to_pdata(&self) -> Pdata {
        Pdata { proc: self.from.clone(), key: self.key.clone(), value: self.value.clone() }
    }
}

/// What an item counts against the store's bound.
fn weight(item: &Info) -> usize {
    OVERHEAD + item.key.as_str().len() + value_weight(&item.value)
}

fn value_weight(value: &Value) -> usize {
    match value {
        Value::String(text) => text.as_bytes().len(),
        Value::ByteObject(blob)
        | Value::CompressedString(blob)
        | Value::CompressedByteObject(blob)
        | Value::DataBuffer(blob)
        | Value::Regex(blob) => blob.len(),
        Value::Buffer(buffer) => buffer.bytes.len(),
        Value::Value(inner) => OVERHEAD + value_weight(inner),
        Value::Info(info) => weight(info),
        Value::DataArray(array) => array.items.iter().map(|item| OVERHEAD + value_weight(item)).sum(),
        _ => OVERHEAD,
    }
}

fn numbers(value: Option<&Value>) -> impl Iterator<Item = u64> {
    let many = value.and_then(Value::as_array).into_iter().flat_map(|array| &array.items);
    many.filter_map(Value::as_u64)
}

const OVERHEAD: usize = 64;
const MOST_WAITING: usize = 1 << 16;

#[cfg(test)]
mod tests;
