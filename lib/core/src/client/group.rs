//! Groups: construct and destruct are collectives of the members, leave is not. `invite.rs` has the other way to form one.

use phalanx_spec::{Rank, keys};
use phalanx_wire::cmd::group::{Construct, ConstructReply, Destruct, Leave, WholeReply};
use phalanx_wire::cmd::{Body, Request};
use phalanx_wire::codec::DecodeError;
use phalanx_wire::{DataArray, Info, ProcId, Text, Value};

use super::pending::Awaited;
use super::{Client, ClientReturn, Out};
use crate::host::GroupFormed;
use crate::machine::{CallId, Time};

/// What is done here with what the members say of themselves.
pub(super) const ATTRIBUTES: &[&str] = &[keys::GROUP_INFO, keys::TIMEOUT];

impl Client {
    pub(super) fn on_group_construct(
        &mut self,
        now: Time,
        id: CallId,
        name: Text,
        procs: Vec<ProcId>,
        info: Vec<Info>,
        out: &mut Out,
    ) {
        let procs = self.with_groups_resolved(procs);
        let info = self.signed(info);
        let awaited = Awaited::Group { id: name.clone(), procs: procs.clone() };
        let request = Request::GroupConstruct(Construct { id: name, procs, info: info.clone() });
        self.ask(now, Some(id), &request, awaited, &info, out);
    }

    /// A group may be named like a job, and its members by their places in it.
    pub(super) fn with_groups_resolved(&self, procs: Vec<ProcId>) -> Vec<ProcId> {
        if self.groups.is_empty() {
            return procs;
        }
        procs.into_iter().flat_map(|proc| self.members_named(&proc).unwrap_or_else(|| vec![proc])).collect()
    }

    /// None if it is no group, or nobody has that place.
    pub(super) fn members_named(&self, proc: &ProcId) -> Option<Vec<ProcId>> {
        let members = self.groups.get(&Text::from(proc.nspace.as_str()))?;
        if proc.rank == Rank::WILDCARD {
            return Some(members.clone());
        }
        let places_are_known = members.iter().all(|member| member.rank.is_process());
        let place = usize::try_from(proc.rank.0).ok().filter(|_| places_are_known)?;
        Some(vec![members.get(place)?.clone()])
    }

    pub(super) fn construct_reply(&self, payload: &[u8]) -> Result<ConstructReply, DecodeError> {
        match self.config.files {
            Some(_) => WholeReply::decode(payload, self.config.dialect).map(|WholeReply(reply)| reply),
            None => ConstructReply::decode(payload, self.config.dialect),
        }
    }

    /// What this process says of itself to the members begins with its name.
    pub(super) fn signed(&self, mut info: Vec<Info>) -> Vec<Info> {
        for one in info.iter_mut().filter(|one| one.key == keys::GROUP_INFO) {
            let Some(said) = one.value.as_array() else { continue };
            if !said.infos().any(|first| first.key == keys::PROCID) {
                let name = Info::new(keys::PROCID, self.config.proc.clone());
                one.value = DataArray::of_infos([name].into_iter().chain(said.infos().cloned())).into();
            }
        }
        info
    }

    /// Of each member by itself, or of several at once.
    pub(super) fn keep_what_members_say(&self, context_id: u64, infos: &[Info]) {
        let qualifier = [Info::new(keys::GROUP_CONTEXT_ID, Value::Size(context_id))];
        let keep = |said: &DataArray| {
            let Some(Value::Proc(owner)) =
                said.infos().find(|one| one.key == keys::PROCID).map(|one| &one.value)
            else {
                return;
            };
            for one in said.infos().filter(|one| one.key != keys::PROCID) {
                self.store.keep_qualified(owner, &one.key, &qualifier, one.value.clone());
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

    /// Servers of 4.2 do not say who the members are: then they are those whom the caller named.
    pub(super) fn group_constructed(
        &mut self,
        name: &Text,
        procs: &[ProcId],
        payload: &[u8],
    ) -> Result<ClientReturn, DecodeError> {
        let reply = self.construct_reply(payload)?;
        if !reply.status.is_success() {
            return Ok(ClientReturn::Group(Err(reply.status)));
        }
        for job in reply.jobs {
            self.store.load_job(job);
        }
        let members = if reply.members.is_empty() { procs.to_vec() } else { reply.members };
        self.groups.insert(name.clone(), members.clone());
        if let Some(id) = reply.context_id {
            self.keep_what_members_say(id, &reply.info);
        }
        let formed = GroupFormed { members, context_id: reply.context_id, info: reply.info };
        Ok(ClientReturn::Group(Ok(formed)))
    }

    pub(super) fn on_group_destruct(
        &mut self,
        now: Time,
        id: CallId,
        name: Text,
        info: Vec<Info>,
        out: &mut Out,
    ) {
        let procs = self.groups.remove(&name).unwrap_or_default();
        let awaited = Awaited::Status { operation: "group destruct", subject: name.to_string_lossy() };
        let request = Request::GroupDestruct(Destruct { id: name, procs, info: info.clone() });
        self.ask(now, Some(id), &request, awaited, &info, out);
    }

    pub(super) fn on_group_leave(
        &mut self,
        now: Time,
        id: CallId,
        name: Text,
        info: Vec<Info>,
        out: &mut Out,
    ) {
        self.groups.remove(&name);
        let awaited = Awaited::Status { operation: "group leave", subject: name.to_string_lossy() };
        let request = Request::GroupLeave(Leave { id: name, info: info.clone() });
        self.ask(now, Some(id), &request, awaited, &info, out);
    }
}
