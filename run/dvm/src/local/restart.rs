//! Processes that are started again in their place. The root first has them ended, and when that is done everywhere, started.
//!
//! The end of a process that is about to be started again, and of its output, is not reported. In jobs that restart failed
//! ranks, it is held back until the root has decided. Actions on a process between two lives apply to its successor, and are
//! answered then.

use std::sync::Arc;

use phalanx_core::server::ServerCall;
use phalanx_spec::{IofChannel, Rank, Status};
use phalanx_wire::{Nspace, ProcId, Text};

use crate::effect::Effect;
use crate::local::Tables;
use crate::local::calls::Call;
use crate::local::procs::{Killed, LocalJob, Phase, Proc};
use crate::local::timer::Timer;
use crate::local::turn::Cx;
use crate::msg::{FailurePolicy, Members, OpId, Part, Programs, Results, TaskId};
use crate::ranges::Ranges;
use crate::signals::SIGKILL;

/// The unfinished work of this daemon on one task.
#[derive(Debug)]
pub(super) struct Renewal {
    task: TaskId,
    step: Step,
    open: Ranges,
    results: Results,
    pids: Vec<(u32, u32)>,
    programs: Programs,
}

/// A request of job control that waits for these ranks to be started again.
#[derive(Debug)]
pub(super) struct Held {
    task: TaskId,
    open: Ranges,
    results: Results,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Nothing may be left of the old processes.
    Clear,
    /// The new processes are to run.
    Start,
}

impl Renewal {
    fn part(self) -> (OpId, Part) {
        let part = match self.step {
            Step::Clear => Part::Results(self.results),
            Step::Start => Part::Renewed { results: self.results, pids: self.pids, programs: self.programs },
        };
        (OpId::Task(self.task), part)
    }

    /// The result for a process that has completed the step.
    fn result(&self, proc: &Proc) -> Option<Status> {
        let is_gone = proc.phase == Phase::Gone;
        match self.step {
            Step::Clear => (is_gone && proc.settled && proc.open == [false; 3]).then_some(Status::SUCCESS),
            Step::Start if proc.pid.is_some() && (proc.phase == Phase::Running || is_gone) => {
                Some(Status::SUCCESS)
            }
            // It was killed on request before it ran.
            Step::Start if proc.killed.is_some() => is_gone.then_some(Status::ERR_PROC_ABORTED),
            Step::Start => is_gone.then_some(Status::ERR_JOB_FAILED_TO_LAUNCH),
        }
    }
}

impl Proc {
    /// The process that an action applies to now: this one, or its successor.
    pub(super) fn heir(&mut self) -> &mut Proc {
        match self.place_kept {
            true => self.next.get_or_insert_with(|| Box::new(Proc::new())),
            false => self,
        }
    }
}

impl LocalJob {
    /// Those of `ranks` that are between two lives.
    pub(super) fn kept(&self, ranks: &Ranges) -> Ranges {
        let is_kept = |rank: &u32| self.procs.get(&Rank(*rank)).is_some_and(|proc| proc.place_kept);
        ranks.iter().filter(is_kept).collect()
    }

    /// Holds a request until its last ranks are started again, or are given up.
    pub(super) fn hold(&mut self, task: &TaskId, open: Ranges, results: Results) {
        self.held.push(Held { task: task.clone(), open, results });
    }

    /// Whether ranks that fail may be started again.
    pub(super) fn is_recoverable(&self) -> bool {
        matches!(self.desc.on_failure, FailurePolicy::Restart { .. }) && !self.is_ending
    }

    /// Whether the end of its streams is not to be reported yet.
    pub(super) fn keeps_end(&self, proc: &Proc) -> bool {
        proc.place_kept || (self.is_recoverable() && !proc.settled)
    }

    /// Whether no process runs here, or will.
    pub(super) fn is_empty(&self) -> bool {
        self.procs.values().all(|proc| proc.phase == Phase::Gone && !proc.place_kept)
    }
}

impl Tables {
    /// Ends processes, and keeps their places.
    pub(super) fn on_clear_task(&mut self, cx: &mut Cx<'_>, task: &TaskId, targets: &Members) {
        let nspace = &targets.nspace;
        let reap_at = cx.now.after(cx.config.limits.reap_grace);
        let Some((job, mut renewal)) = self.renewal(task, targets, Step::Clear) else {
            return cx.join(OpId::Task(task.clone()), Part::Nothing);
        };
        if job.told_ended || job.is_ending {
            let open = std::mem::take(&mut renewal.open);
            renewal.results.set(&open, Status::ERR_NOT_FOUND);
        }
        for rank in renewal.open.iter() {
            let Some(proc) = job.procs.get_mut(&Rank(rank)) else { continue };
            proc.place_kept = true;
            if proc.phase != Phase::Gone {
                proc.killed = Some(Killed::Forced);
            }
            if matches!(proc.phase, Phase::Running | Phase::Gone) {
                let proc = ProcId::new(nspace, Rank(rank));
                cx.effect(Effect::SignalTree { proc, signal: SIGKILL });
            }
        }
        job.renewals.push(renewal);
        cx.timers.set_once(reap_at, Timer::Reap(nspace.clone()));
        self.try_renewals(cx, nspace);
    }

    /// These ranks are about to run again somewhere.
    pub(super) fn on_renewed(
        &mut self,
        cx: &mut Cx<'_>,
        nspace: &Nspace,
        ranks: &Ranges,
        from: Option<&Text>,
    ) {
        let Some(job) = self.jobs.get_mut(nspace) else { return };
        job.generation += 1;
        let lives = Arc::make_mut(&mut job.lives);
        for rank in ranks.iter() {
            job.dead.remove(rank);
            let life = lives.entry(rank).or_default();
            life.number += 1;
            life.from = from.cloned();
        }
        if job.registered {
            forget_values(cx, nspace, ranks);
            let info = job.desc.job_info(cx.config.id, &cx.config.scratch, &self.table, &job.lives);
            let call = ServerCall::RegisterNspace(Box::new(info));
            cx.call(call, Call::Told("telling of restarted ranks"));
        }
        self.modexes.ask_anew(cx, nspace, ranks);
    }

    pub(super) fn on_renew_task(&mut self, cx: &mut Cx<'_>, task: &TaskId, targets: &Members) {
        let nspace = &targets.nspace;
        let (uid, gid) = (cx.config.uid, cx.config.gid);
        let Some((job, mut renewal)) = self.renewal(task, targets, Step::Start) else {
            return cx.join(OpId::Task(task.clone()), Part::Nothing);
        };
        let is_kept = |rank: &u32| {
            job.procs.get(&Rank(*rank)).is_some_and(|proc| proc.place_kept && proc.phase == Phase::Gone)
        };
        let kept: Ranges = renewal.open.iter().filter(is_kept).collect();
        renewal
            .results
            .set(&renewal.open.iter().filter(|rank| !kept.contains(*rank)).collect(), Status::ERR_NOT_FOUND);
        renewal.open = kept.clone();
        let (mut kill_at, mut is_killed) = (None, false);
        for rank in kept.iter() {
            let next = job.procs.get_mut(&Rank(rank)).and_then(|proc| proc.next.take());
            let next = next.map_or_else(Proc::new, |next| *next);
            kill_at = kill_at.into_iter().chain(next.kill_at).min();
            is_killed |= next.killed == Some(Killed::Forced);
            job.procs.insert(Rank(rank), next);
        }
        job.renewals.push(renewal);
        if let Some(at) = kill_at {
            cx.timers.set(at, Timer::Kill(nspace.clone()));
        }
        if is_killed {
            cx.timers.set_once(cx.now.after(cx.config.limits.reap_grace), Timer::Reap(nspace.clone()));
        }
        for rank in kept.iter() {
            let proc = ProcId::new(nspace, Rank(rank));
            let register = ServerCall::RegisterClient { proc: proc.clone(), uid, gid };
            cx.call(register, Call::Told("registering a client again"));
            cx.call(ServerCall::SetupFork(proc.clone()), Call::SetupFork(proc));
        }
        self.answer_held(cx, nspace, &kept, Status::SUCCESS);
        self.try_renewals(cx, nspace);
    }

    /// The requests on these ranks were applied to their successors, or there are none.
    fn answer_held(&mut self, cx: &mut Cx<'_>, nspace: &Nspace, ranks: &Ranges, status: Status) {
        let Some(job) = self.jobs.get_mut(nspace) else { return };
        for held in &mut job.held {
            let here = held.open.and(ranks);
            held.results.set(&here, status);
            here.iter().for_each(|rank| held.open.remove(rank));
        }
        for Held { task, results, .. } in job.held.extract_if(.., |held| held.open.is_empty()) {
            cx.join(OpId::Task(task), Part::Results(results));
        }
    }

    fn renewal(&mut self, task: &TaskId, targets: &Members, step: Step) -> Option<(&mut LocalJob, Renewal)> {
        let job = self.jobs.get_mut(&targets.nspace)?;
        let here = job.procs.keys().map(|rank| rank.0).filter(|rank| targets.ranks.contains(*rank));
        let (open, results) = (here.collect(), Results::default());
        let (pids, programs) = (Vec::new(), Programs::default());
        Some((job, Renewal { task: task.clone(), step, open, results, pids, programs }))
    }

    /// A process has made progress: contributes to the tasks that it completes.
    pub(super) fn try_renewals(&mut self, cx: &mut Cx<'_>, nspace: &Nspace) {
        let Some(job) = self.jobs.get_mut(nspace) else { return };
        let (mut cleared, mut started) = (Vec::new(), Vec::new());
        for renewal in &mut job.renewals {
            for rank in renewal.open.clone().iter() {
                let Some(proc) = job.procs.get(&Rank(rank)) else { continue };
                let Some(status) = renewal.result(proc) else { continue };
                renewal.open.remove(rank);
                renewal.results.set(&Ranges::single(rank), status);
                match (renewal.step, proc.pid) {
                    (Step::Clear, _) => cleared.push(ProcId::new(nspace, Rank(rank))),
                    (Step::Start, Some(pid)) => {
                        renewal.pids.push((rank, pid));
                        renewal.programs.merge(job.programs.take(&Ranges::single(rank)));
                        started.push((Rank(rank), pid));
                    }
                    (Step::Start, None) => {}
                }
            }
        }
        let done: Vec<Renewal> = job.renewals.extract_if(.., |renewal| renewal.open.is_empty()).collect();
        for proc in &cleared {
            // The server must forget it now, before its successor of the same name connects.
            cx.ended.retain(|ended| ended != proc);
            cx.timers.cancel(|timer| *timer == Timer::Over(proc.clone()));
            self.give_up(cx, proc);
            forget_values(cx, nspace, &Ranges::single(proc.rank.0));
        }
        if !started.is_empty() {
            let call = ServerCall::Started { nspace: nspace.clone(), pids: started };
            cx.call(call, Call::Told("telling pids"));
        }
        for renewal in done {
            let (op, part) = renewal.part();
            cx.join(op, part);
        }
    }

    /// The job ends: no process is started again.
    pub(super) fn give_places_up(&mut self, cx: &mut Cx<'_>, nspace: &Nspace) {
        let Some(job) = self.jobs.get_mut(nspace) else { return };
        job.is_ending = true;
        for mut renewal in std::mem::take(&mut job.renewals) {
            let open = std::mem::take(&mut renewal.open);
            renewal.results.set(&open, Status::ERR_PROC_ABORTED);
            let (op, part) = renewal.part();
            cx.join(op, part);
        }
        let kept: Vec<Rank> =
            job.procs.iter().filter(|(_, proc)| proc.place_kept).map(|(rank, _)| *rank).collect();
        kept.into_iter().for_each(|rank| self.give_place_up(cx, &ProcId::new(nspace, rank)));
        // Processes that have ended but are not settled are reported as they settle.
        self.try_ended(cx, nspace);
    }

    /// This process is not started again: reports what has ended of it.
    pub(super) fn give_place_up(&mut self, cx: &mut Cx<'_>, proc: &ProcId) {
        let Some(entry) = self.proc_mut(proc) else { return };
        entry.place_kept = false;
        entry.next = None;
        self.answer_held(cx, &proc.nspace, &Ranges::single(proc.rank.0), Status::ERR_NOT_FOUND);
        let Some(entry) = self.proc_mut(proc).filter(|entry| entry.settled) else { return };
        let unsaid = std::mem::take(&mut entry.unsaid);
        let channels = [IofChannel::STDOUT, IofChannel::STDERR, IofChannel::STDDIAG];
        for (channel, _) in channels.into_iter().zip(unsaid).filter(|(_, unsaid)| *unsaid) {
            self.tell_stream_ended(cx, proc.clone(), channel);
        }
        self.try_exited(cx, &proc.nspace);
    }
}

/// Makes the server forget the values that these ranks have put.
fn forget_values(cx: &mut Cx<'_>, nspace: &Nspace, ranks: &Ranges) {
    let call = ServerCall::ForgetValues { nspace: nspace.clone(), ranks: ranks.iter().map(Rank).collect() };
    cx.call(call, Call::Told("forgetting the values of restarted ranks"));
}
