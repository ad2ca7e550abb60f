//! Gets of one process share a request: one is under way, and its answer serves all gets that wait.
//!
//! Servers answer a get with all committed values of the process, so a second request for another of its keys would bring the
//! same again. The first get leads: its request goes to the server. The gets that follow are entries in the table of pending
//! requests that have not been sent. The answer serves every get whose value it holds. If it lacks the leader's value, that also
//! ends the gets that have waited about as long; the oldest remaining get leads next.
//!
//! A server of ours is informed that other gets may wait ([`PARTIAL`]). It then answers as soon as the process commits anything,
//! whether the leader's key is there or not, and returns `PMIX_ERR_PARTIAL_SUCCESS` if the rest may still come.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use phalanx_spec::{Status, keys};
use phalanx_wire::cmd::get::{Get, PARTIAL, Reply};
use phalanx_wire::cmd::{Body, Request};
use phalanx_wire::{Info, Key, ProcId, Value};

use super::told::{load, spoken_value};
use crate::client::call::ClientReturn;
use crate::client::link::{Cx, Link};
use crate::client::pending::{Awaited, Pending};
use crate::machine::{CallId, Time};
use crate::store::{LookupRequest, Realm};

/// Gets that wait for the answer to another, by target process.
#[derive(Debug, Default)]
pub(in crate::client) struct SharedGets(BTreeMap<ProcId, Waiters>);

#[derive(Debug)]
struct Waiters {
    /// The tag of the request that is under way, and when it was sent.
    leader: u32,
    sent: Time,
    /// Since when the process is known to have committed without all wanted keys.
    partial_since: Option<Time>,
    /// The other gets, by key, and their keys, the oldest first.
    by_key: BTreeMap<Key, Vec<Waiter>>,
    by_age: BTreeMap<Waiter, Key>,
}

/// Start of a get's wait, and its tag.
type Waiter = (Time, u32);

/// The result of an answer.
struct Brought {
    status: Status,
    /// Keys of the target process.
    keys: Vec<Key>,
    spoken: Option<Value>,
}

impl SharedGets {
    pub(in crate::client) fn is_led_by(&self, tag: u32, proc: &ProcId) -> bool {
        self.0.get(proc).is_some_and(|waiters| waiters.leader == tag)
    }

    pub(in crate::client) fn clear(&mut self) {
        self.0.clear();
    }
}

impl Waiters {
    fn insert(&mut self, waiter: Waiter, key: Key) {
        self.by_key.entry(key.clone()).or_default().push(waiter);
        self.by_age.insert(waiter, key);
    }

    fn remove(&mut self, waiter: Waiter) -> Option<Key> {
        let key = self.by_age.remove(&waiter)?;
        if let Some(same) = self.by_key.get_mut(&key) {
            same.retain(|one| *one != waiter);
            if same.is_empty() {
                self.by_key.remove(&key);
            }
        }
        Some(key)
    }

    /// Takes the gets that wait for one of these keys.
    fn take(&mut self, keys: &[Key]) -> Vec<Waiter> {
        let taken: Vec<Waiter> = if keys.len() < self.by_key.len() {
            keys.iter().filter_map(|key| self.by_key.remove(key)).flatten().collect()
        } else {
            let keys = BTreeSet::from_iter(keys);
            let taken = self.by_key.extract_if(.., |key, _| keys.contains(key));
            taken.flat_map(|(_, waiters)| waiters).collect()
        };
        for waiter in &taken {
            self.by_age.remove(waiter);
        }
        taken
    }

    /// Takes the gets that had joined by then.
    fn take_older(&mut self, until: Time) -> Vec<Waiter> {
        if self.by_age.last_key_value().is_some_and(|((since, _), _)| *since <= until) {
            self.by_key.clear();
            return std::mem::take(&mut self.by_age).into_keys().collect();
        }
        let older: Vec<Waiter> = self.by_age.range(..=(until, u32::MAX)).map(|(waiter, _)| *waiter).collect();
        older.iter().for_each(|waiter| drop(self.remove(*waiter)));
        older
    }

    /// From when on the waiting time of a get that began at `since` counts.
    fn start(&self, since: Time) -> Time {
        self.partial_since.map_or(since, |partial| partial.max(since))
    }
}

impl SharedGets {
    pub(super) fn ask(&mut self, cx: &mut Cx<'_>, id: CallId, request: LookupRequest, info: Vec<Info>) {
        let (proc, key) = (request.proc.clone(), request.key.clone());
        let what = Awaited::Get { request };
        if let Err(status) = cx.can_ask(Some(id)) {
            return cx.give_back(Some(id), what.failed(status));
        }
        let tag = cx.link.pending.insert(Pending { call: Some(id), since: cx.now, deadline: None, what });
        match (self.0.get_mut(&proc), key) {
            (Some(waiters), Some(key)) => waiters.insert((cx.now, tag), key),
            (_, key) => {
                send_shared(cx, tag, &proc, key, info, 0);
                let (by_key, by_age) = (BTreeMap::new(), BTreeMap::new());
                let waiters = Waiters { leader: tag, sent: cx.now, partial_since: None, by_key, by_age };
                self.0.insert(proc, waiters);
            }
        }
    }

    /// Applies the answer to the leader's request to all gets that wait.
    pub(in crate::client) fn on_values(
        &mut self,
        cx: &mut Cx<'_>,
        tag: u32,
        leader: Pending,
        payload: &[u8],
    ) {
        let Awaited::Get { request } = &leader.what else { return };
        let (proc, leader_since) = (request.proc.clone(), leader.since);
        let Some(mut waiters) = self.0.remove(&proc) else { return };
        let Brought { status, keys, spoken } = take_values(cx.link, request, payload);
        let is_partial = status == Status::ERR_PARTIAL_SUCCESS;
        let word = if status.is_success() { Status::ERR_NOT_FOUND } else { status };
        let value = cx.link.store.known(request).or(spoken);
        // A server of ours has waited for this key alone. Those of OpenPMIx wait for no key once the process has committed.
        let waits_for_key = cx.link.config.files.is_some();
        let goes_on = is_partial || (waits_for_key && value.is_some());
        match (value, request.key.clone()) {
            (None, Some(key)) if is_partial && leader.call.is_some() => {
                waiters.insert((leader.since, tag), key);
                cx.link.pending.put_back(tag, leader);
            }
            (value, _) => cx.give_back(leader.call, ClientReturn::Value(value.ok_or(word))),
        }
        end_waiters(cx, waiters.take(&keys), word);
        if goes_on {
            waiters.partial_since.get_or_insert(cx.now);
        } else if status != Status::ERR_TIMEOUT {
            // A timeout concerns the leader alone.
            let until = if waits_for_key { waiters.start(leader_since).after(SLACK) } else { waiters.sent };
            end_waiters(cx, waiters.take_older(until), word);
        }
        if let Some((oldest, _)) = waiters.by_age.first_key_value() {
            let (since, tag) = *oldest;
            let key = waiters.remove((since, tag));
            (waiters.leader, waiters.sent) = (tag, cx.now);
            let waited = waiters.partial_since.map(|_| cx.now.since(waiters.start(since)).as_millis() + 1);
            let waited = waited.and_then(|millis| u64::try_from(millis).ok()).unwrap_or(0);
            send_shared(cx, tag, &proc, key, Vec::new(), waited);
            self.0.insert(proc, waiters);
        }
    }
}

/// Whether the server's answer is valid for every other get of that process.
pub(super) fn may_share(link: &Link, request: &LookupRequest, info: &[Info]) -> bool {
    let is_plain = request.realm == Realm::Unsaid && request.qualified.is_none();
    is_plain
        && link.remembers
        && !(request.refresh || request.scoped)
        && request.proc.rank.is_process()
        && request.key.as_ref().is_some_and(|key| !key.is_reserved())
        && info.iter().all(|info| HARMLESS.iter().any(|harmless| info.key == *harmless))
}

fn send_shared(cx: &mut Cx<'_>, tag: u32, proc: &ProcId, key: Option<Key>, mut info: Vec<Info>, waited: u64) {
    // A server that names files is one of ours.
    if cx.link.config.files.is_some() {
        info.push(Info::new(PARTIAL, waited));
    }
    let get = Get { nspace: proc.nspace.clone(), rank: proc.rank, info, key };
    cx.send(tag, &Request::Get(get).encode(cx.link.config.dialect));
}

/// Ends these gets with their values, or with the server's status where there is none.
fn end_waiters(cx: &mut Cx<'_>, waiters: Vec<Waiter>, word: Status) {
    for (_, tag) in waiters {
        let Some(Pending { call, what: Awaited::Get { request }, .. }) = cx.link.pending.remove(tag) else {
            continue;
        };
        let value = cx.link.store.known(&request).ok_or(word);
        cx.give_back(call, ClientReturn::Value(value));
    }
}

/// Stores the values that the server sent.
fn take_values(link: &Link, request: &LookupRequest, payload: &[u8]) -> Brought {
    let mut brought = Brought { status: Status::SUCCESS, keys: Vec::new(), spoken: None };
    let read = Reply::decode(payload, link.config.dialect).and_then(|reply| {
        brought.status = reply.status;
        reply.data.into_iter().try_for_each(|data| {
            if brought.spoken.is_none() {
                brought.spoken = spoken_value(request, &data);
            }
            if data.owner == request.proc {
                brought.keys.extend(data.values.iter().map(|kval| kval.key.clone()));
            }
            load(link, &link.store, data)
        })
    });
    if let Err(error) = read {
        tracing::warn!(%error, proc = %request.proc, "the server's reply cannot be read");
        brought.status = Status::ERR_UNPACK_FAILURE;
    }
    brought
}

/// Directives that affect neither which value is meant nor how long its key is waited for. A get with a time limit does not
/// share: the server waits for its key that long.
const HARMLESS: [&str; 2] = [keys::GET_STATIC_VALUES, keys::GET_POINTER_VALUES];
/// Gets that have waited nearly as long as the leader get the same result.
const SLACK: Duration = Duration::from_millis(250);
