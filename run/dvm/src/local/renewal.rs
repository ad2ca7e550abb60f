//! The unfinished part of this daemon in a restart, and requests that wait for it.

use phalanx_spec::Status;

use crate::local::proc::Proc;
use crate::msg::{OpId, Part, Programs, Results, TaskId};
use crate::ranges::Ranges;

/// The unfinished work of this daemon on one task.
#[derive(Debug)]
pub(super) struct Renewal {
    pub(super) task: TaskId,
    pub(super) step: Step,
    pub(super) open: Ranges,
    pub(super) results: Results,
    /// The ranks of which the old process ran.
    pub(super) ran: Ranges,
    pub(super) pids: Vec<(u32, u32)>,
    pub(super) programs: Programs,
}

/// A request of job control that waits for these ranks to be started again or to be stopped.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) task: TaskId,
    pub(super) open: Ranges,
    pub(super) results: Results,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing may be left of the old processes.
    Clear,
    /// The new processes are to run.
    Start,
}

impl Renewal {
    pub(super) fn part(self) -> (OpId, Part) {
        let part = match self.step {
            Step::Clear => Part::Cleared { results: self.results, ran: self.ran },
            Step::Start => Part::Renewed { results: self.results, pids: self.pids, programs: self.programs },
        };
        (OpId::Task(self.task), part)
    }

    /// The result for a process that has completed the step.
    pub(super) fn result(&self, proc: &Proc) -> Option<Status> {
        match self.step {
            Step::Clear => proc.is_finished().then_some(Status::SUCCESS),
            Step::Start if proc.pid().is_some() => Some(Status::SUCCESS),
            // It was killed on request before it ran.
            Step::Start if proc.killed().is_some() => proc.is_gone().then_some(Status::ERR_PROC_ABORTED),
            Step::Start => proc.is_gone().then_some(Status::ERR_JOB_FAILED_TO_LAUNCH),
        }
    }
}
