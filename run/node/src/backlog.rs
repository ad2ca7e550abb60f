//! Reports that the user has no room for. Output is bounded by its credit; for other reports, the connections that cause them have to wait.

use std::collections::VecDeque;

use phalanx_dvm::{Effect, Report};

/// Reports that wait, in order.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    reports: VecDeque<Report>,
    /// The cost of the reports that no credit bounds.
    cost: usize,
}

impl Backlog {
    pub(crate) fn is_empty(&self) -> bool {
        self.reports.is_empty()
    }

    /// Whether connections that cause further reports have to wait.
    pub(crate) fn is_long(&self) -> bool {
        self.cost >= LONG_BACKLOG
    }

    pub(crate) fn push(&mut self, report: Report) {
        self.cost += cost(&report);
        self.reports.push_back(report);
    }

    pub(crate) fn pop(&mut self) -> Option<Report> {
        let report = self.reports.pop_front()?;
        self.cost -= cost(&report);
        Some(report)
    }
}

fn cost(report: &Report) -> usize {
    match report {
        Report::Output { .. } => 0,
        Report::Logged { text, .. } => REPORT + text.len(),
        _ => REPORT,
    }
}

pub(crate) fn lengthens(effect: &Effect) -> bool {
    matches!(effect, Effect::Report(report) if cost(report) > 0)
}

/// What a report costs without its text.
const REPORT: usize = 1 << 10;
/// Reports other than output may cost this much before the connections that cause them have to wait.
const LONG_BACKLOG: usize = 256 << 10;
