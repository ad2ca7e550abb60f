//! What the processes of a job were waiting for when its end was decided. The daemons look before they end anything, and report
//! it in sets of ranks; the journal keeps it for the exit report.

use phalanx_spec::Status;
use phalanx_wire::Nspace;

use crate::msg::{Part, Stuck, Subject, Task};
use crate::ranges::Ranges;
use crate::root::answer::Asker;
use crate::root::consequence::Consequence;
use crate::root::dvm::Dvm;
use crate::root::jobs::Jobs;
use crate::root::kind::{Explained, Kind};
use crate::root::operations::Operations;
use crate::root::turn::Cx;

/// A look that daemons were asked to take. No request waits for it.
#[derive(Debug)]
pub(super) struct LastLook {
    nspace: Nspace,
    stuck: Vec<Stuck>,
}

impl Kind for LastLook {
    fn name(&self) -> &'static str {
        "last look"
    }

    fn concerns(&self, nspace: &Nspace) -> bool {
        self.nspace == *nspace
    }

    fn is_of_askers(&self) -> bool {
        false
    }

    fn task_done(&mut self, _: &Task, _: &Ranges, part: Part, _: &Jobs) {
        if let Part::Found(found) = part {
            self.stuck = found.stuck;
        }
    }

    fn answer(self: Box<Self>, _: &mut Cx<'_>, _: Vec<Asker>, _: Status) -> Vec<Consequence> {
        let LastLook { nspace, stuck } = *self;
        if stuck.is_empty() { Vec::new() } else { vec![Consequence::Saw { nspace, stuck }] }
    }

    fn explain(&self, _: &[Asker], _: &Jobs) -> Explained {
        Explained {
            subject: self.nspace.to_string(),
            unblocked_by: "the daemons telling what they have seen",
            ..Explained::default()
        }
    }
}

/// Must be called before the daemons are asked to end the job: messages keep their order.
pub(super) fn take(cx: &mut Cx<'_>, dvm: &Dvm, operations: &mut Operations, nspace: &Nspace) {
    let Some(job) = dvm.jobs.get(nspace).filter(|job| job.journal.has_started()) else { return };
    let daemons = job.desc.nodes.clone();
    let look = LastLook { nspace: nspace.clone(), stuck: Vec::new() };
    let Some(number) = operations.begin(cx, None, None, look) else { return };
    operations.give_task(cx, number, daemons, Task::Survey(Subject::Stuck { nspace: nspace.clone() }));
}

/// The job is over: drops its look, even if daemons have yet to report.
pub(super) fn end_that_of(operations: &mut Operations, nspace: &Nspace) {
    let of_job = operations.of::<LastLook>().filter(|(_, look)| look.nspace == *nspace);
    for number in of_job.map(|(number, _)| number).collect::<Vec<_>>() {
        drop(operations.take::<LastLook>(number));
    }
}
