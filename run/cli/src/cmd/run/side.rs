//! Who runs the job: a node in this process, or a server that we are a tool of. The user's side is the same for both.

use std::sync::Arc;

use phalanx_dvm::{Control, Report};
use phalanx_node::{Handle, Reports};
use phalanx_wire::Nspace;

use crate::cmd::run::far::Far;

/// What can be done to the job.
pub(crate) enum Hand {
    Node(Handle),
    Server(Arc<Far>),
}

/// What is told of it.
pub(crate) enum News<'a> {
    Node(&'a mut Reports),
    Server(&'a Far),
}

impl Hand {
    /// Whoever is gone has no job.
    pub(crate) async fn control(&self, nspace: &Nspace, action: Control) {
        match self {
            Hand::Node(handle) => drop(handle.control(nspace, action).await),
            Hand::Server(far) => far.control(nspace, action).await,
        }
    }

    /// Until the job is about to end, even while its reports are not taken.
    pub(crate) async fn ending(&self, nspace: &Nspace) {
        match self {
            Hand::Node(handle) => handle.ending(nspace).await,
            Hand::Server(far) => far.ending().await,
        }
    }

    /// Until what was asked for has been carried out.
    pub(crate) async fn settle(&self) {
        match self {
            Hand::Node(handle) => drop(handle.explain().await),
            // Each request is answered before the next.
            Hand::Server(_) => {}
        }
    }
}

impl News<'_> {
    pub(crate) async fn recv(&mut self) -> Option<Report> {
        match self {
            News::Node(reports) => reports.recv().await,
            News::Server(far) => far.recv().await,
        }
    }

    /// Why there are no more news.
    pub(crate) fn loss(&self) -> &'static str {
        match self {
            News::Node(_) => "the node stopped before the job had ended",
            News::Server(_) => "lost the server; the job's outcome is unknown",
        }
    }
}
