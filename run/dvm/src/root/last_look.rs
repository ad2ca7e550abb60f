//! What the processes of a job were waiting for when its end was decided. The daemons look before they end anything, and report
//! it in sets of ranks; the journal keeps it for the exit report.

use phalanx_wire::Nspace;

use crate::msg::{Part, Stuck, Subject, Task};
use crate::ranges::Ranges;
use crate::root::Root;
use crate::root::asked::Asked;
use crate::root::jobs::Jobs;
use crate::root::journal::What;
use crate::root::kind::{Explained, Kind};
use crate::root::operations::Asker;
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

    fn task_done(&mut self, _: u32, _: &Ranges, part: Part, _: &Jobs) {
        if let Part::Found(found) = part {
            self.stuck = found.stuck;
        }
    }

    fn explain(&self, _: &[Asker], _: &Jobs) -> Explained {
        Explained {
            subject: self.nspace.to_string(),
            unblocked_by: "the daemons telling what they have seen",
            ..Explained::default()
        }
    }
}

impl Root {
    /// Must be called before the daemons are asked to end the job: messages keep their order.
    pub(super) fn look_a_last_time(&mut self, cx: &mut Cx<'_>, nspace: &Nspace) {
        let Some(job) = self.jobs.get(nspace).filter(|job| job.journal.has_started()) else { return };
        let daemons = job.desc.nodes.clone();
        let look = LastLook { nspace: nspace.clone(), stuck: Vec::new() };
        let Some(number) = self.begin_operation(cx, None, None, Asked::LastLook(look)) else { return };
        self.give_task(cx, number, daemons, Task::Survey(Subject::Stuck { nspace: nspace.clone() }));
    }

    /// The job is over: drops its look, even if daemons have yet to report.
    pub(super) fn end_last_look_of(&mut self, nspace: &Nspace) {
        let is_of_job = |asked: &Asked| matches!(asked, Asked::LastLook(look) if look.nspace == *nspace);
        for number in self.operations.numbers(|one| is_of_job(&one.asked)) {
            drop(self.end_operation(number));
        }
    }

    pub(super) fn note_last_look(&mut self, cx: &Cx<'_>, look: LastLook) {
        if !look.stuck.is_empty() {
            self.append(cx, &look.nspace, What::Stuck(look.stuck));
        }
    }
}
