//! Published data, held by the root: visibility, lifetime, and waiting lookups.
//!
//! The range of a publication limits which processes may find it, that of a lookup which publishers are considered; both must
//! match. The store is bounded in bytes. Waiting lookups are operations, found by their keys.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use phalanx_core::HostReply;
use phalanx_core::host::{PublishRequest, PublishedRequest};
use phalanx_spec::{Persistence, Range, Status, keys};
use phalanx_wire::cmd::publish::Published;
use phalanx_wire::{Info, InfoList, Key, Nspace, Pdata, ProcId, Value};

use crate::id::NodeId;
use crate::msg::procs;
use crate::root::answer::{Answer, Asker};
use crate::root::consequence::Consequence;
use crate::root::dvm::Dvm;
use crate::root::jobs::Jobs;
use crate::root::kind::{Explained, Kind};
use crate::root::operations::Operations;
use crate::root::turn::Cx;

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
    /// Other users that may read it.
    uids: Vec<u64>,
    persistence: Persistence,
    bytes: usize,
}

/// A lookup and its requester.
#[derive(Debug)]
pub(super) struct Lookup {
    from: ProcId,
    uid: u32,
    keys: Vec<Key>,
    range: Range,
    /// How many of the keys it waits for.
    wanted: usize,
}

impl Lookup {
    fn new(request: &PublishedRequest) -> Lookup {
        let Published { uid, keys: wanted_keys, info } = &request.request;
        let wanted = match info.find(keys::WAIT).map(|value| (value.as_u64(), value.is_true())) {
            None => 0,
            Some((Some(0), _)) | Some((None, true)) => wanted_keys.len(),
            Some((Some(count), _)) => (count as usize).min(wanted_keys.len()),
            Some((None, false)) => 0,
        };
        Lookup {
            from: request.from.clone(),
            uid: *uid,
            keys: wanted_keys.clone(),
            range: request.range(),
            wanted,
        }
    }
}

impl Kind for Lookup {
    fn name(&self) -> &'static str {
        "lookup"
    }

    fn most(&self) -> usize {
        1 << 16
    }

    fn calls(&self) -> Vec<String> {
        self.keys.iter().map(|key| key.as_str().to_owned()).collect()
    }

    fn failure(&self, status: Status) -> HostReply {
        HostReply::Lookup(Err(status))
    }

    fn explain(&self, _: &[Asker], _: &Jobs) -> Explained {
        Explained {
            subject: self.keys.iter().map(Key::as_str).collect::<Vec<_>>().join(" "),
            unblocked_by: "somebody publishing the keys",
            ..Explained::default()
        }
    }
}

pub(super) fn publish(
    cx: &mut Cx<'_>,
    dvm: &Dvm,
    store: &mut Store,
    operations: &mut Operations,
    request: &PublishRequest,
) -> Status {
    let Some(node) = dvm.node_of(&request.from) else { return Status::ERR_NOT_FOUND };
    if let Err(status) = store.publish(node, dvm.config.limits.published, request) {
        return status;
    }
    let waiting = request.data().flat_map(|item| operations.called::<Lookup>(item.key.as_str()));
    let served: BTreeSet<u64> = waiting.collect();
    served.into_iter().for_each(|number| serve_lookup(cx, dvm, store, operations, number));
    Status::SUCCESS
}

pub(super) fn lookup(
    cx: &mut Cx<'_>,
    dvm: &Dvm,
    store: &mut Store,
    operations: &mut Operations,
    answer: Answer,
    request: &PublishedRequest,
) {
    let from = &request.from;
    let Some(node) = dvm.node_of(from) else { return answer.done(cx, Status::ERR_NOT_FOUND) };
    let lookup = Lookup::new(request);
    if let Some(result) = store.look_up(&lookup, node) {
        return answer.give(cx, HostReply::Lookup(result));
    }
    let seconds = request.info.find(keys::TIMEOUT).and_then(Value::as_u64).filter(|seconds| *seconds > 0);
    let until = seconds.map(|seconds| cx.now.after(Duration::from_secs(seconds)));
    operations.begin(cx, Some(Asker::new(from, answer)), until, lookup);
}

/// A key that this lookup waits for was published.
fn serve_lookup(cx: &mut Cx<'_>, dvm: &Dvm, store: &mut Store, operations: &mut Operations, number: u64) {
    let Some(lookup) = operations.get::<Lookup>(number) else { return };
    let result = match dvm.node_of(&lookup.from) {
        Some(node) => store.look_up(lookup, node),
        None => Some(Err(Status::ERR_NOT_FOUND)),
    };
    if let Some(result) = result
        && let Some(lookup) = operations.take::<Lookup>(number)
    {
        let reply = HostReply::Lookup(result);
        lookup.askers.into_iter().for_each(|asker| asker.answer.give(cx, reply.clone()));
    }
}

/// The requesters are gone: ends their lookups, so that their servers do not wait.
fn end_lookups(
    cx: &mut Cx<'_>,
    operations: &mut Operations,
    gone: impl Fn(&ProcId) -> bool,
) -> Vec<Consequence> {
    let is_lookup = |kind: &dyn Kind| (kind as &dyn Any).is::<Lookup>();
    operations.dismiss(cx, is_lookup, |asker| gone(&asker.by), Status::ERR_NOT_FOUND).1
}

/// The job is over: removes publications that do not outlive it, and ends its lookups.
pub(super) fn withdraw_all_of(
    cx: &mut Cx<'_>,
    store: &mut Store,
    operations: &mut Operations,
    nspace: &Nspace,
) -> Vec<Consequence> {
    let outlives = [Persistence::INDEF, Persistence::SESSION, Persistence::FIRST_READ];
    store.remove(|entry| entry.from.nspace == *nspace && !outlives.contains(&entry.persistence));
    end_lookups(cx, operations, |from| from.nspace == *nspace)
}

/// A process has ended.
pub(super) fn withdraw_those_of(
    cx: &mut Cx<'_>,
    store: &mut Store,
    operations: &mut Operations,
    proc: &ProcId,
) -> Vec<Consequence> {
    store.remove(|entry| entry.from == *proc && entry.persistence == Persistence::PROC);
    end_lookups(cx, operations, |from| from == proc)
}

impl Store {
    fn publish(&mut self, node: NodeId, limit: usize, request: &PublishRequest) -> Result<(), Status> {
        let (from, info) = (&request.from, &request.info);
        let range = if request.range() == Range::UNDEF { Range::SESSION } else { request.range() };
        let bytes: usize = request.data().map(weight).sum();
        if self.bytes.saturating_add(bytes) > limit {
            return Err(Status::ERR_OUT_OF_RESOURCE);
        }
        let mut new = BTreeSet::new();
        let taken = |key: &Key| self.named(key).any(|(_, entry)| entry.overlaps(from, node, range));
        if !request.data().all(|item| new.insert(&item.key) && !taken(&item.key)) {
            return Err(Status::ERR_DUPLICATE_KEY);
        }
        let readers: Vec<ProcId> = procs(info.find(keys::EVENT_CUSTOM_RANGE)).collect();
        let uids: Vec<u64> = numbers(info.find(keys::ACCESS_USERIDS)).collect();
        for item in request.data() {
            self.insert(Entry {
                from: from.clone(),
                node,
                uid: request.uid,
                key: item.key.clone(),
                value: item.value.clone(),
                range,
                readers: readers.clone(),
                uids: uids.clone(),
                persistence: request.persistence(),
                bytes: weight(item),
            });
        }
        Ok(())
    }

    pub(super) fn unpublish(&mut self, request: &PublishedRequest) {
        let (from, range, keys) = (&request.from, request.range(), &request.keys);
        let anywhere = range == Range::UNDEF;
        self.remove(|entry| {
            let own = entry.from == *from && entry.uid == request.uid;
            own && (anywhere || entry.range == range) && (keys.is_empty() || keys.contains(&entry.key))
        });
    }

    fn insert(&mut self, entry: Entry) {
        self.last_entry += 1;
        self.bytes += entry.bytes;
        self.by_key.entry(entry.key.clone()).or_default().insert(self.last_entry);
        self.entries.insert(self.last_entry, entry);
    }

    fn take(&mut self, id: u64) {
        let Some(entry) = self.entries.remove(&id) else { return };
        self.bytes -= entry.bytes;
        if let Some(ids) = self.by_key.get_mut(&entry.key) {
            ids.remove(&id);
            if ids.is_empty() {
                self.by_key.remove(&entry.key);
            }
        }
    }

    fn remove(&mut self, chosen: impl Fn(&Entry) -> bool) {
        let gone: Vec<u64> =
            self.entries.iter().filter(|(_, entry)| chosen(entry)).map(|(id, _)| *id).collect();
        gone.into_iter().for_each(|id| self.take(id));
    }

    /// The publications under a key, the oldest first.
    fn named(&self, key: &Key) -> impl Iterator<Item = (u64, &Entry)> {
        let ids = self.by_key.get(key).into_iter().flatten();
        ids.filter_map(|id| Some((*id, self.entries.get(id)?)))
    }

    /// Publications with exactly the range of the lookup come first.
    fn find(&self, key: &Key, lookup: &Lookup, node: NodeId) -> Option<u64> {
        let answers = || self.named(key).filter(|(_, entry)| entry.answers(lookup, node));
        let (id, _) =
            answers().find(|(_, entry)| entry.range == lookup.range).or_else(|| answers().next())?;
        Some(id)
    }

    /// The result of the lookup; none if it has to wait.
    fn look_up(&mut self, lookup: &Lookup, node: NodeId) -> Option<Result<Vec<Pdata>, Status>> {
        let found: Vec<u64> = lookup.keys.iter().filter_map(|key| self.find(key, lookup, node)).collect();
        if found.len() < lookup.wanted {
            return None;
        }
        let data: Vec<Pdata> = found.iter().filter_map(|id| Some(self.entries.get(id)?.to_pdata())).collect();
        let is_read = |entry: &Entry| entry.persistence == Persistence::FIRST_READ;
        for id in found {
            if self.entries.get(&id).is_some_and(is_read) {
                self.take(id);
            }
        }
        Some(if data.is_empty() { Err(Status::ERR_NOT_FOUND) } else { Ok(data) })
    }
}

impl Entry {
    fn answers(&self, lookup: &Lookup, node: NodeId) -> bool {
        (self.uid == lookup.uid || self.uids.contains(&u64::from(lookup.uid)))
            && self.is_looked_at(lookup, node)
            && self.is_visible_to(&lookup.from, node)
    }

    /// Whether its publisher is in the range of the lookup, seen from the requester.
    fn is_looked_at(&self, lookup: &Lookup, node: NodeId) -> bool {
        match lookup.range {
            Range::PROC_LOCAL => self.from == lookup.from,
            Range::LOCAL => self.node == node,
            Range::NAMESPACE => self.from.nspace == lookup.from.nspace,
            // A lookup cannot list processes, so CUSTOM finds all that are published so.
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

    /// Whether a second publication of the key could be confused with this one by a lookup.
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

#[cfg(test)]
mod tests;
