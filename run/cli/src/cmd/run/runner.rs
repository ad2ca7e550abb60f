//! Who runs the job: a node in this process, or a server that we are a tool of. The user's side is the same for both.

use std::sync::Arc;
use std::time::Duration;

use phalanx_dvm::{Control, Report};
use phalanx_node::{Handle, Reports};
use phalanx_wire::Nspace;

use crate::cmd::run::far::Far;
use crate::standstill::MayStop;

/// Whom the job is given to, and what can be done to it there.
pub(crate) enum Runner {
    Node(Handle),
    Server(Arc<Far>),
}

/// What is told of it.
pub(crate) enum JobReports<'a> {
    Node(&'a mut Reports),
    Server(&'a Far),
}

impl Runner {
    /// Whoever is gone has no job.
    pub(crate) async fn control(&self, nspace: &Nspace, action: Control) {
        match self {
            Runner::Node(handle) => drop(handle.control(nspace, action).await),
            Runner::Server(far) => far.control(nspace, action).await,
        }
    }

    /// If the job has not begun, it is not wanted any more.
    pub(crate) async fn withdraw(&self) {
        if let Runner::Node(handle) = self {
            let _ = handle.withdraw().await;
        }
    }

    /// Until the job is about to end, even while its reports are not taken.
    pub(crate) async fn ending(&self, nspace: &Nspace) {
        match self {
            Runner::Node(handle) => handle.ending(nspace).await,
            Runner::Server(far) => far.ending().await,
        }
    }

    /// This process is about to be stopped: it may when what was asked for before has been carried out. `named`: the job has a name, by
    /// which its ranks were told to pause.
    pub(crate) async fn stand_still(&self, named: bool) -> MayStop {
        match self {
            Runner::Node(handle) => MayStop::of(handle).await,
            // Each request was answered before the next. Ranks that begin while nobody is here do not pause.
            Runner::Server(_) if named => MayStop::at_once(),
            Runner::Server(_) => MayStop::after(NAMELESS),
        }
    }

    /// It goes on, or was not stopped after all.
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

    /// Why there are no more news.
    pub(crate) fn loss(&self) -> &'static str {
        match self {
            JobReports::Node(_) => "the node stopped before the job had ended",
            JobReports::Server(_) => "lost the server; the job's outcome is unknown",
        }
    }
}

/// How long a job may take to get its name from a server before this process is stopped.
const NAMELESS: Duration = Duration::from_secs(1);
