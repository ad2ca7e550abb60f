//! Events: which daemons hear of one that a process raised, and those that the runtime itself raises.
//!
//! An event that a process raises reaches every daemon in its range; their servers keep it for clients that register
//! later. What the runtime announces (a process ended, a job ended, a stream ended) goes only where somebody has asked for
//! just that: MPI libraries ask for all events that are not exempt from it, and abort when one comes. Ranks of jobs that
//! have nothing to do with each other hear nothing of each other unless they ask by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use phalanx_core::Event;
use phalanx_spec::{IofChannel, Range, Rank, Status, keys};
use phalanx_wire::{Info, InfoList, Nspace, ProcId, Value};

use crate::id::NodeId;
use crate::job::{JobEnd, JobVerdict};
use crate::msg::{Down, ProcEnd, procs};
use crate::ranges::Ranges;
use crate::root::query::names;
use crate::root::{Cx, Root};

/// What a notification says that is acted upon here.
pub(crate) const ATTRIBUTES: &[&str] = &[keys::EVENT_CUSTOM_RANGE];

/// Which daemons have clients that registered for a code. Who registers for all is told of what the runtime
/// announces only if it names the code as well.
#[derive(Debug, Default)]
pub(super) struct Interests(BTreeMap<Status, Ranges>);

impl Root {
    pub(super) fn register_events(&mut self, node: NodeId, codes: &[Status]) {
        for code in codes {
            self.interests.0.entry(*code).or_default().insert(node.0);
        }
    }

    pub(super) fn deregister_events(&mut self, node: NodeId, codes: &[Status]) {
        for code in codes {
            if let Some(nodes) = self.interests.0.get_mut(code) {
                nodes.remove(node.0);
            }
        }
        self.interests.0.retain(|_, nodes| !nodes.is_empty());
    }

    /// A process on `origin` has raised an event; its own server has told those there.
    pub(super) fn notify(&mut self, cx: &mut Cx<'_>, origin: NodeId, event: &Event) {
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
            _ => Ranges::first(self.nodes.size()),
        };
        cx.cast(to, Down::Event { event: Arc::new(event.clone()), except: Some(origin) });
    }

    /// A process has ended badly.
    pub(super) fn tell_proc_event(
        &mut self,
        cx: &mut Cx<'_>,
        end: &ProcEnd,
        number: u64,
        concerned: Arc<[Nspace]>,
    ) {
        self.withdraw_published_by(cx, &end.proc);
        let code = Status::EVENT_PROC_TERMINATED;
        let mut info =
            vec![Info::new(keys::EVENT_AFFECTED_PROC, end.proc.clone()), Info::new(names::NUMBER, number)];
        if let Some(status) = end.status {
            info.push(Info::new(keys::EXIT_CODE, status.shell_code()));
        }
        self.raise(cx, code, end.proc.clone(), info, Some(concerned));
    }

    /// A job is over. Tools may ask late, and by its name.
    pub(super) fn tell_job_end_event(
        &mut self,
        cx: &mut Cx<'_>,
        end: &JobEnd,
        number: u64,
        concerned: Arc<[Nspace]>,
    ) {
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
        let mut text = end.lines().join("\n");
        if !text.is_empty() {
            text.truncate(text.floor_char_boundary(LONGEST_TEXT));
            info.push(Info::new(keys::EVENT_TEXT_MESSAGE, text));
        }
        self.raise(cx, Status::EVENT_JOB_END, whole, info, Some(concerned));
    }

    /// A stream of a process is over, or what was in it is lost. Processes of any job may read it.
    pub(super) fn tell_stream_event(
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
        ];
        // In the name of its whole job: a source is not told, and this one may want to know.
        self.raise(cx, code, ProcId::all(&proc.nspace), info, None);
    }

    /// An event of the runtime's own, for those who registered for its code.
    fn raise(
        &mut self,
        cx: &mut Cx<'_>,
        code: Status,
        source: ProcId,
        mut info: Vec<Info>,
        concerned: Option<Arc<[Nspace]>>,
    ) {
        let mut to = self.interests.0.get(&code).cloned().unwrap_or_default();
        if code == Status::EVENT_JOB_END {
            // Those who have spawned it register when they know its name, and it may be over by then.
            to.insert(NodeId::ROOT.0);
            self.tools.nodes().for_each(|node| to.insert(node.0));
        }
        if !to.is_empty() {
            info.push(Info::new(keys::EVENT_NON_DEFAULT, true));
            let event = Arc::new(Event { code, source, range: Range::SESSION, info });
            cx.cast(to, Down::Announce { event, concerned });
        }
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
