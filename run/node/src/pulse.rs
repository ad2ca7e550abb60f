//! How the warden of a far daemon notices that the daemon was stopped while its ranks run on: the daemon counts its turns in memory that both share.
//!
//! The warden counts its own looks, not seconds: while the whole host stands still, neither of them gets on.

use std::io;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use crate::warden::shared_memory;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Pulse {
    turns: &'static AtomicI32,
    /// The looks without a turn after which the daemon is given up. 0: it is never.
    patience: &'static AtomicI32,
}

impl Pulse {
    pub(crate) fn new() -> io::Result<Pulse> {
        match shared_memory(2)? {
            [turns, patience] => Ok(Pulse { turns, patience }),
            _ => Err(io::ErrorKind::Other.into()),
        }
    }

    /// One turn of the daemon.
    pub(crate) fn beat(&self) {
        self.turns.fetch_add(1, Ordering::Relaxed);
    }

    /// From now on the daemon takes a turn at least this often.
    pub(crate) fn expect(&self, every: Duration) {
        let looks = every.as_millis().div_ceil(LOOK.as_millis());
        self.patience.store(i32::try_from(looks).unwrap_or(i32::MAX).max(2), Ordering::Relaxed);
    }

    pub(crate) fn watch(self) -> Watch {
        Watch { pulse: self, seen: self.turns.load(Ordering::Relaxed), looks: 0 }
    }
}

/// The warden's side.
#[derive(Debug)]
pub(crate) struct Watch {
    pulse: Pulse,
    seen: i32,
    looks: i32,
}

impl Watch {
    /// Called each [`LOOK`]. `true`: the daemon has stood still for too long.
    pub(crate) fn look(&mut self) -> bool {
        let turns = self.pulse.turns.load(Ordering::Relaxed);
        let stands = turns == std::mem::replace(&mut self.seen, turns);
        self.looks = if stands { self.looks.saturating_add(1) } else { 0 };
        (1..=self.looks).contains(&self.pulse.patience.load(Ordering::Relaxed))
    }
}

pub(crate) const LOOK: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_daemon_that_takes_no_turns_is_given_up() {
        let pulse = Pulse::new().unwrap();
        let mut watch = pulse.watch();
        assert!(!(0..100).any(|_| watch.look()), "nothing was expected yet");
        pulse.expect(LOOK * 3);
        pulse.beat();
        assert_eq!([(); 4].map(|()| watch.look()), [false, false, false, true]);
        pulse.beat();
        assert!(!watch.look());
    }
}
