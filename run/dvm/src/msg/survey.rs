//! Surveys: what the root asks all daemons, and their findings.

use std::time::Duration;

use super::{ExitStatus, NodeUsage, Stacks, TaskId, Usage};
use crate::encoding::encoded;
use crate::id::NodeId;
use crate::ranges::Ranges;
use phalanx_core::Waiting;
use phalanx_spec::ProcState;
use phalanx_wire::Nspace;

/// One survey.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Survey {
    pub task: TaskId,
    pub of: Subject,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// The processes of a job; their resource usage only on request.
    Procs { nspace: Nspace, usage: bool },
    /// The resource usage of each node.
    Nodes,
    /// What each daemon and its server wait for.
    Waits,
    /// What the processes of a job wait for, in short.
    Stuck { nspace: Nspace },
    /// The stacks of processes of a job; of all without `ranks`.
    Stacks { nspace: Nspace, ranks: Option<Ranges> },
}

impl Subject {
    pub(crate) fn concerns(&self, nspace: &Nspace) -> bool {
        match self {
            Subject::Procs { nspace: of, .. }
            | Subject::Stuck { nspace: of }
            | Subject::Stacks { nspace: of, .. } => of == nspace,
            Subject::Nodes | Subject::Waits => false,
        }
    }
}

/// The findings of a subtree.
#[derive(Clone, Debug, Default)]
pub(crate) struct Found {
    pub procs: Vec<FoundProc>,
    /// Bytes that the daemons themselves use.
    pub daemons: Vec<(NodeId, u64)>,
    pub nodes: Vec<(NodeId, NodeUsage)>,
    pub waits: Vec<Wait>,
    pub stuck: Vec<Stuck>,
    pub stacks: Stacks,
}

impl Found {
    pub(crate) fn merge(&mut self, more: Found) {
        self.procs.extend(more.procs);
        self.daemons.extend(more.daemons);
        self.nodes.extend(more.nodes);
        self.waits.extend(more.waits);
        Stuck::merge(&mut self.stuck, more.stuck);
        self.stacks.merge(more.stacks);
    }
}

/// Processes of one job that wait for the same thing.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stuck {
    pub operation: String,
    pub subject: String,
    pub ranks: Ranges,
    /// How long the first of them has been waiting.
    pub longest: Duration,
}

impl Stuck {
    /// Processes that wait for the same thing become one entry; there are no more entries than a person reads.
    pub(crate) fn merge(all: &mut Vec<Stuck>, more: Vec<Stuck>) {
        for one in more {
            let is_same =
                |other: &&mut Stuck| (&other.operation, &other.subject) == (&one.operation, &one.subject);
            if let Some(same) = all.iter_mut().find(is_same) {
                same.ranks.add(&one.ranks);
                same.longest = same.longest.max(one.longest);
            } else if all.len() < MOST_STUCK {
                all.push(one);
            }
        }
    }
}

/// The most different waits of a job's processes that are reported.
const MOST_STUCK: usize = 32;

/// A process as its daemon knows it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FoundProc {
    pub rank: u32,
    pub state: ProcState,
    /// By us: SIGSTOP.
    pub stopped: bool,
    pub pid: Option<u32>,
    pub status: Option<ExitStatus>,
    pub usage: Option<Usage>,
}

/// A waiting operation, and for how long it has waited.
#[derive(Clone, Debug)]
pub(crate) struct Wait {
    pub node: NodeId,
    pub age: Duration,
    pub waiting: Waiting,
}

encoded!(enum Subject { 0 Procs { nspace, usage }, 1 Nodes, 2 Waits, 3 Stuck { nspace }, 4 Stacks { nspace, ranks } });
encoded!(struct Found { procs, daemons, nodes, waits, stuck, stacks });
encoded!(struct Stuck { operation, subject, ranks, longest });
encoded!(struct FoundProc { rank, state, stopped, pid, status, usage });
encoded!(struct Wait { node, age, waiting });
