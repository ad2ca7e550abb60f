//! What differs between the kinds of operations. Each kind is in the file of its verb; the table of operations knows none of them by name.

use std::any::Any;
use std::fmt::Debug;

use phalanx_core::HostReply;
use phalanx_spec::Status;
use phalanx_wire::{Nspace, ProcId};

use crate::msg::{Part, Task};
use crate::ranges::Ranges;
use crate::root::answer::Asker;
use crate::root::consequence::Consequence;
use crate::root::jobs::Jobs;
use crate::root::targets::Targets;
use crate::root::turn::Cx;

pub(super) trait Kind: Debug + Any {
    /// As `px why` calls it. The bound [`most`](Kind::most) is for all kinds of one name together.
    fn name(&self) -> &'static str;

    /// Operations that may be open at one time; by default no bound, for kinds of which each job has a few.
    fn most(&self) -> usize {
        usize::MAX
    }

    /// The names under which the verb looks for the operation.
    fn calls(&self) -> Vec<String> {
        Vec::new()
    }

    /// The targets, for job control.
    fn targets(&self) -> Option<&Targets> {
        None
    }

    /// Whether it is job control, whose requests have names by which they are cancelled.
    fn is_control(&self) -> bool {
        self.targets().is_some()
    }

    /// Whether the operation is about this job.
    fn concerns(&self, nspace: &Nspace) -> bool {
        self.targets().is_some_and(|targets| targets.concern(nspace))
    }

    /// Whether each asker waits for an answer of its own. A group is formed for all members together, and some operations have no asker.
    fn is_of_askers(&self) -> bool {
        true
    }

    /// The answer to an asker for whom the operation ends early, or has failed.
    fn failure(&self, status: Status) -> HostReply {
        match self.targets() {
            Some(targets) => HostReply::Infos(status, targets.told(status)),
            None => HostReply::Done(status),
        }
    }

    /// The daemons have finished a task; those in `missing` were lost before they had.
    fn task_done(&mut self, _task: &Task, _missing: &Ranges, _part: Part, _jobs: &Jobs) {}

    /// Whether the operation is complete. `is_idle`: the daemons have finished all tasks.
    fn is_done(&self, is_idle: bool) -> bool {
        is_idle
    }

    /// Whether there is another step once the operation is complete. Called once for each.
    fn has_next_step(&mut self) -> bool {
        false
    }

    /// Whether the operation goes on when its last asker has gone.
    fn outlives_askers(&self) -> bool {
        false
    }

    /// Answers the askers of the operation, which has ended. `status`: success if the daemons have finished all tasks.
    fn answer(self: Box<Self>, cx: &mut Cx<'_>, askers: Vec<Asker>, status: Status) -> Vec<Consequence> {
        let failure = self.failure(status);
        askers.into_iter().for_each(|asker| asker.answer.give(cx, failure.clone()));
        Vec::new()
    }

    fn explain(&self, askers: &[Asker], jobs: &Jobs) -> Explained;
}

/// What `px why` says of an operation beside its name and times.
#[derive(Debug, Default)]
pub(super) struct Explained {
    pub(super) subject: String,
    /// The waiting processes, if they are not the askers.
    pub(super) waiting: Option<Vec<ProcId>>,
    pub(super) missing: Vec<ProcId>,
    pub(super) unblocked_by: &'static str,
}

/// Requests of one kind that may be open at one time.
pub(super) const MOST_OPEN: usize = 1 << 10;
