//! How jobs end: from the first reason to the final report.
//!
//! Only this file decides what the end of one process means for the others. The first reason for a job's end is the reported
//! one; whatever follows from it is a consequence, not a culprit.

use std::collections::BTreeMap;
use std::sync::Arc;

use phalanx_spec::{Rank, Status, keys};
use phalanx_wire::{Nspace, ProcId};

use crate::id::NodeId;
use crate::job::{JobEnd, JobVerdict};
use crate::msg::{Control, Down, FailurePolicy, JobDesc, MpiLibrary, OpId, Part, Pauser, ProcEnd, Reached};
use crate::ranges::Ranges;
use crate::report::Report;
use crate::root::answer::Asker;
use crate::root::control;
use crate::root::debug;
use crate::root::dvm::Dvm;
use crate::root::group;
use crate::root::invite;
use crate::root::iof;
use crate::root::jobs::RootJob;
use crate::root::journal::What;
use crate::root::kind::Kind;
use crate::root::last_look;
use crate::root::lifecycle;
use crate::root::publish;
use crate::root::record;
use crate::root::rest;
use crate::root::restart;
use crate::root::spawn;
use crate::root::survey;
use crate::root::turn::Cx;
use crate::root::{Root, journal};
use crate::signals::{SIGHUP, SIGKILL, SIGTERM};

impl Root {
    /// A process has failed.
    pub(super) fn on_proc_failed(&mut self, cx: &mut Cx<'_>, end: &ProcEnd) {
        let nspace = &end.proc.nspace;
        // A process with an exit status did run, so the job has begun.
        if end.status.is_some() {
            self.job_began(cx, nspace);
        }
        let Some(job) = self.dvm.jobs.get_mut(nspace).filter(|job| !job.journal.has_exited()) else { return };
        let ranks = Ranges::single(end.proc.rank.0);
        let ends_job = job.desc.on_failure.ends_job(end);
        if !ends_job {
            job.tell_dead(cx, &ranks);
        }
        if !matches!(job.desc.on_failure, FailurePolicy::Restart { .. }) {
            job.ended.add(&ranks);
            self.slots_changed = true;
        }
        let concerned = self.dvm.concerned(nspace);
        let what = What::Failed { ranks: ranks.clone(), first: end.clone(), concerned: concerned.clone() };
        let number = self.dvm.append(cx, nspace, what).unwrap_or_default();
        let then = publish::withdraw_those_of(cx, &mut self.store, &mut self.operations, &end.proc);
        self.carry_out(cx, then);
        lifecycle::tell_proc_end(cx, &self.dvm, end, lifecycle::stamp(&self.dvm, number, cx.now), &concerned);
        if !ends_job {
            lifecycle::tell_survivors(cx, &self.dvm, nspace, &ranks);
        }
        lifecycle::log_end_of_proc(cx, &self.dvm, end);
        if ends_job {
            let verdict = self.dvm.jobs.get(nspace).map(|job| journal::failure_of(&job.journal, end));
            return verdict.into_iter().for_each(|verdict| self.end_job(cx, nspace, verdict));
        }
        self.go_on_without(cx, nspace, &ranks);
        if matches!(self.dvm.desc(nspace).map(|desc| desc.on_failure), Some(FailurePolicy::Restart { .. })) {
            let then = restart::recover_or_end(cx, &mut self.dvm, &mut self.operations, end);
            self.carry_out(cx, then);
        }
    }

    /// A process has ended well, in a job with a request for such reports.
    pub(super) fn on_proc_left(&mut self, cx: &mut Cx<'_>, end: &ProcEnd) {
        let nspace = &end.proc.nspace;
        self.job_began(cx, nspace);
        if self.dvm.jobs.get(nspace).is_none_or(|job| job.journal.has_exited()) {
            return;
        }
        let concerned = self.dvm.concerned(nspace);
        let ranks = Ranges::single(end.proc.rank.0);
        let what = What::Left { ranks, first: end.clone(), concerned: concerned.clone() };
        let number = self.dvm.append(cx, nspace, what).unwrap_or_default();
        lifecycle::tell_proc_end(cx, &self.dvm, end, lifecycle::stamp(&self.dvm, number, cx.now), &concerned);
        lifecycle::log_end_of_proc(cx, &self.dvm, end);
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
            let Some(job) = self.dvm.jobs.get_mut(&proc.nspace) else { continue };
            let all = job.desc.ranks();
            let ranks = chosen.entry(proc.nspace.clone()).or_default();
            if proc.rank == Rank::WILDCARD { ranks.add(&all) } else { ranks.insert(proc.rank.0) }
        }
        for (nspace, ranks) in chosen {
            let Some(job) = self.dvm.jobs.get_mut(&nspace) else { continue };
            if ranks.count() >= job.desc.size || job.desc.on_failure != FailurePolicy::Continue {
                let verdict = JobVerdict::Aborted { by: from.clone(), status, message: message.to_owned() };
                self.end_job(cx, &nspace, verdict);
            } else {
                let to = job.desc.nodes_of(&ranks);
                let Root { dvm, operations, .. } = self;
                record::killed(cx, dvm, operations, &nspace, &ranks, from, SIGTERM);
                cx.cast(
                    to,
                    Down::Control { nspace, ranks: Some(ranks), action: TERMINATE, pauser: Pauser::User },
                );
            }
        }
    }

    /// A rank that has not connected has loaded an MPI library. Without a PMIx client in it, each rank would run alone.
    pub(super) fn on_loaded_mpi(&mut self, cx: &mut Cx<'_>, by: &ProcId, library: &MpiLibrary) {
        let Some(job) = self.dvm.jobs.get_mut(&by.nspace) else { return };
        tracing::debug!(%by, file = library.file, has_pmix = library.has_pmix, "a rank has loaded MPI");
        let what = What::LoadedMpi { by: by.clone(), library: library.clone() };
        self.dvm.journals.append(&mut job.journal, cx.now, what);
        // A program started by a script may be meant to run alone: the report of the job's end mentions it.
        if library.has_pmix || library.below {
            return;
        }
        let verdict = JobVerdict::WithoutPmix { by: by.clone(), library: library.file.clone() };
        match job.journal.verdict() {
            // Some releases of MPICH detect it themselves and their ranks exit: record this as the reason.
            Some(JobVerdict::Failed { .. }) => {
                self.dvm.append(cx, &by.nspace, What::Ending(verdict));
            }
            _ => self.end_job(cx, &by.nspace, verdict),
        }
    }

    pub(super) fn on_limit(&mut self, cx: &mut Cx<'_>, nspace: &Nspace) {
        let Some(limit) = self.dvm.jobs.get(nspace).and_then(|job| job.limit) else { return };
        self.end_job(cx, nspace, JobVerdict::TimedOut { limit });
    }

    /// The spawn's time limit for the start of the job has passed.
    pub(super) fn on_start_limit(&mut self, cx: &mut Cx<'_>, nspace: &Nspace) {
        let Some(job) = self.dvm.jobs.get(nspace).filter(|job| !job.journal.has_started()) else { return };
        let seconds = cx.now.since(job.journal.since()).as_secs();
        let error = format!("the job has not started within {seconds} s, the time limit of the spawn");
        self.dvm.append(cx, nspace, What::StartOverdue);
        self.end_job(cx, nspace, JobVerdict::NotStarted { error });
        self.answer_spawn(cx, nspace);
    }

    /// The user sends a control action to a job.
    pub(super) fn on_control(&mut self, cx: &mut Cx<'_>, nspace: &Nspace, control: Control) {
        let Some(job) = self.dvm.jobs.get(nspace).filter(|job| !job.journal.has_exited()) else { return };
        let (to, all) = (job.desc.nodes.clone(), job.desc.ranks());
        match control {
            Control::Signal(_) => {}
            Control::Suspend | Control::Resume => {
                record::paused(cx, &mut self.dvm, nspace, &all, (None, &Pauser::User), control)
            }
            Control::Terminate { signal } => {
                return self.end_job(cx, nspace, JobVerdict::Cancelled { signal });
            }
            Control::Kill => {
                record::reason(cx, &mut self.dvm, nspace, JobVerdict::Cancelled { signal: SIGKILL });
                self.tell_ending(cx, nspace);
                self.readers.abandon_taps_of(cx, &self.dvm, nspace);
            }
        }
        cx.cast(
            to,
            Down::Control { nspace: nspace.clone(), ranks: None, action: control, pauser: Pauser::User },
        );
    }

    /// Ends the job, for this reason unless there already is one.
    pub(super) fn end_job(&mut self, cx: &mut Cx<'_>, nspace: &Nspace, verdict: JobVerdict) {
        if !record::reason(cx, &mut self.dvm, nspace, verdict) {
            return;
        }
        self.slots_changed = true;
        let to = self.dvm.desc(nspace).map(|desc| desc.nodes.clone()).unwrap_or_default();
        last_look::take(cx, &self.dvm, &mut self.operations, nspace);
        self.tell_ending(cx, nspace);
        self.readers.watch(cx, &self.dvm, &mut self.timers, nspace);
        cx.cast(
            to,
            Down::Control { nspace: nspace.clone(), ranks: None, action: TERMINATE, pauser: Pauser::User },
        );
    }

    /// All processes of the job at one daemon have ended.
    pub(super) fn on_node_exited(&mut self, cx: &mut Cx<'_>, from: NodeId, nspace: &Nspace) {
        let Some(job) = self.dvm.jobs.get_mut(nspace) else { return };
        job.exited.insert(from);
        let is_gone = |node: u32| job.exited.contains(&NodeId(node)) || self.dvm.nodes.is_lost(NodeId(node));
        if job.desc.nodes.iter().all(is_gone) {
            self.tell_ending(cx, nspace);
        }
    }

    fn tell_ending(&mut self, cx: &mut Cx<'_>, nspace: &Nspace) {
        let Some(job) = self.dvm.jobs.get_mut(nspace) else { return };
        if !std::mem::replace(&mut job.reported_ending, true) {
            cx.report(Report::Ending { nspace: nspace.clone() });
        }
    }

    /// Processes on a lost node are lost with it.
    pub(super) fn lose_processes(&mut self, cx: &mut Cx<'_>, node: NodeId, why: &str) {
        let name = self.dvm.nodes.name(node);
        let concerned = |job: &&RootJob| job.desc.nodes.contains(node.0) && !job.journal.has_exited();
        let jobs: Vec<Arc<JobDesc>> =
            self.dvm.jobs.values().filter(concerned).map(|job| job.desc.clone()).collect();
        // Report a node only if it had joined (otherwise its starter reports it) and if no job's own report will mention it, or
        // the DVM persists.
        if self.dvm.nodes.has_come(node) && (self.dvm.config.lasts || jobs.is_empty()) {
            let text = format!("node {name} (daemon {}) is lost: {why}", node.0);
            cx.report(Report::Note { nspace: None, text });
        }
        let mut dead = Vec::new();
        for desc in jobs {
            self.readers.lose_streams(cx, &self.dvm, &desc, &desc.ranks_on(node));
            if desc.on_failure == FailurePolicy::Continue {
                let ranks = desc.ranks_on(node);
                self.lose_ranks(cx, &desc.nspace, &ranks, (&name, why));
                dead.push((desc.nspace.clone(), ranks));
            } else {
                let verdict = JobVerdict::NodeLost { node: name.to_string(), why: why.to_owned() };
                self.end_job(cx, &desc.nspace, verdict);
            }
            // The parts of this daemon may have been the last ones missing.
            cx.wait_for(OpId::Started(desc.nspace.clone()), desc.nodes.clone());
            cx.wait_for(OpId::Ended(desc.nspace.clone()), desc.nodes.clone());
        }
        dead.iter().for_each(|(nspace, ranks)| self.go_on_without(cx, nspace, ranks));
    }

    /// Ranks of a job that goes on were lost with their node.
    fn lose_ranks(&mut self, cx: &mut Cx<'_>, nspace: &Nspace, ranks: &Ranges, (node, why): (&str, &str)) {
        let Some(job) = self.dvm.jobs.get_mut(nspace) else { return };
        job.tell_dead(cx, ranks);
        let concerned = self.dvm.concerned(nspace);
        let (node, why) = (node.to_owned(), why.to_owned());
        let text = format!("node {node} was lost, and with it {}: {why}", ranks.in_words());
        let what = What::Lost { ranks: ranks.clone(), node, why, concerned: concerned.clone() };
        let number = self.dvm.append(cx, nspace, what).unwrap_or_default();
        for rank in ranks.iter() {
            let then = publish::withdraw_those_of(
                cx,
                &mut self.store,
                &mut self.operations,
                &ProcId::new(nspace, Rank(rank)),
            );
            self.carry_out(cx, then);
        }
        lifecycle::tell_lost(
            cx,
            &self.dvm,
            (nspace, ranks),
            lifecycle::stamp(&self.dvm, number, cx.now),
            &concerned,
        );
        lifecycle::tell_survivors(cx, &self.dvm, nspace, ranks);
        self.dvm.tell_user_of(cx, &ProcId::all(nspace), &text);
    }

    pub(super) fn job_ended(&mut self, cx: &mut Cx<'_>, nspace: &Nspace, part: Part) {
        let Some(job) = self.dvm.jobs.get_mut(nspace).filter(|job| !job.journal.has_exited()) else { return };
        let ends = match part {
            Part::Ends(ends) => ends,
            _ => Box::default(),
        };
        // In a short job, connections are reported only here, with the ends.
        let Reached { count, after } = ends.connected;
        self.dvm.journals.append(&mut job.journal, cx.now, What::Connected { count, after });
        self.dvm.journals.append(&mut job.journal, cx.now, What::Exited(ends));
        job.ended = job.desc.ranks();
        self.slots_changed = true;
        let how = journal::end_of(&job.journal, cx.now, |node| self.dvm.nodes.name(node).to_string())
            .verdict
            .word();
        let text = format!("all processes have ended: {how}");
        lifecycle::log_for(cx, &self.dvm, nspace, &[keys::LOG_COMPLETION, keys::LOG_JOB_EVENTS], &text);
        let then = publish::withdraw_all_of(cx, &mut self.store, &mut self.operations, nspace);
        self.carry_out(cx, then);
        self.cleanups.forget(nspace);
        self.collectives.forget(nspace);
        cx.cast(self.dvm.nodes.all(), Down::Forget { nspace: nspace.clone() });
    }

    /// Ranks have failed while their job goes on: releases whatever waits for them.
    fn go_on_without(&mut self, cx: &mut Cx<'_>, nspace: &Nspace, dead: &Ranges) {
        let is_dead = |asker: &Asker| asker.by.nspace == *nspace && dead.contains(asker.by.rank.0);
        self.dismiss(cx, Kind::is_of_askers, is_dead, Status::ERR_PROC_ABORTED);
        let then = control::control_without(cx, &mut self.operations, nspace, dead);
        self.carry_out(cx, then);
        group::try_assemblies(cx, &mut self.dvm, &mut self.operations);
        let then = debug::stop_without(cx, &mut self.dvm, &mut self.operations, nspace, dead);
        self.carry_out(cx, then);
    }

    /// Nothing of the job is left at any node.
    pub(super) fn on_forgotten(&mut self, cx: &mut Cx<'_>, nspace: &Nspace) {
        let Some(job) = self.dvm.jobs.remove(nspace) else { return };
        self.timers.cancel(|timer| timer.concerns(nspace));
        group::try_assemblies(cx, &mut self.dvm, &mut self.operations);
        self.tell_end(cx, job);
        let then = restart::restart_without(cx, &mut self.operations, nspace);
        self.carry_out(cx, then);
        let is_of_job = |asker: &Asker| asker.by.nspace == *nspace;
        self.dismiss(cx, Kind::is_of_askers, is_of_job, Status::ERR_LOST_CONNECTION);
        let then = debug::end_stops_of(cx, &mut self.operations, nspace);
        self.carry_out(cx, then);
        let then = control::control_without(cx, &mut self.operations, nspace, &Ranges::first(u32::MAX));
        self.carry_out(cx, then);
        let then = survey::end_those_of(cx, &mut self.operations, nspace);
        self.carry_out(cx, then);
        last_look::end_that_of(&mut self.operations, nspace);
        rest::end_of_job(&mut self.operations, nspace);
        self.inputs.end_pushes_of(cx, &self.dvm, &ProcId::all(nspace));
        // Published after the last process had ended, or by requests that were just given up.
        let then = publish::withdraw_all_of(cx, &mut self.store, &mut self.operations, nspace);
        self.carry_out(cx, then);
        self.cleanups.forget(nspace);
        self.collectives.forget(nspace);
        self.unsupported.retain(|(job, _)| job != nspace);
        self.slots_changed = true;
        debug_assert!(self.traces_of(nspace).is_empty(), "{nspace}: {:?}", self.traces_of(nspace));
    }

    /// Reports the end to the user.
    fn tell_end(&mut self, cx: &mut Cx<'_>, mut job: RootJob) {
        spawn::end_of_job(cx, &mut self.operations, &mut job);
        self.inputs.end(cx, &job.desc.nspace);
        let desc = job.desc.clone();
        let nspace = &desc.nspace;
        // A job that was reported to its parent as failed to start has no job to announce.
        let is_known = desc.parent.is_none() || job.journal.start_status().is_success();
        let concerned: Arc<[Nspace]> =
            self.dvm.relations.concerned_by(&self.dvm.jobs, nspace, &job.descent.first).into();
        iof::end_for_parent(cx, &mut self.readers, nspace);
        self.readers.forget_readers_of(cx, nspace);
        self.readers.forget_unread_of(&ProcId::all(nspace));
        let end = journal::end_of(&job.journal, cx.now, |node| self.dvm.nodes.name(node).to_string());
        let (verdict, exit_code, first) = (end.verdict.clone(), end.exit_code, end.first_failed().cloned());
        let what = What::Ended { verdict, exit_code, first, concerned: concerned.clone() };
        let number = self.dvm.journals.append(&mut job.journal, cx.now, what);
        let journal = self.dvm.journals.keep(job.journal);
        self.readers.keep_unread(&self.dvm, journal);
        self.end_children(cx, &end);
        if is_known {
            lifecycle::tell_job_end(
                cx,
                &self.dvm,
                (&end, self.shutting_down),
                lifecycle::stamp(&self.dvm, number, cx.now),
                concerned,
            );
        }
        self.dvm.relations.forget(nspace);
        invite::forget_job(cx, &self.dvm, &mut self.invitations, nspace);
        cx.report(Report::Ended(Box::new(end)));
        self.stop_when_idle(cx);
    }

    /// A process outside of any job has finalized or lost its connection. Its publications and requests are dropped, and the
    /// jobs that it has started end unless they are to stay; its server ends its registrations.
    pub(super) fn on_tool_left(&mut self, cx: &mut Cx<'_>, proc: &ProcId) {
        if !self.dvm.tools.remove(proc) {
            return;
        }
        self.readers.forget_unread_of(proc);
        self.dismiss(cx, Kind::is_of_askers, |asker| asker.by == *proc, Status::ERR_LOST_CONNECTION);
        let others = self.dvm.tools.nodes_of(&proc.nspace).next().is_some();
        invite::forget_tool(cx, &self.dvm, &mut self.invitations, proc);
        let then = publish::withdraw_those_of(cx, &mut self.store, &mut self.operations, proc);
        self.carry_out(cx, then);
        if !others {
            let then = publish::withdraw_all_of(cx, &mut self.store, &mut self.operations, &proc.nspace);
            self.carry_out(cx, then);
        }
        for nspace in self.jobs_ending_with(proc) {
            self.end_job(cx, &nspace, JobVerdict::Cancelled { signal: SIGHUP });
        }
        self.resume_for(cx, proc);
    }

    /// Ends the pauses of a launcher that was stopped and will not go on.
    fn resume_for(&mut self, cx: &mut Cx<'_>, launcher: &ProcId) {
        let pauser = Pauser::Launcher(launcher.clone());
        let jobs = self.dvm.jobs.iter();
        let paused = jobs.filter_map(|(nspace, job)| Some((nspace.clone(), job.pauses.by(&pauser)?.clone())));
        for (nspace, ranks) in paused.collect::<Vec<_>>() {
            let by = (Some(launcher), &pauser);
            record::paused(cx, &mut self.dvm, &nspace, &ranks, by, Control::Resume);
            let Some(to) = self.dvm.desc(&nspace).map(|desc| desc.nodes_of(&ranks)) else { continue };
            let (ranks, pauser, action) = (Some(ranks), pauser.clone(), Control::Resume);
            cx.cast(to, Down::Control { nspace, ranks, action, pauser });
        }
    }

    /// A daemon is gone, and with it the tools that were connected to it.
    pub(super) fn on_tools_lost(&mut self, cx: &mut Cx<'_>, node: NodeId) {
        self.dvm.tools.at(node).iter().for_each(|proc| self.on_tool_left(cx, proc));
    }

    /// A job has ended: ends those of its children that are not to outlive it.
    fn end_children(&mut self, cx: &mut Cx<'_>, end: &JobEnd) {
        let children = self.dvm.jobs.iter().filter(|(_, job)| !job.separation.survives(&end.verdict));
        let children =
            children.filter(|(_, job)| job.desc.parent.as_ref().is_some_and(|p| p.nspace == end.nspace));
        let children: Vec<Nspace> = children.map(|(nspace, _)| nspace.clone()).collect();
        for child in children {
            self.end_job(cx, &child, JobVerdict::ParentEnded { parent: end.nspace.clone() });
        }
    }

    /// The jobs that end with a tool.
    fn jobs_ending_with(&self, tool: &ProcId) -> Vec<Nspace> {
        let with = self.dvm.jobs.iter().filter(|(_, job)| {
            job.descent.run_by.as_ref().is_some_and(|by| by.ends_with_it && by.tool == *tool)
        });
        with.map(|(nspace, _)| nspace.clone()).collect()
    }

    /// `by`: the tool or process that requested it, if any.
    pub(super) fn on_shutdown(&mut self, cx: &mut Cx<'_>, by: Option<&ProcId>) {
        let lasts = self.dvm.config.lasts;
        let verdict = |job: &RootJob| match by.cloned() {
            by if lasts => JobVerdict::DvmStopped { by },
            // A DVM for one job: the job is its user's, too.
            Some(by) => JobVerdict::Killed { by, signal: SIGTERM, first: None },
            None if job.descent.run_by.is_none() => JobVerdict::Cancelled { signal: SIGTERM },
            None => JobVerdict::DvmStopped { by: None },
        };
        let jobs: Vec<Nspace> = self.dvm.jobs.keys().cloned().collect();
        jobs.iter().for_each(|nspace| by.iter().for_each(|by| record::tool(&mut self.dvm, nspace, by)));
        self.shut_down(cx, verdict);
    }

    fn shut_down(&mut self, cx: &mut Cx<'_>, verdict: impl Fn(&RootJob) -> JobVerdict) {
        self.shutting_down = true;
        self.refuse_waiting(cx, "the DVM ends");
        let jobs = self.dvm.jobs.iter().map(|(nspace, job)| (nspace.clone(), verdict(job)));
        for (nspace, verdict) in jobs.collect::<Vec<_>>() {
            self.end_job(cx, &nspace, verdict);
        }
        self.stop_when_idle(cx);
    }

    /// The batch system has ended the allocation of the hosts.
    pub(super) fn on_allocation_ended(&mut self, cx: &mut Cx<'_>, why: String) {
        if self.dvm.config.lasts {
            cx.report(Report::Note { nspace: None, text: format!("{why}, and the DVM with it") });
        }
        self.shut_down(cx, |_| JobVerdict::AllocationEnded { why: why.clone() });
    }

    /// A node was lost: a persistent DVM ends with the last one that takes ranks.
    pub(super) fn stop_without_hosts(&mut self, cx: &mut Cx<'_>) {
        let Dvm { config, nodes, .. } = &self.dvm;
        let takes_ranks = |node: NodeId| node != NodeId::ROOT || config.takes_ranks;
        if !config.lasts || !nodes.are_up() || self.shutting_down || nodes.living().any(takes_ranks) {
            return;
        }
        let text = "the DVM ends, because all hosts that take ranks are lost".to_owned();
        cx.report(Report::Note { nspace: None, text });
        self.shut_down(cx, |_| JobVerdict::DvmStopped { by: None });
    }

    fn stop_when_idle(&mut self, cx: &mut Cx<'_>) {
        if self.shutting_down && self.dvm.jobs.is_empty() {
            // Announced once, though the DVM stops only after its last job has ended.
            if !std::mem::replace(&mut self.reported_session_end, true) {
                lifecycle::tell_session(cx, &self.dvm, Status::EVENT_SESSION_END);
            }
            cx.cast(self.dvm.nodes.all(), Down::Stop);
        }
    }
}

/// The control sent to daemons when a job is to end.
const TERMINATE: Control = Control::Terminate { signal: SIGTERM };
