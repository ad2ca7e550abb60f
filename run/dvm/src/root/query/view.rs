//! What a query sees of a job, current or past.

use phalanx_spec::{JobState, Status};
use phalanx_wire::Nspace;

use crate::job::JobVerdict;
use crate::msg::{Found, JobDesc};
use crate::root::dvm::Dvm;
use crate::root::jobs::RootJob;
use crate::root::journal::Journal;

/// A current or past job.
#[derive(Clone, Copy)]
pub(super) enum View<'a> {
    Live(&'a RootJob, Option<&'a Found>),
    Over(&'a Journal),
}

impl<'a> View<'a> {
    pub(super) fn journal(&self) -> &'a Journal {
        match self {
            View::Live(job, _) => &job.journal,
            View::Over(journal) => journal,
        }
    }

    pub(super) fn desc(&self) -> &'a JobDesc {
        self.journal().desc()
    }

    pub(super) fn verdict(&self) -> Option<&'a JobVerdict> {
        self.journal().verdict()
    }

    pub(super) fn status(&self) -> Status {
        self.verdict().map_or(Status::SUCCESS, JobVerdict::status)
    }

    pub(super) fn state(&self) -> (&'static str, JobState) {
        match self {
            View::Over(journal) if journal.exit_code() == Some(0) => ("ended", JobState::TERMINATED),
            View::Over(_) => ("ended", JobState::TERMINATED_WITH_ERROR),
            View::Live(job, _) if job.journal.verdict().is_some() => ("ending", JobState::UNTERMINATED),
            View::Live(job, _) => match job.paused() {
                Some(paused) => (paused, JobState::SUSPENDED),
                None if job.journal.has_started() => ("running", JobState::RUNNING),
                None => ("starting", JobState::LAUNCH_UNDERWAY),
            },
        }
    }
}

pub(super) fn view<'a>(dvm: &'a Dvm, nspace: &Nspace, found: Option<&'a Found>) -> Option<View<'a>> {
    let live = dvm.jobs.get(nspace).map(|job| View::Live(job, found));
    live.or_else(|| dvm.journals.get(nspace).map(View::Over))
}
