//! What is noted in the journal of a job because a process, a tool or the user has acted on it.

use phalanx_wire::{Nspace, ProcId};

use crate::job::JobVerdict;
use crate::msg::{Control, Members, Pauser};
use crate::ranges::Ranges;
use crate::root::dvm::Dvm;
use crate::root::jobs::RootJob;
use crate::root::journal::What;
use crate::root::last_look;
use crate::root::operations::Operations;
use crate::root::turn::Cx;

/// A process terminates processes of a job by job control.
pub(super) fn killed(
    cx: &mut Cx<'_>,
    dvm: &mut Dvm,
    operations: &mut Operations,
    nspace: &Nspace,
    ranks: &Ranges,
    by: &ProcId,
    signal: i32,
) {
    let Some(job) = dvm.jobs.get(nspace).filter(|job| !job.journal.has_exited()) else { return };
    let mut all = job.gone();
    all.add(ranks);
    let is_whole = all.count() >= job.desc.size;
    tool(dvm, nspace, by);
    dvm.append(cx, nspace, What::Killed { ranks: ranks.clone(), by: by.clone(), signal });
    if is_whole {
        last_look::take(cx, dvm, operations, nspace);
        reason(cx, dvm, nspace, JobVerdict::Killed { by: by.clone(), signal, first: None });
    }
}

/// Processes had ended before the order to end them reached their daemons.
pub(super) fn spared(cx: &Cx<'_>, dvm: &mut Dvm, members: &Members, by: &ProcId, signal: i32) {
    let Members { nspace, ranks } = members;
    if dvm.jobs.get(nspace).is_some_and(|job| !job.journal.has_exited()) {
        dvm.append(cx, nspace, What::Spared { ranks: ranks.clone(), by: by.clone(), signal });
    }
}

/// A requester sends a signal to processes by job control. Whether it ends them depends on them.
pub(super) fn signalled(
    cx: &Cx<'_>,
    dvm: &mut Dvm,
    nspace: &Nspace,
    ranks: &Ranges,
    by: &ProcId,
    signal: i32,
) {
    if dvm.jobs.get(nspace).is_some_and(|job| !job.journal.has_exited()) {
        tool(dvm, nspace, by);
        dvm.append(cx, nspace, What::Signalled { ranks: ranks.clone(), by: by.clone(), signal });
    }
}

/// Processes are paused or resumed. `by`: none if the user requested it.
pub(super) fn paused(
    cx: &Cx<'_>,
    dvm: &mut Dvm,
    nspace: &Nspace,
    ranks: &Ranges,
    (by, pauser): (Option<&ProcId>, &Pauser),
    control: Control,
) {
    if let Some(job) = dvm.jobs.get_mut(nspace) {
        job.pauses.note(cx.now, ranks, control, pauser);
    }
    let ranks = ranks.clone();
    let what = match control {
        Control::Suspend => What::Paused { ranks, by: by.cloned() },
        Control::Resume => What::Resumed { ranks, by: by.cloned() },
        Control::Signal(_) | Control::Terminate { .. } | Control::Kill => return,
    };
    if dvm.jobs.get(nspace).is_some_and(|job| !job.journal.has_exited()) {
        by.iter().for_each(|by| tool(dvm, nspace, by));
        dvm.append(cx, nspace, what);
    }
}

/// Records the reason for which a job ends, unless there already is one.
pub(super) fn reason(cx: &Cx<'_>, dvm: &mut Dvm, nspace: &Nspace, verdict: JobVerdict) -> bool {
    let open = |job: &&mut RootJob| !job.journal.has_exited() && job.journal.verdict().is_none();
    let Some(job) = dvm.jobs.get_mut(nspace).filter(open) else { return false };
    dvm.journals.append(&mut job.journal, cx.now, What::Ending(verdict));
    true
}

/// If `by` is a tool, it may be gone when the job has ended: what is known of its process is kept with the job.
pub(super) fn tool(dvm: &mut Dvm, nspace: &Nspace, by: &ProcId) {
    if let Some(process) = dvm.tools.process(by)
        && let Some(job) = dvm.jobs.get_mut(nspace)
    {
        job.journal.note_tool(by, process);
    }
}
