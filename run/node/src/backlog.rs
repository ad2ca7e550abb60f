//! Reports that the user has no room for. Credit bounds those of output; of others, who makes them.

use std::collections::VecDeque;

use phalanx_dvm::{Effect, Report};

/// Reports that wait, in order.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    reports: VecDeque<Report>,
    /// What those cost that no credit bounds.
    cost: usize,
}

impl Backlog {
    pub(crate) fn is_empty(&self) -> bool {
        self.reports.is_empty()
    }

    /// Whoever makes it longer has to wait.
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
/// When reports wait for the user that cost so much and are not output, whoever makes more of them has to wait.
const LONG_BACKLOG: usize = 256 << 10;
