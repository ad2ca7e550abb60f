//! Jobs that have ended: what is known of them is kept for a while, for those who ask too late.

use std::collections::VecDeque;
use std::sync::Arc;

use phalanx_core::Time;
use phalanx_wire::{Nspace, ProcId};

use crate::job::JobEnd;
use crate::msg::JobDesc;

/// The last jobs, the oldest first.
#[derive(Debug, Default)]
pub(super) struct History {
    jobs: VecDeque<Past>,
    ranks: usize,
}

#[derive(Debug)]
pub(super) struct Past {
    pub(super) desc: Arc<JobDesc>,
    /// The tool that ran it.
    pub(super) run_by: Option<ProcId>,
    pub(super) end: JobEnd,
    pub(super) since: Time,
    pub(super) ended: Time,
}

impl History {
    pub(super) fn add(&mut self, past: Past) {
        self.ranks += past.end.procs.len();
        self.jobs.push_back(past);
        while self.jobs.len() > MOST_JOBS || self.ranks > MOST_RANKS {
            let Some(oldest) = self.jobs.pop_front() else { return };
            self.ranks -= oldest.end.procs.len();
        }
    }

    pub(super) fn get(&self, nspace: &Nspace) -> Option<&Past> {
        self.jobs.iter().rev().find(|past| past.desc.nspace == *nspace)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Past> {
        self.jobs.iter()
    }
}

const MOST_JOBS: usize = 64;
/// Of all of them together.
const MOST_RANKS: usize = 65_536;
