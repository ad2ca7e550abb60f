//! Groups that form by asking: a leader invites, the invited join or decline. Both speak in events; the server only carries
//! them, and learns at the end who the members are.
//!
//! Each side is an entry in the table of what is awaited, under a tag that no request has.

use std::collections::BTreeSet;

use phalanx_spec::{DataType, Range, Rank, Status, keys};
use phalanx_wire::cmd::Request;
use phalanx_wire::cmd::event::{Notify, RegisterEvents};
use phalanx_wire::cmd::group::Construct;
use phalanx_wire::codec::DecodeError;
use phalanx_wire::{DataArray, Info, InfoList, ProcId, Text, Value};

use super::chain::procs;
use super::exchange::{given_by, said_in};
use super::pending::{Awaited, Pending, deadline_of};
use super::{Client, ClientReturn, Out};
use crate::host::{Event, GroupFormed};
use crate::machine::{CallId, Time};

/// What a leader waits for.
#[derive(Debug)]
pub(super) struct Invitation {
    pub(super) id: Text,
    /// A leader may form a group of others.
    includes_leader: bool,
    /// Those who have not answered.
    pub(super) silent: BTreeSet<ProcId>,
    accepted: Vec<ProcId>,
    /// What the members give each other.
    given: Vec<Info>,
    /// Those who will not join.
    lost: Vec<ProcId>,
    /// Whether, and why, the group does not form.
    refused: Option<Status>,
    /// Whether the group may form without those.
    may_lack_members: bool,
    wants_context_id: bool,
}

/// The leader's own.
pub(super) const INVITE_ATTRIBUTES: &[&str] =
    &[keys::GROUP_OPTIONAL, keys::GROUP_ASSIGN_CONTEXT_ID, keys::TIMEOUT];

impl Client {
    pub(super) fn on_group_invite(
        &mut self,
        now: Time,
        id: CallId,
        name: Text,
        invited: &[ProcId],
        info: &[Info],
        out: &mut Out,
    ) {
        let refuse = |status| ClientReturn::Group(Err(status));
        if let Err(status) = self.can_ask(Some(id)) {
            return self.give_back(Some(id), refuse(status), out);
        }
        let Some(mut silent) = self.each_of(invited) else {
            return self.give_back(Some(id), refuse(Status::ERR_BAD_PARAM), out);
        };
        let includes_leader = silent.remove(&self.config.proc);
        self.listen_for_groups(now, out);
        let mut told: Vec<Info> = info.to_vec();
        told.extend(about(&name, silent.iter().cloned()));
        let invitation = Invitation {
            id: name.clone(),
            includes_leader,
            silent,
            accepted: Vec::new(),
            given: if includes_leader { self.contribution(info) } else { Vec::new() },
            lost: Vec::new(),
            refused: None,
            may_lack_members: info.is_set(keys::GROUP_OPTIONAL),
            wants_context_id: info.is_set(keys::GROUP_ASSIGN_CONTEXT_ID),
        };
        let deadline = deadline_of(now, info);
        let what = Awaited::Invitation(invitation);
        let tag = self.pending.insert(Pending { call: Some(id), since: now, deadline, what });
        self.raise(now, Status::GROUP_INVITED, told, out);
        self.settle_invitation(now, tag, out);
    }

    /// The call ends when the leader says that the group is formed. Who declines does not wait.
    #[expect(clippy::too_many_arguments, reason = "the call has as many")]
    pub(super) fn on_group_join(
        &mut self,
        now: Time,
        id: CallId,
        name: Text,
        leader: Option<ProcId>,
        accept: bool,
        info: &[Info],
        out: &mut Out,
    ) {
        if let Err(status) = self.can_ask(Some(id)) {
            return self.give_back(Some(id), ClientReturn::Group(Err(status)), out);
        }
        let code = if accept { Status::GROUP_INVITE_ACCEPTED } else { Status::GROUP_INVITE_DECLINED };
        let mut told: Vec<Info> = info.to_vec();
        if accept {
            told.retain(|one| one.key != keys::GROUP_INFO);
            told.extend(self.contribution(info));
        }
        match &leader {
            Some(leader) => told.extend(about(&name, [leader.clone()])),
            None => told.push(Info::new(keys::GROUP_ID, Value::String(name.clone()))),
        }
        if accept {
            self.listen_for_groups(now, out);
            let what = Awaited::Join { id: name, leader };
            let deadline = deadline_of(now, info);
            self.pending.insert(Pending { call: Some(id), since: now, deadline, what });
        } else {
            self.give_back(Some(id), ClientReturn::Group(Ok(GroupFormed::default())), out);
        }
        self.raise(now, code, told, out);
    }

    /// Looks at every event from elsewhere for what an invitation waits for. Handlers of the program see it as well.
    pub(super) fn on_group_event(&mut self, now: Time, event: &Event, out: &mut Out) {
        let ended = procs(&event.info, keys::EVENT_AFFECTED_PROC);
        match event.code {
            Status::GROUP_INVITE_ACCEPTED | Status::GROUP_INVITE_DECLINED => {
                self.on_answer_to_invitation(now, event, out);
            }
            Status::GROUP_CONSTRUCT_COMPLETE | Status::GROUP_CONSTRUCT_ABORT => {
                self.on_group_settled(event, out);
            }
            Status::PROC_TERMINATED | Status::EVENT_PROC_TERMINATED => {
                self.on_process_ended(now, &ended, out)
            }
            _ => {}
        }
    }

    fn on_answer_to_invitation(&mut self, now: Time, event: &Event, out: &mut Out) {
        let group = event.info.find(keys::GROUP_ID).and_then(Value::as_text).cloned();
        // OpenPMIx does not say which group it is about: then it is the oldest that waits for this process.
        let is_this = |one: &Invitation| {
            one.silent.contains(&event.source) && group.as_ref().is_none_or(|group| *group == one.id)
        };
        let Some((tag, invitation)) = self.pending.invitations().find(|(_, one)| is_this(one)) else {
            return self.turn_away(now, group, event, out);
        };
        invitation.silent.remove(&event.source);
        match event.code {
            Status::GROUP_INVITE_ACCEPTED => {
                invitation.given.extend(given_by(std::slice::from_ref(&event.source), &event.info));
                invitation.accepted.push(event.source.clone());
            }
            _ => self.miss(now, tag, vec![event.source.clone()], out),
        }
        self.settle_invitation(now, tag, out);
    }

    /// Who accepts when the group has formed without it should not wait for ever.
    fn turn_away(&mut self, now: Time, group: Option<Text>, event: &Event, out: &mut Out) {
        let Some(group) = group.filter(|_| event.code == Status::GROUP_INVITE_ACCEPTED) else { return };
        if self.groups.get(&group).is_some_and(|members| !members.contains(&event.source)) {
            self.raise(now, Status::GROUP_CONSTRUCT_ABORT, about(&group, [event.source.clone()]), out);
        }
    }

    fn on_process_ended(&mut self, now: Time, ended: &[ProcId], out: &mut Out) {
        let mut touched = Vec::new();
        for (tag, invitation) in self.pending.invitations() {
            let dead =
                invitation.silent.extract_if(.., |silent| ended.iter().any(|ended| ended.covers(silent)));
            let dead: Vec<ProcId> = dead.collect();
            if !dead.is_empty() {
                touched.push((tag, dead));
            }
        }
        for (tag, dead) in touched {
            self.miss(now, tag, dead, out);
            self.settle_invitation(now, tag, out);
        }
        let has_ended = |leader: &ProcId| ended.iter().any(|ended| ended.covers(leader));
        for entry in self.pending.take_joins(|_, leader| leader.is_some_and(has_ended)) {
            if let Awaited::Join { id, leader: Some(leader) } = &entry.what {
                let mut told = about(id, []);
                told.push(Info::new(keys::EVENT_AFFECTED_PROC, leader.clone()));
                self.hear_oneself(now, Status::GROUP_LEADER_FAILED, told, out);
            }
            self.give_back(entry.call, ClientReturn::Group(Err(Status::GROUP_LEADER_FAILED)), out);
        }
    }

    /// These will not join. The leader's program hears it by an event for each.
    fn miss(&mut self, now: Time, tag: u32, lost: Vec<ProcId>, out: &mut Out) {
        let Some((_, invitation)) = self.pending.invitations().find(|(at, _)| *at == tag) else { return };
        if !invitation.may_lack_members {
            invitation.refused = invitation.refused.or(Some(Status::GROUP_CONSTRUCT_ABORT));
        }
        let id = invitation.id.clone();
        invitation.lost.extend(lost.iter().cloned());
        for proc in lost {
            let mut told = about(&id, []);
            told.push(Info::new(keys::EVENT_AFFECTED_PROC, proc));
            self.hear_oneself(now, Status::GROUP_INVITE_FAILED, told, out);
        }
    }

    /// The time that the leader gave is over.
    pub(super) fn on_invitation_overdue(&mut self, now: Time, tag: u32, out: &mut Out) {
        let Some((_, invitation)) = self.pending.invitations().find(|(at, _)| *at == tag) else { return };
        if !invitation.may_lack_members {
            return self.give_up_invitation(now, tag, Status::ERR_TIMEOUT, out);
        }
        let late = std::mem::take(&mut invitation.silent).into_iter().collect();
        self.miss(now, tag, late, out);
        self.settle_invitation(now, tag, out);
    }

    /// Forms the group once everybody has answered, or gives it up as soon as somebody will not join.
    fn settle_invitation(&mut self, now: Time, tag: u32, out: &mut Out) {
        let Some((_, invitation)) = self.pending.invitations().find(|(at, _)| *at == tag) else { return };
        if let Some(status) = invitation.refused {
            return self.give_up_invitation(now, tag, status, out);
        }
        if !invitation.silent.is_empty() {
            return;
        }
        if invitation.accepted.is_empty() && !invitation.includes_leader {
            return self.give_up_invitation(now, tag, Status::GROUP_CONSTRUCT_ABORT, out);
        }
        let Some(Pending { call, since, deadline, what }) = self.pending.remove(tag) else { return };
        let Awaited::Invitation(invitation) = what else { return };
        let mut members = invitation.accepted;
        members.extend(invitation.includes_leader.then(|| self.config.proc.clone()));
        members.sort();
        if !invitation.wants_context_id {
            return self.announce_group(now, call, invitation.id, (members, invitation.given), None, out);
        }
        // Only the host can say a number that no other group has: it is asked to form a group of the leader alone.
        let what = Awaited::ContextId { id: invitation.id.clone(), members, given: invitation.given };
        let info = vec![Info::new(keys::GROUP_ASSIGN_CONTEXT_ID, true)];
        let construct = Construct { id: invitation.id, procs: vec![self.config.proc.clone()], info };
        let tag = self.pending.insert(Pending { call, since, deadline, what });
        self.send(tag, &Request::GroupConstruct(construct).encode(self.config.dialect), out);
    }

    pub(super) fn on_context_id(
        &mut self,
        now: Time,
        call: Option<CallId>,
        id: Text,
        (members, given): (Vec<ProcId>, Vec<Info>),
        payload: &[u8],
        out: &mut Out,
    ) {
        let reply = self.construct_reply(payload);
        match reply {
            Ok(reply) if reply.status.is_success() => {
                self.announce_group(now, call, id, (members, given), reply.context_id, out);
            }
            refused => {
                let status = refused.map_or_else(unreadable, |reply| reply.status);
                self.raise(now, Status::GROUP_CONSTRUCT_ABORT, about(&id, self.others(&members)), out);
                self.give_back(call, ClientReturn::Group(Err(status)), out);
            }
        }
    }

    fn announce_group(
        &mut self,
        now: Time,
        call: Option<CallId>,
        id: Text,
        (members, given): (Vec<ProcId>, Vec<Info>),
        context_id: Option<u64>,
        out: &mut Out,
    ) {
        let mut told = about(&id, self.others(&members));
        told.push(Info::new(keys::GROUP_MEMBERSHIP, array(members.iter().cloned())));
        told.extend(context_id.map(|number| Info::new(keys::GROUP_CONTEXT_ID, Value::Size(number))));
        told.extend(given.iter().cloned());
        self.keep_contributions(context_id, &given);
        self.raise(now, Status::GROUP_CONSTRUCT_COMPLETE, told.clone(), out);
        if members.contains(&self.config.proc) {
            self.hear_oneself(now, Status::GROUP_CONSTRUCT_COMPLETE, told, out);
        }
        self.groups.insert(id, members.clone());
        let formed = GroupFormed { members, context_id, info: said_in(&given) };
        self.give_back(call, ClientReturn::Group(Ok(formed)), out);
    }

    /// Tells the caller, and those who have answered. The entry stays for those who have not yet.
    pub(super) fn give_up_invitation(&mut self, now: Time, tag: u32, status: Status, out: &mut Out) {
        let Some((_, invitation)) = self.pending.invitations().find(|(at, _)| *at == tag) else { return };
        invitation.refused = Some(status);
        let mut answered = std::mem::take(&mut invitation.accepted);
        answered.append(&mut invitation.lost);
        let told = about(&invitation.id, answered);
        let (is_over, includes_leader) = (invitation.silent.is_empty(), invitation.includes_leader);
        self.raise(now, Status::GROUP_CONSTRUCT_ABORT, told.clone(), out);
        let is_news = self.pending.get_mut(tag).is_some_and(|entry| entry.call.is_some());
        if includes_leader && is_news {
            self.hear_oneself(now, Status::GROUP_CONSTRUCT_ABORT, told, out);
        }
        let call = self.pending.get_mut(tag).and_then(|entry| entry.call.take());
        self.give_back(call, ClientReturn::Group(Err(status)), out);
        if is_over {
            self.pending.remove(tag);
        }
    }

    /// The leader has said how it ended.
    fn on_group_settled(&mut self, event: &Event, out: &mut Out) {
        let Some(group) = event.info.find(keys::GROUP_ID).and_then(Value::as_text) else { return };
        let from = &event.source;
        let waiting =
            self.pending.take_joins(|id, leader| id == group && leader.is_none_or(|leader| leader == from));
        let result = match event.code {
            Status::GROUP_CONSTRUCT_COMPLETE => {
                let members = procs(&event.info, keys::GROUP_MEMBERSHIP);
                if !waiting.is_empty() && !members.is_empty() {
                    self.groups.insert(group.clone(), members.clone());
                }
                let context_id = event.info.find(keys::GROUP_CONTEXT_ID).and_then(Value::as_u64);
                let given = given_by(&members, &event.info);
                if !waiting.is_empty() {
                    self.keep_contributions(context_id, &given);
                }
                Ok(GroupFormed { members, context_id, info: said_in(&given) })
            }
            aborted => Err(aborted),
        };
        for entry in waiting {
            self.give_back(entry.call, ClientReturn::Group(result.clone()), out);
        }
    }

    /// Has the server send the events that invitations are made of, from the first one on.
    fn listen_for_groups(&mut self, now: Time, out: &mut Out) {
        if std::mem::replace(&mut self.listens_for_groups, true) {
            return;
        }
        let events = RegisterEvents { codes: SPOKEN.to_vec(), info: Vec::new() };
        let awaited = Awaited::Status { operation: "register event handler", subject: "groups".into() };
        self.ask(now, None, &Request::RegisterEvents(events), awaited, &[], out);
    }

    /// Whether the server is to send events of this code although no handler wants them any more.
    pub(super) fn needs_for_groups(&self, code: Status) -> bool {
        self.listens_for_groups && SPOKEN.contains(&code)
    }

    fn raise(&mut self, now: Time, code: Status, info: Vec<Info>, out: &mut Out) {
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
        self.ask(now, None, &Request::Notify(Notify { code, range, info }), awaited, &[], out);
    }

    /// A leader's handlers hear how it ended as those of the others do.
    fn hear_oneself(&mut self, now: Time, code: Status, info: Vec<Info>, out: &mut Out) {
        let source = self.config.proc.clone();
        self.run_chain(now, Event { code, source, range: Range::CUSTOM, info }, out);
    }

    fn others(&self, members: &[ProcId]) -> Vec<ProcId> {
        members.iter().filter(|member| **member != self.config.proc).cloned().collect()
    }

    /// Each single process of these; nothing if a job is not known here.
    fn each_of(&self, invited: &[ProcId]) -> Option<BTreeSet<ProcId>> {
        let mut all = BTreeSet::new();
        for proc in invited {
            if proc.rank != Rank::WILDCARD {
                all.insert(proc.clone());
                continue;
            }
            let size = self
                .store
                .value(proc.nspace.as_str(), proc.rank, keys::JOB_SIZE)?
                .as_u32()
                .filter(|size| *size <= MOST_INVITED)?;
            all.extend((0..size).map(|rank| ProcId::new(&proc.nspace, Rank(rank))));
        }
        Some(all)
    }
}

/// What every event of a group says: which one, for whom, and that handlers of everything need not hear of it.
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

/// The events that leaders and the invited exchange.
const SPOKEN: [Status; 6] = [
    Status::GROUP_INVITE_ACCEPTED,
    Status::GROUP_INVITE_DECLINED,
    Status::GROUP_CONSTRUCT_COMPLETE,
    Status::GROUP_CONSTRUCT_ABORT,
    Status::PROC_TERMINATED,
    Status::EVENT_PROC_TERMINATED,
];
const MOST_INVITED: u32 = 1 << 20;
