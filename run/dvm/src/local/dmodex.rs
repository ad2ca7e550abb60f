//! Direct modex: the values that one process has committed, fetched by another's daemon from the daemon that hosts it.
//!
//! The question is asked again and again until it is answered or one of the two is gone; answering twice does no harm.

use std::collections::BTreeMap;

use phalanx_core::server::ServerCall;
use phalanx_core::{HostCall, HostReply, Time, Waiting};
use phalanx_spec::{Rank, Status, keys};
use phalanx_wire::{Blob, Info, InfoList, Key, Nspace, ProcId, Value};

use crate::id::NodeId;
use crate::local::timer::Timer;
use crate::local::{Call, Cx, Local};
use crate::msg::Side;

#[derive(Debug, Default)]
pub(super) struct Modexes {
    last: u64,
    /// What we have asked others for.
    asked: BTreeMap<u64, Asked>,
    /// What others have asked us and our server has not answered.
    answering: BTreeMap<(NodeId, u64), ProcId>,
}

#[derive(Debug)]
struct Asked {
    call: HostCall,
    proc: ProcId,
    key: Option<Key>,
    to: NodeId,
    since: Time,
    until: Option<Time>,
}

impl Local {
    pub(super) fn on_direct_modex(&mut self, cx: &mut Cx<'_>, call: HostCall, proc: ProcId, info: &[Info]) {
        // What is asked for is data of the job itself, or the job was a stranger until now.
        self.introduce(cx, &proc.nspace);
        if proc.rank == Rank::WILDCARD && self.jobs.contains_key(&proc.nspace) {
            return cx.reply(call, HostReply::Modex(Ok(Blob::default())));
        }
        let to = match self.keeper_of(&proc) {
            Ok(to) => to,
            Err(status) => return cx.reply(call, HostReply::Modex(Err(status))),
        };
        let timeout =
            info.find(keys::TIMEOUT).and_then(|value| value.as_u64()).filter(|seconds| *seconds > 0);
        let until = timeout.map(|seconds| cx.now.after(std::time::Duration::from_secs(seconds)));
        let key = info.find(keys::REQUIRED_KEY).and_then(Value::as_str).and_then(|key| Key::new(key).ok());
        self.modexes.last += 1;
        let number = self.modexes.last;
        self.modexes
            .asked
            .insert(number, Asked { call, proc: proc.clone(), key: key.clone(), to, since: cx.now, until });
        self.timers.set_once(cx.now.after(self.config.limits.retry), Timer::Retry);
        if let Some(until) = until {
            self.timers.set(until, Timer::Retry);
        }
        cx.send(to, Side::Modex { id: number, proc, key });
    }

    /// The daemon that knows what a process has put. It may have ended since.
    fn keeper_of(&self, proc: &ProcId) -> Result<NodeId, Status> {
        let node = self.jobs.get(&proc.nspace).and_then(|job| job.desc.node_of(proc.rank));
        match node.ok_or(Status::ERR_NOT_FOUND)? {
            lost if self.lost.contains(&lost) => Err(Status::ERR_PROC_TERM_WO_SYNC),
            node => Ok(node),
        }
    }

    /// Whatever is unanswered is asked again, or given up when its time is over.
    pub(super) fn ask_again(&mut self, cx: &mut Cx<'_>) {
        let over = |asked: &Asked| asked.until.is_some_and(|until| until <= cx.now);
        for (_, asked) in self.modexes.asked.extract_if(.., |_, asked| over(asked)).collect::<Vec<_>>() {
            cx.reply(asked.call, HostReply::Modex(Err(Status::ERR_TIMEOUT)));
        }
        let open = self
            .modexes
            .asked
            .iter()
            .map(|(id, asked)| (*id, asked.to, asked.proc.clone(), asked.key.clone()));
        let open: Vec<_> = open.collect();
        if !open.is_empty() {
            self.timers.set_once(cx.now.after(self.config.limits.retry), Timer::Retry);
        }
        for (id, to, proc, key) in open {
            cx.send(to, Side::Modex { id, proc, key });
        }
    }

    pub(super) fn on_side(&mut self, cx: &mut Cx<'_>, from: NodeId, body: Side) {
        match body {
            Side::Modex { id, proc, key } => {
                let gone = self.jobs.get(&proc.nspace).is_none_or(|job| !job.procs.contains_key(&proc.rank));
                if gone {
                    let result = Err(Status::ERR_NOT_FOUND);
                    return cx.send(from, Side::ModexIs { id, result });
                }
                if self.modexes.answering.insert((from, id), proc.clone()).is_none() {
                    self.call(cx, ServerCall::DirectModex { proc, key }, Call::Modex { asker: from, id });
                }
            }
            Side::ModexIs { id, result } => {
                if let Some(asked) = self.modexes.asked.remove(&id) {
                    cx.reply(asked.call, HostReply::Modex(result));
                }
            }
        }
    }

    /// Our server has found what another daemon wants.
    pub(super) fn answer_modex(
        &mut self,
        cx: &mut Cx<'_>,
        asker: NodeId,
        id: u64,
        result: Result<Blob, Status>,
    ) {
        self.modexes.answering.remove(&(asker, id));
        cx.send(asker, Side::ModexIs { id, result });
    }

    pub(super) fn modex_without(&mut self, cx: &mut Cx<'_>, lost: NodeId) {
        self.give_up_modexes(cx, |asked| asked.to == lost);
        if !self.modexes.asked.is_empty() {
            self.ask_again(cx);
        }
    }

    pub(super) fn modexes_without_job(&mut self, cx: &mut Cx<'_>, nspace: &Nspace) {
        self.modexes.answering.retain(|_, proc| proc.nspace != *nspace);
        self.give_up_modexes(cx, |asked| asked.proc.nspace == *nspace);
    }

    pub(super) fn has_modexes_of(&self, nspace: &Nspace) -> bool {
        let mut procs =
            self.modexes.asked.values().map(|asked| &asked.proc).chain(self.modexes.answering.values());
        procs.any(|proc| proc.nspace == *nspace)
    }

    fn give_up_modexes(&mut self, cx: &mut Cx<'_>, concerned: impl Fn(&Asked) -> bool) {
        for (_, asked) in self.modexes.asked.extract_if(.., |_, asked| concerned(asked)).collect::<Vec<_>>() {
            cx.reply(asked.call, HostReply::Modex(Err(Status::ERR_PROC_TERM_WO_SYNC)));
        }
    }

    pub(super) fn explain_modexes(&self) -> Vec<Waiting> {
        let waiting = |asked: &Asked| Waiting {
            operation: "get",
            subject: format!("data of {} from {}", asked.proc, self.table.name(asked.to)),
            asked_by: Vec::new(),
            missing: vec![asked.proc.clone()],
            since: asked.since,
            deadline: asked.until,
            unblocked_by: "the named process committing its data",
        };
        self.modexes.asked.values().map(waiting).collect()
    }
}
