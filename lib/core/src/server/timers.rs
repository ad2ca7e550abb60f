//! The server's timers.

use std::collections::BTreeMap;

use crate::machine::{ConnId, Time};

/// What a timer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    Hello(ConnId),
    Get(u64),
    Collective(u64),
    /// Of a monitor.
    Window(u64),
    /// Held output that a reader should have by now.
    Format(u64),
}

/// A timer that is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TimerId {
    at: Time,
    number: u64,
}

#[derive(Debug, Default)]
pub(super) struct Timers {
    set: BTreeMap<TimerId, Timer>,
    last: u64,
}

impl TimerId {
    pub(super) fn at(self) -> Time {
        self.at
    }
}

impl Timers {
    pub(super) fn set(&mut self, at: Time, timer: Timer) -> TimerId {
        self.last += 1;
        let id = TimerId { at, number: self.last };
        self.set.insert(id, timer);
        id
    }

    pub(super) fn cancel(&mut self, id: Option<TimerId>) {
        if let Some(id) = id {
            self.set.remove(&id);
        }
    }

    /// The earliest due time.
    pub(super) fn next(&self) -> Option<Time> {
        self.set.first_key_value().map(|(id, _)| id.at)
    }

    /// Takes one timer that is due at `now`.
    pub(super) fn take_due(&mut self, now: Time) -> Option<Timer> {
        let first = self.set.first_entry()?;
        (first.key().at <= now).then(|| first.remove())
    }
}
