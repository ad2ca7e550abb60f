//! The jobs that this server knows and the local processes that may connect to it.
//!
//! A job is what the host registered, never changed, plus one small record per local process. What a process must know of
//! its job is made in `job_data`, once per encoding, and kept here as bytes.

use std::collections::{BTreeMap, BTreeSet};

use phalanx_spec::{Rank, Status};
use phalanx_wire::cmd::job_data::EncodedJob;
use phalanx_wire::codec::Format;
use phalanx_wire::{Blob, Nspace, ProcId};
use tracing::warn;

use super::commit::Committed;
use super::limits::MAX_EARLY_CLIENTS;
use super::peer::Asker;
use super::{Cx, Server};
use crate::job::JobInfo;
use crate::machine::ConnId;

#[derive(Debug)]
pub(super) struct Job {
    pub(super) info: Box<JobInfo>,
    /// The ranks on this node.
    pub(super) local: BTreeSet<Rank>,
    pub(super) clients: BTreeMap<Rank, Client>,
    /// Its job data, per encoding that somebody asked for.
    encoded: Vec<EncodedJob>,
    /// The same for its own processes.
    shared: Vec<EncodedJob>,
}

/// Local processes of jobs that the host has not told of yet: Open MPI 4 names them first.
#[derive(Debug, Default)]
pub(super) struct EarlyClients(Vec<(ProcId, u32, u32)>);

impl EarlyClients {
    fn add(&mut self, proc: &ProcId, uid: u32, gid: u32) -> Status {
        if self.0.len() >= MAX_EARLY_CLIENTS {
            warn!(%proc, limit = MAX_EARLY_CLIENTS, "too many clients of jobs that are not registered: refused");
            return Status::ERR_OUT_OF_RESOURCE;
        }
        if self.0.iter().any(|(known, ..)| known == proc) {
            return Status::ERR_EXISTS;
        }
        self.0.push((proc.clone(), uid, gid));
        Status::SUCCESS
    }

    pub(super) fn knows(&self, nspace: &Nspace) -> bool {
        self.0.iter().any(|(proc, ..)| proc.nspace == *nspace)
    }

    fn take(&mut self, nspace: &Nspace) -> Vec<(ProcId, u32, u32)> {
        self.0.extract_if(.., |(proc, ..)| proc.nspace == *nspace).collect()
    }
}

/// A local process.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) uid: u32,
    pub(super) gid: u32,
    /// Its open connections, those among them that have finalized.
    pub(super) conns: BTreeSet<ConnId>,
    /// One of its connections has finalized while others went on.
    pub(super) has_finalized: bool,
    pub(super) stage: Stage,
    pub(super) committed: Committed,
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
    /// Its last connection broke before it finalized. The host has not said yet that nothing more comes of it.
    Leaving,
    /// The same, and the host has.
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

impl Job {
    pub(super) fn size(&self) -> usize {
        self.info.procs.len()
    }

    pub(super) fn is_local(&self, rank: Rank) -> bool {
        self.local.contains(&rank)
    }

    /// How far a rank has come; `None` when it is not on this node.
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

    /// The ranks on the node with this index, in order. Looks at every rank.
    pub(super) fn ranks_on(&self, node: u32) -> impl Iterator<Item = Rank> {
        self.info.procs.iter().zip(0u32..).filter(move |(p, _)| p.node == node).map(|(_, rank)| Rank(rank))
    }
}

/// A rank as an index, if it is the number of a process.
pub(super) fn index(rank: Rank) -> Option<usize> {
    if rank.is_process() { usize::try_from(rank.0).ok() } else { None }
}

impl Server {
    pub(super) fn register_nspace(&mut self, cx: &mut Cx<'_>, info: JobInfo) -> Status {
        let nodes = info.nodes.len();
        let apps = info.apps.len();
        let fits = |index: u32, len: usize| usize::try_from(index).is_ok_and(|i| i < len);
        let consistent = info.procs.iter().all(|p| fits(p.node, nodes) && fits(p.app, apps))
            && info.here.is_none_or(|here| fits(here, nodes))
            && u32::try_from(info.procs.len()).is_ok_and(|n| n <= Rank::VALID.0);
        if info.nspace.is_none() || !consistent {
            warn!(nspace = %info.nspace, "a job names a node or an app that it does not have: not registered");
            return Status::ERR_BAD_PARAM;
        }
        let local = info.here.map_or_else(BTreeSet::new, |here| {
            info.procs
                .iter()
                .zip(0u32..)
                .filter(|(p, _)| p.node == here)
                .map(|(_, rank)| Rank(rank))
                .collect()
        });
        let nspace = info.nspace.clone();
        let clients = self.jobs.remove(&nspace).map(|job| job.clients).unwrap_or_default();
        let job = Job { info: Box::new(info), local, clients, encoded: Vec::new(), shared: Vec::new() };
        self.jobs.insert(nspace.clone(), job);
        for (proc, uid, gid) in self.early_clients.take(&nspace) {
            self.register_client(&proc, uid, gid);
        }
        self.retry_gets_of_nspace(cx, &nspace);
        Status::SUCCESS
    }

    pub(super) fn deregister_nspace(&mut self, cx: &mut Cx<'_>, nspace: &Nspace) -> Status {
        self.early_clients.take(nspace);
        self.modex.forget(nspace);
        let Some(job) = self.jobs.remove(nspace) else { return Status::ERR_NOT_FOUND };
        self.remove_collected(cx, nspace);
        for client in job.clients.values() {
            for conn in &client.conns {
                self.drop_connection(cx, *conn);
            }
        }
        self.end_gets_of_nspace(cx, nspace);
        self.end_collectives_of_nspace(cx, nspace);
        self.forget_groups_of(nspace);
        self.forget_events_of(nspace);
        self.conns.forget_told_in(nspace);
        self.upcalls.forget_askers_of(nspace);
        debug_assert!(self.traces_of(nspace).is_empty(), "{nspace}: {:?}", self.traces_of(nspace));
        Status::SUCCESS
    }

    pub(super) fn register_client(&mut self, proc: &ProcId, uid: u32, gid: u32) -> Status {
        let Some(job) = self.jobs.get_mut(&proc.nspace) else {
            return self.early_clients.add(proc, uid, gid);
        };
        if index(proc.rank).is_none_or(|i| i >= job.size()) {
            warn!(%proc, size = job.size(), "client with a rank that its job does not have: refused");
            return Status::ERR_BAD_PARAM;
        }
        let restarted = |client: &Client| client.stage.is_over() && client.conns.is_empty();
        let was_here = job.clients.contains_key(&proc.rank);
        if job.clients.get(&proc.rank).is_some_and(|client| !restarted(client)) {
            return Status::ERR_EXISTS;
        }
        let client = Client {
            uid,
            gid,
            conns: BTreeSet::new(),
            has_finalized: false,
            stage: Stage::Awaited,
            committed: Committed::default(),
        };
        // Of one that is started again nothing is there.
        self.collections.outdate(&proc.nspace);
        job.local.insert(proc.rank);
        job.clients.insert(proc.rank, client);
        if was_here {
            self.conns.forget_told_of(proc);
        }
        Status::SUCCESS
    }

    pub(super) fn deregister_client(&mut self, cx: &mut Cx<'_>, proc: &ProcId) -> Status {
        if proc.rank == Rank::WILDCARD {
            let Some(job) = self.jobs.get(&proc.nspace) else { return Status::ERR_NOT_FOUND };
            let all: Vec<Rank> = job.clients.keys().copied().collect();
            for rank in all {
                self.deregister_client(cx, &ProcId::new(&proc.nspace, rank));
            }
            return Status::SUCCESS;
        }
        let Some(client) = self.client_mut(proc) else { return Status::ERR_NOT_FOUND };
        client.stage = Stage::Gone;
        for conn in std::mem::take(&mut client.conns) {
            self.drop_connection(cx, conn);
        }
        self.on_proc_over(cx, proc);
        Status::SUCCESS
    }

    pub(super) fn client(&self, proc: &ProcId) -> Option<&Client> {
        self.jobs.get(&proc.nspace)?.clients.get(&proc.rank)
    }

    pub(super) fn client_mut(&mut self, proc: &ProcId) -> Option<&mut Client> {
        self.jobs.get_mut(&proc.nspace)?.clients.get_mut(&proc.rank)
    }

    /// How far a process has come; `None` when it is not on this node.
    pub(super) fn stage(&self, proc: &ProcId) -> Option<Stage> {
        self.jobs.get(&proc.nspace)?.stage(proc.rank)
    }

    /// REQ: the job data of the asker's own namespace.
    pub(super) fn on_job_data(&mut self, cx: &mut Cx<'_>, from: &Asker) {
        let Some(peer) = self.conns.peer(from.conn) else { return };
        let (format, topology) = (peer.dialect.format, self.topology_for(peer));
        let nspace = &from.proc.nspace;
        match self.shared_job(nspace, format) {
            Some(job) => {
                let own = self.jobs.get(nspace).map(|job| self.own_data(job, from.proc.rank));
                self.reply(cx, from, |_| {
                    job.body_for(topology.as_ref(), from.proc.rank, &own.unwrap_or_default())
                });
            }
            None => {
                let job = self.lone_job_data(nspace).encoded(format);
                self.reply(cx, from, |_| job.body());
            }
        }
    }

    /// What all processes of a registered job start with, packed.
    fn shared_job(&mut self, nspace: &Nspace, format: Format) -> Option<EncodedJob> {
        let job = self.jobs.get(nspace)?;
        if let Some(encoded) = job.shared.iter().find(|encoded| encoded.format() == format) {
            return Some(encoded.clone());
        }
        let encoded = self.shared_data(job).encoded(format);
        self.jobs.get_mut(nspace)?.shared.push(encoded.clone());
        Some(encoded)
    }

    /// What processes were told of jobs is to be made anew for those who come.
    pub(super) fn forget_encodings(&mut self) {
        for job in self.jobs.values_mut() {
            job.encoded.clear();
            job.shared.clear();
        }
    }

    /// The job data of each of these jobs that is known, with the name of the job in front.
    pub(super) fn collect_job_info(&mut self, nspaces: &[Nspace], format: Format) -> Vec<Blob> {
        let known = nspaces.iter().filter_map(|nspace| self.encoded_job(nspace, format));
        known.map(|job| Blob::from(job.body())).collect()
    }

    /// The job data of a registered job, packed.
    pub(super) fn encoded_job(&mut self, nspace: &Nspace, format: Format) -> Option<EncodedJob> {
        let job = self.jobs.get(nspace)?;
        if let Some(encoded) = job.encoded.iter().find(|encoded| encoded.format() == format) {
            return Some(encoded.clone());
        }
        let encoded = self.job_data(job).encoded(format);
        self.jobs.get_mut(nspace)?.encoded.push(encoded.clone());
        Some(encoded)
    }
}
