//! The jobs below the one that `px run` has started: those that its ranks have started, and so on. The command ends with the last of them.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use phalanx_dvm::JobEnd;
use phalanx_wire::Nspace;

use crate::render::words;

#[derive(Default)]
pub(crate) struct Below {
    living: BTreeSet<Nspace>,
    /// How the job above them has ended.
    top: Option<JobEnd>,
    /// What is left of its time limit, and that.
    limit: Option<(Duration, Instant)>,
    /// Of the first that has failed.
    exit_code: i32,
}

impl Below {
    pub(crate) fn add(&mut self, nspace: Nspace) {
        self.living.insert(nspace);
    }

    pub(crate) fn has(&self, nspace: Option<&Nspace>) -> bool {
        nspace.is_some_and(|nspace| self.living.contains(nspace))
    }

    pub(crate) fn living(&self) -> impl Iterator<Item = &Nspace> {
        self.living.iter()
    }

    pub(crate) fn is_top_over(&self) -> bool {
        self.top.is_some()
    }

    /// The job above has ended. It is handed back when nothing below it is left.
    pub(crate) fn top_ended(&mut self, end: JobEnd, limit: Option<(Duration, Instant)>) -> Option<JobEnd> {
        self.top = Some(end);
        self.limit = limit;
        self.last()
    }

    /// A job below has ended.
    pub(crate) fn ended(&mut self, nspace: &Nspace) -> Option<JobEnd> {
        self.living.remove(nspace);
        self.last()
    }

    pub(crate) fn fail(&mut self, exit_code: i32) {
        if self.exit_code == 0 {
            self.exit_code = exit_code;
        }
    }

    pub(crate) fn exit_code(&self) -> i32 {
        self.exit_code
    }

    /// When the time of all of them is over.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.limit.map(|(_, at)| at)
    }

    /// That their time is over, once.
    pub(crate) fn overdue(&mut self, now: Instant) -> Option<String> {
        let (limit, _) = self.limit.take_if(|(_, at)| *at <= now)?;
        self.fail(OVERDUE);
        let jobs = words::count(self.living.len(), "job");
        Some(format!(
            "{jobs} that the job had started ended after {}, its time limit",
            words::duration(limit)
        ))
    }

    fn last(&mut self) -> Option<JobEnd> {
        if self.living.is_empty() { self.top.take() } else { None }
    }
}

/// As `timeout` exits.
const OVERDUE: i32 = 124;
