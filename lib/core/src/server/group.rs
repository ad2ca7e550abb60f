//! Process groups: construct and destruct are collectives, leave is a request of one member. Join and invite are events.
//!
//! The host agrees on membership and context ids across nodes. The server remembers the members of each group, since clients of 4.2 name only the
//! group when they destruct it. Groups with the same name and different members are independent: a process means the one it is in.

use std::collections::{BTreeMap, BTreeSet};

use phalanx_spec::{Range, Rank, Status, keys};
use phalanx_wire::cmd::Body;
use phalanx_wire::cmd::group::{Construct, ConstructReply, Destruct, Leave, WholeReply};
use phalanx_wire::cmd::job_data::JobData;
use phalanx_wire::{Info, InfoList, Nspace, ProcId, Text, Value};
use tracing::{debug, warn};

use super::collective::{Collectives, Signature};
use super::directive::{as_array, failed, procs_of};
use super::event::{Events, Raiser};
use super::host::{Then, as_failure};
use super::job_data::Describer;
use super::limits::MAX_GROUPS;
use super::peer::Asker;
use super::registry::Jobs;
use super::turn::Cx;
use crate::host::{
    CollectiveKind as Kind, Event, GroupFormed, GroupRequest, HostOp, HostReply, LOST_MEMBERS,
};

pub(super) const CONSTRUCT_ATTRIBUTES: &[&str] =
    &[keys::TIMEOUT, keys::GROUP_FT_COLLECTIVE, keys::GROUP_NOTIFY_TERMINATION];
pub(super) const DESTRUCT_ATTRIBUTES: &[&str] = &[keys::TIMEOUT, keys::GROUP_FT_COLLECTIVE];

#[derive(Debug, Default)]
pub(super) struct Groups {
    by_name: BTreeMap<String, Vec<Group>>,
}

#[derive(Debug)]
struct Group {
    members: Vec<ProcId>,
    /// The members want to be notified when one of them ends (`PMIX_GROUP_NOTIFY_TERMINATION`).
    is_watched: bool,
}

impl Group {
    fn includes(&self, proc: &ProcId) -> bool {
        self.members.iter().any(|member| member.covers(proc))
    }

    fn meets(&self, others: &[ProcId]) -> bool {
        others
            .iter()
            .any(|other| self.members.iter().any(|member| member.covers(other) || other.covers(member)))
    }
}

impl Groups {
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }

    fn all(&self) -> impl Iterator<Item = (&str, &Group)> {
        self.by_name.iter().flat_map(|(name, groups)| groups.iter().map(move |group| (name.as_str(), group)))
    }

    pub(super) fn are_all_of(&self, nspace: &Nspace) -> bool {
        self.all().any(|(_, group)| group.members.iter().all(|member| member.nspace == *nspace))
    }

    /// The members of the group of this name that contains the process.
    pub(super) fn members(&self, id: &str, of: &ProcId) -> Option<&[ProcId]> {
        self.group_of(id, of).map(|group| &*group.members)
    }

    fn group_of(&self, id: &str, proc: &ProcId) -> Option<&Group> {
        self.by_name.get(id)?.iter().find(|group| group.includes(proc))
    }

    /// A process is in at most one group of a name: this one replaces groups that share members with it.
    fn keep(&mut self, id: String, group: Group) {
        self.drop_met(&id, &group.members);
        self.by_name.entry(id).or_default().push(group);
    }

    fn drop_met(&mut self, id: &str, members: &[ProcId]) {
        if let Some(groups) = self.by_name.get_mut(id) {
            groups.retain(|group| !group.meets(members));
            if groups.is_empty() {
                self.by_name.remove(id);
            }
        }
    }

    /// The id of a group to be constructed, or why it may not be.
    pub(super) fn id_for(&self, from: &Asker, construct: &Construct) -> Result<String, Status> {
        let id = name(&construct.id).ok_or(Status::ERR_BAD_PARAM)?;
        if self.all().count() >= MAX_GROUPS {
            warn!(proc = %from.proc, id, limit = MAX_GROUPS, "too many groups: refused");
            return Err(Status::ERR_OUT_OF_RESOURCE);
        }
        Ok(id)
    }

    pub(super) fn on_assembled(
        &mut self,
        cx: &mut Cx<'_>,
        describer: &Describer,
        to: Asker,
        (id, is_watched): (String, bool),
        reply: HostReply,
    ) {
        match reply {
            HostReply::Group(Ok(formed)) if formed.members.iter().any(|member| member.covers(&to.proc)) => {
                self.form(cx, describer, (id, is_watched), formed, std::iter::once(to));
            }
            reply => cx.answer(to, as_failure(reply.status())),
        }
    }

    pub(super) fn on_destruct(
        &self,
        cx: &mut Cx<'_>,
        collectives: &mut Collectives,
        from: Asker,
        destruct: Destruct,
    ) {
        let Some(id) = name(&destruct.id) else { return cx.answer(from, Status::ERR_BAD_PARAM) };
        let procs = if destruct.procs.is_empty() {
            self.members(&id, &from.proc).map(<[ProcId]>::to_vec).unwrap_or_default()
        } else {
            destruct.procs
        };
        if procs.is_empty() {
            debug!(proc = %from.proc, id, "destruct of a group that is not known here");
            return cx.answer(from, Status::ERR_NOT_FOUND);
        }
        let is_watched = self.group_of(&id, &from.proc).is_some_and(|group| group.is_watched);
        let signature = Signature::new(Kind::GroupDestruct, id, procs);
        collectives.enter_watched(cx, from, (signature, is_watched), destruct.info);
    }

    pub(super) fn on_answered(
        &mut self,
        cx: &mut Cx<'_>,
        collectives: &mut Collectives,
        describer: &Describer,
        id: u64,
        reply: HostReply,
    ) {
        let Some(mut collective) = collectives.close(cx, id) else { return };
        let askers = collective.take_askers();
        let survivors = collective.survivors(&cx.peers.jobs);
        let group = collective.signature.id.clone();
        let formed = match (reply, collective.signature.kind) {
            (HostReply::Group(Ok(formed)), Kind::GroupConstruct) => formed,
            (reply, Kind::GroupDestruct) if reply.status().is_success() => {
                self.drop_met(&group, &collective.signature.procs);
                return askers.for_each(|asker| cx.answer(asker, Status::SUCCESS));
            }
            (reply, _) => {
                let status = match as_failure(reply.status()) {
                    // Members on other nodes have ended.
                    Status::ERR_PROC_ABORTED | Status::ERR_LOST_CONNECTION
                        if collective.signature.kind == Kind::GroupConstruct =>
                    {
                        Status::GROUP_CONSTRUCT_ABORT
                    }
                    status => status,
                };
                return askers.for_each(|asker| cx.answer(asker, status));
            }
        };
        let members = if formed.members.is_empty() { survivors } else { formed.members };
        let is_watched = collective.info.is_set(keys::GROUP_NOTIFY_TERMINATION);
        let formed = GroupFormed { members, ..formed };
        self.form(cx, describer, (group, is_watched), formed, askers);
    }

    /// Stores the members and answers the participants.
    fn form(
        &mut self,
        cx: &mut Cx<'_>,
        describer: &Describer,
        (group, is_watched): (String, bool),
        formed: GroupFormed,
        askers: impl Iterator<Item = Asker>,
    ) {
        let GroupFormed { members, context_id, info } = formed;
        self.keep(group, Group { members: members.clone(), is_watched });
        let among = cx.peers.jobs.among(&members);
        let known = among.iter().filter_map(|nspace| cx.peers.jobs.get(nspace));
        let jobs: Vec<JobData> = known.map(|job| describer.job_data(job)).collect();
        for asker in askers {
            let (members, info) = (members.clone(), info.clone());
            let jobs = jobs.iter().filter(|job| job.nspace != asker.proc.nspace).cloned().collect();
            let reply = ConstructReply { status: Status::SUCCESS, members, context_id, info, jobs };
            // As with collected files: only our library declares that it reads files.
            match cx.peers.conns.peer(asker.conn).is_some_and(|peer| peer.reads_files()) {
                true => cx.reply(asker, |dialect| WholeReply(reply).encode(dialect)),
                false => cx.reply(asker, |dialect| reply.encode(dialect)),
            }
        }
    }

    /// A process has ended: notifies the members of its watched groups.
    pub(super) fn tell_of_end(&self, cx: &mut Cx<'_>, events: &mut Events, proc: &ProcId) {
        for (id, group) in self.all().filter(|(_, group)| group.is_watched && group.includes(proc)) {
            let others = group.members.iter().filter(|member| *member != proc).cloned().collect();
            announce_failure(cx, events, id, proc, others);
        }
    }

    /// The other members are notified by an event; they need not agree.
    pub(super) fn on_leave(&mut self, cx: &mut Cx<'_>, events: &mut Events, from: Asker, leave: &Leave) {
        let Some(id) = name(&leave.id) else { return cx.answer(from, Status::ERR_BAD_PARAM) };
        let Some(others) = self.take_out(&cx.peers.jobs, &id, &from.proc) else {
            return cx.answer(from, Status::ERR_NOT_FOUND);
        };
        let others = as_array(&others);
        let info = vec![
            Info::new(keys::GROUP_ID, id.as_str()),
            Info::new(keys::EVENT_AFFECTED_PROC, from.proc.clone()),
            Info::new(keys::EVENT_CUSTOM_RANGE, others),
        ];
        let event = Event { code: Status::GROUP_LEFT, source: from.proc.clone(), range: Range::CUSTOM, info };
        cx.answer(from, Status::SUCCESS);
        events.raise(cx, &event, Raiser::Source, Then::Nothing);
    }

    /// Updates the groups from an event.
    pub(super) fn learn(&mut self, jobs: &Jobs, event: &Event) {
        match event.code {
            Status::GROUP_CONSTRUCT_COMPLETE => self.learn_group(event),
            Status::GROUP_LEFT => self.learn_who_left(jobs, event),
            _ => {}
        }
    }

    /// A member on another node has left, or one whose library reports this by an event alone. A process can only report its
    /// own leave.
    fn learn_who_left(&mut self, jobs: &Jobs, event: &Event) {
        if let Some(id) = event.info.find(keys::GROUP_ID).and_then(Value::as_text).and_then(name) {
            self.take_out(jobs, &id, &event.source);
        }
    }

    /// Removes a member and returns the remaining ones; `None` if it is not a member.
    fn take_out(&mut self, jobs: &Jobs, id: &str, proc: &ProcId) -> Option<Vec<ProcId>> {
        let group = self.by_name.get_mut(id)?.iter_mut().find(|group| group.includes(proc))?;
        let members = &mut group.members;
        let at = members.iter().position(|member| member.covers(proc))?;
        let member = members.swap_remove(at);
        // The member was listed by its whole job: the job's other ranks remain.
        if member != *proc {
            let size = jobs.get(&proc.nspace).map_or(0, |job| job.size());
            let ranks = (0u32..).take(size).map(Rank).filter(|rank| *rank != proc.rank);
            members.extend(ranks.map(|rank| ProcId::new(&proc.nspace, rank)));
        }
        members.sort();
        Some(members.clone())
    }

    /// A leader reports which processes accepted its invitation. Only a member can change an existing group.
    fn learn_group(&mut self, event: &Event) {
        let Some(id) = event.info.find(keys::GROUP_ID).and_then(Value::as_text).and_then(name) else {
            return;
        };
        let members = event.info.find(keys::GROUP_MEMBERSHIP).map(procs_of).unwrap_or_default();
        let met = self.by_name.get(&id).into_iter().flatten().filter(|group| group.meets(&members));
        let may =
            met.into_iter().all(|group| group.includes(&event.source)) && self.all().count() < MAX_GROUPS;
        if may && !members.is_empty() {
            let is_watched = self.group_of(&id, &event.source).is_some_and(|group| group.is_watched);
            self.keep(id, Group { members, is_watched });
        }
    }

    pub(super) fn forget_of(&mut self, nspace: &Nspace) {
        self.by_name.retain(|_, groups| {
            groups.retain(|group| group.members.iter().any(|member| member.nspace != *nspace));
            !groups.is_empty()
        });
    }
}

/// A local process constructs a group: either all local members take part, or the group grows while it forms.
pub(super) fn on_construct(
    cx: &mut Cx<'_>,
    collectives: &mut Collectives,
    from: Asker,
    id: String,
    construct: Construct,
) {
    if construct.procs.is_empty() || construct.info.find(keys::GROUP_BOOTSTRAP).is_some() {
        return assemble(cx, from, id, construct);
    }
    let signature = Signature::new(Kind::GroupConstruct, id, construct.procs);
    collectives.enter(cx, from, signature, construct.info);
}

/// The group grows while it forms: only the host gets all requests and knows when the last member has arrived.
fn assemble(cx: &mut Cx<'_>, to: Asker, id: String, construct: Construct) {
    let Construct { procs, info, .. } = construct;
    let is_watched = info.is_set(keys::GROUP_NOTIFY_TERMINATION);
    let from = to.proc.clone();
    let op = HostOp::GroupConstruct(GroupRequest { from: Some(from.clone()), id: id.clone(), procs, info });
    cx.ask(Some(&from), op, Then::Assembled { to, id, is_watched });
}

pub(super) fn on_gathered(cx: &mut Cx<'_>, collectives: &Collectives, id: u64) {
    let Some(collective) = collectives.get(id) else { return };
    let (signature, mut info) = (&collective.signature, with_added_together(collective.info.clone()));
    let is_whole = cx.peers.jobs.are_all_local(&signature.procs);
    let procs = if is_whole { collective.survivors(&cx.peers.jobs) } else { signature.procs.to_vec() };
    if !collective.lost.is_empty() {
        let lost: Vec<ProcId> = collective.lost.iter().cloned().collect();
        info.push(Info::new(LOST_MEMBERS, as_array(&lost)));
    }
    // The host no longer remembers that this group asked for failure notices.
    if collective.goes_on_without_the_dead() && !info.is_set(keys::GROUP_FT_COLLECTIVE) {
        info.push(Info::new(keys::GROUP_FT_COLLECTIVE, true));
    }
    if collective.is_watched {
        info.push(Info::new(keys::GROUP_NOTIFY_TERMINATION, true));
    }
    let op = host_op(signature, procs, info);
    cx.ask(None, op, Then::Collective(id));
}

pub(super) fn report_failure(cx: &mut Cx<'_>, signature: &Signature, status: Status) {
    let op = host_op(signature, signature.procs.to_vec(), vec![failed(status)]);
    cx.ask(None, op, Then::Nothing);
}

/// Notifies the other members that a member has ended.
pub(super) fn announce_failure(
    cx: &mut Cx<'_>,
    events: &mut Events,
    group: &str,
    proc: &ProcId,
    others: Vec<ProcId>,
) {
    let info = vec![
        Info::new(keys::GROUP_ID, group),
        Info::new(keys::EVENT_AFFECTED_PROC, proc.clone()),
        Info::new(keys::EVENT_CUSTOM_RANGE, as_array(&others)),
    ];
    let (code, range) = (Status::GROUP_MEMBER_FAILED, Range::CUSTOM);
    events.raise(cx, &Event { code, source: proc.clone(), range, info }, Raiser::Source, Then::Nothing);
}

fn host_op(signature: &Signature, procs: Vec<ProcId>, info: Vec<Info>) -> HostOp {
    let id = signature.id.clone();
    match signature.kind {
        Kind::GroupDestruct => HostOp::GroupDestruct(GroupRequest { from: None, id, procs, info }),
        _ => HostOp::GroupConstruct(GroupRequest { from: None, id, procs, info }),
    }
}

/// Hosts expect the added members of all participants in one list.
fn with_added_together(mut info: Vec<Info>) -> Vec<Info> {
    let lists: Vec<Info> = info.extract_if(.., |one| one.key == keys::GROUP_ADD_MEMBERS).collect();
    let added: BTreeSet<ProcId> = lists.iter().flat_map(|list| procs_of(&list.value)).collect();
    if !added.is_empty() {
        let added: Vec<ProcId> = added.into_iter().collect();
        info.push(Info::new(keys::GROUP_ADD_MEMBERS, as_array(&added)));
    }
    info
}

/// Group ids are shown and compared as text.
fn name(id: &Text) -> Option<String> {
    id.as_str().filter(|id| !id.is_empty()).map(str::to_owned)
}
