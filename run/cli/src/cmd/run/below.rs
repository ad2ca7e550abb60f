//! The descendants of the job that `px run` has started: jobs spawned by its ranks, and so on. The command ends with the last of them.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use phalanx_dvm::JobEnd;
use phalanx_wire::Nspace;

use crate::render::words;

#[derive(Default)]
pub(crate) struct Below {
    /// The value: `PMIX_NOHUP` was given for it.
    living: BTreeMap<Nspace, bool>,
    /// How the top job has ended.
    top: Option<JobEnd>,
    /// What is left of its time limit: the limit and the deadline.
    limit: Option<(Duration, Instant)>,
    /// The exit code of the first that failed.
    exit_code: i32,
}

impl Below {
    pub(crate) fn add(&mut self, nspace: Nspace, nohup: bool) {
        self.living.insert(nspace, nohup);
    }

    pub(crate) fn has(&self, nspace: Option<&Nspace>) -> bool {
        nspace.is_some_and(|nspace| self.living.contains_key(nspace))
    }

    pub(crate) fn living(&self) -> impl Iterator<Item = &Nspace> {
        self.living.keys()
    }

    /// Those that end when the terminal is gone.
    pub(crate) fn hung_up(&self) -> impl Iterator<Item = &Nspace> {
        self.living.iter().filter(|(_, nohup)| !**nohup).map(|(nspace, _)| nspace)
    }

    pub(crate) fn is_top_over(&self) -> bool {
        self.top.is_some()
    }

    /// The top job has ended. Returns its end once no descendant is left.
    pub(crate) fn top_ended(&mut self, end: JobEnd, limit: Option<(Duration, Instant)>) -> Option<JobEnd> {
        self.top = Some(end);
        self.limit = limit;
        self.last()
    }

    /// A descendant has ended.
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

    /// The deadline of all of them.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.limit.map(|(_, at)| at)
    }

    /// The message that their time is over, once.
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

/// The exit code of `timeout`.
const OVERDUE: i32 = 124;
