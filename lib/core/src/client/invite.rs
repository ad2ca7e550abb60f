//! Groups by invitation: a leader invites, the invited processes join or decline. Both communicate by events; the server
//! only carries them, and learns the members at the end.
//!
//! Each side is an entry in the table of pending requests, under a tag that no request has.

use std::collections::BTreeSet;

use phalanx_spec::{DataType, Range, Rank, Status, keys};
use phalanx_wire::cmd::Request;
use phalanx_wire::cmd::event::{Notify, RegisterEvents};
use phalanx_wire::cmd::group::Construct;
use phalanx_wire::codec::DecodeError;
use phalanx_wire::{DataArray, Info, InfoList, ProcId, Text, Value};

use super::call::ClientReturn;
use super::chain::{Chains, procs};
use super::event::Handlers;
use super::exchange::{contribution, given_by, keep_contributions, said_in};
use super::group::{Groups, construct_reply};
use super::invitation::Invitation;
use super::link::{Cx, Link};
use super::pending::{Awaited, Pending, deadline_of};
use crate::host::{Event, GroupFormed};
use crate::machine::CallId;

/// Directives of the leader.
pub(super) const INVITE_ATTRIBUTES: &[&str] =
    &[keys::GROUP_OPTIONAL, keys::GROUP_ASSIGN_CONTEXT_ID, keys::TIMEOUT];

/// The tables of a group that forms by invitation.
#[derive(Debug)]
pub(super) struct Inviting<'a> {
    pub(super) groups: &'a mut Groups,
    pub(super) chains: &'a mut Chains,
}

impl Inviting<'_> {
    fn handlers(&mut self) -> Handlers<'_> {
        Handlers { chains: self.chains, groups: self.groups }
    }

    pub(super) fn on_group_invite(
        &mut self,
        cx: &mut Cx<'_>,
        id: CallId,
        name: Text,
        invited: &[ProcId],
        info: &[Info],
    ) {
        let refuse = |status| ClientReturn::Group(Err(status));
        if let Err(status) = cx.can_ask(Some(id)) {
            return cx.give_back(Some(id), refuse(status));
        }
        let Some(mut silent) = each_of(cx.link, invited) else {
            return cx.give_back(Some(id), refuse(Status::ERR_BAD_PARAM));
        };
        let includes_leader = silent.remove(&cx.link.config.proc);
        self.listen_for_groups(cx);
        let mut told: Vec<Info> = info.to_vec();
        told.extend(about(&name, silent.iter().cloned()));
        let invitation = Invitation {
            id: name.clone(),
            includes_leader,
            silent,
            accepted: Vec::new(),
            given: if includes_leader { contribution(cx.link, info) } else { Vec::new() },
            lost: Vec::new(),
            refused: None,
            may_lack_members: info.is_set(keys::GROUP_OPTIONAL),
            wants_context_id: info.is_set(keys::GROUP_ASSIGN_CONTEXT_ID),
        };
        let deadline = deadline_of(cx.now, info);
        let what = Awaited::Invitation(invitation);
        let tag = cx.link.pending.insert(Pending { call: Some(id), since: cx.now, deadline, what });
        raise(cx, Status::GROUP_INVITED, told);
        self.settle_invitation(cx, tag);
    }

    /// The call ends when the leader announces that the group is formed. A process that declines does not wait.
    pub(super) fn on_group_join(
        &mut self,
        cx: &mut Cx<'_>,
        id: CallId,
        name: Text,
        leader: Option<ProcId>,
        accept: bool,
        info: &[Info],
    ) {
        if let Err(status) = cx.can_ask(Some(id)) {
            return cx.give_back(Some(id), ClientReturn::Group(Err(status)));
        }
        let code = if accept { Status::GROUP_INVITE_ACCEPTED } else { Status::GROUP_INVITE_DECLINED };
        let mut told: Vec<Info> = info.to_vec();
        if accept {
            told.retain(|one| one.key != keys::GROUP_INFO);
            told.extend(contribution(cx.link, info));
        }
        match &leader {
            Some(leader) => told.extend(about(&name, [leader.clone()])),
            None => told.push(Info::new(keys::GROUP_ID, Value::String(name.clone()))),
        }
        if accept {
            self.listen_for_groups(cx);
            let what = Awaited::Join { id: name, leader };
            let deadline = deadline_of(cx.now, info);
            cx.link.pending.insert(Pending { call: Some(id), since: cx.now, deadline, what });
        } else {
            cx.give_back(Some(id), ClientReturn::Group(Ok(GroupFormed::default())));
        }
        raise(cx, code, told);
    }

    /// Looks at every event from elsewhere for what an invitation waits for. Handlers of the program see it as well, if this is true.
    pub(super) fn on_group_event(&mut self, cx: &mut Cx<'_>, event: &Event) -> bool {
        let affected = procs(&event.info, keys::EVENT_AFFECTED_PROC);
        match event.code {
            Status::GROUP_INVITE_ACCEPTED | Status::GROUP_INVITE_DECLINED => {
                self.on_answer_to_invitation(cx, event);
            }
            Status::GROUP_CONSTRUCT_COMPLETE | Status::GROUP_CONSTRUCT_ABORT => {
                self.on_group_settled(cx, event);
            }
            Status::PROC_TERMINATED | Status::EVENT_PROC_TERMINATED => self.on_process_ended(cx, &affected),
            Status::GROUP_LEADER_FAILED => return on_leader_failed(cx, event, &affected),
            _ => {}
        }
        true
    }

    fn on_answer_to_invitation(&mut self, cx: &mut Cx<'_>, event: &Event) {
        let group = event.info.find(keys::GROUP_ID).and_then(Value::as_text).cloned();
        // OpenPMIx does not name the group: then it is the oldest invitation that waits for this process.
        let is_this = |one: &Invitation| {
            one.silent.contains(&event.source) && group.as_ref().is_none_or(|group| *group == one.id)
        };
        let Some((tag, invitation)) = cx.link.pending.invitations().find(|(_, one)| is_this(one)) else {
            return self.turn_away(cx, group, event);
        };
        invitation.silent.remove(&event.source);
        match event.code {
            Status::GROUP_INVITE_ACCEPTED => {
                invitation.given.extend(given_by(std::slice::from_ref(&event.source), &event.info));
                invitation.accepted.push(event.source.clone());
            }
            _ => self.miss(cx, tag, vec![event.source.clone()]),
        }
        self.settle_invitation(cx, tag);
    }

    /// Rejects a process that accepts after the group has formed without it, so that it does not wait for ever.
    fn turn_away(&mut self, cx: &mut Cx<'_>, group: Option<Text>, event: &Event) {
        let Some(group) = group.filter(|_| event.code == Status::GROUP_INVITE_ACCEPTED) else { return };
        if self.groups.members(&group).is_some_and(|members| !members.contains(&event.source)) {
            raise(cx, Status::GROUP_CONSTRUCT_ABORT, about(&group, [event.source.clone()]));
        }
    }

    fn on_process_ended(&mut self, cx: &mut Cx<'_>, ended: &[ProcId]) {
        let mut touched = Vec::new();
        for (tag, invitation) in cx.link.pending.invitations() {
            let dead =
                invitation.silent.extract_if(.., |silent| ended.iter().any(|ended| ended.covers(silent)));
            let dead: Vec<ProcId> = dead.collect();
            if !dead.is_empty() {
                touched.push((tag, dead));
            }
        }
        for (tag, dead) in touched {
            self.miss(cx, tag, dead);
            self.settle_invitation(cx, tag);
        }
        let has_ended = |leader: &ProcId| ended.iter().any(|ended| ended.covers(leader));
        for entry in cx.link.pending.take_joins(|_, leader| leader.is_some_and(has_ended)) {
            if let Awaited::Join { id, leader: Some(leader) } = &entry.what {
                let mut told = about(id, []);
                told.push(Info::new(keys::EVENT_AFFECTED_PROC, leader.clone()));
                self.hear_oneself(cx, Status::GROUP_LEADER_FAILED, told);
            }
            cx.give_back(entry.call, ClientReturn::Group(Err(Status::GROUP_LEADER_FAILED)));
        }
    }

    /// These will not join. The leader's program gets an event for each.
    fn miss(&mut self, cx: &mut Cx<'_>, tag: u32, lost: Vec<ProcId>) {
        let Some((_, invitation)) = cx.link.pending.invitations().find(|(at, _)| *at == tag) else { return };
        if !invitation.may_lack_members {
            invitation.refused = invitation.refused.or(Some(Status::GROUP_CONSTRUCT_ABORT));
        }
        let id = invitation.id.clone();
        invitation.lost.extend(lost.iter().cloned());
        for proc in lost {
            let mut told = about(&id, []);
            told.push(Info::new(keys::EVENT_AFFECTED_PROC, proc));
            self.hear_oneself(cx, Status::GROUP_INVITE_FAILED, told);
        }
    }

    /// The leader's time limit is over.
    pub(super) fn on_invitation_overdue(&mut self, cx: &mut Cx<'_>, tag: u32) {
        let Some((_, invitation)) = cx.link.pending.invitations().find(|(at, _)| *at == tag) else { return };
        if !invitation.may_lack_members {
            return self.give_up_invitation(cx, tag, Status::ERR_TIMEOUT);
        }
        let late = std::mem::take(&mut invitation.silent).into_iter().collect();
        self.miss(cx, tag, late);
        self.settle_invitation(cx, tag);
    }

    /// Forms the group once all have answered, or gives it up as soon as a process will not join.
    fn settle_invitation(&mut self, cx: &mut Cx<'_>, tag: u32) {
        let Some((_, invitation)) = cx.link.pending.invitations().find(|(at, _)| *at == tag) else { return };
        if let Some(status) = invitation.refused {
            return self.give_up_invitation(cx, tag, status);
        }
        if !invitation.silent.is_empty() {
            return;
        }
        if invitation.accepted.is_empty() && !invitation.includes_leader {
            return self.give_up_invitation(cx, tag, Status::GROUP_CONSTRUCT_ABORT);
        }
        let Some(Pending { call, since, deadline, what }) = cx.link.pending.remove(tag) else { return };
        let Awaited::Invitation(invitation) = what else { return };
        let mut members = invitation.accepted;
        members.extend(invitation.includes_leader.then(|| cx.link.config.proc.clone()));
        members.sort();
        if !invitation.wants_context_id {
            return self.announce_group(cx, call, invitation.id, (members, invitation.given), None);
        }
        // Only the host can assign a number that no other group has: it is asked to form a group of the leader alone.
        let what = Awaited::ContextId { id: invitation.id.clone(), members, given: invitation.given };
        let info = vec![Info::new(keys::GROUP_ASSIGN_CONTEXT_ID, true)];
        let construct = Construct { id: invitation.id, procs: vec![cx.link.config.proc.clone()], info };
        let tag = cx.link.pending.insert(Pending { call, since, deadline, what });
        cx.send(tag, &Request::GroupConstruct(construct).encode(cx.link.config.dialect));
    }

    pub(super) fn on_context_id(
        &mut self,
        cx: &mut Cx<'_>,
        call: Option<CallId>,
        id: Text,
        (members, given): (Vec<ProcId>, Vec<Info>),
        payload: &[u8],
    ) {
        let reply = construct_reply(cx.link, payload);
        match reply {
            Ok(reply) if reply.status.is_success() => {
                self.announce_group(cx, call, id, (members, given), reply.context_id);
            }
            refused => {
                let status = refused.map_or_else(unreadable, |reply| reply.status);
                raise(cx, Status::GROUP_CONSTRUCT_ABORT, about(&id, others(cx.link, &members)));
                cx.give_back(call, ClientReturn::Group(Err(status)));
            }
        }
    }

    fn announce_group(
        &mut self,
        cx: &mut Cx<'_>,
        call: Option<CallId>,
        id: Text,
        (members, given): (Vec<ProcId>, Vec<Info>),
        context_id: Option<u64>,
    ) {
        let mut told = about(&id, others(cx.link, &members));
        told.push(Info::new(keys::GROUP_MEMBERSHIP, array(members.iter().cloned())));
        told.extend(context_id.map(|number| Info::new(keys::GROUP_CONTEXT_ID, Value::Size(number))));
        told.extend(given.iter().cloned());
        keep_contributions(cx.link, context_id, &given);
        raise(cx, Status::GROUP_CONSTRUCT_COMPLETE, told.clone());
        if members.contains(&cx.link.config.proc) {
            self.hear_oneself(cx, Status::GROUP_CONSTRUCT_COMPLETE, told);
        }
        self.groups.remember(id, members.clone());
        let formed = GroupFormed { members, context_id, info: said_in(&given) };
        cx.give_back(call, ClientReturn::Group(Ok(formed)));
    }

    /// Answers the caller, and the processes that have replied. The entry stays for those that have not yet.
    pub(super) fn give_up_invitation(&mut self, cx: &mut Cx<'_>, tag: u32, status: Status) {
        let Some((_, invitation)) = cx.link.pending.invitations().find(|(at, _)| *at == tag) else { return };
        invitation.refused = Some(status);
        let mut answered = std::mem::take(&mut invitation.accepted);
        answered.append(&mut invitation.lost);
        let told = about(&invitation.id, answered);
        let (is_over, includes_leader) = (invitation.silent.is_empty(), invitation.includes_leader);
        raise(cx, Status::GROUP_CONSTRUCT_ABORT, told.clone());
        let is_news = cx.link.pending.get_mut(tag).is_some_and(|entry| entry.call.is_some());
        if includes_leader && is_news {
            self.hear_oneself(cx, Status::GROUP_CONSTRUCT_ABORT, told);
        }
        let call = cx.link.pending.get_mut(tag).and_then(|entry| entry.call.take());
        cx.give_back(call, ClientReturn::Group(Err(status)));
        if is_over {
            cx.link.pending.remove(tag);
        }
    }

    /// The leader has announced the outcome.
    fn on_group_settled(&mut self, cx: &mut Cx<'_>, event: &Event) {
        let Some(group) = event.info.find(keys::GROUP_ID).and_then(Value::as_text) else { return };
        let from = &event.source;
        let waiting = cx
            .link
            .pending
            .take_joins(|id, leader| id == group && leader.is_none_or(|leader| leader == from));
        let result = match event.code {
            Status::GROUP_CONSTRUCT_COMPLETE => {
                let members = procs(&event.info, keys::GROUP_MEMBERSHIP);
                if !waiting.is_empty() && !members.is_empty() {
                    self.groups.remember(group.clone(), members.clone());
                }
                let context_id = event.info.find(keys::GROUP_CONTEXT_ID).and_then(Value::as_u64);
                let given = given_by(&members, &event.info);
                if !waiting.is_empty() {
                    keep_contributions(cx.link, context_id, &given);
                }
                Ok(GroupFormed { members, context_id, info: said_in(&given) })
            }
            aborted => Err(aborted),
        };
        for entry in waiting {
            cx.give_back(entry.call, ClientReturn::Group(result.clone()));
        }
    }

    /// Registers with the server for the events of invitations, once.
    fn listen_for_groups(&mut self, cx: &mut Cx<'_>) {
        let Some(codes) = self.groups.begin_to_listen() else { return };
        let events = RegisterEvents { codes, info: Vec::new() };
        let awaited = Awaited::Status { operation: "register event handler", subject: "groups".into() };
        cx.ask(None, &Request::RegisterEvents(events), awaited, &[]);
    }

    /// Runs the leader's own handlers for the outcome, like those of the members.
    fn hear_oneself(&mut self, cx: &mut Cx<'_>, code: Status, info: Vec<Info>) {
        let source = cx.link.config.proc.clone();
        self.handlers().run(cx, Event { code, source, range: Range::CUSTOM, info });
    }
}

/// The host reports that a leader has failed. Returns whether that is news: the end of the leader may have been reported before.
fn on_leader_failed(cx: &mut Cx<'_>, event: &Event, leaders: &[ProcId]) -> bool {
    let group = event.info.find(keys::GROUP_ID).and_then(Value::as_text);
    let waiting = cx.link.pending.take_joins(|id, leader| {
        leader.is_some_and(|leader| leaders.contains(leader)) && group.is_none_or(|group| group == id)
    });
    let is_news = !waiting.is_empty();
    for entry in waiting {
        cx.give_back(entry.call, ClientReturn::Group(Err(Status::GROUP_LEADER_FAILED)));
    }
    is_news
}

fn raise(cx: &mut Cx<'_>, code: Status, info: Vec<Info>) {
    let to_nobody = info.find(keys::EVENT_CUSTOM_RANGE).is_some_and(|range| match range {
        Value::DataArray(array) => array.items.is_empty(),
        _ => false,
    });
    if to_nobody {
        return;
    }
    let custom = info.find(keys::EVENT_CUSTOM_RANGE).is_some();
    let range = if custom { Range::CUSTOM } else { Range::SESSION };
    let awaited = Awaited::Status { operation: "notify", subject: code.to_string() };
    cx.ask(None, &Request::Notify(Notify { code, range, info }), awaited, &[]);
}

fn others(link: &Link, members: &[ProcId]) -> Vec<ProcId> {
    members.iter().filter(|member| **member != link.config.proc).cloned().collect()
}

/// Every single process of these; `None` if a job is not known here.
fn each_of(link: &Link, invited: &[ProcId]) -> Option<BTreeSet<ProcId>> {
    let mut all = BTreeSet::new();
    for proc in invited {
        if proc.rank != Rank::WILDCARD {
            all.insert(proc.clone());
            continue;
        }
        let size = link
            .store
            .value(proc.nspace.as_str(), proc.rank, keys::JOB_SIZE)?
            .as_u32()
            .filter(|size| *size <= MOST_INVITED)?;
        all.extend((0..size).map(|rank| ProcId::new(&proc.nspace, Rank(rank))));
    }
    Some(all)
}

/// The infos in every event of a group: its id, the recipients, and that default handlers are left out.
fn about(group: &Text, to: impl IntoIterator<Item = ProcId>) -> Vec<Info> {
    vec![
        Info::new(keys::EVENT_CUSTOM_RANGE, array(to)),
        Info::new(keys::EVENT_NON_DEFAULT, true),
        Info::new(keys::GROUP_ID, Value::String(group.clone())),
    ]
}

fn array(procs: impl IntoIterator<Item = ProcId>) -> DataArray {
    DataArray { of: DataType::PROC, items: procs.into_iter().map(Value::Proc).collect() }
}

fn unreadable(error: DecodeError) -> Status {
    tracing::warn!(%error, "the server's word about a group cannot be read");
    Status::ERR_UNPACK_FAILURE
}

const MOST_INVITED: u32 = 1 << 20;
