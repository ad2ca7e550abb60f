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

use phalanx_spec::{Rank, Status};
use phalanx_wire::{Nspace, ProcId, Text};

use crate::job::JobVerdict;
use crate::msg::{Down, FailurePolicy, Members, Part, ProcEnd, Programs, Results, Task};
use crate::ranges::Ranges;
use crate::root::answer::Asker;
use crate::root::checkpoint;
use crate::root::consequence::{Consequence, Step};
use crate::root::debug;
use crate::root::dvm::Dvm;
use crate::root::jobs::{Jobs, RootJob};
use crate::root::journal;
use crate::root::journal::What;
use crate::root::kind::{Explained, Kind, MOST_OPEN};
use crate::root::lifecycle;
use crate::root::operations::Operations;
use crate::root::placing;
use crate::root::targets::{Targets, named};
use crate::root::turn::Cx;

/// Ranks that are being started again.
#[derive(Debug)]
pub(super) struct Restarting {
    targets: Targets,
    /// The targets that daemons still have to end, or to start.
    members: Vec<Members>,
    from: Option<Text>,
    by: Option<ProcId>,
    /// The old processes have ended.
    are_cleared: bool,
    /// The targets of which the old process ran.
    ran: Vec<Members>,
    started: Vec<Started>,
    /// New processes that have failed before all of them ran.
    failed: Vec<ProcEnd>,
}

/// New processes of one job.
#[derive(Debug)]
struct Started {
    nspace: Nspace,
    /// Ranks and pids.
    pids: Vec<(u32, u32)>,
    programs: Programs,
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

    fn targets(&self) -> Option<&Targets> {
        Some(&self.targets)
    }

    /// The daemons of one job have done their part.
    fn task_done(&mut self, task: &Task, missing: &Ranges, part: Part, jobs: &Jobs) {
        let (Task::Clear { targets } | Task::Renew { targets }) = task else { return };
        let nspace = &targets.nspace;
        let results = match part {
            Part::Cleared { results, ran } => {
                self.ran.push(Members { nspace: nspace.clone(), ranks: ran });
                results
            }
            Part::Renewed { results, pids, programs } => {
                self.started.push(Started { nspace: nspace.clone(), pids, programs });
                results
            }
            _ => Results::default(),
        };
        if self.are_cleared {
            self.targets.take(nspace, &results);
        }
        let failed = results.iter().filter(|(status, _)| !status.is_success());
        failed.for_each(|(status, ranks)| self.targets.set(nspace, ranks, status));
        if let Some(desc) = jobs.get(nspace).map(|job| &job.desc) {
            self.targets.set(nspace, &desc.ranks_on_any(missing), Status::ERR_LOST_CONNECTION);
        }
    }

    fn has_next_step(&mut self) -> bool {
        let was_cleared = std::mem::replace(&mut self.are_cleared, true);
        !was_cleared && !self.targets.are_closed()
    }

    /// Ranks that are between two lives have to come to the next one.
    fn outlives_askers(&self) -> bool {
        true
    }

    /// The ranks run again, or some failed to: then their job ends. It goes on without ranks that had already ended, and
    /// without those killed on request before they ran.
    fn answer(mut self: Box<Self>, _: &mut Cx<'_>, askers: Vec<Asker>, status: Status) -> Vec<Consequence> {
        self.targets.close(if status.is_success() { Status::ERR_JOB_FAILED_TO_LAUNCH } else { status });
        let mut then: Vec<Consequence> = self.members.iter().cloned().map(Consequence::RestartOver).collect();
        let status = self.status();
        for members in self.targets.with(Status::SUCCESS) {
            let (mut pids, mut programs) = (Vec::new(), Programs::default());
            for started in self.started.iter().filter(|started| started.nspace == members.nspace) {
                pids.extend(&started.pids);
                programs.merge(started.programs.clone());
            }
            then.push(Consequence::Restarted { members, pids, programs });
        }
        for Members { nspace, .. } in &self.members {
            if let Some(status) = self.targets.results_in(nspace).find(|status| !lets_go_on(*status)) {
                let error = format!("ranks of {nspace} could not be started again: {status}");
                let verdict = JobVerdict::NotStarted { error };
                then.push(Consequence::Of { nspace: nspace.clone(), step: Step::End(verdict) });
            }
        }
        then.extend(self.failed.into_iter().map(|end| {
            let nspace = end.proc.nspace.clone();
            Consequence::Of { nspace, step: Step::Recover(end) }
        }));
        then.extend(askers.into_iter().map(|asker| {
            let results = self.targets.told(status);
            Consequence::Tell { asker, status, results }
        }));
        then
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

impl Restarting {
    /// The status over all targets. One that ends the job is more than others.
    fn status(&self) -> Status {
        let results = || self.targets.results();
        let fatal = results().find(|status| !lets_go_on(*status));
        match fatal.or(self.targets.failure()) {
            None => Status::SUCCESS,
            Some(_) if fatal.is_none() && results().any(Status::is_success) => Status::ERR_PARTIAL_SUCCESS,
            Some(status) => status,
        }
    }
}

/// Starts ranks again. `from`: the checkpoint to pass to them. `asker`: none if they have failed.
pub(super) fn restart(
    cx: &mut Cx<'_>,
    dvm: &mut Dvm,
    operations: &mut Operations,
    asker: Option<Asker>,
    members: &[Members],
    from: Option<Text>,
) -> Vec<Consequence> {
    let mut targets = Targets::of(members);
    for target in targets.iter_mut() {
        let goes_on = |job: &&RootJob| !job.journal.has_exited() && job.journal.verdict().is_none();
        let Some(job) = dvm.jobs.get(&target.nspace).filter(goes_on) else {
            target.set(&target.open.clone(), Status::ERR_NOT_FOUND);
            continue;
        };
        target.set(&job.restarting, Status::ERR_EXISTS);
        let ended = target.open.iter().filter(|rank| !job.has_slot(*rank)).collect();
        let (crowded, why) = placing::without_slot(dvm, job, &ended);
        if !crowded.is_empty() {
            target.set(&crowded, Status::ERR_OUT_OF_RESOURCE);
            target.explain(Status::ERR_OUT_OF_RESOURCE, &why);
        }
        if let Some(job) = dvm.jobs.get_mut(&target.nspace) {
            job.restarting.add(&target.open);
        }
    }
    let members = targets.open();
    if members.is_empty() {
        let status = targets.failure().unwrap_or(Status::ERR_NOT_FOUND);
        let results = targets.told(status);
        let tell = asker.map(|asker| Consequence::Tell { asker, status, results });
        return tell.into_iter().collect();
    }
    let restarting = Restarting {
        targets,
        members: members.clone(),
        from,
        by: asker.as_ref().map(|asker| asker.by.clone()),
        are_cleared: false,
        ran: Vec::new(),
        started: Vec::new(),
        failed: Vec::new(),
    };
    let then = tell_restart_begins(cx, dvm, operations, &members, asker.is_some());
    let until = cx.now.after(LIMIT);
    let Some(number) = operations.begin(cx, asker, Some(until), restarting) else {
        members.iter().for_each(|members| restarts_no_more(dvm, members));
        return then;
    };
    for targets in members {
        let daemons = dvm.daemons_of(&targets);
        operations.give_task(cx, number, daemons, Task::Clear { targets });
    }
    then
}

/// Releases everything that waits for the old processes, and forgets state that does not apply to the new ones. For ranks
/// that have failed, the first was done when they failed.
fn tell_restart_begins(
    cx: &mut Cx<'_>,
    dvm: &mut Dvm,
    operations: &mut Operations,
    members: &[Members],
    is_asked: bool,
) -> Vec<Consequence> {
    let mut then = Vec::new();
    for Members { nspace, ranks } in members {
        let Some(job) = dvm.jobs.get_mut(nspace) else { continue };
        job.abilities.forget(ranks);
        job.pauses.forget(ranks);
        if is_asked {
            job.tell_dead(cx, ranks);
            then.extend(checkpoint::checkpoint_without(cx, operations, nspace, ranks));
        }
        debug::stop_again(dvm, operations, nspace, ranks);
    }
    then
}

/// The old processes have ended everywhere: has the new ones started.
pub(super) fn renew(cx: &mut Cx<'_>, dvm: &mut Dvm, operations: &mut Operations, number: u64) {
    let Some(one) = operations.get_mut::<Restarting>(number) else { return };
    let members = one.targets.open();
    let before = std::mem::replace(&mut one.members, members.clone());
    let (from, by, ran) = (one.from.clone(), one.by.clone(), std::mem::take(&mut one.ran));
    before.iter().for_each(|m| restarts_no_more(dvm, m));
    for Members { nspace, ranks } in &members {
        let Some(job) = dvm.jobs.get_mut(nspace) else { continue };
        job.restarting.add(ranks);
        for rank in ranks.iter() {
            job.dead.remove(rank);
            job.killed.remove(rank);
            job.ended.remove(rank);
            job.leaving.remove(rank);
        }
        let of_job = ran.iter().find(|of| of.nspace == *nspace);
        let ran = of_job.map_or_else(Ranges::new, |of| of.ranks.and(ranks));
        let renewed = Down::Renewed { nspace: nspace.clone(), ranks: ranks.clone(), ran, from: from.clone() };
        cx.cast(dvm.nodes.all(), renewed);
        dvm.append(cx, nspace, What::Restarting { ranks: ranks.clone(), by: by.clone(), from: from.clone() });
    }
    for targets in members {
        let Members { nspace, ranks } = targets.clone();
        let daemons = dvm.daemons_of(&targets);
        operations.give_task(cx, number, daemons, Task::Renew { targets });
        debug::watch_again(cx, dvm, operations, &nspace, &ranks);
    }
}

pub(super) fn restarts_no_more(dvm: &mut Dvm, members: &Members) {
    if let Some(job) = dvm.jobs.get_mut(&members.nspace) {
        members.ranks.iter().for_each(|rank| job.restarting.remove(rank));
    }
}

pub(super) fn tell_restarted(
    cx: &mut Cx<'_>,
    dvm: &mut Dvm,
    Members { nspace, ranks }: Members,
    mut pids: Vec<(u32, u32)>,
    programs: Programs,
) {
    let Some(job) = dvm.jobs.get_mut(&nspace) else { return };
    ranks.iter().for_each(|rank| *job.restarts.entry(rank).or_default() += 1);
    let concerned = dvm.concerned(&nspace);
    pids.sort_unstable();
    lifecycle::enter(cx, dvm, &nspace, What::Restarted { ranks, pids, programs, concerned });
}

/// The job is gone for good: its restarts fail.
pub(super) fn restart_without(
    cx: &mut Cx<'_>,
    operations: &mut Operations,
    nspace: &Nspace,
) -> Vec<Consequence> {
    let mut touched = Vec::new();
    let all = operations.of_mut::<Restarting>();
    for (number, one) in all.filter(|(_, one)| one.targets.concern(nspace)) {
        one.targets.set(nspace, &Ranges::first(u32::MAX), Status::ERR_PROC_ABORTED);
        touched.push(number);
    }
    let of_job = |task: &Task| match task {
        Task::Clear { targets } | Task::Renew { targets } => targets.nspace == *nspace,
        _ => false,
    };
    touched.into_iter().flat_map(|number| operations.drop_tasks(cx, number, of_job)).collect()
}

/// A rank has failed in a job that restarts failed ranks.
pub(super) fn recover_or_end(
    cx: &mut Cx<'_>,
    dvm: &mut Dvm,
    operations: &mut Operations,
    end: &ProcEnd,
) -> Vec<Consequence> {
    let renewed = operations.of_mut::<Restarting>().find(|(_, one)| one.has_renewed(&end.proc));
    if let Some((_, one)) = renewed {
        one.failed.push(end.clone());
        return Vec::new();
    }
    if let Some(then) = recover(cx, dvm, operations, end) {
        return then;
    }
    let verdict = dvm.jobs.get(&end.proc.nspace).map(|job| journal::failure_of(&job.journal, end));
    let end = |verdict| Consequence::Of { nspace: end.proc.nspace.clone(), step: Step::End(verdict) };
    verdict.into_iter().map(end).collect()
}

/// Starts a failed rank again, if its job allows it. `None`: it does not; the job ends, and its report states why.
fn recover(
    cx: &mut Cx<'_>,
    dvm: &mut Dvm,
    operations: &mut Operations,
    end: &ProcEnd,
) -> Option<Vec<Consequence>> {
    let ProcId { nspace, rank: Rank(rank) } = &end.proc;
    let job = dvm.jobs.get(nspace)?;
    let FailurePolicy::Restart { most } = job.desc.on_failure else { return None };
    let before = job.restarts.get(rank).copied().unwrap_or(0);
    if job.journal.verdict().is_some() {
        return None;
    }
    if before >= most {
        let times = if before == 1 { "once".to_owned() } else { format!("{before} times") };
        if before > 0 {
            let text = format!("rank {rank} has been started again {times}, and is given up");
            dvm.tell_user_of(cx, &ProcId::all(nspace), &text);
        }
        return None;
    }
    let ranks = Ranges::single(*rank);
    let from = job.abilities.last_of(&ranks).cloned();
    let how = end.how();
    let with = from.as_ref().map(|name| format!(" with checkpoint {}", name.to_string_lossy()));
    let with = with.unwrap_or_default();
    let text = format!("rank {rank} {how}; it is started again{with} ({} of {most})", before + 1);
    dvm.tell_user_of(cx, &ProcId::all(nspace), &text);
    Some(restart(cx, dvm, operations, None, &[Members { nspace: nspace.clone(), ranks }], from))
}

/// Whether the job goes on although the restart of a rank had this result.
fn lets_go_on(status: Status) -> bool {
    // It had ended before, was killed before it ran, is part of another restart, or there is no slot for it.
    let others =
        [Status::ERR_NOT_FOUND, Status::ERR_PROC_ABORTED, Status::ERR_EXISTS, Status::ERR_OUT_OF_RESOURCE];
    status.is_success() || others.contains(&status)
}

/// The time limit of a whole restart.
const LIMIT: Duration = Duration::from_secs(120);
