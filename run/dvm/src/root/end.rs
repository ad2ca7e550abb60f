//! How jobs end: takes the steps that `fate.rs` has decided on, and when nothing is left of a job, removes it from all tables.

use std::collections::BTreeMap;
use std::sync::Arc;

use phalanx_spec::{Rank, Status, keys};
use phalanx_wire::{Nspace, ProcId};

use crate::id::NodeId;
use crate::job::{JobEnd, JobVerdict};
use crate::msg::{Control, Down, JobDesc, OpId, Pauser};
use crate::ranges::Ranges;
use crate::report::Report;
use crate::root::answer::Asker;
use crate::root::consequence::Step;
use crate::root::control;
use crate::root::debug;
use crate::root::dvm::Dvm;
use crate::root::fate::{self, Fact};
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
use crate::signals::{SIGHUP, SIGTERM};

impl Root {
    /// A fact about a job: takes the steps that follow.
    pub(super) fn learn(&mut self, cx: &mut Cx<'_>, nspace: &Nspace, fact: Fact<'_>) {
        let Some(job) = self.dvm.jobs.get(nspace) else { return };
        let steps = fate::steps(cx.now, job, &self.dvm.concerned(nspace), fact);
        steps.into_iter().for_each(|step| self.take_step(cx, nspace, step));
    }

    /// Ends the job, for this reason unless there already is one.
    pub(super) fn end_job(&mut self, cx: &mut Cx<'_>, nspace: &Nspace, verdict: JobVerdict) {
        self.learn(cx, nspace, Fact::Doomed(verdict));
    }

    pub(super) fn take_step(&mut self, cx: &mut Cx<'_>, nspace: &Nspace, step: Step) {
        let Root { dvm, operations, .. } = self;
        let Some(job) = dvm.jobs.get_mut(nspace) else { return };
        match step {
            Step::Begin => self.job_began(cx, nspace),
            Step::Enter(what) => lifecycle::enter(cx, dvm, nspace, what),
            Step::Dead(ranks) => job.tell_dead(cx, &ranks),
            Step::Free(ranks) => {
                job.ended.add(&ranks);
                self.slots_changed = true;
            }
            Step::FreeAll => {
                job.ended = job.desc.ranks();
                self.slots_changed = true;
            }
            Step::Withdraw(ranks) => {
                for rank in ranks.iter() {
                    let Root { store, operations, .. } = self;
                    let proc = ProcId::new(nspace, Rank(rank));
                    let then = publish::withdraw_those_of(cx, store, operations, &proc);
                    self.carry_out(cx, then);
                }
            }
            Step::WithdrawAll => {
                let then = publish::withdraw_all_of(cx, &mut self.store, operations, nspace);
                self.carry_out(cx, then);
            }
            Step::Survivors(ranks) => lifecycle::tell_survivors(cx, dvm, nspace, &ranks),
            Step::Line { wanted, text } => lifecycle::log_for(cx, dvm, nspace, wanted, &text),
            Step::LineAboutEnd => {
                let end = journal::end_of(&job.journal, cx.now, |node| dvm.nodes.name(node).to_string());
                let text = format!("all processes have ended: {}", end.verdict.word());
                let wanted = [keys::LOG_COMPLETION, keys::LOG_JOB_EVENTS];
                lifecycle::log_for(cx, dvm, nspace, &wanted, &text);
            }
            Step::Note(text) => dvm.tell_user_of(cx, &ProcId::all(nspace), &text),
            Step::GoOnWithout(ranks) => self.go_on_without(cx, nspace, &ranks),
            Step::Recover(end) => {
                let then = restart::recover_or_end(cx, dvm, operations, &end);
                self.carry_out(cx, then);
            }
            Step::End(verdict) => self.end_job(cx, nspace, verdict),
            Step::Reason(verdict) => {
                record::reason(cx, dvm, nspace, verdict);
                self.slots_changed = true;
            }
            Step::Kill { ranks, by, signal } => {
                record::killed(cx, dvm, operations, nspace, &ranks, &by, signal)
            }
            Step::Pause { ranks, control } => {
                record::paused(cx, dvm, nspace, &ranks, (None, &Pauser::User), control)
            }
            Step::Order { ranks, action } => {
                let to =
                    ranks.as_ref().map_or_else(|| job.desc.nodes.clone(), |ranks| job.desc.nodes_of(ranks));
                let (nspace, pauser) = (nspace.clone(), Pauser::User);
                cx.cast(to, Down::Control { nspace, ranks, action, pauser });
            }
            Step::LastLook => last_look::take(cx, dvm, operations, nspace),
            Step::ReportEnding => job.report_ending(cx),
            Step::WatchReaders => self.readers.watch(cx, dvm, &mut self.timers, nspace),
            Step::AbandonReaders => self.readers.abandon_taps_of(cx, dvm, nspace),
            Step::LoseStreams(ranks) => {
                let desc = job.desc.clone();
                self.readers.lose_streams(cx, dvm, &desc, &ranks);
            }
            Step::AwaitDaemons => {
                let nodes = job.desc.nodes.clone();
                cx.wait_for(OpId::Started(nspace.clone()), nodes.clone());
                cx.wait_for(OpId::Ended(nspace.clone()), nodes);
            }
            Step::AnswerSpawn => self.answer_spawn(cx, nspace),
            Step::Forget => {
                self.cleanups.forget(nspace);
                self.collectives.forget(nspace);
                cx.cast(dvm.nodes.all(), Down::Forget { nspace: nspace.clone() });
            }
        }
    }

    /// A process has aborted these, or its whole job.
    pub(super) fn on_abort(
        &mut self,
        cx: &mut Cx<'_>,
        by: &ProcId,
        status: Status,
        message: &str,
        procs: &[ProcId],
    ) {
        let mut chosen: BTreeMap<Nspace, Ranges> = BTreeMap::new();
        let whole = ProcId::all(&by.nspace);
        for proc in if procs.is_empty() { std::slice::from_ref(&whole) } else { procs } {
            let Some(job) = self.dvm.jobs.get(&proc.nspace) else { continue };
            let all = job.desc.ranks();
            let ranks = chosen.entry(proc.nspace.clone()).or_default();
            if proc.rank == Rank::WILDCARD { ranks.add(&all) } else { ranks.insert(proc.rank.0) }
        }
        for (nspace, ranks) in chosen {
            self.learn(cx, &nspace, Fact::Aborted { ranks: &ranks, by, status, message });
        }
    }

    /// All processes of the job at one daemon have ended.
    pub(super) fn on_node_exited(&mut self, cx: &mut Cx<'_>, from: NodeId, nspace: &Nspace) {
        let Some(job) = self.dvm.jobs.get_mut(nspace) else { return };
        job.exited.insert(from);
        let is_gone = |node: u32| job.exited.contains(&NodeId(node)) || self.dvm.nodes.is_lost(NodeId(node));
        if job.desc.nodes.iter().all(is_gone) {
            job.report_ending(cx);
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
        for desc in &jobs {
            self.learn(cx, &desc.nspace, Fact::NodeLost { node, name: &name, why });
        }
        for desc in &jobs {
            self.learn(cx, &desc.nspace, Fact::WithoutNode(node));
        }
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
        let (verdict, exit_code, first) = (end.verdict.clone(), end.exit_code, end.first.clone());
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
