//! Groups: construct and destruct are collectives of the members, leave is not. `invite.rs` forms groups by invitation.

use std::collections::BTreeMap;

use phalanx_spec::{Rank, Status, keys};
use phalanx_wire::cmd::group::{Construct, ConstructReply, Destruct, Leave, WholeReply};
use phalanx_wire::cmd::{Body, Request};
use phalanx_wire::codec::DecodeError;
use phalanx_wire::{DataArray, Info, ProcId, Text, Value};

use super::call::ClientReturn;
use super::link::{Cx, Link};
use super::pending::{Awaited, deadline_of};
use crate::host::GroupFormed;
use crate::machine::CallId;

/// Directives honoured here: group information is stored here.
pub(super) const ATTRIBUTES: &[&str] = &[keys::GROUP_INFO, keys::TIMEOUT];

/// The members of the groups that this process has constructed; a server wants them again when a group is destructed.
#[derive(Debug, Default)]
pub(super) struct Groups {
    named: BTreeMap<Text, Vec<ProcId>>,
    /// Whether the server was asked for the events of invitations.
    listens: bool,
}

impl Groups {
    pub(super) fn members(&self, group: &Text) -> Option<&[ProcId]> {
        self.named.get(group).map(Vec::as_slice)
    }

    pub(super) fn remember(&mut self, group: Text, members: Vec<ProcId>) {
        self.named.insert(group, members);
    }

    /// The group has ended, or this process has left it. Returns its members.
    pub(super) fn forget(&mut self, group: &Text) -> Vec<ProcId> {
        self.named.remove(group).unwrap_or_default()
    }

    /// Replaces members of groups by processes: a group's name may stand for a namespace, with the members' positions as
    /// ranks.
    pub(super) fn resolve(&self, procs: Vec<ProcId>) -> Vec<ProcId> {
        if self.named.is_empty() {
            return procs;
        }
        procs.into_iter().flat_map(|proc| self.members_named(&proc).unwrap_or_else(|| vec![proc])).collect()
    }

    /// None if there is no such group, or no such position.
    pub(super) fn members_named(&self, proc: &ProcId) -> Option<Vec<ProcId>> {
        let members = self.named.get(&Text::from(proc.nspace.as_str()))?;
        if proc.rank == Rank::WILDCARD {
            return Some(members.clone());
        }
        let places_are_known = members.iter().all(|member| member.rank.is_process());
        let place = usize::try_from(proc.rank.0).ok().filter(|_| places_are_known)?;
        Some(vec![members.get(place)?.clone()])
    }

    /// The events of invitations, if the server was not asked for them yet.
    pub(super) fn begin_to_listen(&mut self) -> Option<Vec<Status>> {
        let listens = std::mem::replace(&mut self.listens, true);
        (!listens).then(|| SPOKEN.to_vec())
    }

    /// Whether the server sends events that the client itself needs.
    pub(super) fn listen(&self) -> bool {
        self.listens
    }

    /// Whether the server must send events of this code even without a handler.
    pub(super) fn need(&self, code: Status) -> bool {
        self.listens && SPOKEN.contains(&code)
    }
}

pub(super) fn on_group_construct(
    cx: &mut Cx<'_>,
    groups: &mut Groups,
    id: CallId,
    Construct { id: name, procs, info }: Construct,
) {
    let request = Construct { id: name, procs: groups.resolve(procs), info: signed(cx.link, info) };
    let awaited = Awaited::Group { id: request.id.clone(), procs: request.procs.clone() };
    let deadline = deadline_of(cx.now, &request.info);
    cx.ask_until(Some(id), &Request::GroupConstruct(request), awaited, deadline);
}

pub(super) fn construct_reply(link: &Link, payload: &[u8]) -> Result<ConstructReply, DecodeError> {
    match link.config.files {
        Some(_) => WholeReply::decode(payload, link.config.dialect).map(|WholeReply(reply)| reply),
        None => ConstructReply::decode(payload, link.config.dialect),
    }
}

/// Puts this process's name in front of its own group information.
pub(super) fn signed(link: &Link, mut info: Vec<Info>) -> Vec<Info> {
    for one in info.iter_mut().filter(|one| one.key == keys::GROUP_INFO) {
        let Some(said) = one.value.as_array() else { continue };
        if !said.infos().any(|first| first.key == keys::PROCID) {
            let name = Info::new(keys::PROCID, link.config.proc.clone());
            one.value = DataArray::of_infos([name].into_iter().chain(said.infos().cloned())).into();
        }
    }
    info
}

/// Each info is about one member, or holds an array of several.
pub(super) fn keep_what_members_say(link: &Link, context_id: u64, infos: &[Info]) {
    let qualifier = [Info::new(keys::GROUP_CONTEXT_ID, Value::Size(context_id))];
    let keep = |said: &DataArray| {
        let Some(Value::Proc(owner)) = said.infos().find(|one| one.key == keys::PROCID).map(|one| &one.value)
        else {
            return;
        };
        for one in said.infos().filter(|one| one.key != keys::PROCID) {
            link.store.keep_qualified(owner, &one.key, &qualifier, one.value.clone());
        }
    };
    for info in infos {
        let Some(array) = info.value.as_array() else { continue };
        match info.key.as_str() {
            keys::GROUP_INFO => keep(array),
            keys::GROUP_INFO_ARRAY => {
                array.infos().filter_map(|one| one.value.as_array()).for_each(keep);
            }
            _ => {}
        }
    }
}

/// Servers of 4.2 do not report the members: then they are those that the caller named.
pub(super) fn group_constructed(
    link: &Link,
    groups: &mut Groups,
    name: &Text,
    procs: &[ProcId],
    payload: &[u8],
) -> Result<ClientReturn, DecodeError> {
    let reply = construct_reply(link, payload)?;
    if !reply.status.is_success() {
        return Ok(ClientReturn::Group(Err(reply.status)));
    }
    for job in reply.jobs {
        link.store.load_job(job);
    }
    let members = if reply.members.is_empty() { procs.to_vec() } else { reply.members };
    groups.remember(name.clone(), members.clone());
    if let Some(id) = reply.context_id {
        keep_what_members_say(link, id, &reply.info);
    }
    let formed = GroupFormed { members, context_id: reply.context_id, info: reply.info };
    Ok(ClientReturn::Group(Ok(formed)))
}

pub(super) fn on_group_destruct(
    cx: &mut Cx<'_>,
    groups: &mut Groups,
    id: CallId,
    name: Text,
    info: Vec<Info>,
) {
    let procs = groups.forget(&name);
    let awaited = Awaited::Status { operation: "group destruct", subject: name.to_string_lossy() };
    let request = Request::GroupDestruct(Destruct { id: name, procs, info: info.clone() });
    cx.ask(Some(id), &request, awaited, &info);
}

pub(super) fn on_group_leave(cx: &mut Cx<'_>, groups: &mut Groups, id: CallId, request: Leave) {
    groups.forget(&request.id);
    let awaited = Awaited::Status { operation: "group leave", subject: request.id.to_string_lossy() };
    let deadline = deadline_of(cx.now, &request.info);
    cx.ask_until(Some(id), &Request::GroupLeave(request), awaited, deadline);
}

/// The events that leaders and the invited exchange.
const SPOKEN: [Status; 7] = [
    Status::GROUP_INVITE_ACCEPTED,
    Status::GROUP_INVITE_DECLINED,
    Status::GROUP_CONSTRUCT_COMPLETE,
    Status::GROUP_CONSTRUCT_ABORT,
    Status::GROUP_LEADER_FAILED,
    Status::PROC_TERMINATED,
    Status::EVENT_PROC_TERMINATED,
];
