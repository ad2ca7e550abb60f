//! The processes of this node: from the order to start them to the last byte of their output.
//!
//! A process has ended when it was reaped, its server has noticed, its streams are closed and their contents have been taken.
//! When all of a job's processes here have ended, this daemon contributes to the job's end. Whether the end of one process ends
//! the job is the root's decision (`root/end.rs`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use phalanx_core::server::ServerCall;
use phalanx_core::{HostCall, HostReply, Time};
use phalanx_spec::{IofChannel, Rank, Status};
use phalanx_wire::{Nspace, ProcId, Text};

use crate::effect::Effect;
use crate::local::calls::Call;
use crate::local::cleanup::Cleanups;
use crate::local::launch::reads_stdin;
use crate::local::restart::{Held, Renewal};
use crate::local::timer::Timer;
use crate::local::turn::Cx;
use crate::local::{Tables, inspect, stdin};
use crate::msg::{
    EndGroup, Ends, ExitStatus, FailurePolicy, JobDesc, Lives, OpId, Part, Pauser, ProcEnd, Programs,
    Reached, SpawnFailure, ToldEnds, Up,
};
use crate::ranges::Ranges;
use crate::signals::{SIGCONT, SIGKILL, SIGSTOP, SIGTERM};

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
    /// Requests that wait for ranks that are being started again.
    pub(super) held: Vec<Held>,
    /// The whole job is to end.
    pub(super) is_ending: bool,
    /// Ranks with an end that the root wants reported.
    watched: Ranges,
    pub(super) since: Time,
    /// When a process here last wrote output.
    pub(super) wrote: Time,
    /// Pieces of output that the root has not acknowledged yet.
    pub(super) chunks: usize,
    pub(super) connected: Reached,
    /// When the last process here started to run, and when the last finalized, from the job's start.
    started_after: Duration,
    finalized_after: Duration,
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
    told_cut_off: bool,
    told_began: bool,
    told_started: bool,
    told_failed: bool,
    pub(super) told_ended: bool,
}

#[derive(Debug)]
pub(super) struct Proc {
    pub(super) phase: Phase,
    pub(super) pid: Option<u32>,
    pub(super) pmix: Pmix,
    /// The deadliest signal that we have ordered.
    pub(super) killed: Option<Killed>,
    /// When it is killed, if it has been asked to end.
    pub(super) kill_at: Option<Time>,
    /// Why it is paused, if it is.
    pub(super) paused_by: BTreeSet<Pauser>,
    /// Signals that arrived before it ran, each once.
    pub(super) early: BTreeSet<i32>,
    /// Which streams are still open: standard output, standard error, diagnostics.
    pub(super) open: [bool; 3],
    /// Which streams have ended without that being reported.
    pub(super) unsaid: [bool; 3],
    /// Everything that waits for it has been released.
    given_up: bool,
    /// It is to be started again, or the root has yet to decide.
    pub(super) place_kept: bool,
    /// Its successor, if an action on it is already pending.
    pub(super) next: Option<Box<Proc>>,
    /// Unanswered upcalls about its lost connection, answered when the process is given up.
    losses: Vec<HostCall>,
    pub(super) status: Option<ExitStatus>,
    after: Duration,
    pub(super) settled: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The server is preparing its environment.
    Preparing,
    /// The shell has the order to start it.
    Starting,
    Running,
    /// Reaped, or never started.
    Gone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pmix {
    Never,
    Connected,
    /// One of its connections has finalized, others go on.
    Leaving,
    Finalized,
    Lost,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Killed {
    Asked,
    Forced,
}

impl LocalJob {
    pub(super) fn new(desc: Arc<JobDesc>, now: Time, ranks: &Ranges) -> LocalJob {
        LocalJob {
            procs: ranks.iter().map(|rank| (Rank(rank), Proc::new())).collect(),
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
            connected: Reached::default(),
            started_after: Duration::ZERO,
            finalized_after: Duration::ZERO,
            programs: Programs::default(),
            cleanups: Cleanups::default(),
            loaded_mpi: false,
            inspected: None,
            registered: false,
            start_failed: false,
            told_cut_off: false,
            told_began: false,
            told_started: false,
            told_failed: false,
            told_ended: false,
        }
    }

    /// Whether a process has ended, or is not one of ours.
    pub(super) fn has_ended(&self, rank: Rank) -> bool {
        self.procs.get(&rank).is_none_or(|proc| proc.settled)
    }
}

impl Proc {
    pub(super) fn new() -> Proc {
        Proc {
            phase: Phase::Preparing,
            pid: None,
            pmix: Pmix::Never,
            killed: None,
            kill_at: None,
            paused_by: BTreeSet::new(),
            early: BTreeSet::new(),
            open: [false; 3],
            unsaid: [false; 3],
            given_up: false,
            place_kept: false,
            next: None,
            losses: Vec::new(),
            status: None,
            after: Duration::ZERO,
            settled: false,
        }
    }

    pub(super) fn is_paused(&self) -> bool {
        !self.paused_by.is_empty()
    }

    /// Whether it was paused.
    pub(super) fn forget_pauses(&mut self) -> bool {
        !std::mem::take(&mut self.paused_by).is_empty()
    }

    pub(super) fn is_alive(&self) -> bool {
        matches!(self.phase, Phase::Starting | Phase::Running)
    }

    pub(super) fn stream(&mut self, channel: IofChannel) -> Option<&mut bool> {
        match channel {
            IofChannel::STDOUT => self.open.first_mut(),
            IofChannel::STDERR => self.open.get_mut(1),
            IofChannel::STDDIAG => self.open.last_mut(),
            _ => None,
        }
    }

    /// Whether it will send nothing more. A process that has lost its connection is not over while it may still turn out to
    /// have died.
    pub(super) fn is_over(&self) -> bool {
        self.settled || self.pmix == Pmix::Finalized || (self.pmix == Pmix::Lost && self.losses.is_empty())
    }

    /// Whether its absence from collectives is to be reported to the members that wait for it. If its end ends the job, that is
    /// delayed.
    pub(super) fn never_comes(&self) -> bool {
        self.pmix == Pmix::Finalized || self.given_up
    }

    /// It never ran.
    pub(super) fn never(&mut self) {
        self.phase = Phase::Gone;
        self.open = [false; 3];
        self.settled = true;
    }
}

impl Tables {
    pub(super) fn proc_mut(&mut self, proc: &ProcId) -> Option<&mut Proc> {
        self.jobs.get_mut(&proc.nspace)?.procs.get_mut(&proc.rank)
    }

    pub(super) fn on_spawned(&mut self, cx: &mut Cx<'_>, proc: &ProcId, pid: u32, program: Text) {
        let Some(job) = self.jobs.get_mut(&proc.nspace) else { return };
        let after = cx.now.since(job.since);
        let Some(entry) = job.procs.get_mut(&proc.rank).filter(|entry| entry.phase == Phase::Starting) else {
            return;
        };
        job.started_after = after;
        entry.phase = Phase::Running;
        entry.pid = Some(pid);
        job.programs.add(program, proc.rank.0);
        for signal in std::mem::take(&mut entry.early) {
            cx.effect(Effect::Signal { proc: proc.clone(), signal });
        }
        match entry.killed {
            None if entry.is_paused() => cx.effect(Effect::Signal { proc: proc.clone(), signal: SIGSTOP }),
            None => {}
            Some(Killed::Asked) => cx.effect(Effect::Signal { proc: proc.clone(), signal: SIGTERM }),
            Some(Killed::Forced) => cx.effect(Effect::Signal { proc: proc.clone(), signal: SIGKILL }),
        }
        self.try_started(cx, &proc.nspace);
        self.try_began(cx, &proc.nspace);
        self.try_renewals(cx, &proc.nspace);
    }

    /// Reports that a process runs while others do not yet. Only the daemon of rank 0 does.
    fn try_began(&mut self, cx: &mut Cx<'_>, nspace: &Nspace) {
        let Some(job) = self.jobs.get_mut(nspace) else { return };
        if !job.told_started && !job.told_began && job.procs.contains_key(&Rank(0)) {
            job.told_began = true;
            cx.post(Up::Began { nspace: nspace.clone() });
        }
    }

    pub(super) fn on_spawn_failed(&mut self, cx: &mut Cx<'_>, proc: ProcId, failure: SpawnFailure) {
        let Some(entry) = self.proc_mut(&proc).filter(|entry| entry.phase == Phase::Starting) else { return };
        entry.never();
        let nspace = proc.nspace.clone();
        if let Some(job) = self.jobs.get_mut(&nspace) {
            job.start_failed = true;
        }
        cx.post(Up::StartFailed { proc, failure });
        self.try_started(cx, &nspace);
        self.try_renewals(cx, &nspace);
        self.try_ended(cx, &nspace);
    }

    /// Contributes to the job's start when each process here runs or never will.
    pub(super) fn try_started(&mut self, cx: &mut Cx<'_>, nspace: &Nspace) {
        let Some(job) = self.jobs.get_mut(nspace) else { return };
        let pending = |proc: &Proc| matches!(proc.phase, Phase::Preparing | Phase::Starting);
        if job.told_started || job.procs.values().any(pending) {
            return;
        }
        job.told_started = true;
        let pids = job.procs.iter().filter_map(|(rank, proc)| Some((rank.0, proc.pid?))).collect();
        let (failed, after) = (job.start_failed, job.started_after);
        let programs = std::mem::take(&mut job.programs);
        let known = job.procs.iter().filter_map(|(rank, proc)| Some((*rank, proc.pid?))).collect();
        let call = ServerCall::Started { nspace: nspace.clone(), pids: known };
        cx.call(call, Call::Told("telling pids"));
        cx.join(OpId::Started(nspace.clone()), Part::Started { pids, programs, failed, after });
    }

    pub(super) fn on_exited(&mut self, cx: &mut Cx<'_>, proc: &ProcId, status: ExitStatus) {
        let settle_grace = cx.config.limits.settle_grace;
        let Some(job) = self.jobs.get_mut(&proc.nspace) else { return };
        let Some(entry) = job.procs.get_mut(&proc.rank).filter(|entry| entry.is_alive()) else { return };
        entry.phase = Phase::Gone;
        entry.status = Some(status);
        entry.after = cx.now.since(job.since);
        // A request to resume could no longer name the rank, so the processes it has left would stay stopped.
        if entry.forget_pauses() {
            cx.effect(Effect::SignalTree { proc: proc.clone(), signal: SIGCONT });
        }
        if !status.is_success() && entry.pmix == Pmix::Never {
            inspect::look(cx, job);
        }
        let Some(entry) = self.proc_mut(proc) else { return };
        // Its last message may still be unread by its server; only then is it known whether it finalized.
        if entry.pmix == Pmix::Connected {
            cx.timers.set(cx.now.after(settle_grace), Timer::Settle(proc.nspace.clone()));
        } else {
            self.settle(cx, proc);
        }
        self.try_started(cx, &proc.nspace);
        // Input that it has not read is lost.
        if self.jobs.get(&proc.nspace).is_some_and(|job| reads_stdin(&job.desc, proc.rank)) {
            stdin::refused(cx, proc);
        }
    }

    /// A client has connected, finalized, or lost its connection.
    pub(super) fn on_client(&mut self, cx: &mut Cx<'_>, proc: &ProcId, pmix: Pmix) {
        let Some(job) = self.jobs.get_mut(&proc.nspace) else { return };
        let Some(entry) = job.procs.get_mut(&proc.rank) else { return };
        if pmix == Pmix::Lost && entry.pmix == Pmix::Finalized {
            return;
        }
        // This concerns its predecessor.
        if entry.phase == Phase::Preparing && pmix != Pmix::Connected {
            return;
        }
        if pmix == Pmix::Finalized {
            job.finalized_after = cx.now.since(job.since);
        }
        let first = entry.pmix == Pmix::Never;
        entry.pmix = pmix;
        entry.given_up &= pmix != Pmix::Connected;
        if first && pmix == Pmix::Connected {
            let count = u32::from(!job.lives.contains_key(&proc.rank.0));
            job.connected.merge(Reached { count, after: cx.now.since(job.since) });
            let scratch = job.desc.directory(&cx.config.scratch);
            cx.effect(Effect::MakeScratch { path: Text::from(format!("{scratch}/{}", proc.rank.0)) });
            cx.timers.set_once(cx.now.after(COLLECT), Timer::Connected(proc.nspace.clone()));
        }
        if matches!(pmix, Pmix::Finalized | Pmix::Lost) {
            self.settle(cx, proc);
        }
        if pmix == Pmix::Finalized {
            self.tell_over(cx, &proc.nspace);
        }
    }

    /// Our server has closed the connection of a rank. Later reports do not show the reason. Only the first of a job here is
    /// reported.
    pub(super) fn tell_cut_off(&mut self, cx: &mut Cx<'_>, proc: &ProcId, why: &str) {
        let Some(job) = self.jobs.get_mut(&proc.nspace).filter(|job| !job.told_cut_off) else { return };
        job.told_cut_off = true;
        let text = format!(
            "the connection of rank {} (on {}) to its PMIx server was closed: {why}",
            proc.rank, cx.config.hostname
        );
        cx.post(Up::Note { about: Some(proc.clone()), text });
    }

    pub(super) fn tell_connected(&mut self, cx: &mut Cx<'_>, nspace: &Nspace) {
        if let Some(reached) = self.jobs.get(nspace).map(|job| job.connected) {
            cx.post(Up::Connected { nspace: nspace.clone(), reached });
        }
    }

    pub(super) fn settle_all(&mut self, cx: &mut Cx<'_>, nspace: &Nspace) {
        let Some(job) = self.jobs.get(nspace) else { return };
        let overdue = |after: Duration| cx.now.since(job.since) >= after + cx.config.limits.settle_grace;
        let gone = job.procs.iter().filter(|(_, proc)| proc.phase == Phase::Gone && overdue(proc.after));
        let gone: Vec<ProcId> = gone.map(|(rank, _)| ProcId::new(nspace, *rank)).collect();
        gone.iter().for_each(|proc| self.settle(cx, proc));
    }

    /// All that determines how a process ended is known.
    fn settle(&mut self, cx: &mut Cx<'_>, proc: &ProcId) {
        let Some(job) = self.jobs.get_mut(&proc.nspace) else { return };
        let is_recoverable = job.is_recoverable();
        let Some(entry) = job.procs.get_mut(&proc.rank) else { return };
        if entry.phase != Phase::Gone || entry.settled {
            return;
        }
        entry.settled = true;
        let end = ProcEnd {
            proc: proc.clone(),
            node: cx.config.hostname.to_string(),
            pid: entry.pid,
            status: entry.status,
            after: entry.after,
            killed_by_us: entry.killed.is_some(),
            lost_connection: entry.lost_connection(),
        };
        let telling = match (job.desc.on_failure, job.desc.told_ends) {
            // Only the first failure is reported; the others are in the job's end.
            (FailurePolicy::KillJob, ToldEnds::Deciding) => !job.told_failed,
            _ => true,
        };
        let ends_job = job.desc.on_failure.ends_job(&end);
        let is_kept = entry.place_kept || (end.is_failure() && is_recoverable);
        entry.place_kept = is_kept;
        if end.is_failure() && telling {
            job.told_failed = true;
            cx.post(Up::Failed(end));
        } else if !end.is_failure() && !is_kept && job.desc.told_ends == ToldEnds::All {
            cx.post(Up::Left(end));
        }
        if ends_job {
            // The others are about to be ended. To notify those that wait for this one first helps nothing.
            cx.timers.set(cx.now.after(OVER_GRACE), Timer::Over(proc.clone()));
        } else {
            cx.ended.push_back(proc.clone());
        }
        self.clean_up_after(cx, proc);
        if is_kept {
            return self.try_renewals(cx, &proc.nspace);
        }
        self.give_place_up(cx, proc);
    }

    /// If no process is left here, sets the timers that close its streams, and contributes to the job's end as soon as
    /// possible.
    pub(super) fn try_exited(&mut self, cx: &mut Cx<'_>, nspace: &Nspace) {
        let grace = cx.config.limits.output_grace;
        let Some(job) = self.jobs.get(nspace) else { return };
        if job.is_empty() {
            cx.timers.set_once(cx.now.after(grace), Timer::Drain(nspace.clone()));
            cx.timers.set_once(cx.now.after(EXITED_AFTER), Timer::Exited(nspace.clone()));
        }
        self.try_ended(cx, nspace);
    }

    /// Our server has lost a client. A dying process closes its connection before it can be reaped: it is given up once it is
    /// reaped, or after a while if it goes on living.
    pub(super) fn acknowledge_loss(&mut self, cx: &mut Cx<'_>, call: HostCall, proc: ProcId) {
        let grace = cx.config.limits.settle_grace;
        match self.proc_mut(&proc).filter(|entry| !entry.settled) {
            Some(entry) => {
                entry.losses.push(call);
                cx.timers.set(cx.now.after(grace), Timer::Over(proc));
            }
            None => cx.reply(call, HostReply::Done(Status::SUCCESS)),
        }
    }

    /// Releases everything that waits for this process.
    pub(super) fn give_up(&mut self, cx: &mut Cx<'_>, proc: &ProcId) {
        let Some(entry) = self.proc_mut(proc) else { return };
        let (losses, settled) = (std::mem::take(&mut entry.losses), entry.settled);
        entry.given_up |= settled || entry.pmix == Pmix::Lost;
        if settled {
            self.deregister_client(cx, proc);
        }
        losses.into_iter().for_each(|call| cx.reply(call, HostReply::Done(Status::SUCCESS)));
        self.tell_over(cx, &proc.nspace);
    }

    /// The root asks for a report when these processes can take part in nothing any more.
    pub(super) fn watch(&mut self, cx: &mut Cx<'_>, nspace: &Nspace, ranks: &Ranges) {
        let Some(job) = self.jobs.get_mut(nspace) else { return };
        let here = ranks.iter().filter(|rank| job.procs.contains_key(&Rank(*rank)));
        job.watched.add(&here.collect());
        self.tell_over(cx, nspace);
    }

    fn tell_over(&mut self, cx: &mut Cx<'_>, nspace: &Nspace) {
        self.try_expected(cx);
        let Some(job) = self.jobs.get_mut(nspace) else { return };
        let is_over = |rank: &u32| job.procs.get(&Rank(*rank)).is_none_or(Proc::is_over);
        let over: Ranges = job.watched.iter().filter(is_over).collect();
        if !over.is_empty() {
            over.iter().for_each(|rank| job.watched.remove(rank));
            cx.post(Up::Over { nspace: nspace.clone(), ranks: over });
        }
    }

    /// Reports that no process is left here; otherwise the root would not know until their output has been taken.
    pub(super) fn tell_exited(&mut self, cx: &mut Cx<'_>, nspace: &Nspace) {
        if self.jobs.get(nspace).is_some_and(LocalJob::is_empty) {
            cx.post(Up::Exited { nspace: nspace.clone() });
        }
    }

    /// Closes streams that other processes hold open after ours have died, once nothing was written for a while. Streams that
    /// wait for their readers are spared: what the processes have written is still to be read.
    pub(super) fn on_drain_over(&mut self, cx: &mut Cx<'_>, nspace: &Nspace) {
        let grace = cx.config.limits.output_grace;
        let Some(job) = self.jobs.get(nspace) else { return };
        if !job.is_empty() {
            return;
        }
        if job.chunks > 0 || cx.now.since(job.wrote) < grace {
            return cx.timers.set_once(cx.now.after(grace), Timer::Drain(nspace.clone()));
        }
        let mut open = Vec::new();
        for (rank, proc) in &job.procs {
            let channels =
                [IofChannel::STDOUT, IofChannel::STDERR, IofChannel::STDDIAG].into_iter().zip(proc.open);
            open.extend(channels.filter(|(_, open)| *open).map(|(c, _)| (ProcId::new(nspace, *rank), c)));
        }
        for (proc, channel) in open {
            self.on_output_closed(cx, &proc, channel);
        }
    }

    /// Contributes to the job's end when nothing of it is left here.
    pub(super) fn try_ended(&mut self, cx: &mut Cx<'_>, nspace: &Nspace) {
        let Some(job) = self.jobs.get_mut(nspace) else { return };
        let over = |proc: &Proc| {
            proc.phase == Phase::Gone && proc.settled && proc.open == [false; 3] && !proc.place_kept
        };
        if job.told_ended || job.procs.is_empty() || job.chunks > 0 || !job.procs.values().all(over) {
            return;
        }
        job.told_ended = true;
        // With many processes, times are coarse, so that equal ends can be merged.
        let grain = if job.desc.size <= EXACT { 1 } else { 1000 };
        let mut ends = Vec::new();
        for (rank, proc) in &job.procs {
            let group = EndGroup {
                ranks: Ranges::single(rank.0),
                status: proc.status,
                killed_by_us: proc.killed.is_some(),
                lost_connection: proc.lost_connection(),
                connected: proc.pmix != Pmix::Never,
                after: Duration::from_millis((proc.after.as_millis() as u64).div_ceil(grain) * grain),
            };
            EndGroup::merge(&mut ends, vec![group]);
        }
        let is_finalized = |proc: &&Proc| proc.pmix == Pmix::Finalized;
        let count = job.procs.values().filter(is_finalized).count() as u32;
        let finalized = Reached { count, after: job.finalized_after };
        let mut exited = Reached::default();
        let ran = job.procs.values().filter(|proc| proc.status.is_some());
        ran.for_each(|proc| exited.merge(Reached { count: 1, after: proc.after }));
        let ends = Ends { groups: ends, connected: job.connected, finalized, exited };
        cx.join(OpId::Ended(nspace.clone()), Part::Ends(Box::new(ends)));
    }

    /// The job is over everywhere.
    pub(super) fn on_forget(&mut self, cx: &mut Cx<'_>, nspace: &Nspace) {
        let Some(mut job) = self.jobs.remove(nspace) else { return };
        self.end_commands_of(cx, nspace);
        cx.timers.cancel(|timer| timer.concerns(nspace));
        self.rounds.forget(nspace);
        self.try_expected(cx);
        self.modexes.forget(cx, nspace);
        let losses = job.procs.values_mut().flat_map(|proc| std::mem::take(&mut proc.losses));
        losses.for_each(|call| cx.reply(call, HostReply::Done(Status::SUCCESS)));
        self.requests.forget(cx, nspace);
        if job.registered {
            self.deregister(cx, nspace);
        }
        if !job.procs.is_empty() {
            cx.effect(Effect::Forget {
                nspace: nspace.clone(),
                scratch: job.desc.directory(&cx.config.scratch),
            });
        }
        debug_assert!(self.traces_of(cx, nspace).is_empty(), "{nspace}: {:?}", self.traces_of(cx, nspace));
    }

    /// Ranks have failed while their job goes on.
    pub(super) fn on_dead(&mut self, nspace: &Nspace, ranks: &Ranges) {
        let Some(job) = self.jobs.get_mut(nspace) else { return };
        job.dead.add(ranks);
    }

    /// The operation is given up, because a participant is gone.
    pub(super) fn fail_collective(&mut self, cx: &mut Cx<'_>, op: &OpId) {
        let OpId::Collective(collective) = op else { return };
        self.answer_collective(cx, op, &Err(collective.kind.without_a_member()));
    }
}

impl Proc {
    pub(super) fn lost_connection(&self) -> bool {
        matches!(self.pmix, Pmix::Connected | Pmix::Lost)
    }
}

/// The job of a failed process is ended well within this time.
const OVER_GRACE: Duration = Duration::from_millis(500);
/// Output of ordinary jobs has been taken by then.
const EXITED_AFTER: Duration = Duration::from_millis(500);
/// Delays progress reports, so that they are few.
const COLLECT: Duration = Duration::from_millis(250);
/// In jobs up to this size, end times are exact to the millisecond.
const EXACT: u32 = 1024;
