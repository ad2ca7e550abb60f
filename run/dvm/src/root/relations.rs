//! Lasting results of collectives: connected processes, and groups.
//!
//! Events of a job are delivered to ranks of the jobs that it concerns: those of the same family, and those connected to it.
//! All other jobs are strangers. Groups are remembered for queries; their members' servers know them as well.

use std::collections::BTreeMap;
use std::sync::Arc;

use phalanx_core::Event;
use phalanx_spec::{DataType, Status, keys};
use phalanx_wire::{DataArray, InfoList, Nspace, ProcId, Value};

use crate::msg::{Members, each, procs};
use crate::root::jobs::Jobs;

#[derive(Debug, Default)]
pub(super) struct Relations {
    /// How often these processes of several jobs have connected without disconnecting. Bounded by the rounds of collectives.
    connected: BTreeMap<Arc<[Members]>, u32>,
    /// The groups of each name, with their members. Groups of the same name have no process in common.
    groups: BTreeMap<String, Vec<Arc<[Members]>>>,
    last_context: u64,
}

/// What processes of several jobs have done together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    Connected,
    Disconnected,
    Fenced,
}

impl Relations {
    pub(super) fn connect(&mut self, members: &Arc<[Members]>) {
        if members.len() > 1 {
            *self.connected.entry(members.clone()).or_default() += 1;
        }
    }

    pub(super) fn disconnect(&mut self, members: &Arc<[Members]>) {
        if let Some(times) = self.connected.get_mut(members) {
            *times -= 1;
            if *times == 0 {
                self.connected.remove(members);
            }
        }
    }

    /// Whether any processes of the two jobs are connected.
    pub(super) fn are_connected(&self, one: &Nspace, other: &Nspace) -> bool {
        self.connected.keys().any(|members| includes(members, one) && includes(members, other))
    }

    /// A group has formed.
    pub(super) fn form(&mut self, jobs: &Jobs, group: &str, members: &[ProcId]) {
        let desc = |nspace: &Nspace| jobs.get(nspace).map(|job| &*job.desc);
        let Ok(members) = Members::of(members, desc) else { return };
        self.dissolve(group, &members);
        if self.groups.values().map(Vec::len).sum::<usize>() < MOST_GROUPS {
            self.groups.entry(group.to_owned()).or_default().push(members);
        }
    }

    /// Removes the groups of this name that share a process with `members`.
    pub(super) fn dissolve(&mut self, group: &str, members: &[Members]) {
        if let Some(groups) = self.groups.get_mut(group) {
            groups.retain(|others| !meet(others, members));
            if groups.is_empty() {
                self.groups.remove(group);
            }
        }
    }

    /// A context id for a group.
    pub(super) fn next_context(&mut self) -> u64 {
        self.last_context += 1;
        self.last_context
    }

    pub(super) fn group_names(&self) -> impl Iterator<Item = &str> {
        self.groups.keys().map(String::as_str)
    }

    /// The group of this name that the process is in, or else the last one formed.
    pub(super) fn members_of(&self, group: &str, asker: &ProcId) -> Option<DataArray> {
        let groups = self.groups.get(group)?;
        let own = groups.iter().find(|members| is_in(members, asker));
        let members = own.or(groups.last())?;
        Some(DataArray { of: DataType::PROC, items: each(members).map(Value::Proc).collect() })
    }

    pub(super) fn know(&self, nspace: &Nspace) -> bool {
        let mut all = self.connected.keys().chain(self.groups.values().flatten());
        all.any(|members| includes(members, nspace))
    }

    /// The job is over.
    pub(super) fn forget(&mut self, nspace: &Nspace) {
        self.connected.retain(|members, _| !includes(members, nspace));
        let is_other = |members: &&Members| members.nspace != *nspace;
        for members in self.groups.values_mut().flatten().filter(|members| includes(members, nspace)) {
            *members = members.iter().filter(is_other).cloned().collect();
        }
        self.groups.retain(|_, groups| {
            groups.retain(|members| !members.is_empty());
            !groups.is_empty()
        });
    }

    /// An event about a group: a process has left it, or invited processes have joined it. Only a member's event can change a
    /// group that exists.
    pub(super) fn hear_of_group(&mut self, jobs: &Jobs, event: &Event) {
        let Some(group) = event.info.find(keys::GROUP_ID).and_then(Value::as_str) else { return };
        if event.code == Status::GROUP_LEFT {
            return self.leave(group, &event.source);
        }
        let members: Vec<ProcId> = procs(event.info.find(keys::GROUP_MEMBERSHIP)).collect();
        let desc = |nspace: &Nspace| jobs.get(nspace).map(|job| &*job.desc);
        let Ok(named) = Members::of(&members, desc) else { return };
        let mut met = self.groups.get(group).into_iter().flatten().filter(|others| meet(others, &named));
        if met.all(|others| is_in(others, &event.source)) {
            self.form(jobs, group, &members);
        }
    }

    /// The jobs that may receive events of this one. `first`: its first ancestor.
    pub(super) fn concerned_by(&self, jobs: &Jobs, nspace: &Nspace, first: &Nspace) -> Vec<Nspace> {
        let family = jobs.iter().filter(|(_, job)| job.descent.first == *first).map(|(nspace, _)| nspace);
        let connections = self.connected.keys().filter(|members| includes(members, nspace));
        let connected = connections.flat_map(|members| members.iter().map(|members| &members.nspace));
        let mut all: Vec<Nspace> = std::iter::once(nspace).chain(family).chain(connected).cloned().collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// This process has left the group.
    fn leave(&mut self, group: &str, proc: &ProcId) {
        let Some(groups) = self.groups.get_mut(group) else { return };
        let Some(members) = groups.iter_mut().find(|members| is_in(members, proc)) else { return };
        let without = |of: &Members| {
            let mut of = of.clone();
            if of.nspace == proc.nspace {
                of.ranks.remove(proc.rank.0);
            }
            Some(of).filter(|of| !of.ranks.is_empty())
        };
        *members = members.iter().filter_map(without).collect();
        groups.retain(|members| !members.is_empty());
        if groups.is_empty() {
            self.groups.remove(group);
        }
    }
}

fn is_in(members: &[Members], proc: &ProcId) -> bool {
    members.iter().any(|of| of.nspace == proc.nspace && of.ranks.contains(proc.rank.0))
}

/// Whether a process is in both.
fn meet(some: &[Members], others: &[Members]) -> bool {
    let meets =
        |one: &Members, other: &Members| one.nspace == other.nspace && one.ranks.intersects(&other.ranks);
    some.iter().any(|one| others.iter().any(|other| meets(one, other)))
}

fn includes(members: &[Members], nspace: &Nspace) -> bool {
    members.iter().any(|members| members.nspace == *nspace)
}

/// The most groups that are remembered.
const MOST_GROUPS: usize = 1 << 16;
