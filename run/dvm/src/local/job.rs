//! A job as one daemon knows it, and what concerns all of its processes here.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use phalanx_core::Time;
use phalanx_core::server::ServerCall;
use phalanx_spec::{Rank, Status};
use phalanx_wire::{Nspace, ProcId};

use crate::effect::Effect;
use crate::local::calls::Call;
use crate::local::cleanup::Cleanups;
use crate::local::orders::Early;
use crate::local::proc::{Pmix, Proc};
use crate::local::renewal::{Held, Renewal};
use crate::local::turn::Cx;
use crate::msg::{
    CleanupRequest, FailurePolicy, JobDesc, Lives, Members, NodeTable, OpId, Part, Programs, Reached,
    Results, TaskId,
};
use crate::ranges::Ranges;

/// The jobs that are not over everywhere.
pub(super) type Jobs = BTreeMap<Nspace, LocalJob>;

/// A job as this daemon knows it, with or without processes here.
#[derive(Debug)]
pub(super) struct LocalJob {
    pub(super) desc: Arc<JobDesc>,
    pub(super) procs: BTreeMap<Rank, Proc>,
    /// Ranks anywhere that have failed while the job goes on.
    pub(super) dead: Ranges,
    /// Ranks anywhere that were started again.
    pub(super) lives: Arc<Lives>,
    /// How many restarts of ranks there were; equal on all daemons.
    pub(super) generation: u64,
    /// Unfinished restart tasks here.
    pub(super) renewals: Vec<Renewal>,
    /// Requests that wait for ranks that are being started again or stopped.
    pub(super) held: Vec<Held>,
    /// The whole job is to end.
    pub(super) is_ending: bool,
    /// Ranks with an end that the root wants reported.
    pub(super) watched: Ranges,
    pub(super) since: Time,
    /// When a process here last wrote output.
    pub(super) wrote: Time,
    /// Pieces of output that the root has not acknowledged yet.
    pub(super) chunks: usize,
    /// The ranks here of which a process has called init.
    pub(super) connected: Ranges,
    /// When the last process here started to run, when the last rank called init for the first time, and when the last process
    /// finalized, from the job's start.
    pub(super) started_after: Duration,
    pub(super) connected_after: Duration,
    pub(super) finalized_after: Duration,
    /// The files that processes here were started from, until the root has been notified.
    pub(super) programs: Programs,
    /// What to remove after the processes here.
    pub(super) cleanups: Cleanups,
    /// A process here that has not connected has loaded an MPI library, and the root knows.
    pub(super) loaded_mpi: bool,
    /// The process here that was inspected last for such a library.
    pub(super) inspected: Option<Rank>,
    /// Our server knows the job.
    pub(super) registered: bool,
    /// A process here could not be started.
    pub(super) start_failed: bool,
    /// What the root knows: our server has closed the connection of a process here, or has refused one for its user.
    pub(super) reported_cut_off: bool,
    pub(super) reported_refusal: bool,
    /// How many refused commits of processes here the root knows.
    pub(super) reported_commits: usize,
    /// What the root knows: a process here runs; all that will ever run do; one has failed; nothing is left here.
    pub(super) reported_begin: bool,
    pub(super) reported_start: bool,
    pub(super) reported_failure: bool,
    pub(super) reported_end: bool,
}

impl LocalJob {
    pub(super) fn new(desc: Arc<JobDesc>, now: Time, ranks: &Ranges) -> LocalJob {
        LocalJob {
            procs: ranks.iter().map(|rank| (Rank(rank), Proc::new(Early::default()))).collect(),
            desc,
            dead: Ranges::new(),
            lives: Arc::default(),
            generation: 0,
            renewals: Vec::new(),
            held: Vec::new(),
            is_ending: false,
            watched: Ranges::new(),
            since: now,
            wrote: now,
            chunks: 0,
            connected: Ranges::new(),
            started_after: Duration::ZERO,
            connected_after: Duration::ZERO,
            finalized_after: Duration::ZERO,
            programs: Programs::default(),
            cleanups: Cleanups::default(),
            loaded_mpi: false,
            inspected: None,
            registered: false,
            start_failed: false,
            reported_cut_off: false,
            reported_refusal: false,
            reported_commits: 0,
            reported_begin: false,
            reported_start: false,
            reported_failure: false,
            reported_end: false,
        }
    }

    /// The name of one of its processes.
    pub(super) fn id(&self, rank: Rank) -> ProcId {
        ProcId::new(&self.desc.nspace, rank)
    }

    /// Releases everything that waits for a process.
    pub(super) fn release(&mut self, cx: &mut Cx<'_>, rank: Rank) {
        let id = self.id(rank);
        self.procs.get_mut(&rank).into_iter().for_each(|proc| proc.release(cx, &id));
    }

    /// How many ranks here have called init, in whichever of their lives.
    pub(super) fn has_connected(&self) -> Reached {
        Reached { count: self.connected.count(), after: self.connected_after }
    }

    /// Whether a process has ended, or is not one of ours.
    pub(super) fn has_ended(&self, rank: Rank) -> bool {
        self.procs.get(&rank).is_none_or(Proc::has_ended)
    }

    /// Registers the job with our server, unless it is registered.
    pub(super) fn introduce(&mut self, cx: &mut Cx<'_>, table: &Arc<NodeTable>) {
        if !std::mem::replace(&mut self.registered, true) {
            let info = self.desc.job_info(cx.config.id, &cx.config.scratch, table, &self.lives);
            let call = Call::Register(self.desc.nspace.clone());
            cx.call(ServerCall::RegisterNspace(Box::new(info)), call);
        }
    }

    /// Those of `ranks` that are between two lives.
    pub(super) fn kept(&self, ranks: &Ranges) -> Ranges {
        let is_kept = |rank: &u32| self.procs.get(&Rank(*rank)).is_some_and(|proc| proc.next.is_some());
        ranks.iter().filter(is_kept).collect()
    }

    /// Holds a request until its last ranks are started again or stopped, or are given up.
    pub(super) fn hold(&mut self, task: &TaskId, open: Ranges, results: Results) {
        self.held.push(Held { task: task.clone(), open, results });
    }

    /// What was requested for these ranks has been done, or will not be.
    pub(super) fn answer_held(&mut self, cx: &mut Cx<'_>, ranks: &Ranges, status: Status, why: Option<&str>) {
        for held in &mut self.held {
            let here = held.open.take(ranks);
            held.results.set(&here, status);
            why.filter(|_| !here.is_empty()).into_iter().for_each(|why| {
                held.results.explain(status, why.to_owned());
            });
        }
        for Held { task, results, .. } in self.held.extract_if(.., |held| held.open.is_empty()) {
            cx.join(OpId::Task(task), Part::Results(results));
        }
    }

    /// Whether ranks that fail may be started again.
    pub(super) fn is_recoverable(&self) -> bool {
        matches!(self.desc.on_failure, FailurePolicy::Restart { .. }) && !self.is_ending
    }

    /// Whether the end of its streams is not to be reported yet.
    pub(super) fn keeps_end(&self, proc: &Proc) -> bool {
        proc.next.is_some() || (self.is_recoverable() && !proc.has_ended())
    }

    /// Whether no process runs here, or will.
    pub(super) fn is_empty(&self) -> bool {
        self.procs.values().all(|proc| proc.is_gone() && proc.next.is_none())
    }

    /// The next process here, in turn, that is alive and has never connected, with its pid if it runs.
    pub(super) fn next_stranger(&mut self) -> Option<(ProcId, Option<u32>)> {
        let is_stranger = |proc: &Proc| proc.pmix == Pmix::Never && !proc.is_gone();
        let after = self.inspected.map_or(Bound::Unbounded, Bound::Excluded);
        let in_turn = self.procs.range((after, Bound::Unbounded)).chain(&self.procs);
        let (rank, proc) = in_turn.into_iter().find(|(_, proc)| is_stranger(proc))?;
        self.inspected = Some(*rank);
        Some((ProcId::new(&self.desc.nspace, *rank), proc.running()))
    }

    /// Removes what is due after the end of a process.
    pub(super) fn clean_up_after(&mut self, cx: &mut Cx<'_>, rank: Rank) {
        let mut paths = self.cleanups.ended(rank);
        if self.procs.keys().all(|rank| self.has_ended(*rank)) {
            paths.extend(self.cleanups.all_ended());
        }
        if !paths.is_empty() {
            cx.effect(Effect::Cleanup { nspace: self.desc.nspace.clone(), paths });
        }
    }
}

/// Enters a request for processes of this node; all of it, or nothing.
pub(super) fn register_cleanup(
    cx: &mut Cx<'_>,
    jobs: &mut Jobs,
    members: &[Members],
    request: &CleanupRequest,
) -> Status {
    let most_bytes = cx.config.limits.cleanup;
    for Members { nspace, .. } in members {
        let checked = match jobs.get(nspace) {
            Some(job) => job.cleanups.check(request, most_bytes),
            None => Err(Status::ERR_NOT_FOUND),
        };
        if let Err(status) = checked {
            return status;
        }
    }
    for Members { nspace, ranks } in members {
        let Some(job) = jobs.get_mut(nspace) else { continue };
        let here: Ranges = ranks.iter().filter(|rank| job.procs.contains_key(&Rank(*rank))).collect();
        job.cleanups.enter(request, &here, |path, what| {
            cx.effect(Effect::RegisterCleanup { nspace: nspace.clone(), path: path.clone(), what });
        });
        let over: Vec<Rank> = here.iter().map(Rank).filter(|rank| job.has_ended(*rank)).collect();
        over.iter().for_each(|rank| job.clean_up_after(cx, *rank));
    }
    Status::SUCCESS
}
