//! Ranks that are started again, with the same name and in the same place: on request, or because they have failed and their
//! job allows it.
//!
//! First those that still run are ended, everywhere, and nobody hears of it as of an end. When all daemons have done so, nobody waits
//! for what the old ones would have done, and the new ones are started. A restart that does not come to its end ends the job.
//!
//! Daemons count collectives anew from there, because not all of them have counted those that broke. The server sees a client that ends
//! and one of the same name that comes, as with any host. All servers forget the values of the old one (`ServerCall::ForgetValues`) and
//! notify clients of ours that keep values (`VALUES_GONE`). What job control does to a rank in between, its daemon does to the next one
//! (`Proc::heir`).

use std::time::Duration;

use phalanx_core::HostReply;
use phalanx_spec::{Rank, Status};
use phalanx_wire::{Nspace, ProcId, Text};

use crate::job::JobVerdict;
use crate::msg::{Down, FailurePolicy, Members, Part, ProcEnd, Results, Task};
use crate::ranges::Ranges;
use crate::root::Root;
use crate::root::asked::Asked;
use crate::root::control::{MOST_OPEN, named};
use crate::root::jobs::Jobs;
use crate::root::journal::What;
use crate::root::kind::{Explained, Kind};
use crate::root::operations::Asker;
use crate::root::targets::Targets;
use crate::root::turn::Cx;

/// Ranks that are being started again.
#[derive(Debug)]
pub(super) struct Restarting {
    pub(super) targets: Targets,
    /// The targets that daemons still have to end, or to start.
    pub(super) members: Vec<Members>,
    from: Option<Text>,
    by: Option<ProcId>,
    /// The old processes have ended.
    are_cleared: bool,
    tasks: Vec<(u32, Nspace)>,
    pids: Vec<(Nspace, Vec<(u32, u32)>)>,
    /// New processes that have failed before all of them ran.
    failed: Vec<ProcEnd>,
}

impl Restarting {
    /// Whether this is the end of a new process.
    fn has_renewed(&self, proc: &ProcId) -> bool {
        let mut members = self.members.iter().filter(|m| m.nspace == proc.nspace);
        self.are_cleared && members.any(|m| m.ranks.contains(proc.rank.0))
    }
}

impl Kind for Restarting {
    fn name(&self) -> &'static str {
        "restart"
    }

    fn most(&self) -> usize {
        MOST_OPEN
    }

    fn concerns(&self, nspace: &Nspace) -> bool {
        self.targets.concern(nspace)
    }

    fn failure(&self, status: Status) -> HostReply {
        HostReply::Infos(status, self.targets.told(status))
    }

    fn targets(&self) -> Option<&Targets> {
        Some(&self.targets)
    }

    /// The daemons of one job have done their part.
    fn task_done(&mut self, task: u32, missing: &Ranges, part: Part, jobs: &Jobs) {
        let Some(at) = self.tasks.iter().position(|(number, _)| *number == task) else { return };
        let (_, nspace) = self.tasks.swap_remove(at);
        let (results, pids) = match part {
            Part::Results(results) => (results, Vec::new()),
            Part::Renewed { results, pids } => (results, pids),
            _ => (Results::default(), Vec::new()),
        };
        self.pids.push((nspace.clone(), pids));
        if self.are_cleared {
            self.targets.take(&nspace, &results);
        }
        let failed = results.iter().filter(|(status, _)| !status.is_success());
        failed.for_each(|(status, ranks)| self.targets.set(&nspace, ranks, status));
        if let Some(desc) = jobs.get(&nspace).map(|job| &job.desc) {
            self.targets.set(&nspace, &desc.ranks_on_any(missing), Status::ERR_LOST_CONNECTION);
        }
    }

    /// Ranks that are between two lives have to come to the next one.
    fn outlives_askers(&self) -> bool {
        true
    }

    fn explain(&self, _: &[Asker], _: &Jobs) -> Explained {
        let unblocked_by = match self.are_cleared {
            true => "the start of the named processes",
            false => "the end of the named processes, which are to be started again",
        };
        let (subject, missing) = (named(&self.members), self.targets.missing());
        Explained { subject, missing, unblocked_by, ..Explained::default() }
    }
}

impl Root {
    /// Starts ranks again. `from`: the checkpoint to pass to them. `asker`: none if they have failed.
    pub(super) fn restart(
        &mut self,
        cx: &mut Cx<'_>,
        asker: Option<Asker>,
        members: &[Members],
        from: Option<Text>,
    ) {
        let mut targets = Targets::of(members);
        for target in targets.iter_mut() {
            let open = target.open.clone();
            match self.jobs.get_mut(&target.nspace) {
                Some(job) if !job.journal.has_exited() && job.journal.verdict().is_none() => {
                    let busy = job.restarting.and(&open);
                    target.set(&busy, Status::ERR_EXISTS);
                    job.restarting.add(&target.open);
                }
                _ => target.set(&open, Status::ERR_NOT_FOUND),
            }
        }
        let members = targets.open();
        if members.is_empty() {
            let status = targets.failure().unwrap_or(Status::ERR_NOT_FOUND);
            let told = (status, targets.told(status));
            return asker.into_iter().for_each(|asker| self.tell_asker(cx, asker, told.clone()));
        }
        let restarting = Restarting {
            targets,
            members: members.clone(),
            from,
            by: asker.as_ref().map(|asker| asker.by.clone()),
            are_cleared: false,
            tasks: Vec::new(),
            pids: Vec::new(),
            failed: Vec::new(),
        };
        self.tell_restart_begins(cx, &members, asker.is_some());
        let asked = Asked::Restart(Box::new(restarting));
        let Some(number) = self.begin_operation(cx, asker, Some(cx.now.after(LIMIT)), asked) else {
            return members.iter().for_each(|m| self.restarts_no_more(m));
        };
        self.restart_step(cx, number, &members, |targets| Task::Clear { targets });
    }

    /// Releases everything that waits for the old processes, and forgets state that does not apply to the new ones. For ranks
    /// that have failed, the first was done when they failed.
    fn tell_restart_begins(&mut self, cx: &mut Cx<'_>, members: &[Members], is_asked: bool) {
        for Members { nspace, ranks } in members {
            let Some(job) = self.jobs.get_mut(nspace) else { continue };
            job.abilities.forget(ranks);
            job.forget_pauses(ranks);
            if is_asked {
                job.tell_dead(cx, ranks);
                self.checkpoint_without(cx, nspace, ranks);
            }
            self.stop_again(nspace, ranks);
        }
    }

    fn restart_step(
        &mut self,
        cx: &mut Cx<'_>,
        number: u64,
        members: &[Members],
        task: impl Fn(Members) -> Task,
    ) {
        for targets in members {
            let nspace = targets.nspace.clone();
            let daemons = self.desc(&nspace).map(|desc| desc.nodes_of(&targets.ranks)).unwrap_or_default();
            let task = self.give_task(cx, number, daemons, task(targets.clone()));
            if let Some(Asked::Restart(one)) = self.operations.get_mut(number).map(|one| &mut one.asked) {
                one.tasks.push((task, nspace));
            }
        }
    }

    /// Daemons have finished their tasks. Returns whether that was the last step.
    pub(super) fn go_on_restarting(&mut self, cx: &mut Cx<'_>, number: u64) -> bool {
        let Some(Asked::Restart(one)) = self.operations.get_mut(number).map(|one| &mut one.asked) else {
            return true;
        };
        let members = one.targets.open();
        if std::mem::replace(&mut one.are_cleared, true) || members.is_empty() {
            return true;
        }
        let before = std::mem::replace(&mut one.members, members.clone());
        let (from, by) = (one.from.clone(), one.by.clone());
        before.iter().for_each(|m| self.restarts_no_more(m));
        for Members { nspace, ranks } in &members {
            let Some(job) = self.jobs.get_mut(nspace) else { continue };
            job.restarting.add(ranks);
            for rank in ranks.iter() {
                job.dead.remove(rank);
                job.killed.remove(rank);
                *job.restarts.entry(rank).or_default() += 1;
            }
            cx.cast(
                self.nodes.all(),
                Down::Renewed { nspace: nspace.clone(), ranks: ranks.clone(), from: from.clone() },
            );
            self.append(
                cx,
                nspace,
                What::Restarting { ranks: ranks.clone(), by: by.clone(), from: from.clone() },
            );
        }
        self.restart_step(cx, number, &members, |targets| Task::Renew { targets });
        false
    }

    /// The ranks run again, or some failed to: then their job ends. It goes on without ranks that had already ended, and
    /// without those killed on request before they ran.
    pub(super) fn answer_restart(
        &mut self,
        cx: &mut Cx<'_>,
        askers: Vec<Asker>,
        mut one: Restarting,
        status: Status,
    ) {
        one.targets.close(if status.is_success() { Status::ERR_JOB_FAILED_TO_LAUNCH } else { status });
        for m in &one.members {
            self.restarts_no_more(m);
        }
        let status = one.targets.failure().unwrap_or(Status::SUCCESS);
        for Members { nspace, ranks } in one.targets.with(Status::SUCCESS) {
            let pids = one.pids.iter().filter(|(of, _)| *of == nspace).flat_map(|(_, pids)| pids.clone());
            self.tell_restarted(cx, &nspace, &ranks, pids.collect());
        }
        for Members { nspace, .. } in &one.members {
            if let Some(status) = one.targets.results_in(nspace).find(|status| !lets_go_on(*status)) {
                let error = format!("ranks of {nspace} could not be started again: {status}");
                self.end_job(cx, nspace, JobVerdict::NotStarted { error });
            }
        }
        one.failed.iter().for_each(|end| self.recover_or_end(cx, end));
        askers.into_iter().for_each(|asker| self.tell_asker(cx, asker, (status, one.targets.told(status))));
    }

    fn restarts_no_more(&mut self, members: &Members) {
        if let Some(job) = self.jobs.get_mut(&members.nspace) {
            members.ranks.iter().for_each(|rank| job.restarting.remove(rank));
        }
    }

    fn tell_restarted(
        &mut self,
        cx: &mut Cx<'_>,
        nspace: &Nspace,
        ranks: &Ranges,
        mut pids: Vec<(u32, u32)>,
    ) {
        let Some(job) = self.jobs.get(nspace) else { return };
        let first = job.descent.first.clone();
        let concerned: std::sync::Arc<[Nspace]> =
            self.relations.concerned_by(&self.jobs, nspace, &first).into();
        pids.sort_unstable();
        let what = What::Restarted { ranks: ranks.clone(), pids, concerned: concerned.clone() };
        let number = self.append(cx, nspace, what).unwrap_or_default();
        self.interests.tell_restart(cx, (nspace, ranks), self.stamp(number, cx.now), &concerned);
    }

    /// The job is gone for good: its restarts fail.
    pub(super) fn restart_without(&mut self, cx: &mut Cx<'_>, nspace: &Nspace) {
        let mut touched = Vec::new();
        for (number, operation) in self.operations.iter_mut() {
            if let Asked::Restart(one) = &mut operation.asked
                && one.targets.concern(nspace)
            {
                one.targets.set(nspace, &Ranges::first(u32::MAX), Status::ERR_PROC_ABORTED);
                let of_job = one.tasks.extract_if(.., |(_, of)| of == nspace);
                touched.push((number, of_job.map(|(task, _)| task).collect::<Vec<_>>()));
            }
        }
        touched.iter().for_each(|(number, tasks)| self.drop_tasks(cx, *number, tasks));
    }

    /// A rank has failed in a job that restarts failed ranks.
    pub(super) fn recover_or_end(&mut self, cx: &mut Cx<'_>, end: &ProcEnd) {
        for (_, operation) in self.operations.iter_mut() {
            if let Asked::Restart(one) = &mut operation.asked
                && one.has_renewed(&end.proc)
            {
                return one.failed.push(end.clone());
            }
        }
        if !self.recover(cx, end) {
            let verdict = self.jobs.get(&end.proc.nspace).map(|job| job.journal.failure(end));
            verdict.into_iter().for_each(|verdict| self.end_job(cx, &end.proc.nspace, verdict));
        }
    }

    /// Starts a failed rank again, if its job allows it; returns whether it does. Otherwise the job ends, and its report states
    /// why.
    fn recover(&mut self, cx: &mut Cx<'_>, end: &ProcEnd) -> bool {
        let ProcId { nspace, rank: Rank(rank) } = &end.proc;
        let Some(job) = self.jobs.get(nspace) else { return false };
        let FailurePolicy::Restart { most } = job.desc.on_failure else { return false };
        let before = job.restarts.get(rank).copied().unwrap_or(0);
        if job.journal.verdict().is_some() {
            return false;
        }
        if before >= most {
            let times = if before == 1 { "once".to_owned() } else { format!("{before} times") };
            if before > 0 {
                let text = format!("rank {rank} has been started again {times}, and is given up");
                self.tell_user_of(cx, &ProcId::all(nspace), &text);
            }
            return false;
        }
        let ranks = Ranges::single(*rank);
        let from = job.abilities.last_of(&ranks).cloned();
        let how = end.how();
        let with = from.as_ref().map(|name| format!(" with checkpoint {}", name.to_string_lossy()));
        let with = with.unwrap_or_default();
        let text = format!("rank {rank} {how}; it is started again{with} ({} of {most})", before + 1);
        self.tell_user_of(cx, &ProcId::all(nspace), &text);
        self.restart(cx, None, &[Members { nspace: nspace.clone(), ranks }], from);
        true
    }
}

/// Whether the job goes on although the restart of a rank had this result.
fn lets_go_on(status: Status) -> bool {
    // It had ended before, was killed before it ran, or is part of another restart.
    let others = [Status::ERR_NOT_FOUND, Status::ERR_PROC_ABORTED, Status::ERR_EXISTS];
    status.is_success() || others.contains(&status)
}

/// The time limit of a whole restart.
const LIMIT: Duration = Duration::from_secs(120);
