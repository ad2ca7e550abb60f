//! How jobs end: from the first reason to the report.
//!
//! Here alone is decided what the end of one process means for the others. The first reason for a job's end is the one
//! that is told; whatever it causes is a consequence, not a culprit.

use std::collections::BTreeMap;
use std::sync::Arc;

use phalanx_core::Time;
use phalanx_spec::{Rank, Status};
use phalanx_wire::{Nspace, ProcId};

use crate::id::NodeId;
use crate::job::{JobEnd, JobVerdict};
use crate::msg::{Control, Down, FailurePolicy, JobDesc, MpiLibrary, OpId, Part, ProcEnd};
use crate::ranges::Ranges;
use crate::report::Report;
use crate::root::history::Past;
use crate::root::jobs::RootJob;
use crate::root::{Cx, Root};
use crate::signals::{SIGKILL, SIGTERM};

impl RootJob {
    /// Tells the daemons of the job, and ours, whom nobody is to wait for any more.
    fn tell_dead(&mut self, cx: &mut Cx<'_>, ranks: &Ranges) {
        self.dead.add(ranks);
        let mut to = self.desc.nodes.clone();
        to.insert(NodeId::ROOT.0);
        cx.cast(to, Down::Dead { nspace: self.desc.nspace.clone(), ranks: ranks.clone() });
    }
}

impl Root {
    /// A process has ended badly.
    pub(super) fn on_proc_failed(&mut self, cx: &mut Cx<'_>, end: &ProcEnd) {
        let nspace = &end.proc.nspace;
        let Some(job) = self.jobs.get_mut(nspace).filter(|job| !job.over) else { return };
        if job.desc.on_failure.ends_job(end) {
            let verdict = job.failure(end);
            self.tell_proc_event(cx, end);
            return self.end_job(cx, nspace, verdict);
        }
        let ranks = Ranges::single(end.proc.rank.0);
        job.tell_dead(cx, &ranks);
        self.tell_proc_event(cx, end);
        self.go_on_without(cx, nspace, &ranks);
    }

    pub(super) fn on_abort(
        &mut self,
        cx: &mut Cx<'_>,
        from: &ProcId,
        status: Status,
        message: &str,
        procs: &[ProcId],
    ) {
        let mut chosen: BTreeMap<Nspace, Ranges> = BTreeMap::new();
        let whole = ProcId::all(&from.nspace);
        for proc in if procs.is_empty() { std::slice::from_ref(&whole) } else { procs } {
            let Some(job) = self.jobs.get_mut(&proc.nspace) else { continue };
            let all = job.desc.ranks();
            let ranks = chosen.entry(proc.nspace.clone()).or_default();
            if proc.rank == Rank::WILDCARD { ranks.add(&all) } else { ranks.insert(proc.rank.0) }
        }
        for (nspace, ranks) in chosen {
            let Some(job) = self.jobs.get_mut(&nspace) else { continue };
            if ranks.count() >= job.desc.size || job.desc.on_failure != FailurePolicy::Continue {
                let verdict = JobVerdict::Aborted { by: from.clone(), status, message: message.to_owned() };
                self.end_job(cx, &nspace, verdict);
            } else {
                let to = job.desc.nodes_of(&ranks);
                self.note_killed(&nspace, &ranks, from, SIGTERM);
                cx.cast(to, Down::Control { nspace, ranks: Some(ranks), action: TERMINATE });
            }
        }
    }

    /// A rank that has not connected has loaded an MPI library. One without a PMIx client makes many jobs of this one.
    pub(super) fn on_loaded_mpi(&mut self, cx: &mut Cx<'_>, by: &ProcId, library: &MpiLibrary) {
        let Some(job) = self.jobs.get_mut(&by.nspace) else { return };
        tracing::debug!(%by, file = library.file, has_pmix = library.has_pmix, "a rank has loaded MPI");
        job.mpi.get_or_insert_with(|| library.file.clone());
        if library.has_pmix {
            return;
        }
        let verdict = JobVerdict::WithoutPmix { by: by.clone(), library: library.file.clone() };
        match &mut job.verdict {
            // Some releases of MPICH notice it themselves, and their ranks exit: that was the reason.
            Some(failed @ JobVerdict::Failed { .. }) => *failed = verdict,
            _ => self.end_job(cx, &by.nspace, verdict),
        }
    }

    pub(super) fn on_limit(&mut self, cx: &mut Cx<'_>, nspace: &Nspace) {
        let Some(limit) = self.jobs.get(nspace).and_then(|job| job.limit) else { return };
        self.end_job(cx, nspace, JobVerdict::TimedOut { limit });
    }

    /// Whoever has spawned the job waits no longer for its processes to run.
    pub(super) fn on_start_limit(&mut self, cx: &mut Cx<'_>, nspace: &Nspace) {
        let Some(job) = self.jobs.get_mut(nspace).filter(|job| !job.running) else { return };
        let seconds = cx.now.since(job.since).as_secs();
        let error = format!("the job has not started within {seconds} s, the time limit of the spawn");
        job.start_overdue = true;
        self.end_job(cx, nspace, JobVerdict::NotStarted { error });
        self.answer_spawn(cx, nspace);
    }

    /// The user wants something done to a job.
    pub(super) fn on_control(&mut self, cx: &mut Cx<'_>, nspace: &Nspace, control: Control) {
        let Some(job) = self.jobs.get_mut(nspace).filter(|job| !job.over) else { return };
        let to = job.desc.nodes.clone();
        match control {
            Control::Signal(_) | Control::Suspend | Control::Resume => {}
            Control::Terminate { signal } => {
                return self.end_job(cx, nspace, JobVerdict::Cancelled { signal });
            }
            Control::Kill => {
                job.verdict.get_or_insert(JobVerdict::Cancelled { signal: SIGKILL });
                self.tell_ending(cx, nspace);
                self.abandon_taps_of(cx, nspace);
            }
        }
        cx.cast(to, Down::Control { nspace: nspace.clone(), ranks: None, action: control });
    }

    /// A process ends processes of a job, by job control.
    pub(super) fn note_killed(&mut self, nspace: &Nspace, ranks: &Ranges, by: &ProcId, signal: i32) {
        let Some(job) = self.jobs.get_mut(nspace).filter(|job| !job.over) else { return };
        job.killed_by.get_or_insert_with(|| (by.clone(), signal));
        if ranks.count() >= job.desc.size {
            job.verdict.get_or_insert_with(|| JobVerdict::Killed { by: by.clone(), signal });
        }
    }

    /// Somebody sends a signal to processes, by job control. Whether it ends them is their affair.
    pub(super) fn note_signalled(&mut self, nspace: &Nspace, ranks: &Ranges, by: &ProcId, signal: i32) {
        let Some(job) = self.jobs.get_mut(nspace).filter(|job| !job.over) else { return };
        let (_, reached) = job.signalled.entry(signal).or_insert_with(|| (by.clone(), Ranges::new()));
        reached.add(ranks);
    }

    /// The job is to end, for this reason unless it had one already.
    pub(super) fn end_job(&mut self, cx: &mut Cx<'_>, nspace: &Nspace, verdict: JobVerdict) {
        let Some(job) = self.jobs.get_mut(nspace).filter(|job| job.verdict.is_none() && !job.over) else {
            return;
        };
        job.verdict = Some(verdict);
        let to = job.desc.nodes.clone();
        self.tell_ending(cx, nspace);
        self.watch_readers(cx, nspace);
        cx.cast(to, Down::Control { nspace: nspace.clone(), ranks: None, action: TERMINATE });
    }

    /// All processes of one daemon have ended.
    pub(super) fn on_node_exited(&mut self, cx: &mut Cx<'_>, from: NodeId, nspace: &Nspace) {
        let Some(job) = self.jobs.get_mut(nspace) else { return };
        job.exited.insert(from);
        let is_gone = |node: u32| job.exited.contains(&NodeId(node)) || self.nodes.is_lost(NodeId(node));
        if job.desc.nodes.iter().all(is_gone) {
            self.tell_ending(cx, nspace);
        }
    }

    fn tell_ending(&mut self, cx: &mut Cx<'_>, nspace: &Nspace) {
        let Some(job) = self.jobs.get_mut(nspace) else { return };
        if !std::mem::replace(&mut job.told_ending, true) {
            cx.report(Report::Ending { nspace: nspace.clone() });
        }
    }

    /// Processes on a lost node are lost with it.
    pub(super) fn lose_processes(&mut self, cx: &mut Cx<'_>, node: NodeId, why: &str) {
        let name = self.nodes.name(node);
        let concerned = |job: &&RootJob| job.desc.nodes.contains(node.0) && !job.over;
        let jobs: Vec<Arc<JobDesc>> =
            self.jobs.values().filter(concerned).map(|job| job.desc.clone()).collect();
        cx.report(Report::Note {
            nspace: None,
            text: format!("node {name} (daemon {}) is lost: {why}", node.0),
        });
        let mut dead = Vec::new();
        for desc in jobs {
            self.lose_streams(cx, &desc, &desc.ranks_on(node));
            if desc.on_failure == FailurePolicy::Continue {
                let ranks = desc.ranks_on(node);
                if let Some(job) = self.jobs.get_mut(&desc.nspace) {
                    job.tell_dead(cx, &ranks);
                }
                dead.push((desc.nspace.clone(), ranks));
            } else {
                self.end_job(cx, &desc.nspace, JobVerdict::NodeLost { node: name.to_string() });
            }
            // Nobody else may be left to contribute.
            cx.wait_for(OpId::Started(desc.nspace.clone()), desc.nodes.clone());
            cx.wait_for(OpId::Ended(desc.nspace.clone()), desc.nodes.clone());
        }
        dead.iter().for_each(|(nspace, ranks)| self.go_on_without(cx, nspace, ranks));
    }

    pub(super) fn job_ended(&mut self, cx: &mut Cx<'_>, nspace: &Nspace, part: Part) {
        let Some(job) = self.jobs.get_mut(nspace).filter(|job| !job.over) else { return };
        job.over = true;
        if let Part::Ends(ends) = part {
            job.ends = ends;
        }
        self.withdraw_published(cx, nspace);
        self.cleanups.forget(nspace);
        self.survivals.forget(nspace);
        cx.cast(self.nodes.all(), Down::Forget { nspace: nspace.clone() });
    }

    /// Ranks have failed while their job goes on: whatever waits for them need not.
    fn go_on_without(&mut self, cx: &mut Cx<'_>, nspace: &Nspace, dead: &Ranges) {
        self.control_without(cx, nspace, dead);
        self.try_assemblies(cx);
        self.try_survivals(cx);
        self.stop_without(cx, nspace, dead);
    }

    /// Nothing of the job is left at this node, nor anywhere else.
    pub(super) fn on_forgotten(&mut self, cx: &mut Cx<'_>, nspace: &Nspace) {
        let Some(job) = self.jobs.remove(nspace) else { return };
        self.timers.cancel(|timer| timer.concerns(nspace));
        self.try_assemblies(cx);
        self.try_survivals(cx);
        self.tell_end(cx, job);
        self.end_operations_of(cx, nspace);
        self.end_pushes_of(cx, &ProcId::all(nspace));
        // What came after the last process had ended, or has just been given up.
        self.withdraw_published(cx, nspace);
        self.cleanups.forget(nspace);
        self.survivals.forget(nspace);
        debug_assert!(self.traces_of(nspace).is_empty(), "{nspace}: {:?}", self.traces_of(nspace));
    }

    /// The user is told of the end.
    fn tell_end(&mut self, cx: &mut Cx<'_>, mut job: RootJob) {
        self.answer_spawn_of(cx, &mut job);
        self.refuse_pushes(cx, std::mem::take(&mut job.stdin));
        let (desc, since) = (job.desc.clone(), job.since);
        let nspace = &desc.nspace;
        // A job that its parent was told had failed to start is nobody's job.
        let is_known = desc.parent.is_none() || job.start_status().is_success();
        let concerned = self.concerned_by(nspace, &job.descent.first);
        self.end_for_parent(cx, nspace);
        self.forget_readers_of(cx, nspace);
        self.forget_unread_of(&ProcId::all(nspace));
        self.keep_unread(&mut job);
        let run_by = job.descent.run_by.take().map(|by| by.tool);
        let end = self.job_end(cx.now, job);
        self.end_children(cx, &end);
        if is_known {
            self.tell_job_end_event(cx, &end, concerned);
        }
        self.relations.forget(nspace);
        self.history.add(Past { desc: desc.clone(), run_by, end: end.clone(), since, ended: cx.now });
        cx.report(Report::Ended(Box::new(end)));
        self.stop_when_idle(cx);
    }

    fn job_end(&self, now: Time, job: RootJob) -> JobEnd {
        let desc = &job.desc;
        let lost = ProcEnd {
            proc: ProcId::new(&desc.nspace, Rank(0)),
            node: String::new(),
            pid: None,
            status: None,
            after: now.since(job.since),
            killed_by_us: false,
            lost_connection: false,
        };
        let named = |rank: u32, end: &ProcEnd| ProcEnd {
            proc: ProcId::new(&desc.nspace, Rank(rank)),
            node: desc.node_of(Rank(rank)).map(|node| self.nodes.name(node).to_string()).unwrap_or_default(),
            pid: job.pid(Rank(rank)),
            ..end.clone()
        };
        let mut procs: Vec<ProcEnd> = (0..desc.size).map(|rank| named(rank, &lost)).collect();
        for group in &job.ends {
            for rank in group.ranks.iter() {
                if let Some(end) = procs.get_mut(rank as usize) {
                    end.status = group.status;
                    end.after = group.after;
                    end.killed_by_us = group.killed_by_us;
                    end.lost_connection = group.lost_connection;
                }
            }
        }
        let first_failure = procs.iter().filter(|end| end.is_failure()).min_by_key(|end| end.after);
        let failed = first_failure.map(|first| job.failure(first));
        let killed_by = job.killed_by.filter(|_| procs.iter().any(|end| end.killed_by_us));
        let verdict = match (job.verdict, failed, killed_by) {
            (Some(verdict), ..) => verdict,
            (None, Some(failed), _) => failed,
            (None, None, Some((by, signal))) => JobVerdict::Killed { by, signal },
            (None, None, None) => JobVerdict::Success,
        };
        JobEnd {
            nspace: desc.nspace.clone(),
            exit_code: job.start_failure.map_or_else(|| verdict.exit_code(), |failure| failure.exit_code()),
            verdict,
            procs,
            duration: now.since(job.since),
            connected: job.ends.iter().any(|group| group.connected),
            mpi: job.mpi,
        }
    }

    pub(super) fn on_shutdown(&mut self, cx: &mut Cx<'_>) {
        self.shutting_down = true;
        let jobs: Vec<Nspace> = self.jobs.keys().cloned().collect();
        for nspace in jobs {
            self.end_job(cx, &nspace, JobVerdict::Cancelled { signal: SIGTERM });
        }
        self.stop_when_idle(cx);
    }

    fn stop_when_idle(&mut self, cx: &mut Cx<'_>) {
        if self.shutting_down && self.jobs.is_empty() {
            cx.cast(self.nodes.all(), Down::Stop);
        }
    }
}

/// What daemons are told when a job is to end.
const TERMINATE: Control = Control::Terminate { signal: SIGTERM };
