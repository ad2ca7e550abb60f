//! The description of one job as the root broadcasts it. Every daemon keeps it, even without a process of the job: it
//! determines which daemons take part in what. It stays as compact as it travelled: a server asks it for one rank at a time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use phalanx_core::job::{JobApp, JobInfo, JobNode, JobProc, Rows, Table};
use phalanx_spec::{IofChannel, Rank, keys};
use phalanx_wire::{Kval, Nspace, ProcId, Text};

use super::{EnvChange, NodeTable};
use super::{ExitStatus, ProcEnd};
use crate::column::Column;
use crate::encoding::encoded;
use crate::id::NodeId;
use crate::ranges::Ranges;

#[derive(Debug)]
pub(crate) struct JobDesc {
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
    pub reported_ends: ReportedEnds,
    /// From the polite signal to SIGKILL, if the job has its own time.
    pub kill_after: Option<Duration>,
    /// Shell commands: one takes a checkpoint of a process, the other runs instead of the program of a process that restarts
    /// from one.
    pub checkpoint_command: Option<Text>,
    pub restart_command: Option<Text>,
    pub job: Arc<[Kval]>,
    pub session: Arc<[Kval]>,
    /// The nodes available when it was placed.
    pub allocated: Ranges,
}

/// The place of each rank, one column per property.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places {
    pub node: Column,
    pub app: Column,
    pub app_rank: Column,
    pub local_rank: Column,
    pub node_rank: Column,
    /// From 1; 0 for a process that is not bound to a single package.
    pub package_rank: Column,
    /// Index into `bindings`.
    pub binding: Column,
    pub bindings: Vec<Binding>,
}

/// The CPUs that a process is bound to, as text; both `None` if it is unbound.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Binding {
    pub cpuset: Option<Arc<str>>,
    pub locality: Option<Arc<str>>,
}

/// The ranks that were started again.
pub(crate) type Lives = BTreeMap<u32, Life>;

/// How many earlier processes of a rank that was started again ran, and the checkpoint of the last time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Life {
    pub number: u32,
    pub from: Option<Text>,
}

#[derive(Clone, Debug)]
pub(crate) struct AppDesc {
    pub argv: Arc<[Text]>,
    pub env: Vec<Text>,
    pub changes: Vec<EnvChange>,
    pub cwd: Option<Text>,
    pub prefix: Option<Text>,
    pub values: Vec<Kval>,
    /// How many ranks it has.
    pub size: u32,
}

/// The entries of an environment; later ones win.
fn by_name(entries: &[Text]) -> BTreeMap<&[u8], &Text> {
    let name = |entry: &Text| entry.as_bytes().split(|byte| *byte == b'=').next().map_or(0, <[u8]>::len);
    entries.iter().map(|entry| (entry.as_bytes().get(..name(entry)).unwrap_or_default(), entry)).collect()
}

impl JobDesc {
    /// The environment of jobs that processes of this one spawn: its own, and what all its programs were given beyond that. In
    /// a DVM that is all of what `px run` inherits.
    pub(crate) fn inherited(&self) -> Vec<Text> {
        let mut apps = self.apps.iter().map(|app| by_name(&app.env));
        let mut common = apps.next().unwrap_or_default();
        apps.for_each(|app| common.retain(|name, entry| app.get(name) == Some(entry)));
        let mut env = by_name(&self.env);
        env.append(&mut common);
        env.into_values().cloned().collect()
    }

    /// Whether Open MPI's fault tolerance is on in its programs, and the job goes on when a rank fails.
    pub(crate) fn survives_failures(&self) -> bool {
        let is_on = |app: &AppDesc| {
            let mut entries = self.env.iter().chain(&app.env).map(Text::as_bytes).rev();
            let value = entries.find_map(|entry| entry.strip_prefix(FAULT_TOLERANCE));
            value.is_some_and(|value| {
                matches!(value.to_ascii_lowercase().as_slice(), b"1" | b"true" | b"yes" | b"on")
            })
        };
        self.on_failure == FailurePolicy::Continue && self.apps.iter().any(is_on)
    }

    pub(crate) fn node_of(&self, rank: Rank) -> Option<NodeId> {
        (rank.0 < self.size).then(|| NodeId(self.places.node.get(rank.0)))
    }

    /// The daemons that host any of `ranks`.
    pub(crate) fn nodes_of(&self, ranks: &Ranges) -> Ranges {
        if ranks.count() == self.size {
            return self.nodes.clone();
        }
        ranks.iter().filter(|rank| *rank < self.size).map(|rank| self.places.node.get(rank)).collect()
    }

    /// The ranks on one daemon.
    pub(crate) fn ranks_on(&self, node: NodeId) -> Ranges {
        if !self.nodes.contains(node.0) {
            return Ranges::new();
        }
        self.places.node.indices_of(node.0, self.size)
    }

    /// The ranks on any of these daemons.
    pub(crate) fn ranks_on_any(&self, nodes: &Ranges) -> Ranges {
        let nodes = self.nodes.and(nodes);
        if nodes.is_empty() {
            return Ranges::new();
        }
        (0..self.size).filter(|rank| nodes.contains(self.places.node.get(*rank))).collect()
    }

    /// All ranks.
    pub(crate) fn ranks(&self) -> Ranges {
        Ranges::first(self.size)
    }

    pub(crate) fn binding(&self, rank: Rank) -> Option<&Binding> {
        self.places.bindings.get(self.places.binding.get(rank.0) as usize)
    }

    pub(crate) fn app(&self, rank: Rank) -> Option<&AppDesc> {
        self.apps.get(self.places.app.get(rank.0) as usize)
    }

    pub(crate) fn app_sizes(&self) -> Vec<u32> {
        self.apps.iter().map(|app| app.size).collect()
    }

    /// The job's own directory on a node that keeps such directories in `scratch`.
    pub(crate) fn directory(&self, scratch: &str) -> Text {
        format!("{scratch}/{}", self.number).into()
    }

    /// The directories that processes of that node are to use.
    pub(crate) fn directories(&self, scratch: &str) -> [Kval; 2] {
        [Kval::new(keys::TMPDIR, scratch), Kval::new(keys::NSDIR, self.directory(scratch))]
    }

    /// The job information for the PMIx server of `here`, with the jobs' directories in `scratch`.
    pub(crate) fn job_info(
        self: &Arc<JobDesc>,
        here: NodeId,
        scratch: &str,
        table: &Arc<NodeTable>,
        lives: &Arc<Lives>,
    ) -> JobInfo {
        let [tmpdir, nsdir] = self.directories(scratch);
        let own = Own { node: here, values: vec![nsdir.clone()] };
        JobInfo {
            nspace: self.nspace.clone(),
            job: self.job.iter().cloned().chain([tmpdir.clone(), nsdir]).collect(),
            session: self.session.iter().cloned().chain([tmpdir]).collect(),
            allocated: Table::new(Allocated { of: self.clone(), table: table.clone() }),
            nodes: Table::new(Nodes { of: self.clone(), own, table: table.clone() }),
            apps: self.apps.iter().map(|app| JobApp { values: app.values.clone() }).collect(),
            procs: Table::new(Procs { of: self.clone(), lives: lives.clone() }),
            here: self.nodes.contains(here.0).then(|| self.nodes.index_of(here.0)),
        }
    }

    fn node_values(&self, node: NodeId, own: &Own) -> Vec<Kval> {
        let directory = own.values.iter().filter(|_| own.node == node).cloned();
        // Open MPI 5 checks whether the key exists and ignores its value, so it is only set if true.
        let crowded = self.crowded.contains(node.0).then(|| Kval::new(keys::NODE_OVERSUBSCRIBED, true));
        directory.chain(crowded).collect()
    }
}

impl Places {
    /// Bytes in memory.
    pub(crate) fn weight(&self) -> usize {
        let columns =
            [&self.node, &self.app, &self.app_rank, &self.local_rank, &self.node_rank, &self.package_rank];
        let columns = columns.into_iter().chain([&self.binding]);
        columns.map(Column::weight).sum::<usize>() + size_of_val(&*self.bindings)
    }
}

/// The names of all nodes.
struct Allocated {
    of: Arc<JobDesc>,
    table: Arc<NodeTable>,
}

impl Rows<Arc<str>> for Allocated {
    fn count(&self) -> usize {
        self.of.allocated.count() as usize
    }

    fn row(&self, index: usize) -> Option<Arc<str>> {
        let node = self.of.allocated.nth(u32::try_from(index).ok()?)?;
        Some(self.table.name(NodeId(node)))
    }
}

/// Values that differ from node to node, known only for the own node.
struct Own {
    node: NodeId,
    values: Vec<Kval>,
}

/// The nodes of a job, as a server asks for them.
struct Nodes {
    of: Arc<JobDesc>,
    own: Own,
    table: Arc<NodeTable>,
}

impl Rows<JobNode> for Nodes {
    fn count(&self) -> usize {
        self.of.nodes.count() as usize
    }

    fn row(&self, index: usize) -> Option<JobNode> {
        let node = NodeId(self.of.nodes.nth(u32::try_from(index).ok()?)?);
        Some(JobNode {
            name: self.table.name(node),
            id: node.0,
            values: self.of.node_values(node, &self.own),
        })
    }
}

/// The processes of a job, likewise.
struct Procs {
    of: Arc<JobDesc>,
    lives: Arc<Lives>,
}

impl Rows<JobProc> for Procs {
    fn count(&self) -> usize {
        self.of.size as usize
    }

    fn row(&self, index: usize) -> Option<JobProc> {
        let rank = u32::try_from(index).ok().filter(|rank| *rank < self.of.size)?;
        let places = &self.of.places;
        let binding = self.of.binding(Rank(rank)).cloned().unwrap_or_default();
        let (app_rank, local_rank) = (Rank(places.app_rank.get(rank)), places.local_rank.get(rank) as u16);
        let life = self.lives.get(&rank);
        let from = life.and_then(|life| life.from.clone());
        Some(JobProc {
            app: places.app.get(rank),
            node_rank: places.node_rank.get(rank) as u16,
            package_rank: places.package_rank.get(rank).checked_sub(1).map(|n| n as u16),
            cpuset: binding.cpuset,
            locality: binding.locality,
            reincarnation: life.map_or(0, |life| life.number),
            values: from.map(|name| [Kval::new(keys::JOB_CTRL_RESTART, name)].into()),
            ..JobProc::new(app_rank, self.of.nodes.index_of(places.node.get(rank)), local_rank)
        })
    }
}

/// The ranks that read the launcher's standard input; the others read the null device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StdinTarget {
    Rank(Rank),
    All,
    None,
}

impl StdinTarget {
    /// Checks that a job with this many ranks has the rank that is to read.
    pub fn check(self, ranks: u64) -> Result<(), String> {
        match self {
            StdinTarget::Rank(rank) if u64::from(rank.0) >= ranks => Err(format!(
                "rank {} is to read standard input: the ranks of this job are 0 to {}",
                rank.0,
                ranks.saturating_sub(1)
            )),
            _ => Ok(()),
        }
    }
}

impl Default for StdinTarget {
    /// The first rank.
    fn default() -> StdinTarget {
        StdinTarget::Rank(Rank(0))
    }
}

/// What one rank's failure means to the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum FailurePolicy {
    /// Any failing rank ends the job.
    #[default]
    KillJob,
    /// A non-zero exit of a rank is tolerated; signals and aborts end the job.
    KillOnSignal,
    /// The others go on.
    Continue,
    /// It is started again, each rank up to `most` times; then it ends the job.
    Restart { most: u32 },
}

/// Which ends of its processes a job's daemons report as they happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum ReportedEnds {
    /// Under [`FailurePolicy::KillJob`] the first failure, otherwise all failures.
    #[default]
    Deciding,
    /// All failures.
    Bad,
    All,
}

impl FailurePolicy {
    /// Whether this end of one process ends the job.
    pub fn ends_job(self, end: &ProcEnd) -> bool {
        match self {
            FailurePolicy::KillJob => end.is_failure(),
            FailurePolicy::KillOnSignal => {
                end.is_failure() && matches!(end.status, Some(ExitStatus::Signal { .. }) | None)
            }
            FailurePolicy::Continue | FailurePolicy::Restart { .. } => false,
        }
    }
}

/// The variable of the parameter, as `px run -x` or a spawn sets it.
const FAULT_TOLERANCE: &[u8] = b"OMPI_MCA_mpi_ft_enable=";

encoded!(struct JobDesc {
    nspace, number, parent, size, nodes, crowded, places, env, apps, stdin, forward, diag, on_failure, reported_ends,
    kill_after, checkpoint_command, restart_command, job, session, allocated,
});
encoded!(struct Places { node, app, app_rank, local_rank, node_rank, package_rank, binding, bindings });
encoded!(struct Binding { cpuset, locality });
encoded!(struct AppDesc { argv, env, changes, cwd, prefix, values, size });
encoded!(enum StdinTarget { 0 Rank(rank), 1 All, 2 None });
encoded!(enum FailurePolicy { 0 KillJob, 1 KillOnSignal, 2 Continue, 3 Restart { most } });
encoded!(enum ReportedEnds { 0 Deciding, 1 Bad, 2 All });
