//! Process groups: construct and destruct are collectives, leaving is one member's word. Join and invite are events.
//!
//! The host agrees on membership and context ids across nodes. The server remembers the members of each group, since
//! clients of 4.2 name only the group when they destruct it.

use std::collections::{BTreeMap, BTreeSet};

use phalanx_spec::{DataType, Range, Rank, Status, keys};
use phalanx_wire::cmd::Body;
use phalanx_wire::cmd::group::{Construct, ConstructReply, Destruct, Leave, WholeReply};
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
use crate::host::{Event, GroupFormed, HostOp, HostReply, LOST_MEMBERS};

pub(super) const CONSTRUCT_ATTRIBUTES: &[&str] =
    &[keys::TIMEOUT, keys::GROUP_FT_COLLECTIVE, keys::GROUP_NOTIFY_TERMINATION];
pub(super) const DESTRUCT_ATTRIBUTES: &[&str] = &[keys::TIMEOUT, keys::GROUP_FT_COLLECTIVE];

#[derive(Debug, Default)]
pub(super) struct Groups {
    members: BTreeMap<String, Vec<ProcId>>,
    /// Those whose members want to hear when one of them ends (`PMIX_GROUP_NOTIFY_TERMINATION`).
    watched: BTreeSet<String>,
}

impl Groups {
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.members.keys().map(String::as_str)
    }

    pub(super) fn are_all_of(&self, nspace: &Nspace) -> bool {
        self.members.values().any(|members| members.iter().all(|member| member.nspace == *nspace))
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
        if construct.procs.is_empty() || construct.info.find(keys::GROUP_BOOTSTRAP).is_some() {
            return self.assemble(cx, from, id, construct);
        }
        self.enter(cx, from, Signature::new(Kind::GroupConstruct, id, construct.procs), construct.info);
    }

    /// The group grows while it forms: only the host hears of all, and knows when the last has come.
    fn assemble(&mut self, cx: &mut Cx<'_>, to: Asker, id: String, construct: Construct) {
        let Construct { procs, info, .. } = construct;
        let is_watched = info.is_set(keys::GROUP_NOTIFY_TERMINATION);
        let from = to.proc.clone();
        let op = HostOp::GroupAssemble { from: from.clone(), id: id.clone(), procs, info };
        self.call_host(cx, Some(&from), op, Then::Assembled { to, id, is_watched });
    }

    pub(super) fn on_group_assembled(
        &mut self,
        cx: &mut Cx<'_>,
        to: &Asker,
        id: String,
        is_watched: bool,
        reply: HostReply,
    ) {
        match reply {
            HostReply::Group(Ok(formed)) if formed.members.iter().any(|member| member.covers(&to.proc)) => {
                self.form(cx, id, formed, is_watched, std::iter::once(to));
            }
            reply => self.answer(cx, to, as_failure(reply.status())),
        }
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
        let (signature, mut info) = (&collective.signature, with_added_together(collective.info.clone()));
        let is_whole = self.is_all_local(&signature.procs);
        let procs = if is_whole { self.survivors(collective) } else { signature.procs.to_vec() };
        if !collective.lost.is_empty() {
            let items = collective.lost.iter().cloned().map(Value::Proc).collect();
            info.push(Info::new(LOST_MEMBERS, DataArray { of: DataType::PROC, items }));
        }
        // That the group wants it, whose members want to hear of ends, the host has forgotten.
        if self.goes_on_without_the_dead(id) && !info.is_set(keys::GROUP_FT_COLLECTIVE) {
            info.push(Info::new(keys::GROUP_FT_COLLECTIVE, true));
        }
        let op = host_op(signature, procs, info);
        self.call_host(cx, None, op, Then::Collective(id));
    }

    pub(super) fn on_group_answered(&mut self, cx: &mut Cx<'_>, id: u64, reply: HostReply) {
        let Some(collective) = self.close(id) else { return };
        let survivors = self.survivors(&collective);
        let group = collective.signature.id.clone();
        let formed = match (reply, collective.signature.kind) {
            (HostReply::Group(Ok(formed)), Kind::GroupConstruct) => formed,
            (reply, Kind::GroupDestruct) if reply.status().is_success() => {
                self.groups.members.remove(&group);
                self.groups.watched.remove(&group);
                for asker in collective.latest_first() {
                    self.answer(cx, asker, Status::SUCCESS);
                }
                return;
            }
            (reply, _) => {
                let status = match as_failure(reply.status()) {
                    // Members elsewhere have ended.
                    Status::ERR_PROC_ABORTED | Status::ERR_LOST_CONNECTION
                        if collective.signature.kind == Kind::GroupConstruct =>
                    {
                        Status::GROUP_CONSTRUCT_ABORT
                    }
                    status => status,
                };
                for asker in collective.latest_first() {
                    self.answer(cx, asker, status);
                }
                return;
            }
        };
        let members = if formed.members.is_empty() { survivors } else { formed.members };
        let is_watched = collective.info.is_set(keys::GROUP_NOTIFY_TERMINATION);
        self.form(cx, group, GroupFormed { members, ..formed }, is_watched, collective.latest_first());
    }

    /// Keeps who the members are, and tells those who have asked.
    fn form<'a>(
        &mut self,
        cx: &mut Cx<'_>,
        group: String,
        formed: GroupFormed,
        is_watched: bool,
        askers: impl Iterator<Item = &'a Asker>,
    ) {
        let GroupFormed { members, context_id, info } = formed;
        if is_watched {
            self.groups.watched.insert(group.clone());
        }
        self.groups.members.insert(group, members.clone());
        let jobs: Vec<JobData> = self
            .jobs_among(&members)
            .iter()
            .filter_map(|nspace| self.jobs.get(nspace))
            .map(|job| self.job_data(job))
            .collect();
        for asker in askers {
            let (members, info) = (members.clone(), info.clone());
            let jobs = jobs.iter().filter(|job| job.nspace != asker.proc.nspace).cloned().collect();
            let reply = ConstructReply { status: Status::SUCCESS, members, context_id, info, jobs };
            // As with the names of files: who says that it reads them is a library of ours.
            match self.conns.peer(asker.conn).is_some_and(|peer| peer.reads_files) {
                true => self.reply(cx, asker, |dialect| WholeReply(reply).encode(dialect)),
                false => self.reply(cx, asker, |dialect| reply.encode(dialect)),
            }
        }
    }

    pub(super) fn report_failed_group(&mut self, cx: &mut Cx<'_>, signature: &Signature, status: Status) {
        let op = host_op(signature, signature.procs.to_vec(), vec![failed(status)]);
        self.call_host(cx, None, op, Then::Nothing);
    }

    /// Whether a member that has ended is not waited for.
    pub(super) fn goes_on_without_the_dead(&self, id: u64) -> bool {
        let Some(collective) = self.collective(id) else { return false };
        match collective.signature.kind {
            Kind::GroupConstruct => collective.info.is_set(keys::GROUP_FT_COLLECTIVE),
            Kind::GroupDestruct => {
                collective.info.is_set(keys::GROUP_FT_COLLECTIVE)
                    || self.groups.watched.contains(&collective.signature.id)
            }
            _ => false,
        }
    }

    /// Those who form the group hear whom it will lack; members of a group that is watched have heard it when it happened.
    pub(super) fn on_member_left_out(&mut self, cx: &mut Cx<'_>, id: u64, proc: &ProcId) {
        let Some(collective) = self.collective(id) else { return };
        if collective.signature.kind == Kind::GroupConstruct {
            let (group, others) = (collective.signature.id.clone(), self.survivors(collective));
            self.announce_failure(cx, &group, proc, others);
        }
    }

    /// A process has ended: the members of its groups hear of it where they want to.
    pub(super) fn tell_groups_of_end(&mut self, cx: &mut Cx<'_>, proc: &ProcId) {
        let is_in =
            |id: &&String| self.groups.members(id).is_some_and(|all| all.iter().any(|m| m.covers(proc)));
        for id in self.groups.watched.iter().filter(is_in).cloned().collect::<Vec<_>>() {
            let others = self.groups.members(&id).unwrap_or_default().iter();
            let others = others.filter(|member| *member != proc).cloned().collect();
            self.announce_failure(cx, &id, proc, others);
        }
    }

    fn announce_failure(&mut self, cx: &mut Cx<'_>, group: &str, proc: &ProcId, to: Vec<ProcId>) {
        let others = DataArray { of: DataType::PROC, items: to.into_iter().map(Value::Proc).collect() };
        let info = vec![
            Info::new(keys::GROUP_ID, group),
            Info::new(keys::EVENT_AFFECTED_PROC, proc.clone()),
            Info::new(keys::EVENT_CUSTOM_RANGE, others),
        ];
        let (code, range) = (Status::GROUP_MEMBER_FAILED, Range::CUSTOM);
        self.raise(cx, &Event { code, source: proc.clone(), range, info }, None, Then::Nothing);
    }

    /// The others are told by an event; they need not agree.
    pub(super) fn on_group_leave(&mut self, cx: &mut Cx<'_>, from: &Asker, leave: &Leave) {
        let Some(id) = name(&leave.id) else { return self.answer(cx, from, Status::ERR_BAD_PARAM) };
        if !self.take_out_of_group(&id, &from.proc) {
            return self.answer(cx, from, Status::ERR_NOT_FOUND);
        }
        let rest = self.groups.members(&id).unwrap_or_default().iter().cloned().map(Value::Proc).collect();
        let others = DataArray { of: DataType::PROC, items: rest };
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
        let Groups { members, watched } = &mut self.groups;
        members.retain(|_, members| members.iter().any(|member| member.nspace != *nspace));
        watched.retain(|id| members.contains_key(id));
    }
}

fn host_op(signature: &Signature, procs: Vec<ProcId>, info: Vec<Info>) -> HostOp {
    let id = signature.id.clone();
    match signature.kind {
        Kind::GroupDestruct => HostOp::GroupDestruct { id, procs, info },
        _ => HostOp::GroupConstruct { id, procs, info },
    }
}

/// Hosts look for one list of those whom the members add.
fn with_added_together(mut info: Vec<Info>) -> Vec<Info> {
    let lists: Vec<Info> = info.extract_if(.., |one| one.key == keys::GROUP_ADD_MEMBERS).collect();
    let added: BTreeSet<ProcId> = lists.iter().flat_map(|list| procs_of(&list.value)).collect();
    if !added.is_empty() {
        let items = added.into_iter().map(Value::Proc).collect();
        info.push(Info::new(keys::GROUP_ADD_MEMBERS, DataArray { of: DataType::PROC, items }));
    }
    info
}

/// Group ids are shown and compared as text.
fn name(id: &Text) -> Option<String> {
    id.as_str().filter(|id| !id.is_empty()).map(str::to_owned)
}
