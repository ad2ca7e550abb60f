//! What a host tells a server of one job: everything the standard requires at `PMIx_server_register_nspace`.
//!
//! Kept compact: a job of a million ranks is one small record per rank; keys and values are made when a client asks.

use std::sync::Arc;

use phalanx_spec::Rank;
use phalanx_wire::{Kval, Nspace};

/// One job. Nodes and apps are named by their index here. The tables are shared: a simulation holds thousands of servers.
#[derive(Clone, Debug, PartialEq)]
pub struct JobInfo {
    pub nspace: Nspace,
    /// Job-level values that do not follow from the rest (`pmix.jobid`, `pmix.mapby`, `pmix.parent` ...).
    pub job: Arc<[Kval]>,
    pub session: Arc<[Kval]>,
    pub nodes: Arc<[JobNode]>,
    pub apps: Arc<[JobApp]>,
    /// One per rank, by rank.
    pub procs: Arc<[JobProc]>,
    /// Which of `nodes` this server stands on; `None` when the job has no process here.
    pub here: Option<u32>,
}

/// One node of the job. Sizes, leaders and peers follow from the processes.
#[derive(Clone, Debug, PartialEq)]
pub struct JobNode {
    pub name: Arc<str>,
    /// The node's number in the whole machine (`pmix.nodeid`).
    pub id: u32,
    /// Further values of the node realm. With `pmix.nsdir` on the server's own node each local rank is told that its
    /// `pmix.pdir` is the directory of that rank's number in there: the host makes it.
    pub values: Vec<Kval>,
}

/// One app context. Its size and leader follow from the processes.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct JobApp {
    pub values: Vec<Kval>,
}

/// Where one process is.
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
    /// Further values of the rank: what the host states wins over what is known from the rest.
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
