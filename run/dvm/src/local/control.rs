//! Acting on processes: signals, termination with a deadline, stop and continue.

use std::collections::BTreeMap;
use std::time::Duration;

use phalanx_core::host::Asked;
use phalanx_core::{HostCall, HostReply, ServerCall};
use phalanx_spec::Rank;
use phalanx_wire::cmd::control::JobControl;
use phalanx_wire::{Nspace, ProcId};

use crate::effect::Effect;
use crate::local::Tables;
use crate::local::calls::Call;
use crate::local::procs::{Killed, Phase, Proc};
use crate::local::timer::Timer;
use crate::local::turn::Cx;
use crate::msg::{
    Control, ControlCall, ControlRequest, ExitStatus, Members, OpId, Part, Pauser, Results, SpawnFailure,
    TaskId, Up, Wanted,
};
use crate::ranges::Ranges;
use crate::signals::{SIGCONT, SIGKILL, SIGSTOP, SIGTERM};
use phalanx_spec::Status;

impl Tables {
    /// `ranks`: `None` for all. `grace`: the time from the polite signal to the kill; the job's own by default. `pauser`: the
    /// reason for a pause.
    pub(super) fn act_on(
        &mut self,
        cx: &mut Cx<'_>,
        nspace: &Nspace,
        ranks: Option<&Ranges>,
        action: Control,
        (grace, pauser): (Option<Duration>, &Pauser),
    ) {
        let limits = cx.config.limits.clone();
        let Some(job) = self.jobs.get_mut(nspace) else { return };
        let grace = grace.or(job.desc.kill_after).unwrap_or(limits.kill_grace);
        let alone = ranks.is_some() && !job.is_ending;
        let kill_at = cx.now.after(grace);
        let mut paused = [Vec::new(), Vec::new()];
        for (rank, proc) in chosen(&mut job.procs, ranks) {
            let proc = proc.heir();
            let before = proc.is_paused();
            proc.act(cx, &ProcId::new(nspace, rank), (action, pauser), alone);
            if proc.is_paused() != before {
                paused[usize::from(!before)].push(rank);
            }
            if matches!(action, Control::Terminate { .. }) && proc.phase != Phase::Gone {
                proc.kill_at = Some(proc.kill_at.map_or(kill_at, |at| at.min(kill_at)));
            }
        }
        for (is_paused, ranks) in [false, true].into_iter().zip(paused).filter(|(_, ranks)| !ranks.is_empty())
        {
            let call = ServerCall::Paused { nspace: nspace.clone(), ranks, is_paused };
            cx.call(call, Call::Told("telling of a pause"));
        }
        let waits = job.procs.values().any(|proc| proc.killed.is_some() && proc.phase != Phase::Gone);
        match action {
            Control::Terminate { .. } if waits => {
                cx.timers.set(kill_at, Timer::Kill(nspace.clone()));
            }
            Control::Kill if waits => {
                cx.timers.set_once(cx.now.after(limits.reap_grace), Timer::Reap(nspace.clone()));
            }
            _ => {}
        }
        if ranks.is_none() && action.deadly().is_some() {
            self.give_places_up(cx, nspace);
        }
    }

    /// Kills processes that were asked to end and are still there, and the processes left by ranks that were asked to end while their job goes on.
    pub(super) fn on_kill_due(&mut self, cx: &mut Cx<'_>, nspace: &Nspace) {
        let Some(job) = self.jobs.get_mut(nspace) else { return };
        for (rank, proc) in &mut job.procs {
            let has_left = proc.phase == Phase::Gone && proc.kill_at.is_some_and(|at| at <= cx.now);
            if has_left && !job.is_ending {
                proc.kill_at = None;
                let proc = ProcId::new(nspace, *rank);
                cx.effect(Effect::SignalTree { proc, signal: SIGKILL });
            }
        }
        let is_due = |proc: &Proc| proc.kill_at.is_none_or(|at| at <= cx.now);
        let asked =
            |proc: &Proc| proc.killed == Some(Killed::Asked) && proc.phase != Phase::Gone && is_due(proc);
        let ranks: Ranges =
            job.procs.iter().filter(|(_, proc)| asked(proc)).map(|(rank, _)| rank.0).collect();
        if !ranks.is_empty() {
            self.act_on(cx, nspace, Some(&ranks), Control::Kill, (None, &Pauser::default()));
        }
    }

    /// A process that survives SIGKILL hangs in the kernel; the job does not wait for it.
    pub(super) fn on_reap_due(&mut self, cx: &mut Cx<'_>, nspace: &Nspace) {
        let Some(job) = self.jobs.get(nspace) else { return };
        let hangs = |proc: &Proc| proc.killed == Some(Killed::Forced) && proc.phase != Phase::Gone;
        let hanging = job.procs.iter().filter(|(_, proc)| hangs(proc));
        let hanging: Vec<_> =
            hanging.map(|(rank, proc)| (ProcId::new(nspace, *rank), proc.phase, proc.pid)).collect();
        for (proc, phase, pid) in hanging {
            let pid = pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default();
            let text = format!("rank {}{pid} on {} survived SIGKILL", proc.rank, cx.config.hostname);
            cx.post(Up::Note { about: Some(proc.clone()), text });
            match phase {
                Phase::Running => {
                    self.on_exited(cx, &proc, ExitStatus::Signal { number: SIGKILL, core_dumped: false });
                }
                _ => self.on_spawn_failed(cx, proc, SpawnFailure::never_answered()),
            }
        }
    }
}

impl Tables {
    /// A job control request by a process of ours. Only cleanup paths for processes of this node can be registered without the
    /// root.
    pub(super) fn on_job_control(&mut self, cx: &mut Cx<'_>, call: HostCall, asked: Asked<JobControl>) {
        match ControlCall::read(&asked.from, &asked.directives) {
            Err(status) => cx.reply(call, HostReply::Done(status)),
            Ok(ControlCall {
                cancel: None,
                registration: None,
                wanted: Some(Wanted::Act(ControlRequest { actions, cleanup: Some(cleanup), .. })),
                ..
            }) if actions.is_empty()
                && let Ok(members) = Members::targets(&asked.from, &asked.targets, |nspace| {
                    Some(&*self.jobs.get(nspace)?.desc)
                })
                && members.iter().all(|m| self.are_here(m)) =>
            {
                let status = self.register_cleanup(cx, &members, &cleanup);
                cx.reply(call, HostReply::Infos(status, Vec::new()));
            }
            Ok(_) => self.requests.hand_up(cx, call, asked.into()),
        }
    }

    /// A job control task with targets here. The answer waits for targets that are being started again.
    pub(super) fn on_control_task(
        &mut self,
        cx: &mut Cx<'_>,
        id: &TaskId,
        targets: &Members,
        request: &ControlRequest,
    ) {
        let Members { nspace, ranks } = targets;
        let job = self.jobs.get(nspace);
        let here: Ranges = job
            .into_iter()
            .flat_map(|job| job.procs.keys())
            .map(|rank| rank.0)
            .filter(|rank| ranks.contains(*rank))
            .collect();
        let is_gone = |rank: &u32| {
            let proc = job.and_then(|job| job.procs.get(&Rank(*rank)));
            proc.is_none_or(|proc| proc.phase == Phase::Gone)
        };
        let kept = job.map(|job| job.kept(&here)).unwrap_or_default();
        let gone: Ranges = here.iter().filter(|rank| is_gone(rank) && !kept.contains(*rank)).collect();
        let living: Ranges = here.iter().filter(|rank| !gone.contains(*rank)).collect();
        let mut results = Results::default();
        if let Some(cleanup) = &request.cleanup {
            let here = [Members { nspace: nspace.clone(), ranks: here.clone() }];
            let status = self.register_cleanup(cx, &here, cleanup);
            if !status.is_success() || request.actions.is_empty() {
                results.set(&here[0].ranks, status);
                return cx.join(OpId::Task(id.clone()), Part::Results(results));
            }
        }
        for action in &request.actions {
            self.act_on(cx, nspace, Some(&living), *action, (request.grace, &request.pauser));
        }
        results.set(&living.iter().filter(|rank| !kept.contains(*rank)).collect(), Status::SUCCESS);
        results.set(&gone, Status::ERR_NOT_FOUND);
        if let Some(job) = self.jobs.get_mut(nspace).filter(|_| !kept.is_empty()) {
            return job.hold(id, kept, results);
        }
        cx.join(OpId::Task(id.clone()), Part::Results(results));
    }

    /// Whether all of them are processes of this node.
    fn are_here(&self, members: &Members) -> bool {
        let Some(job) = self.jobs.get(&members.nspace) else { return false };
        members.ranks.iter().all(|rank| job.procs.contains_key(&Rank(rank)))
    }
}

fn chosen<'a>(
    procs: &'a mut BTreeMap<Rank, Proc>,
    ranks: Option<&'a Ranges>,
) -> impl Iterator<Item = (Rank, &'a mut Proc)> {
    procs
        .iter_mut()
        .filter(move |(rank, _)| ranks.is_none_or(|ranks| ranks.contains(rank.0)))
        .map(|(rank, proc)| (*rank, proc))
}

impl Proc {
    /// `alone`: the rest of the job goes on. Then processes that the rank has started in other sessions end with the rank, not with the job.
    fn act(&mut self, cx: &mut Cx<'_>, proc: &ProcId, (action, pauser): (Control, &Pauser), alone: bool) {
        let tree = match action {
            Control::Suspend | Control::Resume => true,
            Control::Terminate { .. } => alone || self.is_paused(),
            Control::Kill => alone,
            Control::Signal(_) => false,
        };
        let mut signal = |number| {
            let (proc, signal) = (proc.clone(), number);
            cx.effect(match tree {
                true => Effect::SignalTree { proc, signal },
                false => Effect::Signal { proc, signal },
            });
        };
        let running = self.phase == Phase::Running;
        match action {
            // A process that is not running yet gets its signals when it runs (`Local::on_spawned`).
            Control::Terminate { .. } if self.phase != Phase::Gone => {
                self.killed = self.killed.max(Some(Killed::Asked));
                if running {
                    signal(SIGTERM);
                }
                if running && self.forget_pauses() {
                    signal(SIGCONT);
                }
            }
            Control::Kill if self.phase != Phase::Gone => {
                self.killed = Some(Killed::Forced);
                self.kill_at = None;
                if running {
                    signal(SIGKILL);
                }
            }
            Control::Signal(number) if running => signal(number),
            Control::Signal(number) if self.phase != Phase::Gone => {
                self.early.insert(number);
            }
            Control::Suspend if self.phase != Phase::Gone => {
                let was_paused = self.is_paused();
                self.paused_by.insert(pauser.clone());
                if running && !was_paused {
                    signal(SIGSTOP);
                }
            }
            Control::Resume => {
                let went_on = self.paused_by.remove(pauser) && !self.is_paused();
                if running && went_on {
                    signal(SIGCONT);
                }
            }
            _ => {}
        }
    }
}
