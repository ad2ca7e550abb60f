//! The status line: on a terminal, shows what takes long and how far it has come.

use std::time::{Duration, Instant};

use crate::output::Output;

/// The progress of the current phase, and whether the line is on the terminal.
#[derive(Debug)]
pub(crate) struct Status {
    /// A user is watching.
    wanted: bool,
    phase: Option<Phase>,
    shown: bool,
}

#[derive(Debug)]
struct Phase {
    name: &'static str,
    done: u32,
    of: u32,
    what: &'static str,
    /// When to show the line.
    due: Instant,
}

impl Status {
    pub(crate) fn new(wanted: bool) -> Status {
        Status { wanted, phase: None, shown: false }
    }

    /// A phase has come further; it is over when all is done.
    pub(crate) fn progress(
        &mut self,
        now: Instant,
        name: &'static str,
        (done, of, what): (u32, u32, &'static str),
        output: &mut Output,
    ) {
        if !self.wanted {
            return;
        }
        let due =
            self.phase.as_ref().filter(|phase| phase.name == name).map_or(now + PATIENCE, |phase| phase.due);
        self.phase = (done < of).then_some(Phase { name, done, of, what, due });
        self.clear(output);
        self.tick(now, output);
    }

    /// Removes the line for output of the ranks, and holds it back for a while.
    pub(crate) fn make_way(&mut self, now: Instant, output: &mut Output) {
        self.clear(output);
        if let Some(phase) = &mut self.phase {
            phase.due = now + PATIENCE;
        }
    }

    /// Shows the line if it is due.
    pub(crate) fn tick(&mut self, now: Instant, output: &mut Output) {
        if let Some(phase) = self.phase.as_ref().filter(|phase| phase.due <= now && !self.shown) {
            output.say_over(&format!("px: {} {} of {} {}", phase.name, phase.done, phase.of, phase.what));
            self.shown = true;
        }
    }

    /// Removes the line.
    pub(crate) fn clear(&mut self, output: &mut Output) {
        if std::mem::take(&mut self.shown) {
            output.say_over("\r\x1b[K");
        }
    }

    /// When [`Status::tick`] is due.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.phase.as_ref().filter(|_| !self.shown).map(|phase| phase.due)
    }
}

/// Phases shorter than this are not shown.
const PATIENCE: Duration = Duration::from_secs(1);
