//! Whether others of a job go on after job control has ended some of its ranks: those may wait for them for ever, so the user is
//! notified. Only the daemons know who has ended well.

use phalanx_spec::{ProcState, Status};
use phalanx_wire::{Nspace, ProcId};

use crate::job::JobEnd;
use crate::msg::{Members, Part, Subject, Task};
use crate::ranges::Ranges;
use crate::root::answer::Asker;
use crate::root::consequence::Consequence;
use crate::root::jobs::Jobs;
use crate::root::kind::{Explained, Kind};
use crate::root::operations::Operations;
use crate::root::turn::Cx;

/// The daemons are asked which ranks run. No request waits for it.
#[derive(Debug)]
pub(super) struct Rest {
    ended: Members,
    by: ProcId,
    signal: i32,
    goes_on: bool,
}

impl Kind for Rest {
    fn name(&self) -> &'static str {
        "look for the rest"
    }

    fn concerns(&self, nspace: &Nspace) -> bool {
        self.ended.nspace == *nspace
    }

    fn is_of_askers(&self) -> bool {
        false
    }

    fn task_done(&mut self, _: &Task, _: &Ranges, part: Part, jobs: &Jobs) {
        let (Part::Found(found), Some(job)) = (part, jobs.get(&self.ended.nspace)) else { return };
        let ending = job.journal.killed();
        let mut living = found.procs.iter().filter(|proc| proc.state < ProcState::TERMINATED);
        self.goes_on = living.any(|proc| !ending.contains(proc.rank));
    }

    fn answer(self: Box<Self>, _: &mut Cx<'_>, _: Vec<Asker>, _: Status) -> Vec<Consequence> {
        let Rest { ended: members, by, signal, goes_on } = *self;
        if goes_on { vec![Consequence::GoesOn { members, by, signal }] } else { Vec::new() }
    }

    fn explain(&self, _: &[Asker], _: &Jobs) -> Explained {
        Explained {
            subject: self.ended.nspace.to_string(),
            unblocked_by: "the daemons telling which ranks run",
            ..Explained::default()
        }
    }
}

/// A requester has ended these ranks.
pub(super) fn look(
    operations: &mut Operations,
    jobs: &Jobs,
    cx: &mut Cx<'_>,
    (ended, by, signal): (Members, ProcId, i32),
) {
    let nspace = ended.nspace.clone();
    let Some(job) = jobs.get(&nspace).filter(|job| !job.journal.has_exited()) else { return };
    if ended.ranks.count() >= job.desc.size {
        return;
    }
    let daemons = job.desc.nodes.clone();
    let rest = Rest { ended, by, signal, goes_on: false };
    let Some(number) = operations.begin(cx, None, None, rest) else { return };
    let subject = Subject::Procs { nspace, usage: false };
    operations.give_task(cx, number, daemons, Task::Survey(subject));
}

/// What the user reads when some of the rest go on.
pub(super) fn text(jobs: &Jobs, ended: &Members, by: &ProcId, signal: i32) -> Option<String> {
    let job = jobs.get(&ended.nspace).filter(|job| !job.journal.has_exited())?;
    Some(JobEnd::of_some(&ended.ranks, by, job.journal.tool(by), signal))
}

/// The job is over: drops its looks, even if daemons have yet to report.
pub(super) fn end_of_job(operations: &mut Operations, nspace: &Nspace) {
    let of_job = operations.of::<Rest>().filter(|(_, rest)| rest.ended.nspace == *nspace);
    for number in of_job.map(|(number, _)| number).collect::<Vec<_>>() {
        drop(operations.take::<Rest>(number));
    }
}
