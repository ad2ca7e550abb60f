//! What a host registers about one job: everything the standard requires at `PMIx_server_register_nspace`.
//!
//! Kept compact: nodes and processes are [`Table`]s, which may compute their entries when a client asks, as keys and values
//! are.

use std::fmt;
use std::sync::Arc;

use phalanx_spec::Rank;
use phalanx_wire::{Kval, Nspace};

/// One job. Nodes and apps are referred to by index.
#[derive(Clone, Debug, PartialEq)]
pub struct JobInfo {
    pub nspace: Nspace,
    /// Job-level values that do not follow from the rest (`pmix.jobid`, `pmix.mapby`, `pmix.parent` ...).
    pub job: Arc<[Kval]>,
    pub session: Arc<[Kval]>,
    /// Names of all nodes of the session (`pmix.alist`), of the job or not. Empty if `session` has them, or if they are
    /// unknown.
    pub allocated: Table<Arc<str>>,
    pub nodes: Table<JobNode>,
    pub apps: Arc<[JobApp]>,
    /// One per rank, by rank.
    pub procs: Table<JobProc>,
    /// The index in `nodes` of this server's node; `None` when the job has no process here.
    pub here: Option<u32>,
}

/// A list, or a computed one: entries are handed out one by one, so that an owner with a more compact form need not expand
/// it.
#[derive(Clone)]
pub struct Table<T>(Arc<dyn Rows<T>>);

/// The content of a [`Table`].
pub trait Rows<T>: Send + Sync {
    fn count(&self) -> usize;
    fn row(&self, index: usize) -> Option<T>;
}

impl<T> Table<T> {
    pub fn new(rows: impl Rows<T> + 'static) -> Table<T> {
        Table(Arc::new(rows))
    }

    pub fn len(&self) -> usize {
        self.0.count()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn get(&self, index: usize) -> Option<T> {
        self.0.row(index)
    }

    pub fn iter(&self) -> impl Iterator<Item = T> {
        (0..self.len()).map_while(|index| self.get(index))
    }
}

impl<T: Clone + Send + Sync> Rows<T> for Vec<T> {
    fn count(&self) -> usize {
        self.len()
    }

    fn row(&self, index: usize) -> Option<T> {
        self.get(index).cloned()
    }
}

impl<T: Clone + Send + Sync + 'static> From<Vec<T>> for Table<T> {
    fn from(list: Vec<T>) -> Table<T> {
        Table::new(list)
    }
}

impl<T: Clone + Send + Sync + 'static, const N: usize> From<[T; N]> for Table<T> {
    fn from(list: [T; N]) -> Table<T> {
        Table::new(Vec::from(list))
    }
}

impl<T: Clone + Send + Sync + 'static> FromIterator<T> for Table<T> {
    fn from_iter<I: IntoIterator<Item = T>>(list: I) -> Table<T> {
        Table::new(list.into_iter().collect::<Vec<T>>())
    }
}

impl<T: PartialEq> PartialEq for Table<T> {
    fn eq(&self, other: &Table<T>) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<T: fmt::Debug> fmt::Debug for Table<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// One node of the job. Sizes, leaders and peers are derived from the processes.
#[derive(Clone, Debug, PartialEq)]
pub struct JobNode {
    pub name: Arc<str>,
    /// The node's number in the whole machine (`pmix.nodeid`).
    pub id: u32,
    /// Further values of the node realm. With `pmix.nsdir` on the server's own node each local rank gets as its `pmix.pdir`
    /// the directory of that rank's number in there: the host creates it.
    pub values: Vec<Kval>,
}

/// One app context. Its size and leader are derived from the processes.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct JobApp {
    pub values: Vec<Kval>,
}

/// The location of one process.
#[derive(Clone, Debug, PartialEq)]
pub struct JobProc {
    pub node: u32,
    pub app: u32,
    pub app_rank: Rank,
    pub local_rank: u16,
    pub node_rank: u16,
    /// Its number among the job's processes on the same package, when it is bound to one.
    pub package_rank: Option<u16>,
    /// Where it is bound, as a list (`0-3,8`); `None` when unbound.
    pub cpuset: Option<Arc<str>>,
    /// hwloc-compatible locality string, when the node's topology is known.
    pub locality: Option<Arc<str>>,
    /// How often the process was restarted.
    pub reincarnation: u32,
    /// Further values of the rank: values stated by the host override derived ones.
    pub values: Option<Box<[Kval]>>,
}

impl JobProc {
    /// A process of the job's only app, unbound, on a node that no other job uses.
    pub fn new(rank: Rank, node: u32, local_rank: u16) -> JobProc {
        JobProc {
            node,
            app: 0,
            app_rank: rank,
            local_rank,
            node_rank: local_rank,
            package_rank: None,
            cpuset: None,
            locality: None,
            reincarnation: 0,
            values: None,
        }
    }
}
