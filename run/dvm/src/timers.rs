//! Timers, sorted by time.

use std::collections::BTreeSet;
use std::time::Duration;

use phalanx_core::Time;

#[derive(Debug)]
pub(crate) struct Timers<T>(BTreeSet<(Time, T)>);

impl<T: Ord> Default for Timers<T> {
    fn default() -> Timers<T> {
        Timers(BTreeSet::new())
    }
}

impl<T: Ord> Timers<T> {
    pub(crate) fn set(&mut self, at: Time, timer: T) {
        self.0.insert((at, timer));
    }

    /// Unless it is set already.
    pub(crate) fn set_once(&mut self, at: Time, timer: T) {
        if !self.0.iter().any(|(_, set)| *set == timer) {
            self.set(at, timer);
        }
    }

    pub(crate) fn remove(&mut self, at: Time, timer: T) {
        self.0.remove(&(at, timer));
    }

    pub(crate) fn holds(&self, concerned: impl Fn(&T) -> bool) -> bool {
        self.0.iter().any(|(_, timer)| concerned(timer))
    }

    pub(crate) fn cancel(&mut self, concerned: impl Fn(&T) -> bool) {
        self.0.retain(|(_, timer)| !concerned(timer));
    }

    /// These come later by so much.
    pub(crate) fn put_off(&mut self, by: Duration, concerned: impl Fn(&T) -> bool) {
        let late: Vec<_> = self.0.extract_if(.., |(_, timer)| concerned(timer)).collect();
        self.0.extend(late.into_iter().map(|(at, timer)| (at.after(by), timer)));
    }

    pub(crate) fn next(&self) -> Option<Time> {
        self.0.first().map(|(at, _)| *at)
    }

    pub(crate) fn pop_due(&mut self, now: Time) -> Option<T> {
        self.0.first().filter(|(at, _)| *at <= now)?;
        self.0.pop_first().map(|(_, timer)| timer)
    }
}
