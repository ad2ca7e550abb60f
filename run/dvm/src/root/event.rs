//! Events: which daemons receive an event that a process raised, and the events that the runtime itself raises.
//!
//! An event raised by a process reaches every daemon in its range; their servers keep it for clients that register later.
//! Events of the runtime (a process ended, a job ended, a stream ended) go only to daemons with a client that registered for
//! exactly that code: MPI libraries register for all codes and abort when an event arrives. Ranks of unrelated jobs do not
//! receive each other's events unless they name the job.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use phalanx_core::Event;
use phalanx_spec::{IofChannel, Range, Rank, Status, keys};
use phalanx_wire::{Info, InfoList, Nspace, ProcId, Value};

use crate::id::NodeId;
use crate::msg::{Down, procs};
use crate::ranges::Ranges;
use crate::root::Root;
use crate::root::journal::Moment;
use crate::root::lifecycle;
use crate::root::turn::Cx;

/// Attributes of a notification that are evaluated here.
pub(crate) const ATTRIBUTES: &[&str] = &[keys::EVENT_CUSTOM_RANGE];

/// Which daemons have clients that registered for a code. A client that registers for all codes gets runtime events only if it
/// names the code as well.
#[derive(Debug, Default)]
pub(super) struct Interests(BTreeMap<Status, Ranges>);

impl Interests {
    /// Returns those of the codes that no client there had registered for.
    fn add(&mut self, node: NodeId, codes: &[Status]) -> Vec<Status> {
        let is_new = |code: &Status| {
            let nodes = self.0.entry(*code).or_default();
            let is_new = !nodes.contains(node.0);
            nodes.insert(node.0);
            is_new
        };
        codes.iter().copied().filter(is_new).collect()
    }

    fn remove(&mut self, node: NodeId, codes: &[Status]) {
        for code in codes {
            if let Some(nodes) = self.0.get_mut(code) {
                nodes.remove(node.0);
            }
        }
        self.0.retain(|_, nodes| !nodes.is_empty());
    }

    /// Raises an event of the runtime for clients that registered for its code.
    pub(super) fn raise(&self, cx: &mut Cx<'_>, event: Event, number: u64, concerned: Option<Arc<[Nspace]>>) {
        if let Some(to) = self.0.get(&event.code).cloned() {
            cx.cast(to, Down::Announce { event: Arc::new(event), number, concerned, ago: None });
        }
    }

    /// A stream of a process is over, or its remaining contents are lost. Processes of any job may read it.
    pub(super) fn tell_stream(
        &self,
        cx: &mut Cx<'_>,
        number: u64,
        (code, proc, channel): (Status, ProcId, IofChannel),
    ) {
        let info = vec![
            Info::new(keys::EVENT_AFFECTED_PROC, proc.clone()),
            // A plain number, because OpenPMIx's libraries cannot copy channels.
            Info::new(CHANNEL, channel.0),
        ];
        // The source is the whole job: the source of an event is not notified, and this process may want the event.
        self.raise(cx, announcement(code, ProcId::all(&proc.nspace), info), number, None);
    }
}

impl Root {
    pub(super) fn register_events(&mut self, cx: &mut Cx<'_>, node: NodeId, codes: &[Status], info: &[Info]) {
        let new = self.interests.add(node, codes);
        self.replay(cx, node, codes, &new, info);
    }

    /// Sends a daemon the past events of jobs: of the jobs that the registration names, and, for codes that are new at the
    /// daemon, of the jobs that concern its processes, or of all jobs if it has tools. Its server knows which clients existed
    /// at the time and which have had the event.
    fn replay(&mut self, cx: &mut Cx<'_>, node: NodeId, codes: &[Status], new: &[Status], info: &[Info]) {
        if !codes.iter().any(|code| lifecycle::CODES.contains(code)) {
            return;
        }
        let named = [keys::EVENT_AFFECTED_PROC, keys::EVENT_AFFECTED_PROCS];
        let named: Vec<ProcId> = named.into_iter().flat_map(|key| procs(info.find(key))).collect();
        let has_tools = self.tools.nodes().any(|at| at == node);
        let is_here = |job: &Nspace| self.jobs.get(job).is_some_and(|job| job.desc.nodes.contains(node.0));
        let live = self.jobs.values().map(|job| &job.journal);
        let mut past = Vec::new();
        for journal in self.journals.iter().chain(live) {
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
                    let told = self.events_of(journal, entry, &moment).filter(|event| is_wanted(&event.code));
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

    pub(super) fn deregister_events(&mut self, cx: &mut Cx<'_>, node: NodeId, codes: &[Status]) {
        self.interests.remove(node, codes);
        if codes.contains(&Status::DEBUGGER_RELEASE) {
            self.released_on(cx, node);
        }
    }

    /// A process on `origin` has raised an event; its own server has already notified the clients there.
    pub(super) fn notify(&mut self, cx: &mut Cx<'_>, origin: NodeId, event: &Event) {
        match event.code {
            Status::READY_FOR_DEBUG => self.ready_for_debug(cx, event),
            Status::DEBUGGER_RELEASE => self.released(cx, event),
            Status::JCTRL_CHECKPOINT_COMPLETE => self.checkpoint_complete(cx, event),
            Status::GROUP_LEFT => self.relations.hear_of_group(&self.jobs, event),
            Status::GROUP_CONSTRUCT_COMPLETE => {
                self.relations.hear_of_group(&self.jobs, event);
                self.hear_of_invitation(cx, event);
            }
            Status::GROUP_INVITE_ACCEPTED | Status::GROUP_CONSTRUCT_ABORT => {
                self.hear_of_invitation(cx, event);
            }
            _ => {}
        }
        let to = match event.range {
            Range::LOCAL | Range::PROC_LOCAL | Range::RM => return,
            Range::NAMESPACE => match self.jobs.get(&event.source.nspace) {
                Some(job) => job.desc.nodes.clone(),
                None => self.nodes_of_tools(&event.source.nspace).map(|node| node.0).collect(),
            },
            Range::CUSTOM => self.nodes_of_procs(procs(event.info.find(keys::EVENT_CUSTOM_RANGE))),
            _ => Ranges::first(self.nodes.size()),
        };
        cx.cast(to, Down::Event { event: Arc::new(event.clone()), except: Some(origin) });
    }

    /// Fault-tolerant MPI registers for all events and for no code, and takes each process that an event names for one that failed. Other jobs' MPI aborts
    /// at such an event, so only jobs that ask for it get one.
    pub(super) fn tell_survivors(&self, cx: &mut Cx<'_>, nspace: &Nspace, ranks: &Ranges) {
        let Some(desc) = self.desc(nspace).filter(|desc| desc.survives_failures()) else { return };
        let proc = |rank| ProcId::new(nspace, Rank(rank));
        let Some(source) = ranks.iter().next().map(proc) else { return };
        let info = ranks.iter().map(|rank| Info::new(keys::EVENT_AFFECTED_PROC, proc(rank))).collect();
        let event = Event { code: Status::ERR_PROC_ABORTED, source, range: Range::NAMESPACE, info };
        cx.cast(desc.nodes.clone(), Down::Event { event: Arc::new(event), except: None });
    }

    /// The daemons that host any of `procs`.
    pub(super) fn nodes_of_procs(&self, procs: impl Iterator<Item = ProcId>) -> Ranges {
        let mut nodes = Ranges::new();
        for proc in procs {
            let Some(job) = self.jobs.get(&proc.nspace) else {
                self.nodes_of_tools(&proc.nspace).for_each(|node| nodes.insert(node.0));
                continue;
            };
            match proc.rank {
                Rank::WILDCARD => nodes.add(&job.desc.nodes),
                rank => {
                    nodes.add(&job.desc.node_of(rank).map(|node| Ranges::single(node.0)).unwrap_or_default())
                }
            }
        }
        nodes
    }
}

/// Not delivered to handlers of all events.
pub(super) fn announcement(code: Status, source: ProcId, mut info: Vec<Info>) -> Event {
    info.push(Info::new(keys::EVENT_NON_DEFAULT, true));
    Event { code, source, range: Range::SESSION, info }
}

/// How many past events one registration gets, and how old they may be: as many as servers keep.
const MOST_REPLAYED: usize = 512;
pub(super) const LATEST: Duration = Duration::from_secs(120);
/// The key for the channel in an event.
const CHANNEL: &str = "phalanx.iof.channel";

/// A value as a text, for messages.
pub(super) fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.to_string(),
        Value::ByteObject(blob) => String::from_utf8_lossy(blob.as_bytes()).into_owned(),
        other => format!("{other:?}"),
    }
}
