//! The configuration of a daemon at its start. Everything that differs between machines comes in here.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use phalanx_topo::Topology;
use phalanx_wire::Text;

use crate::hosts::Slots;
use crate::id::NodeId;

#[derive(Clone, Debug)]
pub struct NodeConfig {
    pub id: NodeId,
    /// How many daemons the DVM has, including the root.
    pub size: u32,
    /// Children per daemon.
    pub radix: u32,
    /// Distinguishes this DVM from all others of the user; jobs are named `DVM@N`, `DVM@N+1`, ...
    pub dvm: Arc<str>,
    /// The number of the first job. Open MPI 5 names shared memory by 16 bits of a hash of the text before the `@` and by the
    /// number after it (mod 65536): concurrent DVMs should not all begin with 1.
    pub first_job: u32,
    pub hostname: Arc<str>,
    /// The addresses of this host (at node 0), by which a spawn may name it.
    pub addresses: Vec<IpAddr>,
    /// The user's names for the nodes from 1 on, which remain usable (at node 0).
    pub called: Vec<Arc<str>>,
    pub topology: Arc<Topology>,
    /// Processes that the allocation grants here.
    pub slots: Slots,
    /// The most processes here, if there is a bound.
    pub max_slots: Option<u32>,
    /// Whether processes may be placed here (at node 0).
    pub takes_ranks: bool,
    /// The address at which orphaned daemons reach this one.
    pub address: Arc<str>,
    /// The addresses of this daemon's ancestors, its parent first.
    pub lineage: Vec<(NodeId, Arc<str>)>,
    /// The jobs' user: only their processes may connect.
    pub uid: u32,
    pub gid: u32,
    /// The environment of processes that a tool has started.
    pub env: Vec<Text>,
    /// Each job gets a directory of its own below this one.
    pub scratch: Arc<str>,
    /// It goes on without jobs until it is stopped.
    pub lasts: bool,
    /// The site's rules (at node 0).
    pub rules: Rules,
    /// When this daemon's time began, since the epoch.
    pub clock: Duration,
    pub limits: Limits,
}

/// Rules set by the starter of a DVM.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    pub steer: Steer,
    /// The shell command that provisions nodes.
    pub provision: Option<Text>,
    /// The shell command that sends the mail that it reads from standard input; without one, sendmail does.
    pub mail: Option<Text>,
    /// Nothing reads the reports to the user.
    pub unheard: bool,
}

/// Which jobs a rank may steer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Steer {
    /// Its own job, and jobs that descend from it.
    #[default]
    Own,
    Any,
}

#[cfg(test)]
impl NodeConfig {
    /// Daemon `id` of `size` on nodes called n0, n1, ..., for tests of one room.
    pub(crate) fn for_test(id: u32, size: u32, topology: Topology) -> NodeConfig {
        let name: Arc<str> = format!("n{id}").into();
        NodeConfig {
            id: NodeId(id),
            size,
            radix: 2,
            dvm: "dvm".into(),
            first_job: 1,
            hostname: name.clone(),
            addresses: Vec::new(),
            called: Vec::new(),
            topology: Arc::new(topology),
            slots: Slots::default(),
            max_slots: None,
            takes_ranks: true,
            address: name,
            lineage: Vec::new(),
            uid: 1000,
            gid: 1000,
            env: Vec::new(),
            scratch: "/scratch".into(),
            lasts: true,
            rules: Rules::default(),
            clock: Duration::ZERO,
            limits: Limits::default(),
        }
    }
}

/// Bounds in time and space.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// From the polite signal to SIGKILL.
    pub kill_grace: Duration,
    /// From SIGKILL until a process that does not end is given up.
    pub reap_grace: Duration,
    /// How long to wait for output of a job's dead processes: their descendants may hold the pipes for ever.
    pub output_grace: Duration,
    /// How long, after a process has exited, its server may take to notice that the connection is gone.
    pub settle_grace: Duration,
    /// Between two messages on an idle link.
    pub heartbeat: Duration,
    /// A link that is silent for this long is dead.
    pub silence: Duration,
    /// How long a daemon has to come back after its link was lost.
    pub reconnect: Duration,
    /// How long a daemon may take for each phase of its start.
    pub agent: Duration,
    /// How long all daemons together may take to report.
    pub boot: Duration,
    /// Between two requests for the data of a process on another node, while it has none.
    pub retry: Duration,
    /// Bytes of unfetched output that one daemon holds for its own processes.
    pub output_pool: usize,
    /// Bytes of output in flight on one link of the tree.
    pub output_link: usize,
    /// Bytes of each channel of a job that are kept for readers that come later, unless the job sets its own.
    pub output_cache: usize,
    /// Bytes of standard input in flight to one process.
    pub stdin_window: usize,
    /// Ended jobs that are fully remembered.
    pub ended_jobs: u32,
    /// Bytes that these take.
    pub journals: usize,
    /// Bytes of published data that the root holds.
    pub published: usize,
    /// Bytes of paths that one job may leave to one daemon to remove.
    pub cleanup: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            kill_grace: Duration::from_secs(3),
            reap_grace: Duration::from_secs(30),
            output_grace: Duration::from_secs(2),
            settle_grace: Duration::from_secs(1),
            heartbeat: Duration::from_secs(2),
            silence: Duration::from_secs(60),
            reconnect: Duration::from_secs(5),
            agent: Duration::from_secs(60),
            boot: Duration::from_secs(120),
            retry: Duration::from_secs(5),
            output_pool: 8 << 20,
            output_link: 256 << 10,
            output_cache: 64 << 10,
            stdin_window: 256 << 10,
            ended_jobs: 64,
            journals: 8 << 20,
            published: 32 << 20,
            cleanup: 1 << 20,
        }
    }
}
