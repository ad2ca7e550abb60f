//! A PMIx server reduced to its upcalls: no connections, no bytes, just enough for a host to do its part.
//!
//! It collects the local part of a fence, holds the values that its processes commit, keeps every event that it receives, and reads
//! pulled output at a pace of its own.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use phalanx_core::host::{
    AbortRequest, Asked, ClientFinalized, ClientLost, DirectModexRequest, EventsRequest, FenceRequest,
};
use phalanx_core::server::{OutputTo, ServerCall, ServerReturn};
use phalanx_core::{
    CallId, Event, HostCall, HostOp, HostReply, Input, Machine, Outbox, Output, Rights, Time,
};
use phalanx_spec::{IofChannel, Range, Rank, Status, keys};
use phalanx_wire::cmd::control::JobControl;
use phalanx_wire::cmd::iof::DROPPED;
use phalanx_wire::cmd::publish::{Publish, Published};
use phalanx_wire::{Blob, Info, InfoList, Key, Nspace, ProcId, Value};

use crate::modex::{Modex, Shelf, encode};
use crate::script::{Op, RankAnswer, RankServer};

#[derive(Debug, Default)]
pub struct ScriptedServer {
    /// Events that this server has received.
    pub events: Vec<Event>,
    /// Those that the runtime announced, with the jobs that they concern.
    pub announced: Vec<(Event, Option<Vec<Nspace>>)>,
    /// Readers of pulled output here, by the number of the pull.
    pub taps: BTreeMap<u64, Tap>,
    last: u64,
    /// Upcalls to emit at the next turn.
    out: Vec<(HostCall, HostOp)>,
    pending: BTreeMap<u64, Pending>,
    rights: Rights<u64>,
    fences: Vec<Fence>,
    committed: BTreeMap<ProcId, BTreeMap<String, Vec<u8>>>,
    /// Modex data of other processes, from fences.
    known: BTreeMap<Nspace, Vec<Rc<Modex>>>,
    shelf: Shelf,
    asked: Vec<(CallId, ProcId, Option<Key>)>,
    /// The local processes of each job, and the job's size.
    jobs: BTreeMap<Nspace, (BTreeSet<Rank>, u32)>,
    answers: Vec<(ProcId, RankAnswer)>,
    gone: BTreeSet<ProcId>,
    /// Processes that the host has deregistered.
    over: BTreeSet<ProcId>,
}

/// A reader of pulled output.
#[derive(Debug, Default)]
pub struct Tap {
    /// The bytes received, by stream, and how many were reported as missing.
    pub streams: BTreeMap<(ProcId, IofChannel), Vec<u8>>,
    pub lost: BTreeMap<(ProcId, IofChannel), u64>,
    pub ended: BTreeSet<(ProcId, IofChannel)>,
    /// The infos of the last piece.
    pub info: Vec<Info>,
    /// How long it takes to read one piece.
    pub pace: Duration,
    /// It is gone when it has read this many bytes.
    pub dies_after: Option<usize>,
    /// It holds this many of the last bytes of each stream until the stream ends, and loses them when it dies.
    pub holds: usize,
    pub read: usize,
    /// The most bytes that ever waited for it.
    pub most_waiting: usize,
    waiting: VecDeque<Unread>,
}

#[derive(Debug)]
struct Unread {
    due: Time,
    id: CallId,
    stream: (ProcId, IofChannel),
    data: Blob,
    lost: u64,
}

impl Tap {
    pub fn new(pace: Duration, dies_after: Option<usize>) -> Tap {
        Tap { pace, dies_after, ..Tap::default() }
    }

    pub fn holding(self, holds: usize) -> Tap {
        Tap { holds, ..self }
    }

    pub fn is_dead(&self) -> bool {
        self.dies_after.is_some_and(|limit| self.read >= limit)
    }

    fn take(&mut self, now: Time, out: &mut Outbox<ServerReturn, ()>) {
        while let Some(unread) = self.waiting.pop_front_if(|unread| unread.due <= now) {
            let mut result = ServerReturn::Done(Status::ERR_NOT_FOUND);
            if !self.is_dead() {
                self.read += unread.data.len();
                assert!(!self.ended.contains(&unread.stream), "output after the end of {:?}", unread.stream);
                if unread.data.is_empty() {
                    self.ended.insert(unread.stream.clone());
                }
                *self.lost.entry(unread.stream.clone()).or_default() += unread.lost;
                let stream = self.streams.entry(unread.stream).or_default();
                stream.extend_from_slice(unread.data.as_bytes());
                result = match self.holds.min(stream.len()) {
                    held if held > 0 && !unread.data.is_empty() => ServerReturn::Held(held),
                    _ => ServerReturn::Done(Status::SUCCESS),
                };
                if self.is_dead() {
                    self.lose_held();
                }
            }
            out.push(Output::Return { id: unread.id, result });
        }
    }

    fn lose_held(&mut self) {
        for (_, bytes) in self.streams.iter_mut().filter(|(stream, _)| !self.ended.contains(stream)) {
            bytes.truncate(bytes.len().saturating_sub(self.holds));
        }
    }
}

/// An upcall without an answer yet.
#[derive(Debug)]
struct Pending {
    operation: &'static str,
    waiting: Vec<(ProcId, Want)>,
}

#[derive(Debug)]
enum Want {
    Done,
    /// The whole answer.
    All,
    /// One key of the modex in the answer.
    Key(ProcId, String),
}

#[derive(Debug)]
struct Fence {
    members: Vec<ProcId>,
    here: BTreeSet<ProcId>,
    collect: bool,
}

impl Machine for ScriptedServer {
    type Call = ServerCall;
    type Return = ServerReturn;
    type Delivery = ();

    fn handle(&mut self, now: Time, input: Input<'_, ServerCall>, out: &mut Outbox<ServerReturn, ()>) {
        match input {
            Input::Call { id, call: ServerCall::Output { to, source, channel, data, info } } => {
                self.on_output(now, id, &to, (source, channel), data, &info);
            }
            Input::Call { id, call } => {
                if let Some(result) = self.on_call(id, call) {
                    out.push(Output::Return { id, result });
                }
            }
            Input::Host { call, reply } => self.on_reply(call.use_up(), reply),
            _ => {}
        }
        while let Some(call) = self.rights.next_dropped() {
            let pending = self.pending.get(&call);
            assert!(pending.is_none(), "the host has dropped upcall {call}: {pending:?}");
        }
        self.taps.values_mut().for_each(|tap| tap.take(now, out));
        for (call, op) in self.out.drain(..) {
            out.push(Output::CallHost { call, op });
        }
        let (committed, over) = (&self.committed, &self.over);
        self.asked.retain(|(id, proc, key)| {
            let has = |values: &&BTreeMap<String, Vec<u8>>| {
                key.as_ref().is_none_or(|key| values.contains_key(key.as_str()))
            };
            let result = match committed.get(proc).filter(has) {
                Some(values) => Ok(encode(proc, values)),
                None if over.contains(proc) => Err(Status::ERR_NOT_FOUND),
                None => return true,
            };
            out.push(Output::Return { id: *id, result: ServerReturn::Modex(result) });
            false
        });
    }

    fn deadline(&self) -> Option<Time> {
        self.taps.values().filter_map(|tap| tap.waiting.front()).map(|unread| unread.due).min()
    }
}

impl ScriptedServer {
    /// A server that shares data from fences with others, on one shelf.
    pub fn sharing(shelf: &Shelf) -> ScriptedServer {
        ScriptedServer { shelf: shelf.clone(), ..ScriptedServer::default() }
    }

    /// The upcalls without an answer, with the processes that wait.
    pub fn unanswered(&self) -> Vec<(&'static str, Vec<&ProcId>)> {
        let open = self.pending.values();
        open.map(|one| (one.operation, one.waiting.iter().map(|(proc, _)| proc).collect())).collect()
    }

    fn on_call(&mut self, id: CallId, call: ServerCall) -> Option<ServerReturn> {
        match call {
            ServerCall::RegisterNspace(info) => {
                self.jobs.insert(info.nspace.clone(), (BTreeSet::new(), info.procs.len() as u32));
            }
            ServerCall::RegisterClient { proc, .. } => {
                // An earlier process may have had this name.
                self.over.remove(&proc);
                self.gone.remove(&proc);
                self.jobs.entry(proc.nspace).or_default().0.insert(proc.rank);
            }
            ServerCall::SetupFork(_) => return Some(ServerReturn::Environment(Vec::new())),
            ServerCall::DirectModex { proc, key } => {
                self.asked.push((id, proc, key));
                return None;
            }
            ServerCall::DeregisterNspace(nspace) => {
                self.jobs.remove(&nspace);
                self.committed.retain(|proc, _| proc.nspace != nspace);
                self.known.remove(&nspace);
            }
            // Values that it has not put by now will never come.
            ServerCall::DeregisterClient(proc) => drop(self.over.insert(proc)),
            ServerCall::Notify(event) => self.events.push(event),
            ServerCall::Announce { event, concerned, .. } => {
                self.events.push(event.clone());
                self.announced.push((event, concerned));
            }
            _ => {}
        }
        Some(ServerReturn::Done(Status::SUCCESS))
    }

    fn on_output(
        &mut self,
        now: Time,
        id: CallId,
        to: &OutputTo,
        stream: (ProcId, IofChannel),
        data: Blob,
        info: &[Info],
    ) {
        // Spawning tools are not simulated.
        let number = if let OutputTo::Pull(number) = to { *number } else { 0 };
        let tap = self.taps.entry(number).or_default();
        let after = tap.waiting.back().map_or(now, |unread| unread.due.max(now));
        let lost = info.find(DROPPED).and_then(Value::as_u64).unwrap_or(0);
        tap.info = info.to_vec();
        tap.waiting.push_back(Unread { due: after.after(tap.pace), id, stream, data, lost });
        tap.most_waiting = tap.most_waiting.max(tap.waiting.iter().map(|unread| unread.data.len()).sum());
    }

    fn on_reply(&mut self, call: u64, reply: HostReply) {
        let pending = self.pending.remove(&call);
        let Pending { waiting, .. } =
            pending.unwrap_or_else(|| panic!("upcall {call} is answered twice, with {reply:?}"));
        if let (HostReply::Modex(Ok(blob)), Some((proc, _))) = (&reply, waiting.first())
            && !blob.is_empty()
        {
            self.known.entry(proc.nspace.clone()).or_default().push(self.shelf.keep(blob));
        }
        for (proc, want) in waiting {
            let answer = match (&reply, want) {
                (_, Want::All) => RankAnswer::Host(Box::new(reply.clone())),
                (HostReply::Modex(Ok(_)), Want::Key(owner, key)) => match self.recall(&owner, &key) {
                    Some(value) => RankAnswer::Value(value),
                    None => RankAnswer::Done(Status::ERR_NOT_FOUND),
                },
                (HostReply::Lookup(Ok(found)), _) => match found.first().map(|pdata| &pdata.value) {
                    Some(Value::String(text)) => RankAnswer::Value(Blob::from(text.as_bytes())),
                    _ => RankAnswer::Done(Status::ERR_NOT_FOUND),
                },
                (HostReply::Done(status) | HostReply::Infos(status, _), _) => RankAnswer::Done(*status),
                (HostReply::Modex(Err(status)) | HostReply::Lookup(Err(status)), _) => {
                    RankAnswer::Done(*status)
                }
                (_, _) => RankAnswer::Done(Status::SUCCESS),
            };
            self.answers.push((proc, answer));
        }
    }

    fn fail_fence(&mut self, fence: Fence) {
        let failed =
            fence.here.into_iter().map(|waiting| (waiting, RankAnswer::Done(Status::ERR_PROC_ABORTED)));
        self.answers.extend(failed);
        let info = vec![Info::new(keys::LOCAL_COLLECTIVE_STATUS, Status::ERR_PROC_ABORTED)];
        self.upcall(
            HostOp::Fence(FenceRequest { procs: fence.members, info, data: Blob::default() }),
            Vec::new(),
        );
    }

    /// A value that a fence or a direct modex brought, the newest first.
    fn recall(&self, owner: &ProcId, key: &str) -> Option<Blob> {
        self.known.get(&owner.nspace)?.iter().rev().find_map(|modex| modex.get(owner, key))
    }

    fn upcall(&mut self, op: HostOp, waiting: Vec<(ProcId, Want)>) {
        self.last += 1;
        self.pending.insert(self.last, Pending { operation: op.operation(), waiting });
        self.out.push((HostCall::noticed_by(&self.rights, self.last), op));
    }

    /// Joins the local part of a fence; the upcall follows when all local members have joined.
    fn join_fence(&mut self, proc: &ProcId, ranks: &[Rank], collect: bool) {
        let Some((local, _)) = self.jobs.get(&proc.nspace) else { return };
        let mut members: Vec<ProcId> = ranks.iter().map(|rank| ProcId::new(&proc.nspace, *rank)).collect();
        if members.is_empty() {
            members.push(ProcId::all(&proc.nspace));
        }
        members.sort();
        let expected = local.iter().map(|rank| ProcId::new(&proc.nspace, *rank));
        let expected: BTreeSet<ProcId> = expected.filter(|p| members.iter().any(|m| m.covers(p))).collect();
        let at = self.fences.iter().position(|f| f.members == members && !f.here.contains(proc));
        let at = at.unwrap_or_else(|| {
            self.fences.push(Fence { members, here: BTreeSet::new(), collect: false });
            self.fences.len() - 1
        });
        let fence = &mut self.fences[at];
        fence.here.insert(proc.clone());
        fence.collect |= collect;
        let absent = expected.difference(&fence.here).collect::<Vec<_>>();
        if absent.iter().any(|member| self.gone.contains(*member)) {
            let fence = self.fences.remove(at);
            return self.fail_fence(fence);
        }
        if !absent.is_empty() {
            return;
        }
        let fence = self.fences.remove(at);
        let mut data = Vec::new();
        if fence.collect {
            for (proc, values) in self.committed.iter().filter(|(proc, _)| fence.here.contains(proc)) {
                data.extend_from_slice(encode(proc, values).as_bytes());
            }
        }
        let waiting = fence.here.into_iter().map(|proc| (proc, Want::Done)).collect();
        let op = HostOp::Fence(FenceRequest { procs: fence.members, info: Vec::new(), data: data.into() });
        self.upcall(op, waiting);
    }
}

impl RankServer for ScriptedServer {
    fn ask(&mut self, proc: &ProcId, op: Op) {
        let done = vec![(proc.clone(), Want::Done)];
        let from = proc.clone();
        let uid = 1000;
        match op {
            Op::Init => self.upcall(HostOp::ClientConnected(from), done),
            Op::Finalize => {
                self.upcall(HostOp::ClientFinalized(ClientFinalized { proc: from, others: false }), done)
            }
            Op::Commit { key, value } => {
                self.committed.entry(from.clone()).or_default().insert(key, value);
                self.answers.push((from, RankAnswer::Done(Status::SUCCESS)));
            }
            Op::Fence { procs, collect } => self.join_fence(proc, &procs, collect),
            Op::Get { rank, key } => {
                let owner = ProcId::new(&proc.nspace, rank);
                let local = self.committed.get(&owner).and_then(|values| values.get(&key)).cloned();
                match local.map(Blob::from).or_else(|| self.recall(&owner, &key)) {
                    Some(value) => self.answers.push((from, RankAnswer::Value(value))),
                    None => {
                        let info = vec![Info::new(keys::REQUIRED_KEY, key.as_str())];
                        self.upcall(
                            HostOp::DirectModex(DirectModexRequest { proc: owner.clone(), info }),
                            vec![(from, Want::Key(owner, key))],
                        );
                    }
                }
            }
            Op::Publish { key, value, range } => {
                let Ok(key) = Key::new(&key) else { return };
                let data = Info { key, flags: Default::default(), value: value.into() };
                let request = Publish { uid, info: vec![data, Info::new(keys::RANGE, range)] };
                self.upcall(HostOp::Publish(Asked { from, request }), done);
            }
            Op::Lookup { key, wait, timeout } => {
                let keys = Key::new(&key).into_iter().collect();
                let mut info = vec![Info::new(keys::RANGE, Range::UNDEF)];
                if wait {
                    info.push(Info::new(keys::WAIT, 0i32));
                }
                info.extend(timeout.map(|seconds| Info::new(keys::TIMEOUT, seconds as i32)));
                self.upcall(HostOp::Lookup(Asked { from, request: Published { uid, keys, info } }), done);
            }
            Op::Unpublish { key } => {
                let keys = Key::new(&key).into_iter().collect();
                let info = vec![Info::new(keys::RANGE, Range::UNDEF)];
                self.upcall(HostOp::Unpublish(Asked { from, request: Published { uid, keys, info } }), done);
            }
            Op::Abort { status } => {
                let message = "as the script says".to_owned();
                self.upcall(
                    HostOp::Abort(AbortRequest { from, status: Status(status), message, procs: Vec::new() }),
                    done,
                );
            }
            Op::Host(op) => self.upcall(*op, vec![(from, Want::All)]),
            // These have upcalls instead.
            Op::FenceWith { .. }
            | Op::Connect { .. }
            | Op::Disconnect { .. }
            | Op::Group { .. }
            | Op::Ungroup { .. } => {
                self.answers.push((from, RankAnswer::Done(Status::ERR_NOT_SUPPORTED)));
            }
            Op::Control { targets, directives } => {
                let targets = targets.into_iter().map(|rank| ProcId::new(&proc.nspace, rank)).collect();
                self.upcall(HostOp::from(Asked { from, request: JobControl { targets, directives } }), done);
            }
            Op::Listen { codes } => {
                self.upcall(HostOp::RegisterEvents(EventsRequest { codes, info: Vec::new() }), done)
            }
            Op::Notify { code, range } => {
                let event = Event { code, source: from, range, info: Vec::new() };
                self.upcall(HostOp::Notify(event), done);
            }
        }
    }

    fn leave(&mut self, proc: &ProcId) {
        // Fails the local fences that wait for it, and notifies the host, for the other nodes.
        let waits =
            |fence: &mut Fence| fence.members.iter().any(|m| m.covers(proc)) && !fence.here.contains(proc);
        for fence in self.fences.extract_if(.., waits).collect::<Vec<_>>() {
            self.fail_fence(fence);
        }
        self.gone.insert(proc.clone());
        self.upcall(HostOp::ClientLost(ClientLost { proc: proc.clone(), cut_off: None }), Vec::new());
    }

    fn answers(&mut self) -> Vec<(ProcId, RankAnswer)> {
        std::mem::take(&mut self.answers)
    }
}
