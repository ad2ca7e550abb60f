//! The runner of the job: a node in this process, or a server that px is a tool of. The user's side is the same for both.

use std::sync::Arc;
use std::time::Duration;

use phalanx_dvm::{Control, Report};
use phalanx_node::{Handle, Reports};
use phalanx_wire::Nspace;

use crate::cmd::run::far::Far;
use crate::standstill::MayStop;

/// The runner of the job, and the actions on it.
pub(crate) enum Runner {
    Node(Handle),
    Server(Arc<Far>),
}

/// The reports of the runner.
pub(crate) enum JobReports<'a> {
    Node(&'a mut Reports),
    Server(&'a Far),
}

impl Runner {
    /// A runner that is gone has no job to act on.
    pub(crate) async fn control(&self, nspace: &Nspace, action: Control) {
        match self {
            Runner::Node(handle) => drop(handle.control(nspace, action).await),
            Runner::Server(far) => far.control(nspace, action).await,
        }
    }

    /// The address of the job's server, if that is not in this process.
    pub(crate) fn server(&self) -> Option<String> {
        match self {
            Runner::Node(_) => None,
            Runner::Server(far) => far.server(),
        }
    }

    /// Withdraws the job if it has not begun. Returns how long to wait for its beginning or its refusal, if there is a limit.
    pub(crate) async fn withdraw(&self) -> Option<Duration> {
        match self {
            Runner::Node(handle) => {
                let _ = handle.withdraw().await;
                None
            }
            // The server forgets the request, or ends the job, when this process ends.
            Runner::Server(_) => Some(NAMELESS),
        }
    }

    /// Waits until the job is about to end, even while its reports are not taken.
    pub(crate) async fn ending(&self, nspace: &Nspace) {
        match self {
            Runner::Node(handle) => handle.ending(nspace).await,
            Runner::Server(far) => far.ending().await,
        }
    }

    /// Prepares this process for being stopped: it may be stopped when all requests were carried out. `named`: the job has a name, by
    /// which its ranks were paused.
    pub(crate) async fn stand_still(&self, named: bool) -> MayStop {
        match self {
            Runner::Node(handle) => MayStop::of(handle).await,
            // Each request is answered before the next one. Ranks that start meanwhile do not pause.
            Runner::Server(_) if named => MayStop::at_once(),
            Runner::Server(_) => MayStop::after(NAMELESS),
        }
    }

    /// This process goes on, or was not stopped after all.
    pub(crate) async fn stand_no_longer(&self) {
        if let Runner::Node(handle) = self {
            let _ = handle.stand_no_longer().await;
        }
    }
}

impl JobReports<'_> {
    pub(crate) async fn recv(&mut self) -> Option<Report> {
        match self {
            JobReports::Node(reports) => reports.recv().await,
            JobReports::Server(far) => far.recv().await,
        }
    }

    /// Why there are no more reports.
    pub(crate) fn loss(&self) -> &'static str {
        match self {
            JobReports::Node(_) => "the node stopped before the job had ended",
            JobReports::Server(_) => "lost the server; the job's outcome is unknown",
        }
    }
}

/// How long a job may take to get its name from a server before this process is stopped, or ends as it was asked to.
const NAMELESS: Duration = Duration::from_secs(1);
