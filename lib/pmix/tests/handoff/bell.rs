//! The model of a bell: a listener waits until it rings, and it rings until it is silenced.

use std::io;
use std::sync::PoisonError;

use super::sync::{Condvar, Mutex, MutexGuard};

pub(super) struct Bell {
    rings: Mutex<bool>,
    rung: Condvar,
}

impl Bell {
    #[allow(clippy::unnecessary_wraps)] // As the real one.
    pub(super) fn new() -> io::Result<Bell> {
        Ok(Bell { rings: Mutex::new(false), rung: Condvar::new() })
    }

    pub(super) fn ring(&self) {
        *self.lock() = true;
        self.rung.notify_all();
    }

    pub(super) fn silence(&self) {
        *self.lock() = false;
    }

    /// Does what epoll does for the engine.
    pub(super) fn hear(&self) {
        let mut rings = self.lock();
        while !*rings {
            rings = self.rung.wait(rings).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        self.rings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
