//! When which table wants to be looked at again. An entry that has lost its meaning is ignored when it fires.

use std::collections::BTreeSet;

use phalanx_core::Time;
use phalanx_wire::{Nspace, ProcId};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// How many processes have called init is told a moment later.
    Connected(Nspace),
    /// An exited process's connection should be gone by now.
    Settle(Nspace),
    /// Whoever waits for this process has waited enough.
    Over(ProcId),
    /// Look whether ranks that have not connected have loaded MPI.
    Inspect(Nspace),
    /// Politeness is over.
    Kill(Nspace),
    /// Processes that survive SIGKILL are given up.
    Reap(Nspace),
    /// All processes here have ended, and the job has not, so somebody may be slow to read.
    Exited(Nspace),
    /// Output of a job without living processes is waited for no longer.
    Drain(Nspace),
    /// Ask again for remote data.
    Retry,
}

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

    pub(crate) fn holds(&self, concerned: impl Fn(&T) -> bool) -> bool {
        self.0.iter().any(|(_, timer)| concerned(timer))
    }

    pub(crate) fn cancel(&mut self, concerned: impl Fn(&T) -> bool) {
        self.0.retain(|(_, timer)| !concerned(timer));
    }

    pub(crate) fn next(&self) -> Option<Time> {
        self.0.first().map(|(at, _)| *at)
    }

    pub(crate) fn pop_due(&mut self, now: Time) -> Option<T> {
        self.0.first().filter(|(at, _)| *at <= now)?;
        self.0.pop_first().map(|(_, timer)| timer)
    }
}

impl Timer {
    pub(crate) fn concerns(&self, nspace: &Nspace) -> bool {
        match self {
            Timer::Connected(job)
            | Timer::Settle(job)
            | Timer::Inspect(job)
            | Timer::Kill(job)
            | Timer::Reap(job)
            | Timer::Exited(job)
            | Timer::Drain(job) => job == nspace,
            Timer::Over(proc) => proc.nspace == *nspace,
            _ => false,
        }
    }
}
