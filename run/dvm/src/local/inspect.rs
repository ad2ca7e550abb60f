//! MPI libraries in ranks that do not call `PMIx_Init`. Each such rank would silently run alone, as rank 0 of 1.
//!
//! There is no notification when a program loads a library, and what a process had loaded can no longer be read once it has
//! ended. Therefore the shell inspects the ranks of this node that have not connected, one at a time and in turn, until a
//! library is found, and one more when such a rank fails. The time between two inspections grows with the age of the job: they
//! are few in long jobs, and a library is seen if its rank goes on for about half the time that it took to load it. Ranks that
//! connect or end early are never inspected. The root ends a job with a library that has no PMIx client; otherwise the report
//! of the job's end names the library.

use std::time::Duration;

use phalanx_wire::ProcId;

use crate::effect::Effect;
use crate::local::job::LocalJob;
use crate::local::proc::Pmix;
use crate::local::timer::Timer;
use crate::local::turn::Cx;
use crate::msg::{JobDesc, MpiLibrary, Up};

/// A job begins with processes here. A job of one rank may run without PMIx.
pub(super) fn begin(cx: &mut Cx<'_>, desc: &JobDesc) {
    if desc.size > 1 {
        cx.timers.set(cx.now.after(FIRST), Timer::Inspect(desc.nspace.clone()));
    }
}

pub(super) fn on_due(cx: &mut Cx<'_>, job: &mut LocalJob) {
    let age = cx.now.since(job.since);
    if look(cx, job) && age < LAST {
        cx.timers.set(cx.now.after((age / 4).max(FIRST / 4)), Timer::Inspect(job.desc.nspace.clone()));
    }
}

/// Has one living process that has not connected inspected. `false`: there is none, or nothing more to find.
pub(super) fn look(cx: &mut Cx<'_>, job: &mut LocalJob) -> bool {
    if job.desc.size <= 1 || job.loaded_mpi {
        return false;
    }
    let Some((proc, pid)) = job.next_stranger() else { return false };
    if let Some(pid) = pid {
        cx.effect(Effect::Inspect { proc, pid });
    }
    true
}

/// The shell has found a library in a process.
pub(super) fn found(cx: &mut Cx<'_>, job: &mut LocalJob, proc: &ProcId, library: &MpiLibrary) {
    if job.procs.get(&proc.rank).is_some_and(|entry| entry.pmix == Pmix::Never) {
        job.loaded_mpi = true;
        cx.post(Up::LoadedMpi { proc: proc.clone(), library: library.clone() });
    }
}

/// Interpreters take longer than this to load MPI.
const FIRST: Duration = Duration::from_millis(20);
/// A library loaded this late would have been used before.
const LAST: Duration = Duration::from_hours(24);
