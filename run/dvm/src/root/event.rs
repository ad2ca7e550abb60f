//! Events: which daemons hear of one that a process raised, and those that the runtime itself raises.
//!
//! An event that a process raises reaches every daemon in its range; their servers keep it for clients that register
//! later. What the runtime announces (a process ended, a job ended, a stream ended) goes only where somebody has asked for
//! just that: MPI libraries ask for all events that are not exempt from it, and abort when one comes. Ranks of jobs that
//! have nothing to do with each other hear nothing of each other unless they ask by name.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use phalanx_core::Event;
use phalanx_spec::{IofChannel, Range, Rank, Status, keys};
use phalanx_wire::{Info, InfoList, Nspace, ProcId, Value};

use crate::id::NodeId;
use crate::msg::{Down, procs};
use crate::ranges::Ranges;
use crate::root::journal::Moment;
use crate::root::lifecycle;
use crate::root::{Cx, Root};

/// What a notification says that is acted upon here.
pub(crate) const ATTRIBUTES: &[&str] = &[keys::EVENT_CUSTOM_RANGE];

/// Which daemons have clients that registered for a code. Who registers for all is told of what the runtime
/// announces only if it names the code as well.
#[derive(Debug, Default)]
pub(super) struct Interests(BTreeMap<Status, Ranges>);

impl Interests {
    /// Those of the codes that nobody there had registered for.
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

    /// An event of the runtime's own, for those who registered for its code.
    pub(super) fn raise(&self, cx: &mut Cx<'_>, event: Event, number: u64, concerned: Option<Arc<[Nspace]>>) {
        if let Some(to) = self.0.get(&event.code).cloned() {
            cx.cast(to, Down::Announce { event: Arc::new(event), number, concerned, ago: None });
        }
    }

    /// A stream of a process is over, or what was in it is lost. Processes of any job may read it.
    pub(super) fn tell_stream(
        &self,
        cx: &mut Cx<'_>,
        number: u64,
        (code, proc, channel): (Status, ProcId, IofChannel),
    ) {
        let info = vec![
            Info::new(keys::EVENT_AFFECTED_PROC, proc.clone()),
            // A number, because OpenPMIx's libraries cannot copy channels.
            Info::new(CHANNEL, channel.0),
        ];
        // In the name of its whole job: a source is not told, and this one may want to know.
        self.raise(cx, announcement(code, ProcId::all(&proc.nspace), info), number, None);
    }
}

impl Root {
    pub(super) fn register_events(&mut self, cx: &mut Cx<'_>, node: NodeId, codes: &[Status], info: &[Info]) {
        let new = self.interests.add(node, codes);
        self.replay(cx, node, codes, &new, info);
    }

    /// Tells a daemon what happened to jobs before it wanted to hear of it: to those that the registration names, and, of codes that
    /// are new, to those that concern its processes, and to all if it has tools. Its server knows who of them was there at the
    /// time, and who has been told.
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

    /// A process on `origin` has raised an event; its own server has told those there.
    pub(super) fn notify(&mut self, cx: &mut Cx<'_>, origin: NodeId, event: &Event) {
        match event.code {
            Status::READY_FOR_DEBUG => self.ready_for_debug(cx, event),
            Status::DEBUGGER_RELEASE => self.released(cx, event),
            Status::JCTRL_CHECKPOINT_COMPLETE => self.checkpoint_complete(cx, event),
            Status::GROUP_LEFT | Status::GROUP_CONSTRUCT_COMPLETE => {
                self.relations.hear_of_group(&self.jobs, event)
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

/// Handlers of all events are spared it.
pub(super) fn announcement(code: Status, source: ProcId, mut info: Vec<Info>) -> Event {
    info.push(Info::new(keys::EVENT_NON_DEFAULT, true));
    Event { code, source, range: Range::SESSION, info }
}

/// Events that one registration is told, and how old they may be: as many as servers keep.
const MOST_REPLAYED: usize = 512;
pub(super) const LATEST: Duration = Duration::from_secs(120);
/// Names the channel in an event.
const CHANNEL: &str = "phalanx.iof.channel";

/// A value as a text, for messages.
pub(super) fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.to_string(),
        Value::ByteObject(blob) => String::from_utf8_lossy(blob.as_bytes()).into_owned(),
        other => format!("{other:?}"),
    }
}
