//! The model of the synchronization primitives: `loom` decides which thread runs next.

use std::sync::LockResult;
use std::time::Duration;

pub(super) use loom::sync::{Mutex, MutexGuard};

pub(super) struct Condvar(loom::sync::Condvar);

impl Condvar {
    pub(super) fn new() -> Condvar {
        Condvar(loom::sync::Condvar::new())
    }

    pub(super) fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        self.0.wait(guard)
    }

    /// No time passes in the model, so a timeout never wakes a thread.
    pub(super) fn wait_timeout_while<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        _longest: Duration,
        mut waits: impl FnMut(&mut T) -> bool,
    ) -> LockResult<MutexGuard<'a, T>> {
        while waits(&mut guard) {
            guard = self.0.wait(guard)?;
        }
        Ok(guard)
    }

    pub(super) fn notify_one(&self) {
        self.0.notify_one();
    }

    pub(super) fn notify_all(&self) {
        self.0.notify_all();
    }
}
