//! The slots of processes that have ended while their job goes on, which the root gives to other jobs.
//!
//! The reports are few: ends within a short time are one report, and a job that ends everywhere within that time needs none. While
//! a spawn waits for slots, they come at once, and include the processes that have finalized and will probably end.

use std::collections::BTreeMap;
use std::time::Duration;

use phalanx_core::Time;
use phalanx_wire::Nspace;

use crate::local::job::{Jobs, LocalJob};
use crate::local::proc::{Pmix, Proc};
use crate::local::timer::Timer;
use crate::local::turn::Cx;
use crate::msg::{OpId, Part, TaskId, Up};
use crate::ranges::Ranges;

#[derive(Debug, Default)]
pub(super) struct Freed {
    /// A spawn waits for slots until then.
    awaited_until: Time,
    /// What the root knows of each job.
    told: BTreeMap<Nspace, Ending>,
}

/// Processes of one job here.
#[derive(Debug, Default)]
struct Ending {
    /// They have ended, and are not started again.
    ended: Ranges,
    /// They have finalized.
    leaving: Ranges,
}

impl Freed {
    /// A spawn waits for slots, for so long: reports what the root does not know of any job.
    pub(super) fn begin_wait(&mut self, cx: &mut Cx<'_>, jobs: &Jobs, task: &TaskId, limit: Duration) {
        self.awaited_until = cx.now.after(limit);
        jobs.values().for_each(|job| self.tell(cx, job));
        cx.join(OpId::Task(task.clone()), Part::Nothing);
    }

    /// Processes of a job have come further: sets the timer that reports it, if there is something to report.
    pub(super) fn note(&self, cx: &mut Cx<'_>, job: &LocalJob) {
        let is_awaited = cx.now < self.awaited_until;
        let new = self.news(job);
        if !new.ended.is_empty() || (is_awaited && !new.leaving.is_empty()) {
            let delay = if is_awaited { SOON } else { COLLECT };
            cx.timers.set_once(cx.now.after(delay), Timer::Freed(job.desc.nspace.clone()));
        }
    }

    pub(super) fn tell(&mut self, cx: &mut Cx<'_>, job: &LocalJob) {
        let nspace = &job.desc.nspace;
        cx.timers.cancel(|timer| *timer == Timer::Freed(nspace.clone()));
        let Ending { ended, leaving } = self.news(job);
        if ended.is_empty() && leaving.is_empty() {
            return;
        }
        let told = self.told.entry(nspace.clone()).or_default();
        told.ended.add(&ended);
        told.leaving.add(&leaving);
        cx.post(Up::Freed { nspace: nspace.clone(), ended, leaving });
    }

    /// These are about to be started again, as the root knows.
    pub(super) fn take_back(&mut self, nspace: &Nspace, ranks: &Ranges) {
        let Some(told) = self.told.get_mut(nspace) else { return };
        for rank in ranks.iter() {
            told.ended.remove(rank);
            told.leaving.remove(rank);
        }
    }

    pub(super) fn forget(&mut self, nspace: &Nspace) {
        self.told.remove(nspace);
    }

    pub(super) fn know(&self, nspace: &Nspace) -> bool {
        self.told.contains_key(nspace)
    }

    /// What the root does not know.
    fn news(&self, job: &LocalJob) -> Ending {
        let told = self.told.get(&job.desc.nspace);
        let (mut ended, mut leaving) = (Ranges::new(), Ranges::new());
        for (rank, proc) in &job.procs {
            if has_left_slot(job, proc) && told.is_none_or(|told| !told.ended.contains(rank.0)) {
                ended.insert(rank.0);
            }
            let is_leaving = proc.is_alive() && proc.pmix == Pmix::Finalized;
            if is_leaving && told.is_none_or(|told| !told.leaving.contains(rank.0)) {
                leaving.insert(rank.0);
            }
        }
        Ending { ended, leaving }
    }
}

/// Whether its slot may be given to another job.
fn has_left_slot(job: &LocalJob, proc: &Proc) -> bool {
    proc.is_gone() && !job.keeps_end(proc)
}

/// The reports of ends within this time are one.
const COLLECT: Duration = Duration::from_millis(250);
/// The same while a spawn waits.
const SOON: Duration = Duration::from_millis(10);
