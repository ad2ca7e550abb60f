//! Process sets: names that the host gives to sets of processes.
//!
//! Every server learns of sets from its own host, so the events of a set's definition and deletion stay on the node.

use std::collections::BTreeMap;

use phalanx_spec::{Range, Status, keys};
use phalanx_wire::cmd::Body;
use phalanx_wire::cmd::get::{Get, OwnerData, Reply};
use phalanx_wire::{Info, Kval, ProcId};

use super::directive::{as_array, refuse_unknown};
use super::event::{Events, Raiser};
use super::get;
use super::host::Then;
use super::peer::Asker;
use super::turn::Cx;
use crate::host::Event;

/// The members of each set, by its name.
#[derive(Debug, Default)]
pub(super) struct Psets(BTreeMap<String, Vec<ProcId>>);

impl Psets {
    pub(super) fn define(
        &mut self,
        cx: &mut Cx<'_>,
        events: &mut Events,
        name: String,
        members: Vec<ProcId>,
    ) -> Status {
        if name.is_empty() || members.is_empty() {
            return Status::ERR_BAD_PARAM;
        }
        if self.0.contains_key(&name) {
            return Status::ERR_EXISTS;
        }
        let info = vec![
            Info::new(keys::PSET_NAME, name.as_str()),
            Info::new(keys::PSET_MEMBERS, as_array(&members)),
        ];
        self.0.insert(name, members);
        raise_here(cx, events, Status::PROCESS_SET_DEFINE, info);
        Status::SUCCESS
    }

    pub(super) fn delete(&mut self, cx: &mut Cx<'_>, events: &mut Events, name: &str) -> Status {
        if self.0.remove(name).is_none() {
            return Status::ERR_NOT_FOUND;
        }
        raise_here(cx, events, Status::PROCESS_SET_DELETE, vec![Info::new(keys::PSET_NAME, name)]);
        Status::SUCCESS
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    pub(super) fn members(&self, name: &str) -> Option<&[ProcId]> {
        self.0.get(name).map(Vec::as_slice)
    }

    /// A get of `pmix.pset.nms`: the names of the sets that contain a process.
    pub(super) fn on_get(&self, cx: &mut Cx<'_>, from: Asker, get: Get) {
        if let Err(status) = refuse_unknown("get", &from.proc, &get.info, get::ATTRIBUTES) {
            return cx.answer(from, status);
        }
        let nspace = if get.nspace.is_none() { from.proc.nspace.clone() } else { get.nspace };
        let target = ProcId { nspace, rank: get.rank };
        let holds = |members: &Vec<ProcId>| members.iter().any(|member| member.covers(&target));
        let names: Vec<&str> =
            self.0.iter().filter(|(_, m)| holds(m)).map(|(name, _)| name.as_str()).collect();
        if names.is_empty() {
            return cx.answer(from, Status::ERR_NOT_FOUND);
        }
        let values = vec![Kval::new(keys::PSET_NAMES, names.join(","))];
        let data = vec![OwnerData { owner: target.clone(), values }];
        cx.reply(from, |dialect| Reply { status: Status::SUCCESS, data }.encode(dialect));
    }
}

fn raise_here(cx: &mut Cx<'_>, events: &mut Events, code: Status, info: Vec<Info>) {
    let source = cx.config.identity.clone();
    events.raise(cx, &Event { code, source, range: Range::LOCAL, info }, Raiser::Source, Then::Nothing);
}
