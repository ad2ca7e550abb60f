//! Events: which daemons hear of one that a process raised, and those that the runtime itself raises.
//!
//! An event that a process raises reaches every daemon in its range; their servers keep it for clients that register
//! later. What the runtime raises (a process ended, a job ended) goes only where somebody has asked for it.

use std::collections::BTreeMap;
use std::sync::Arc;

use phalanx_core::Event;
use phalanx_core::server::ServerCall;
use phalanx_spec::{IofChannel, Range, Rank, Status, keys};
use phalanx_wire::{Info, InfoList, ProcId, Value};

use crate::daemon::{Call, Cx, Daemon};
use crate::job::{JobEnd, JobVerdict, ProcEnd};
use crate::msg::{Down, NodeId};
use crate::publish::procs;
use crate::ranges::Ranges;

/// What a notification says that is acted upon here.
pub(crate) const ATTRIBUTES: &[&str] = &[keys::EVENT_CUSTOM_RANGE];

/// Root only: which daemons have clients that registered for a code; 0 stands for all codes.
#[derive(Debug, Default)]
pub(crate) struct Interests(BTreeMap<Status, Ranges>);

impl Daemon {
    pub(crate) fn register_events(&mut self, node: NodeId, codes: &[Status]) {
        let Some(root) = &mut self.root else { return };
        let all = [Status::SUCCESS];
        for code in if codes.is_empty() { &all } else { codes } {
            root.interests.0.entry(*code).or_default().insert(node.0);
        }
    }

    pub(crate) fn deregister_events(&mut self, node: NodeId, codes: &[Status]) {
        let Some(root) = &mut self.root else { return };
        let all = [Status::SUCCESS];
        for code in if codes.is_empty() { &all } else { codes } {
            if let Some(nodes) = root.interests.0.get_mut(code) {
                nodes.remove(node.0);
            }
        }
        root.interests.0.retain(|_, nodes| !nodes.is_empty());
    }

    /// Root only: a process on `origin` has raised an event; its own server has told those there.
    pub(crate) fn notify(&mut self, cx: &mut Cx<'_>, origin: NodeId, event: &Event) {
        if event.code == Status::READY_FOR_DEBUG {
            self.ready_for_debug(cx, event);
        }
        let to = match event.range {
            Range::LOCAL | Range::PROC_LOCAL | Range::RM => return,
            Range::NAMESPACE => match self.jobs.get(&event.source.nspace) {
                Some(job) => job.desc.nodes.clone(),
                None => self.nodes_of_tools(&event.source.nspace).map(|node| node.0).collect(),
            },
            Range::CUSTOM => self.nodes_of_procs(procs(event.info.find(keys::EVENT_CUSTOM_RANGE))),
            _ => Ranges::first(self.overlay.size()),
        };
        self.cast(cx, to, Down::Event { event: Arc::new(event.clone()), except: Some(origin) });
    }

    pub(crate) fn deliver_event(&mut self, cx: &mut Cx<'_>, event: &Event, except: Option<NodeId>) {
        if except != Some(self.me) {
            self.call(cx, ServerCall::Notify(event.clone()), Call::Told("passing on an event"));
        }
    }

    /// Root only: a process has ended badly.
    pub(crate) fn tell_proc_event(&mut self, cx: &mut Cx<'_>, end: &ProcEnd) {
        self.withdraw_published_by(&end.proc);
        let code = Status::EVENT_PROC_TERMINATED;
        let mut info = vec![Info::new(keys::EVENT_AFFECTED_PROC, end.proc.clone())];
        if let Some(status) = end.status {
            info.push(Info::new(keys::EXIT_CODE, status.shell_code()));
        }
        self.raise(cx, code, end.proc.clone(), info);
    }

    /// Root only: a job is over.
    pub(crate) fn tell_job_end_event(&mut self, cx: &mut Cx<'_>, end: &JobEnd) {
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
        ];
        info.extend(end.verdict.culprit().map(|proc| Info::new(keys::PROCID, proc.clone())));
        self.raise(cx, Status::EVENT_JOB_END, whole, info);
    }

    /// Root only: a stream of a process is over, or what was in it is lost. MPI libraries ask for all events that are not
    /// exempt from it, and abort when one comes.
    pub(crate) fn tell_stream_event(
        &mut self,
        cx: &mut Cx<'_>,
        code: Status,
        proc: ProcId,
        channel: IofChannel,
    ) {
        let info = vec![
            Info::new(keys::EVENT_AFFECTED_PROC, proc.clone()),
            // A number, because OpenPMIx's libraries cannot copy channels.
            Info::new(CHANNEL, channel.0),
            Info::new(keys::EVENT_NON_DEFAULT, true),
        ];
        // In the name of its whole job: a source is not told, and this one may want to know.
        self.raise(cx, code, ProcId::all(&proc.nspace), info);
    }

    /// An event of the runtime's own, for those who registered for it.
    pub(crate) fn raise(&mut self, cx: &mut Cx<'_>, code: Status, source: ProcId, info: Vec<Info>) {
        let Some(root) = &self.root else { return };
        let all = (!info.is_set(keys::EVENT_NON_DEFAULT)).then_some(Status::SUCCESS);
        let interested = std::iter::once(code).chain(all).filter_map(|code| root.interests.0.get(&code));
        let to = interested.fold(Ranges::new(), |mut all, nodes| {
            all.add(nodes);
            all
        });
        if !to.is_empty() {
            let event = Arc::new(Event { code, source, range: Range::SESSION, info });
            self.cast(cx, to, Down::Event { event, except: None });
        }
    }

    /// The daemons that host any of `procs`.
    pub(crate) fn nodes_of_procs(&self, procs: impl Iterator<Item = ProcId>) -> Ranges {
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

/// Names the channel in an event.
const CHANNEL: &str = "phalanx.iof.channel";

/// A value as a text, for messages.
pub(crate) fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.to_string(),
        Value::ByteObject(blob) => String::from_utf8_lossy(blob.as_bytes()).into_owned(),
        other => format!("{other:?}"),
    }
}
