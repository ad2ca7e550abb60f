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
use crate::job::{JobEnd, JobVerdict};
use crate::msg::{Down, ProcEnd, procs};
use crate::ranges::Ranges;
use crate::root::journal::{Entry, Journal, What};
use crate::root::query::{about_verdict, names};
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
    fn raise(&self, cx: &mut Cx<'_>, event: Event, number: u64, concerned: Option<Arc<[Nspace]>>) {
        if let Some(to) = self.0.get(&event.code).cloned() {
            cx.cast(to, Down::Announce { event: Arc::new(event), number, concerned, ago: None });
        }
    }

    /// A job runs.
    pub(super) fn tell_job_start(
        &self,
        cx: &mut Cx<'_>,
        nspace: &Nspace,
        number: u64,
        concerned: Arc<[Nspace]>,
    ) {
        self.raise(cx, job_start_event(nspace, number), number, Some(concerned));
    }

    /// A process has ended badly.
    pub(super) fn tell_proc_end(
        &self,
        cx: &mut Cx<'_>,
        end: &ProcEnd,
        number: u64,
        concerned: Arc<[Nspace]>,
    ) {
        self.raise(cx, proc_event(end, number), number, Some(concerned));
    }

    /// Processes were lost with their node.
    pub(super) fn tell_lost(
        &self,
        cx: &mut Cx<'_>,
        (nspace, ranks): (&Nspace, &Ranges),
        number: u64,
        concerned: &Arc<[Nspace]>,
    ) {
        for event in lost_events(nspace, ranks, number) {
            self.raise(cx, event, number, Some(concerned.clone()));
        }
    }

    /// A job is over.
    pub(super) fn tell_job_end(&self, cx: &mut Cx<'_>, end: &JobEnd, number: u64, concerned: Arc<[Nspace]>) {
        self.raise(cx, job_end_event(end, number), number, Some(concerned));
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
        if !codes.iter().any(|code| REPLAYED.contains(code)) {
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
                let ago = cx.now.since(entry.at());
                let wanted = if is_named { codes } else { new };
                let is_due = |code: &Status| ago <= LATEST && wanted.contains(code);
                let (Some(_), Some(concerned)) =
                    (entry.what().event_code().filter(is_due), entry.what().concerned())
                else {
                    continue;
                };
                if is_named || has_tools || concerned.iter().any(is_here) {
                    let (number, told) = (entry.number(), self.events_of(journal, entry).take(MOST_REPLAYED));
                    past.extend(told.map(|event| (number, ago, event, concerned.clone())));
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

    /// The events that tell an entry of a journal.
    fn events_of<'a>(&'a self, journal: &'a Journal, entry: &'a Entry) -> impl Iterator<Item = Event> + 'a {
        let number = entry.number();
        let nspace = &journal.desc().nspace;
        let (mut failed, mut lost) = (None, None);
        let of_job = match entry.what() {
            What::Started { .. } => Some(job_start_event(nspace, number)),
            What::Failed { ranks, first, .. } => {
                failed = Some((ranks, first));
                None
            }
            What::Lost { ranks, .. } => {
                lost = Some(lost_events(nspace, ranks, number));
                None
            }
            What::Ended { .. } => {
                let end = journal.end(entry.at(), |node| self.nodes.name(node).to_string());
                Some(job_end_event(&end, number))
            }
            _ => None,
        };
        let failed = failed.into_iter().flat_map(move |(ranks, first)| {
            ranks.iter().map(move |rank| {
                let proc = ProcId::new(&first.proc.nspace, Rank(rank));
                proc_event(&ProcEnd { proc, ..first.clone() }, number)
            })
        });
        failed.chain(lost.into_iter().flatten()).chain(of_job)
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

fn proc_event(end: &ProcEnd, number: u64) -> Event {
    let affected = Info::new(keys::EVENT_AFFECTED_PROC, end.proc.clone());
    let mut info = vec![affected, Info::new(names::NUMBER, number)];
    if let Some(status) = end.status {
        info.push(Info::new(keys::EXIT_CODE, status.shell_code()));
    }
    announcement(Status::EVENT_PROC_TERMINATED, end.proc.clone(), info)
}

/// How these have ended nobody knows.
fn lost_events<'a>(nspace: &'a Nspace, ranks: &'a Ranges, number: u64) -> impl Iterator<Item = Event> + 'a {
    ranks.iter().map(move |rank| {
        let proc = ProcId::new(nspace, Rank(rank));
        let info = vec![Info::new(keys::EVENT_AFFECTED_PROC, proc.clone()), Info::new(names::NUMBER, number)];
        announcement(Status::EVENT_PROC_TERMINATED, proc, info)
    })
}

fn job_start_event(nspace: &Nspace, number: u64) -> Event {
    let whole = ProcId::all(nspace);
    let info = vec![Info::new(keys::EVENT_AFFECTED_PROC, whole.clone()), Info::new(names::NUMBER, number)];
    announcement(Status::EVENT_JOB_START, whole, info)
}

fn job_end_event(end: &JobEnd, number: u64) -> Event {
    let whole = ProcId::all(&end.nspace);
    let status = match &end.verdict {
        JobVerdict::Success => Status::SUCCESS,
        JobVerdict::Aborted { status, .. } => *status,
        _ => Status::ERR_JOB_TERMINATED,
    };
    let mut info = vec![
        Info::new(keys::EVENT_AFFECTED_PROC, whole.clone()),
        Info::new(keys::JOB_TERM_STATUS, status),
        Info::new(keys::EXIT_CODE, end.exit_code),
        Info::new(names::NUMBER, number),
    ];
    info.extend(end.verdict.culprit().map(|proc| Info::new(keys::PROCID, proc.clone())));
    info.extend(about_verdict(&end.verdict, LONGEST_TEXT));
    info.push(Info::new(names::AGE, end.duration.as_millis() as u64));
    let mut text = end.lines().join("\n");
    if !text.is_empty() {
        text.truncate(text.floor_char_boundary(LONGEST_TEXT));
        info.push(Info::new(keys::EVENT_TEXT_MESSAGE, text));
    }
    announcement(Status::EVENT_JOB_END, whole, info)
}

/// Handlers of all events are spared it.
fn announcement(code: Status, source: ProcId, mut info: Vec<Info>) -> Event {
    info.push(Info::new(keys::EVENT_NON_DEFAULT, true));
    Event { code, source, range: Range::SESSION, info }
}

/// What the journals tell those who come late.
const REPLAYED: [Status; 3] = [Status::EVENT_JOB_START, Status::EVENT_PROC_TERMINATED, Status::EVENT_JOB_END];
/// Events that one registration is told, and how old they may be: as many as servers keep.
const MOST_REPLAYED: usize = 512;
const LATEST: Duration = Duration::from_secs(120);
/// What an event says to people: programs that abort say as much as they like.
const LONGEST_TEXT: usize = 4096;
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
