//! The jobs that this server knows and the local processes that may connect to it.
//!
//! A job is what the host registered, unchanged, plus one small record per local process. The data that a process needs of
//! its job is made in `job_data`, once per encoding, and kept here as bytes.

use std::collections::{BTreeMap, BTreeSet};

use phalanx_spec::{Rank, Status, keys};
use phalanx_wire::cmd::job_data::{EncodedJob, JobData};
use phalanx_wire::codec::Format;
use phalanx_wire::{Nspace, ProcId};
use tracing::warn;

use super::limits::MAX_EARLY_CLIENTS;
use super::values::Committed;
use crate::job::{JobInfo, JobNode};
use crate::machine::{ConnId, Time};

#[derive(Debug, Default)]
pub(super) struct Jobs {
    all: BTreeMap<Nspace, Job>,
    early: EarlyClients,
}

#[derive(Debug)]
pub(super) struct Job {
    info: Box<JobInfo>,
    /// When the host first registered it.
    since: Time,
    own_node: Option<JobNode>,
    /// The ranks on this node.
    local: BTreeSet<Rank>,
    clients: BTreeMap<Rank, Client>,
    /// Its job data, per requested encoding.
    encoded: Vec<EncodedJob>,
    /// The same for its own processes.
    shared: Vec<EncodedJob>,
}

/// Local processes of jobs that the host has not registered yet: Open MPI 4 registers the processes first.
#[derive(Debug, Default)]
struct EarlyClients(Vec<(ProcId, u32, u32)>);

impl EarlyClients {
    fn add(&mut self, proc: &ProcId, uid: u32, gid: u32) -> Result<(), Status> {
        if self.0.len() >= MAX_EARLY_CLIENTS {
            warn!(%proc, limit = MAX_EARLY_CLIENTS, "too many clients of jobs that are not registered: refused");
            return Err(Status::ERR_OUT_OF_RESOURCE);
        }
        if self.0.iter().any(|(known, ..)| known == proc) {
            return Err(Status::ERR_EXISTS);
        }
        self.0.push((proc.clone(), uid, gid));
        Ok(())
    }

    fn knows(&self, nspace: &Nspace) -> bool {
        self.0.iter().any(|(proc, ..)| proc.nspace == *nspace)
    }

    fn take(&mut self, nspace: &Nspace) -> Vec<(ProcId, u32, u32)> {
        self.0.extract_if(.., |(proc, ..)| proc.nspace == *nspace).collect()
    }
}

/// A local process.
#[derive(Debug)]
pub(super) struct Client {
    uid: u32,
    gid: u32,
    /// Its open connections, including those that have finalized.
    conns: BTreeSet<ConnId>,
    /// One of its connections has finalized while others went on.
    has_finalized: bool,
    stage: Stage,
    committed: Committed,
    /// Its process id; kept after it has ended.
    pid: Option<u32>,
}

/// How far a local process has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// It has not connected yet.
    Awaited,
    /// At least one of its connections has not finalized.
    Connected,
    /// It has finalized. It may connect again.
    Finalized,
    /// Its last connection broke before it finalized. The host has not confirmed its end yet.
    Leaving,
    /// The same, and the host has confirmed it.
    Lost,
    /// It has ended.
    Gone,
}

impl Stage {
    /// Whether nothing more can come from it.
    pub(super) fn is_over(self) -> bool {
        matches!(self, Stage::Lost | Stage::Gone)
    }
}

impl Client {
    pub(super) fn uid(&self) -> u32 {
        self.uid
    }

    pub(super) fn gid(&self) -> u32 {
        self.gid
    }

    /// Its open connections, including those that have finalized.
    pub(super) fn conns(&self) -> &BTreeSet<ConnId> {
        &self.conns
    }

    pub(super) fn stage(&self) -> Stage {
        self.stage
    }

    pub(super) fn pid(&self) -> Option<u32> {
        self.pid
    }

    /// The host's pid wins: for a program that a script started, it is the script's.
    pub(super) fn set_pid(&mut self, pid: u32) {
        self.pid = Some(pid);
    }

    /// One of its processes has connected.
    pub(super) fn guess_pid(&mut self, pid: Option<u32>) {
        self.pid = self.pid.or(pid);
    }

    pub(super) fn committed(&self) -> &Committed {
        &self.committed
    }

    pub(super) fn committed_mut(&mut self) -> &mut Committed {
        &mut self.committed
    }

    /// A rank that has ended is to be restarted.
    pub(super) fn forget_committed(&mut self) {
        if self.stage.is_over() {
            self.committed = Committed::default();
        }
    }

    pub(super) fn connect(&mut self, conn: ConnId) {
        self.conns.insert(conn);
        self.has_finalized &= self.stage == Stage::Connected;
        self.stage = Stage::Connected;
    }

    /// One of its connections has finalized. `others`: while others go on.
    pub(super) fn finalize(&mut self, others: bool) {
        self.has_finalized = true;
        if !others {
            self.stage = Stage::Finalized;
        }
    }

    /// A connection has closed; returns whether it was one of this client's current connections.
    pub(super) fn disconnect(&mut self, conn: ConnId) -> bool {
        self.conns.remove(&conn)
    }

    /// Its last connection that had not finalized broke. Returns the new stage, or `None` if it was not connected.
    pub(super) fn break_off(&mut self) -> Option<Stage> {
        if self.stage != Stage::Connected {
            return None;
        }
        self.stage = if self.has_finalized { Stage::Finalized } else { Stage::Leaving };
        Some(self.stage)
    }

    /// The host confirms the client's end. False if it reconnected, or its end was handled already.
    pub(super) fn give_up(&mut self) -> bool {
        let is_leaving = self.stage == Stage::Leaving;
        if is_leaving {
            self.stage = Stage::Lost;
        }
        is_leaving
    }

    /// It has ended. Returns its connections, which are to be closed.
    pub(super) fn end(&mut self) -> BTreeSet<ConnId> {
        self.stage = Stage::Gone;
        std::mem::take(&mut self.conns)
    }
}

impl Job {
    pub(super) fn info(&self) -> &JobInfo {
        &self.info
    }

    pub(super) fn since(&self) -> Time {
        self.since
    }

    /// Its local processes that the host registered.
    pub(super) fn clients(&self) -> impl Iterator<Item = (Rank, &Client)> {
        self.clients.iter().map(|(rank, client)| (*rank, client))
    }

    pub(super) fn client(&self, rank: Rank) -> Option<&Client> {
        self.clients.get(&rank)
    }

    pub(super) fn node(&self, index: u32) -> Option<JobNode> {
        self.info.nodes.get(usize::try_from(index).ok()?)
    }

    /// The node that the server runs on.
    pub(super) fn own_node(&self) -> Option<&JobNode> {
        self.own_node.as_ref()
    }

    pub(super) fn size(&self) -> usize {
        self.info.procs.len()
    }

    pub(super) fn is_local(&self, rank: Rank) -> bool {
        self.local.contains(&rank)
    }

    /// The stage of a rank; `None` if it is not on this node.
    pub(super) fn stage(&self, rank: Rank) -> Option<Stage> {
        match self.clients.get(&rank) {
            Some(client) => Some(client.stage),
            None => self.is_local(rank).then_some(Stage::Awaited),
        }
    }

    /// Its node's index, for a rank that exists.
    pub(super) fn node_of(&self, rank: Rank) -> Option<u32> {
        self.info.procs.get(index(rank)?).map(|p| p.node)
    }

    /// The index of a node by its name or one of its aliases.
    pub(super) fn node_named(&self, name: &str) -> Option<usize> {
        self.info.nodes.iter().position(|node| {
            let aliases = node.values.iter().find(|v| v.key == keys::HOSTNAME_ALIASES);
            *node.name == *name
                || aliases
                    .and_then(|v| v.value.as_str())
                    .is_some_and(|all| all.split(',').any(|alias| alias == name))
        })
    }

    /// The ranks on the node with this index, in order. Looks at every rank.
    pub(super) fn ranks_on(&self, node: u32) -> impl Iterator<Item = Rank> {
        ranks_on(&self.info, node)
    }
}

fn ranks_on(info: &JobInfo, node: u32) -> impl Iterator<Item = Rank> {
    info.procs.iter().zip(0u32..).filter(move |(p, _)| p.node == node).map(|(_, rank)| Rank(rank))
}

/// A rank as an index, if it is the number of a process.
pub(super) fn index(rank: Rank) -> Option<usize> {
    if rank.is_process() { usize::try_from(rank.0).ok() } else { None }
}

/// The outcome of registering a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Registered {
    New,
    /// It had ended, and is restarted: nothing of its past is kept.
    Again,
    /// Its job is not known yet.
    Early,
}

impl Jobs {
    pub(super) fn get(&self, nspace: &Nspace) -> Option<&Job> {
        self.all.get(nspace)
    }

    pub(super) fn named(&self, nspace: &str) -> Option<&Job> {
        self.all.get(nspace)
    }

    pub(super) fn contains(&self, nspace: &Nspace) -> bool {
        self.all.contains_key(nspace)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Job> {
        self.all.values()
    }

    pub(super) fn client(&self, proc: &ProcId) -> Option<&Client> {
        self.all.get(&proc.nspace)?.clients.get(&proc.rank)
    }

    pub(super) fn client_mut(&mut self, proc: &ProcId) -> Option<&mut Client> {
        self.all.get_mut(&proc.nspace)?.clients.get_mut(&proc.rank)
    }

    /// The stage of a process; `None` if it is not on this node.
    pub(super) fn stage(&self, proc: &ProcId) -> Option<Stage> {
        self.all.get(&proc.nspace)?.stage(proc.rank)
    }

    /// Whether a process of this job was registered before the job.
    pub(super) fn await_clients_of(&self, nspace: &Nspace) -> bool {
        self.early.knows(nspace)
    }

    /// Registers a job, or an update of it; returns its processes that were registered before it.
    pub(super) fn register(&mut self, now: Time, info: JobInfo) -> Result<Vec<(ProcId, u32, u32)>, Status> {
        let nodes = info.nodes.len();
        let apps = info.apps.len();
        let fits = |index: u32, len: usize| usize::try_from(index).is_ok_and(|i| i < len);
        let consistent = info.procs.iter().all(|p| fits(p.node, nodes) && fits(p.app, apps))
            && info.here.is_none_or(|here| fits(here, nodes))
            && u32::try_from(info.procs.len()).is_ok_and(|n| n <= Rank::VALID.0);
        if info.nspace.is_none() || !consistent {
            warn!(nspace = %info.nspace, "a job names a node or an app that it does not have: not registered");
            return Err(Status::ERR_BAD_PARAM);
        }
        let local = info.here.map_or_else(BTreeSet::new, |here| ranks_on(&info, here).collect());
        let own_node = info.here.and_then(|here| info.nodes.get(usize::try_from(here).ok()?));
        let nspace = info.nspace.clone();
        let before = self.all.remove(&nspace).map(|job| (job.since, job.clients));
        let (since, clients) = before.unwrap_or_else(|| (now, BTreeMap::new()));
        let (info, encoded, shared) = (Box::new(info), Vec::new(), Vec::new());
        let job = Job { info, since, own_node, local, clients, encoded, shared };
        let early = self.early.take(&nspace);
        self.all.insert(nspace, job);
        Ok(early)
    }

    /// Forgets a job and its early clients.
    pub(super) fn remove(&mut self, nspace: &Nspace) -> Option<Job> {
        self.early.take(nspace);
        self.all.remove(nspace)
    }

    pub(super) fn register_client(
        &mut self,
        proc: &ProcId,
        uid: u32,
        gid: u32,
    ) -> Result<Registered, Status> {
        let Some(job) = self.all.get_mut(&proc.nspace) else {
            return self.early.add(proc, uid, gid).map(|()| Registered::Early);
        };
        if index(proc.rank).is_none_or(|i| i >= job.size()) {
            warn!(%proc, size = job.size(), "client with a rank that its job does not have: refused");
            return Err(Status::ERR_BAD_PARAM);
        }
        let restarted = |client: &Client| client.stage.is_over() && client.conns.is_empty();
        let was_here = job.clients.contains_key(&proc.rank);
        if job.clients.get(&proc.rank).is_some_and(|client| !restarted(client)) {
            return Err(Status::ERR_EXISTS);
        }
        let client = Client {
            uid,
            gid,
            conns: BTreeSet::new(),
            has_finalized: false,
            stage: Stage::Awaited,
            committed: Committed::default(),
            pid: None,
        };
        job.local.insert(proc.rank);
        job.clients.insert(proc.rank, client);
        Ok(if was_here { Registered::Again } else { Registered::New })
    }

    /// The packed data that all processes of a registered job start with; made on first use of an encoding.
    pub(super) fn shared(
        &mut self,
        nspace: &Nspace,
        format: Format,
        make: impl FnOnce(&Job) -> JobData,
    ) -> Option<EncodedJob> {
        self.kept(nspace, |job| &mut job.shared, format, make)
    }

    /// The packed job data of a registered job, likewise.
    pub(super) fn encoded(
        &mut self,
        nspace: &Nspace,
        format: Format,
        make: impl FnOnce(&Job) -> JobData,
    ) -> Option<EncodedJob> {
        self.kept(nspace, |job| &mut job.encoded, format, make)
    }

    fn kept(
        &mut self,
        nspace: &Nspace,
        among: fn(&mut Job) -> &mut Vec<EncodedJob>,
        format: Format,
        make: impl FnOnce(&Job) -> JobData,
    ) -> Option<EncodedJob> {
        let job = self.all.get_mut(nspace)?;
        if let Some(encoded) = among(job).iter().find(|encoded| encoded.format() == format) {
            return Some(encoded.clone());
        }
        let encoded = make(job).encoded(format);
        among(job).push(encoded.clone());
        Some(encoded)
    }

    /// Discards packed job data, so that it is made anew for the next processes.
    pub(super) fn forget_encodings(&mut self) {
        for job in self.all.values_mut() {
            job.encoded.clear();
            job.shared.clear();
        }
    }

    /// The jobs that have a process among these and are registered here.
    pub(super) fn among(&self, procs: &[ProcId]) -> Vec<Nspace> {
        let mut nspaces: Vec<Nspace> = procs.iter().map(|proc| proc.nspace.clone()).collect();
        nspaces.sort();
        nspaces.dedup();
        nspaces.retain(|nspace| self.contains(nspace));
        nspaces
    }

    /// The single processes of a set. Of a job that is not registered here only those that are named.
    pub(super) fn each_of(&self, procs: &[ProcId]) -> BTreeSet<ProcId> {
        let mut members = BTreeSet::new();
        for proc in procs {
            match self.get(&proc.nspace).filter(|_| proc.rank == Rank::WILDCARD) {
                Some(job) => {
                    let ranks = (0..).take(job.size()).map(Rank);
                    members.extend(ranks.map(|rank| ProcId::new(&proc.nspace, rank)));
                }
                None => {
                    members.insert(proc.clone());
                }
            }
        }
        members
    }

    /// The processes of a set that are on this node. A job that is not registered here has none.
    pub(super) fn local_among(&self, procs: &[ProcId]) -> BTreeSet<ProcId> {
        let mut members = BTreeSet::new();
        for proc in procs {
            let Some(job) = self.get(&proc.nspace) else { continue };
            if proc.rank == Rank::WILDCARD {
                members.extend(job.local.iter().map(|rank| ProcId::new(&proc.nspace, *rank)));
            } else if job.is_local(proc.rank) {
                members.insert(proc.clone());
            }
        }
        members
    }

    /// Whether all of these are on this node.
    pub(super) fn are_all_local(&self, procs: &[ProcId]) -> bool {
        procs.iter().all(|proc| {
            self.get(&proc.nspace).is_some_and(|job| {
                if proc.rank == Rank::WILDCARD {
                    job.local.len() == job.size()
                } else {
                    job.is_local(proc.rank)
                }
            })
        })
    }
}
