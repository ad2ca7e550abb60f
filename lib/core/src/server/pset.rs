//! Process sets: names that the host gives to sets of processes.
//!
//! Every server is told by its own host, so the events of a set's beginning and end stay on the node.

use phalanx_spec::{DataType, Range, Status, keys};
use phalanx_wire::cmd::Body;
use phalanx_wire::cmd::get::{OwnerData, Reply};
use phalanx_wire::{DataArray, Info, Kval, ProcId, Value};

use super::host::Then;
use super::peer::Asker;
use super::{Cx, Server};
use crate::host::Event;

impl Server {
    pub(super) fn define_process_set(
        &mut self,
        cx: &mut Cx<'_>,
        name: String,
        members: Vec<ProcId>,
    ) -> Status {
        if name.is_empty() || members.is_empty() {
            return Status::ERR_BAD_PARAM;
        }
        if self.psets.contains_key(&name) {
            return Status::ERR_EXISTS;
        }
        let info = vec![
            Info::new(keys::PSET_NAME, name.as_str()),
            Info::new(keys::PSET_MEMBERS, as_array(&members)),
        ];
        self.psets.insert(name, members);
        self.raise_here(cx, Status::PROCESS_SET_DEFINE, info);
        Status::SUCCESS
    }

    pub(super) fn delete_process_set(&mut self, cx: &mut Cx<'_>, name: &str) -> Status {
        if self.psets.remove(name).is_none() {
            return Status::ERR_NOT_FOUND;
        }
        self.raise_here(cx, Status::PROCESS_SET_DELETE, vec![Info::new(keys::PSET_NAME, name)]);
        Status::SUCCESS
    }

    fn raise_here(&mut self, cx: &mut Cx<'_>, code: Status, info: Vec<Info>) {
        let source = self.config.identity.clone();
        self.raise(cx, &Event { code, source, range: Range::LOCAL, info }, None, Then::Nothing);
    }

    /// A get of `pmix.pset.nms`: the names of the sets that hold a process.
    pub(super) fn answer_pset_names(&mut self, cx: &mut Cx<'_>, from: &Asker, target: &ProcId) {
        let holds = |members: &Vec<ProcId>| members.iter().any(|member| member.covers(target));
        let names: Vec<&str> =
            self.psets.iter().filter(|(_, m)| holds(m)).map(|(name, _)| name.as_str()).collect();
        if names.is_empty() {
            return self.answer(cx, from, Status::ERR_NOT_FOUND);
        }
        let values = vec![Kval::new(keys::PSET_NAMES, names.join(","))];
        let data = vec![OwnerData { owner: target.clone(), values }];
        self.reply(cx, from, |dialect| Reply { status: Status::SUCCESS, data }.encode(dialect));
    }
}

pub(super) fn as_array(procs: &[ProcId]) -> DataArray {
    DataArray { of: DataType::PROC, items: procs.iter().cloned().map(Value::Proc).collect() }
}
