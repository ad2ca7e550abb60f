//! The description of one job as the root broadcasts it: compact on the way, expanded once where it is used.
//!
//! Every daemon keeps it, also those without a process of the job: it says which daemons take part in what.

use std::sync::{Arc, OnceLock};

use phalanx_core::job::{JobApp, JobInfo, JobNode, JobProc};
use phalanx_spec::{IofChannel, Rank, keys};
use phalanx_wire::{Kval, Nspace, ProcId, Text};

use super::{EnvChange, NodeTable};
use super::{ExitStatus, ProcEnd};
use crate::column::Column;
use crate::id::NodeId;
use crate::ranges::Ranges;

#[derive(Debug)]
pub struct JobDesc {
    pub nspace: Nspace,
    /// The job's number in its DVM, from 1.
    pub number: u32,
    pub parent: Option<ProcId>,
    pub size: u32,
    /// The daemons with processes of the job.
    pub nodes: Ranges,
    /// Those of them with more ranks than CPUs.
    pub crowded: Ranges,
    pub places: Places,
    /// The environment of every process, before its app's.
    pub env: Vec<Text>,
    pub apps: Vec<AppDesc>,
    pub stdin: StdinTarget,
    /// What may be pulled and pushed.
    pub forward: IofChannel,
    /// Its processes have a third output stream.
    pub diag: bool,
    pub on_failure: FailurePolicy,
    pub scratch: Option<Text>,
    pub job: Arc<[Kval]>,
    pub session: Arc<[Kval]>,
    pub expanded: OnceLock<Expanded>,
}

/// Where each rank is, one column per question.
#[derive(Clone, Debug, Default)]
pub struct Places {
    pub node: Column,
    pub app: Column,
    pub app_rank: Column,
    pub local_rank: Column,
    pub node_rank: Column,
    /// From 1; 0 for a process that is bound to no single package.
    pub package_rank: Column,
    /// Index into `bindings`.
    pub binding: Column,
    pub bindings: Vec<Binding>,
}

/// Where a process is bound, as text; both `None` when it is not.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Binding {
    pub cpuset: Option<Arc<str>>,
    pub locality: Option<Arc<str>>,
}

#[derive(Clone, Debug)]
pub struct AppDesc {
    pub argv: Arc<[Text]>,
    pub env: Vec<Text>,
    pub changes: Vec<EnvChange>,
    pub cwd: Option<Text>,
    pub prefix: Option<Text>,
    pub values: Vec<Kval>,
    /// How many ranks it has.
    pub size: u32,
}

/// The tables a PMIx server wants, made once: a simulation's daemons share them.
#[derive(Debug)]
pub struct Expanded {
    nodes: Arc<[JobNode]>,
    apps: Arc<[JobApp]>,
    procs: Arc<[JobProc]>,
}

impl JobDesc {
    pub fn node_of(&self, rank: Rank) -> Option<NodeId> {
        (rank.0 < self.size).then(|| NodeId(self.places.node.get(rank.0)))
    }

    /// The daemons that host any of `ranks`.
    pub fn nodes_of(&self, ranks: &Ranges) -> Ranges {
        if ranks.count() == self.size {
            return self.nodes.clone();
        }
        ranks.iter().filter(|rank| *rank < self.size).map(|rank| self.places.node.get(rank)).collect()
    }

    /// The ranks on one daemon.
    pub fn ranks_on(&self, node: NodeId) -> Ranges {
        if !self.nodes.contains(node.0) {
            return Ranges::new();
        }
        self.places.node.indices_of(node.0, self.size)
    }

    /// All ranks.
    pub fn ranks(&self) -> Ranges {
        Ranges::first(self.size)
    }

    pub fn binding(&self, rank: Rank) -> Option<&Binding> {
        self.places.bindings.get(self.places.binding.get(rank.0) as usize)
    }

    pub fn app(&self, rank: Rank) -> Option<&AppDesc> {
        self.apps.get(self.places.app.get(rank.0) as usize)
    }

    pub fn app_sizes(&self) -> Vec<u32> {
        self.apps.iter().map(|app| app.size).collect()
    }

    /// What the PMIx server of `here` is told.
    pub fn job_info(&self, here: NodeId, table: &NodeTable) -> JobInfo {
        let tables = self.expanded.get_or_init(|| self.expand(table));
        JobInfo {
            nspace: self.nspace.clone(),
            job: self.job.clone(),
            session: self.session.clone(),
            nodes: tables.nodes.clone(),
            apps: tables.apps.clone(),
            procs: tables.procs.clone(),
            here: self.nodes.contains(here.0).then(|| self.nodes.index_of(here.0)),
        }
    }

    fn node_values(&self, node: NodeId) -> Vec<Kval> {
        let directory = self.scratch.iter().map(|dir| Kval::new(keys::NSDIR, dir.clone()));
        // Open MPI 5 asks whether the key is there, not what it says: it may stand only where it is true.
        let crowded = self.crowded.contains(node.0).then(|| Kval::new(keys::NODE_OVERSUBSCRIBED, true));
        directory.chain(crowded).collect()
    }

    fn expand(&self, table: &NodeTable) -> Expanded {
        let nodes: Vec<u32> = self.nodes.iter().collect();
        let places = &self.places;
        let procs = (0..self.size).map(|rank| {
            let binding = places.bindings.get(places.binding.get(rank) as usize).cloned().unwrap_or_default();
            let node = nodes.binary_search(&places.node.get(rank)).unwrap_or(0) as u32;
            JobProc {
                app: places.app.get(rank),
                node_rank: places.node_rank.get(rank) as u16,
                package_rank: places.package_rank.get(rank).checked_sub(1).map(|n| n as u16),
                cpuset: binding.cpuset,
                locality: binding.locality,
                ..JobProc::new(Rank(places.app_rank.get(rank)), node, places.local_rank.get(rank) as u16)
            }
        });
        let named = |id: &u32| JobNode {
            name: table.name(NodeId(*id)),
            id: *id,
            values: self.node_values(NodeId(*id)),
        };
        Expanded {
            procs: procs.collect(),
            nodes: nodes.iter().map(named).collect(),
            apps: self.apps.iter().map(|app| JobApp { values: app.values.clone() }).collect(),
        }
    }
}

/// Who reads the launcher's standard input; the others read the null device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum StdinTarget {
    #[default]
    FirstRank,
    Rank(Rank),
    All,
    None,
}

/// What one rank's failure means to the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum FailurePolicy {
    /// Any failing rank ends the job.
    #[default]
    KillJob,
    /// A rank that exits with a code is let go; signals and aborts end the job.
    KillOnSignal,
    /// The others go on.
    Continue,
}

impl FailurePolicy {
    /// Whether this end of one process ends the job.
    pub fn ends_job(self, end: &ProcEnd) -> bool {
        match self {
            FailurePolicy::KillJob => end.is_failure(),
            FailurePolicy::KillOnSignal => {
                end.is_failure() && matches!(end.status, Some(ExitStatus::Signal { .. }) | None)
            }
            FailurePolicy::Continue => false,
        }
    }
}
