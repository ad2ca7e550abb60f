//! What the root asks all daemons, and what they have found.

use std::time::Duration;

use super::{ExitStatus, NodeUsage, TaskId, Usage};
use crate::encoding::encoded;
use crate::id::NodeId;
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
    /// The processes of a job; what they use only if that is asked for.
    Procs { nspace: Nspace, usage: bool },
    /// What each node uses.
    Nodes,
    /// What each daemon and its server wait for.
    Waits,
}

impl Subject {
    pub(crate) fn concerns(&self, nspace: &Nspace) -> bool {
        matches!(self, Subject::Procs { nspace: of, .. } if of == nspace)
    }
}

/// What a subtree has found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Found {
    pub procs: Vec<FoundProc>,
    /// Bytes that the daemons themselves use.
    pub daemons: Vec<(NodeId, u64)>,
    pub nodes: Vec<(NodeId, NodeUsage)>,
    pub waits: Vec<Wait>,
}

impl Found {
    pub(crate) fn merge(&mut self, more: Found) {
        self.procs.extend(more.procs);
        self.daemons.extend(more.daemons);
        self.nodes.extend(more.nodes);
        self.waits.extend(more.waits);
    }
}

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

/// Something that is waited for, and for how long.
#[derive(Clone, Debug)]
pub(crate) struct Wait {
    pub node: NodeId,
    pub age: Duration,
    pub waiting: Waiting,
}

encoded!(enum Subject { 0 Procs { nspace, usage }, 1 Nodes, 2 Waits });
encoded!(struct Found { procs, daemons, nodes, waits });
encoded!(struct FoundProc { rank, state, stopped, pid, status, usage });
encoded!(struct Wait { node, age, waiting });
