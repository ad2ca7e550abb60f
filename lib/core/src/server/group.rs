//! Process groups: construct and destruct are collectives, leaving is one member's word. Join and invite are events.
//!
//! The host agrees on membership and context ids across nodes. The server remembers the members of each group, since
//! clients of 4.2 name only the group when they destruct it.

use std::collections::BTreeMap;

use phalanx_spec::{Range, Rank, Status, keys};
use phalanx_wire::cmd::Body;
use phalanx_wire::cmd::group::{Construct, ConstructReply, Destruct, Leave};
use phalanx_wire::cmd::job_data::JobData;
use phalanx_wire::{DataArray, Info, InfoList, Nspace, ProcId, Text, Value};
use tracing::{debug, warn};

use super::collective::{Kind, Signature};
use super::directive::procs_of;
use super::fence::failed;
use super::host::{Then, as_failure};
use super::limits::MAX_GROUPS;
use super::peer::Asker;
use super::{Cx, Server};
use crate::host::{Event, GroupFormed, HostOp, HostReply};

pub(super) const CONSTRUCT_ATTRIBUTES: &[&str] = &[keys::TIMEOUT];
pub(super) const DESTRUCT_ATTRIBUTES: &[&str] = &[keys::TIMEOUT];

#[derive(Debug, Default)]
pub(super) struct Groups {
    members: BTreeMap<String, Vec<ProcId>>,
}

impl Groups {
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.members.keys().map(String::as_str)
    }

    pub(super) fn members(&self, id: &str) -> Option<&[ProcId]> {
        self.members.get(id).map(Vec::as_slice)
    }
}

impl Server {
    pub(super) fn on_group_construct(&mut self, cx: &mut Cx<'_>, from: Asker, construct: Construct) {
        let Some(id) = name(&construct.id) else { return self.answer(cx, &from, Status::ERR_BAD_PARAM) };
        if self.groups.members.len() >= MAX_GROUPS {
            warn!(proc = %from.proc, id, limit = MAX_GROUPS, "too many groups: refused");
            return self.answer(cx, &from, Status::ERR_OUT_OF_RESOURCE);
        }
        self.store_endpoints(cx, &from, &construct.info);
        // Without members (a bootstrap, or somebody who is added by others) only the host knows whom to wait for.
        let procs = if construct.procs.is_empty() { vec![from.proc.clone()] } else { construct.procs };
        self.enter(cx, from, Signature::new(Kind::GroupConstruct, id, procs), construct.info);
    }

    pub(super) fn on_group_destruct(&mut self, cx: &mut Cx<'_>, from: Asker, destruct: Destruct) {
        let Some(id) = name(&destruct.id) else { return self.answer(cx, &from, Status::ERR_BAD_PARAM) };
        let procs = if destruct.procs.is_empty() {
            self.groups.members(&id).map(<[ProcId]>::to_vec).unwrap_or_default()
        } else {
            destruct.procs
        };
        if procs.is_empty() {
            debug!(proc = %from.proc, id, "destruct of a group that is not known here");
            return self.answer(cx, &from, Status::ERR_NOT_FOUND);
        }
        self.enter(cx, from, Signature::new(Kind::GroupDestruct, id, procs), destruct.info);
    }

    pub(super) fn on_group_gathered(&mut self, cx: &mut Cx<'_>, id: u64) {
        let Some(collective) = self.collective(id) else { return };
        let op = host_op(&collective.signature, collective.info.clone());
        self.call_host(cx, None, op, Then::Collective(id));
    }

    pub(super) fn on_group_answered(&mut self, cx: &mut Cx<'_>, id: u64, reply: HostReply) {
        let Some(collective) = self.close(id) else { return };
        let group = collective.signature.id.clone();
        let formed = match (reply, collective.signature.kind) {
            (HostReply::Group(Ok(formed)), Kind::GroupConstruct) => formed,
            (reply, Kind::GroupDestruct) if reply.status().is_success() => {
                self.groups.members.remove(&group);
                for asker in collective.latest_first() {
                    self.answer(cx, asker, Status::SUCCESS);
                }
                return;
            }
            (reply, _) => {
                let status = as_failure(reply.status());
                for asker in collective.latest_first() {
                    self.answer(cx, asker, status);
                }
                return;
            }
        };
        let GroupFormed { members, context_id, info } = formed;
        let members = if members.is_empty() { collective.signature.procs.to_vec() } else { members };
        self.groups.members.insert(group, members.clone());
        let jobs: Vec<JobData> = self
            .jobs_among(&members)
            .iter()
            .filter_map(|nspace| self.jobs.get(nspace))
            .map(|job| self.job_data(job))
            .collect();
        for asker in collective.latest_first() {
            let (members, info) = (members.clone(), info.clone());
            let jobs = jobs.iter().filter(|job| job.nspace != asker.proc.nspace).cloned().collect();
            let reply = ConstructReply { status: Status::SUCCESS, members, context_id, info, jobs };
            self.reply(cx, asker, |dialect| reply.encode(dialect));
        }
    }

    pub(super) fn report_failed_group(&mut self, cx: &mut Cx<'_>, signature: &Signature, status: Status) {
        self.call_host(cx, None, host_op(signature, vec![failed(status)]), Then::Nothing);
    }

    /// The others are told by an event; they need not agree.
    pub(super) fn on_group_leave(&mut self, cx: &mut Cx<'_>, from: &Asker, leave: &Leave) {
        let Some(id) = name(&leave.id) else { return self.answer(cx, from, Status::ERR_BAD_PARAM) };
        if !self.take_out_of_group(&id, &from.proc) {
            return self.answer(cx, from, Status::ERR_NOT_FOUND);
        }
        let rest = self.groups.members(&id).unwrap_or_default().iter().cloned().map(Value::Proc).collect();
        let others = DataArray { of: phalanx_spec::DataType::PROC, items: rest };
        let info = vec![
            Info::new(keys::GROUP_ID, id.as_str()),
            Info::new(keys::EVENT_AFFECTED_PROC, from.proc.clone()),
            Info::new(keys::EVENT_CUSTOM_RANGE, others),
        ];
        let event = Event { code: Status::GROUP_LEFT, source: from.proc.clone(), range: Range::CUSTOM, info };
        self.answer(cx, from, Status::SUCCESS);
        self.raise(cx, &event, None, Then::Nothing);
    }

    /// A member elsewhere has left, or one of a library that says so by an event alone. Each speaks for itself only.
    pub(super) fn learn_who_left(&mut self, event: &Event) {
        if let Some(id) = event.info.find(keys::GROUP_ID).and_then(Value::as_text).and_then(name) {
            self.take_out_of_group(&id, &event.source);
        }
    }

    /// False if it is no member.
    fn take_out_of_group(&mut self, id: &str, proc: &ProcId) -> bool {
        let Some(members) = self.groups.members.get_mut(id) else { return false };
        let Some(at) = members.iter().position(|member| member.covers(proc)) else { return false };
        let member = members.swap_remove(at);
        // Who was a member as one of a whole job leaves all the others of it.
        if member != *proc {
            let size = self.jobs.get(&proc.nspace).map_or(0, |job| job.size());
            let ranks = (0u32..).take(size).map(Rank).filter(|rank| *rank != proc.rank);
            members.extend(ranks.map(|rank| ProcId::new(&proc.nspace, rank)));
        }
        members.sort();
        true
    }

    /// A leader says who has followed its invitation. Nobody but a member can say so of a group that is there.
    pub(super) fn learn_group(&mut self, event: &Event) {
        let Some(id) = event.info.find(keys::GROUP_ID).and_then(Value::as_text).and_then(name) else {
            return;
        };
        let members = event.info.find(keys::GROUP_MEMBERSHIP).map(procs_of).unwrap_or_default();
        let is_in = |members: &[ProcId]| members.iter().any(|member| member.covers(&event.source));
        let may = self.groups.members(&id).is_none_or(is_in) && self.groups.members.len() < MAX_GROUPS;
        if may && !members.is_empty() {
            self.groups.members.insert(id, members);
        }
    }

    pub(super) fn forget_groups_of(&mut self, nspace: &Nspace) {
        self.groups.members.retain(|_, members| members.iter().any(|member| member.nspace != *nspace));
    }
}

fn host_op(signature: &Signature, info: Vec<Info>) -> HostOp {
    let (id, procs) = (signature.id.clone(), signature.procs.to_vec());
    match signature.kind {
        Kind::GroupDestruct => HostOp::GroupDestruct { id, procs, info },
        _ => HostOp::GroupConstruct { id, procs, info },
    }
}

/// Group ids are shown and compared as text.
fn name(id: &Text) -> Option<String> {
    id.as_str().filter(|id| !id.is_empty()).map(str::to_owned)
}
