//! Collectives of processes: fence, connect and disconnect. Which daemons take part follows from the members.
//!
//! The same set of processes may fence again and again; the how-manieth time it is counts on every daemon alike, and is
//! part of the operation's name.

use std::collections::BTreeMap;
use std::sync::Arc;

use phalanx_core::host::LOST_MEMBERS;
use phalanx_core::{HostCallId, HostReply};
use phalanx_spec::{Status, keys};
use phalanx_wire::{Blob, Info, InfoList, Nspace, ProcId, Value};

use crate::daemon::{Cx, Daemon};
use crate::msg;
use crate::msg::{Collective, Kind, Members, OpId, Outcome, Part, Settled, Share, Up};

/// Which data are collected and how long is waited, the servers see to.
pub(crate) const ATTRIBUTES: &[&str] = &[];

/// Counts operations that are alike, and holds the upcalls that wait for them.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    counts: BTreeMap<Series, u64>,
    waiting: BTreeMap<Collective, Vec<HostCallId>>,
}

type Series = (Kind, Arc<[Members]>, Option<Arc<str>>);

impl Daemon {
    /// Our clients' part of a fence.
    pub(crate) fn on_fence(
        &mut self,
        cx: &mut Cx<'_>,
        id: HostCallId,
        procs: &[ProcId],
        info: &[Info],
        data: Blob,
    ) {
        let part = if data.is_empty() { Part::Nothing } else { Part::Modex(vec![data]) };
        self.join_collective(cx, id, Kind::Fence, procs, info, None, part);
    }

    #[allow(clippy::too_many_arguments)] // The upcall's own fields.
    pub(crate) fn join_collective(
        &mut self,
        cx: &mut Cx<'_>,
        id: HostCallId,
        kind: Kind,
        procs: &[ProcId],
        info: &[Info],
        name: Option<Arc<str>>,
        part: Part,
    ) {
        // A failure here is a failure everywhere.
        let part = match info.find(keys::LOCAL_COLLECTIVE_STATUS) {
            Some(Value::Status(status)) if !status.is_success() => Part::Failed(*status),
            _ => part,
        };
        let members = match Members::of(procs, |nspace| Some(&*self.jobs.get(nspace)?.desc)) {
            Ok(members) => members,
            Err(status) => return cx.reply(id, HostReply::Done(status)),
        };
        let Some(round) = self.rounds.next((kind, members.clone(), name.clone())) else {
            return cx.reply(id, HostReply::Done(Status::ERR_OUT_OF_RESOURCE));
        };
        let dead = |m: &Members| self.jobs.get(&m.nspace).is_none_or(|job| job.dead.intersects(&m.ranks));
        let survives = kind.may_lack_members(info);
        if !survives && members.iter().any(dead) {
            return cx.reply(id, HostReply::Done(Status::ERR_PROC_ABORTED));
        }
        let op = Collective { kind, members, id: name, round };
        self.rounds.waiting.entry(op.clone()).or_default().push(id);
        if survives {
            let lost = msg::procs(info.find(LOST_MEMBERS)).collect();
            self.post(cx, Up::Share(Box::new(Share { op, part, lost })));
        } else {
            self.contribute(cx, OpId::Collective(op), part);
        }
    }

    /// The result of an operation came by.
    pub(crate) fn on_done(&mut self, cx: &mut Cx<'_>, op: &OpId, outcome: &Outcome) {
        self.overlay.close(op);
        self.answer_collective(cx, op, outcome);
    }

    pub(crate) fn answer_collective(&mut self, cx: &mut Cx<'_>, op: &OpId, outcome: &Outcome) {
        let OpId::Collective(collective) = op else { return };
        let waiting = self.rounds.waiting.remove(collective).unwrap_or_default();
        if collective.kind == Kind::Connect && outcome.is_ok() && !waiting.is_empty() {
            collective.members.iter().for_each(|m| self.introduce(cx, &m.nspace));
        }
        for id in waiting {
            let reply = match outcome {
                Err(status) => HostReply::Done(*status),
                Ok(Settled::Nothing) => HostReply::Done(Status::SUCCESS),
                Ok(Settled::Modex(data)) => HostReply::Modex(Ok(data.clone())),
                Ok(Settled::Group(formed)) => HostReply::Group(Ok(formed.clone())),
            };
            cx.reply(id, reply);
        }
    }
}

impl Rounds {
    fn next(&mut self, series: Series) -> Option<u64> {
        if self.counts.len() >= MOST_SERIES && !self.counts.contains_key(&series) {
            return None;
        }
        let count = self.counts.entry(series).or_default();
        *count += 1;
        Some(*count)
    }

    pub(crate) fn know(&self, nspace: &Nspace) -> bool {
        let is_of = |members: &Arc<[Members]>| members.iter().all(|one| one.nspace == *nspace);
        self.counts.keys().any(|(_, members, _)| is_of(members))
            || self.waiting.keys().any(|op| is_of(&op.members))
    }

    pub(crate) fn forget(&mut self, nspace: &Nspace) {
        self.counts.retain(|(_, members, _), _| members.iter().all(|m| m.nspace != *nspace));
    }
}

/// Different sets of processes that the living jobs may use in collectives.
const MOST_SERIES: usize = 1 << 16;
