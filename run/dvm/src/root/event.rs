//! Events: which daemons receive an event that a process raised, and the events that the runtime itself raises.
//!
//! An event raised by a process reaches every daemon in its range; their servers keep it for clients that register later.
//! Events of the runtime (a process ended, a job ended, a stream ended) go only to daemons with a client that registered for
//! exactly that code: MPI libraries register for all codes and abort when an event arrives. Ranks of unrelated jobs do not
//! receive each other's events unless they name the job.

use std::sync::Arc;
use std::time::Duration;

use phalanx_core::Event;
use phalanx_spec::{Range, Status, keys};
use phalanx_wire::{Info, InfoList, Nspace, ProcId};

use crate::id::NodeId;
use crate::msg::{Down, procs};
use crate::ranges::Ranges;
use crate::root::dvm::Dvm;
use crate::root::journal::Moment;
use crate::root::lifecycle;
use crate::root::turn::Cx;

/// Attributes of a notification that are evaluated here.
pub(crate) const ATTRIBUTES: &[&str] = &[keys::EVENT_CUSTOM_RANGE];

pub(super) fn register(cx: &mut Cx<'_>, dvm: &mut Dvm, node: NodeId, codes: &[Status], info: &[Info]) {
    let new = dvm.interests.add(node, codes);
    replay(cx, dvm, node, codes, &new, info);
}

/// Sends a daemon the past events of jobs: of the jobs that the registration names, and, for codes that are new at the
/// daemon, of the jobs that concern its processes, or of all jobs if it has tools. Its server knows which clients existed
/// at the time and which have had the event.
fn replay(cx: &mut Cx<'_>, dvm: &Dvm, node: NodeId, codes: &[Status], new: &[Status], info: &[Info]) {
    if !codes.iter().any(|code| lifecycle::CODES.contains(code)) {
        return;
    }
    let named = [keys::EVENT_AFFECTED_PROC, keys::EVENT_AFFECTED_PROCS];
    let named: Vec<ProcId> = named.into_iter().flat_map(|key| procs(info.find(key))).collect();
    let has_tools = dvm.tools.nodes().any(|at| at == node);
    let is_here = |job: &Nspace| dvm.jobs.get(job).is_some_and(|job| job.desc.nodes.contains(node.0));
    let live = dvm.jobs.values().map(|job| &job.journal);
    let mut past = Vec::new();
    for journal in dvm.journals.iter().chain(live) {
        let nspace = &journal.desc().nspace;
        let is_named = named.iter().any(|proc| proc.nspace == *nspace);
        for entry in journal.entries() {
            let wanted = if is_named { codes } else { new };
            let is_wanted = |code: &Status| wanted.contains(code);
            let Some(concerned) = entry.what().concerned() else { continue };
            let is_for_them = is_named || has_tools || concerned.iter().any(is_here);
            if !is_for_them || !entry.what().event_codes().iter().any(is_wanted) {
                continue;
            }
            let ago = |moment: &Moment| cx.now.since(moment.at);
            for moment in entry.moments().filter(|moment| ago(moment) <= LATEST) {
                let told =
                    lifecycle::events_of(dvm, journal, entry, &moment).filter(|event| is_wanted(&event.code));
                let told = told.take(MOST_REPLAYED);
                past.extend(told.map(|event| (moment.number, ago(&moment), event, concerned.clone())));
            }
        }
    }
    past.sort_by_key(|(number, ..)| *number);
    let too_many = past.len().saturating_sub(MOST_REPLAYED);
    for (number, ago, event, concerned) in past.into_iter().skip(too_many) {
        let (event, concerned, ago) = (Arc::new(event), Some(concerned), Some(ago));
        cx.cast(Ranges::single(node.0), Down::Announce { event, number, concerned, ago });
    }
}

pub(super) fn deregister(dvm: &mut Dvm, node: NodeId, codes: &[Status]) {
    dvm.interests.remove(node, codes);
}

/// A process on `origin` has raised an event; its own server has already notified the clients there.
pub(super) fn pass_on(cx: &mut Cx<'_>, dvm: &Dvm, origin: NodeId, event: &Event) {
    let to = match event.range {
        Range::LOCAL | Range::PROC_LOCAL | Range::RM => return,
        Range::NAMESPACE => match dvm.jobs.get(&event.source.nspace) {
            Some(job) => job.desc.nodes.clone(),
            None => dvm.nodes_of_tools(&event.source.nspace).map(|node| node.0).collect(),
        },
        Range::CUSTOM => dvm.nodes_of_procs(procs(event.info.find(keys::EVENT_CUSTOM_RANGE))),
        _ => Ranges::first(dvm.nodes.size()),
    };
    cx.cast(to, Down::Event { event: Arc::new(event.clone()), except: Some(origin) });
}

/// How many past events one registration gets, and how old they may be: as many as servers keep.
const MOST_REPLAYED: usize = 512;
pub(super) const LATEST: Duration = Duration::from_secs(120);
