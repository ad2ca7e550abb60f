//! Direct modex: the values that one process has committed, fetched by another's daemon from the daemon that hosts it.
//!
//! The request is repeated until it is answered or one of the two is gone; a second answer does no harm.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use phalanx_core::host::DirectModexRequest;
use phalanx_core::server::ServerCall;
use phalanx_core::{HostCall, HostReply, Time, Waiting};
use phalanx_spec::{Rank, Status, keys};
use phalanx_wire::{Blob, Info, InfoList, Key, Nspace, ProcId, Value};

use crate::id::NodeId;
use crate::local::calls::Call;
use crate::local::job::Jobs;
use crate::local::timer::Timer;
use crate::local::turn::Cx;
use crate::msg::{NodeTable, Side};
use crate::ranges::Ranges;

#[derive(Debug, Default)]
pub(super) struct Modexes {
    last: u64,
    /// Our requests to others.
    fetches: BTreeMap<u64, Fetch>,
    /// Others' requests that our server has not answered.
    answering: BTreeMap<(NodeId, u64), ProcId>,
}

#[derive(Debug)]
struct Fetch {
    call: HostCall,
    proc: ProcId,
    key: Option<Key>,
    to: NodeId,
    since: Time,
    until: Option<Time>,
}

/// The daemon that has the values of a process. The process may have ended since.
fn keeper_of(jobs: &Jobs, lost: &BTreeSet<NodeId>, proc: &ProcId) -> Result<NodeId, Status> {
    let node = jobs.get(&proc.nspace).and_then(|job| job.desc.node_of(proc.rank));
    match node.ok_or(Status::ERR_NOT_FOUND)? {
        node if lost.contains(&node) => Err(Status::ERR_PROC_TERM_WO_SYNC),
        node => Ok(node),
    }
}

impl Modexes {
    pub(super) fn on_request(
        &mut self,
        cx: &mut Cx<'_>,
        (jobs, table, lost): (&mut Jobs, &Arc<NodeTable>, &BTreeSet<NodeId>),
        call: HostCall,
        DirectModexRequest { proc, info }: DirectModexRequest,
    ) {
        // The request may be for the job's own data, or for a job that our server does not know yet.
        jobs.get_mut(&proc.nspace).into_iter().for_each(|job| job.introduce(cx, table));
        if proc.rank == Rank::WILDCARD && jobs.contains_key(&proc.nspace) {
            return cx.reply(call, HostReply::Modex(Ok(Blob::default())));
        }
        match keeper_of(jobs, lost, &proc) {
            Ok(to) => self.ask(cx, (call, proc, to), &info),
            Err(status) => cx.reply(call, HostReply::Modex(Err(status))),
        }
    }

    /// A request or an answer of another daemon.
    pub(super) fn on_side(&mut self, cx: &mut Cx<'_>, jobs: &Jobs, from: NodeId, body: Side) {
        match body {
            Side::Modex { id, proc, key } => {
                let job = jobs.get(&proc.nspace);
                match job.is_some_and(|job| job.procs.contains_key(&proc.rank)) {
                    true => self.look(cx, (from, id), proc, key),
                    false => cx.send(from, Side::ModexIs { id, result: Err(Status::ERR_NOT_FOUND) }),
                }
            }
            Side::ModexIs { id, result } => self.answered(cx, id, result),
        }
    }

    /// Asks the daemon `to` for what a process has put.
    fn ask(&mut self, cx: &mut Cx<'_>, (call, proc, to): (HostCall, ProcId, NodeId), info: &[Info]) {
        let timeout =
            info.find(keys::TIMEOUT).and_then(|value| value.as_u64()).filter(|seconds| *seconds > 0);
        let until = timeout.map(|seconds| cx.now.after(Duration::from_secs(seconds)));
        let key = info.find(keys::REQUIRED_KEY).and_then(Value::as_str).and_then(|key| Key::new(key).ok());
        self.last += 1;
        let id = self.last;
        let (asked_for, since) = (key.clone(), cx.now);
        self.fetches.insert(id, Fetch { call, proc: proc.clone(), key: asked_for, to, since, until });
        cx.timers.set_once(cx.now.after(cx.config.limits.retry), Timer::Retry);
        if let Some(until) = until {
            cx.timers.set(until, Timer::Retry);
        }
        cx.send(to, Side::Modex { id, proc, key });
    }

    /// Repeats unanswered requests, and gives up those with a time limit that has passed.
    pub(super) fn ask_again(&mut self, cx: &mut Cx<'_>) {
        let now = cx.now;
        let is_over = |_: &u64, fetch: &mut Fetch| fetch.until.is_some_and(|until| until <= now);
        for (_, fetch) in self.fetches.extract_if(.., is_over) {
            cx.reply(fetch.call, HostReply::Modex(Err(Status::ERR_TIMEOUT)));
        }
        if !self.fetches.is_empty() {
            cx.timers.set_once(cx.now.after(cx.config.limits.retry), Timer::Retry);
        }
        for (id, Fetch { to, proc, key, .. }) in &self.fetches {
            cx.send(*to, Side::Modex { id: *id, proc: proc.clone(), key: key.clone() });
        }
    }

    /// These ranks are started again: answers under way are from the old processes.
    pub(super) fn ask_anew(&mut self, cx: &mut Cx<'_>, nspace: &Nspace, ranks: &Ranges) {
        let is_of = |fetch: &Fetch| fetch.proc.nspace == *nspace && ranks.contains(fetch.proc.rank.0);
        let again: Vec<Fetch> =
            self.fetches.extract_if(.., |_, fetch| is_of(fetch)).map(|(_, fetch)| fetch).collect();
        for fetch in again {
            self.last += 1;
            let (id, proc, key) = (self.last, fetch.proc.clone(), fetch.key.clone());
            cx.send(fetch.to, Side::Modex { id, proc, key });
            self.fetches.insert(id, fetch);
        }
    }

    /// Another daemon asks for the values of a process of ours.
    fn look(&mut self, cx: &mut Cx<'_>, (asker, id): (NodeId, u64), proc: ProcId, key: Option<Key>) {
        if self.answering.insert((asker, id), proc.clone()).is_none() {
            cx.call(ServerCall::DirectModex { proc, key }, Call::Modex { asker, id });
        }
    }

    /// Our server has found what another daemon asked for.
    pub(super) fn answer(&mut self, cx: &mut Cx<'_>, asker: NodeId, id: u64, result: Result<Blob, Status>) {
        self.answering.remove(&(asker, id));
        cx.send(asker, Side::ModexIs { id, result });
    }

    fn answered(&mut self, cx: &mut Cx<'_>, id: u64, result: Result<Blob, Status>) {
        if let Some(fetch) = self.fetches.remove(&id) {
            cx.reply(fetch.call, HostReply::Modex(result));
        }
    }

    /// A daemon is lost.
    pub(super) fn without(&mut self, cx: &mut Cx<'_>, lost: NodeId) {
        self.give_up(cx, |fetch| fetch.to == lost);
        if !self.fetches.is_empty() {
            self.ask_again(cx);
        }
    }

    /// The job is over.
    pub(super) fn forget(&mut self, cx: &mut Cx<'_>, nspace: &Nspace) {
        self.answering.retain(|_, proc| proc.nspace != *nspace);
        self.give_up(cx, |fetch| fetch.proc.nspace == *nspace);
    }

    pub(super) fn know(&self, nspace: &Nspace) -> bool {
        let mut procs = self.fetches.values().map(|fetch| &fetch.proc).chain(self.answering.values());
        procs.any(|proc| proc.nspace == *nspace)
    }

    fn give_up(&mut self, cx: &mut Cx<'_>, is_in_vain: impl Fn(&Fetch) -> bool) {
        for (_, fetch) in self.fetches.extract_if(.., |_, fetch| is_in_vain(fetch)) {
            cx.reply(fetch.call, HostReply::Modex(Err(Status::ERR_PROC_TERM_WO_SYNC)));
        }
    }

    pub(super) fn explain(&self, table: &Arc<NodeTable>) -> Vec<Waiting> {
        let waiting = |fetch: &Fetch| Waiting {
            operation: "get".into(),
            subject: format!("data of {} from {}", fetch.proc, table.name(fetch.to)),
            asked_by: Vec::new(),
            missing: vec![fetch.proc.clone()],
            since: fetch.since,
            deadline: fetch.until,
            unblocked_by: "the named process committing its data".into(),
        };
        self.fetches.values().map(waiting).collect()
    }
}
