//! From the program's threads to the progress thread: a bounded queue that wakes a poller.
//!
//! A full queue makes its callers wait. When it is closed, everything in the queue is dropped and pushing fails.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};

use super::bell::Bell;
use super::sync::{Condvar, Mutex, MutexGuard};

pub(super) struct Queue<T> {
    /// Number of items that it holds before callers have to wait.
    capacity: usize,
    state: Mutex<Contents<T>>,
    not_full: Condvar,
    /// Rings while the queue may hold items.
    bell: Arc<Bell>,
}

struct Contents<T> {
    items: VecDeque<T>,
    closed: bool,
}

impl<T> Queue<T> {
    pub(super) fn new(capacity: usize) -> std::io::Result<Queue<T>> {
        Ok(Queue {
            capacity,
            state: Mutex::new(Contents { items: VecDeque::new(), closed: false }),
            not_full: Condvar::new(),
            bell: Arc::new(Bell::new()?),
        })
    }

    /// Returns the item if the queue is closed. A blocked caller rechecks `gives_up` when woken.
    pub(super) fn push(&self, item: T, gives_up: impl Fn() -> bool) -> Result<(), T> {
        let mut state = self.lock();
        while state.items.len() >= self.capacity && !state.closed && !gives_up() {
            state = self.not_full.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        self.push_into(state, item)
    }

    /// Like `push`, but never waits: for threads that take the items themselves.
    pub(super) fn push_now(&self, item: T) -> Result<(), T> {
        self.push_into(self.lock(), item)
    }

    fn push_into(&self, mut state: MutexGuard<'_, Contents<T>>, item: T) -> Result<(), T> {
        if state.closed {
            return Err(item);
        }
        state.items.push_back(item);
        let was_empty = state.items.len() == 1;
        drop(state);
        if was_empty {
            self.ring();
        }
        Ok(())
    }

    /// Wakes the thread that waits for the bell.
    pub(super) fn ring(&self) {
        self.bell.ring();
    }

    pub(super) fn bell(&self) -> Arc<Bell> {
        self.bell.clone()
    }

    /// Takes all items, and silences the bell.
    pub(super) fn take(&self) -> VecDeque<T> {
        self.bell.silence();
        let items = std::mem::take(&mut self.lock().items);
        self.not_full.notify_all();
        items
    }

    /// Shows all items, and wakes callers that wait for room.
    pub(super) fn rouse(&self, item: impl FnMut(&T)) {
        self.lock().items.iter().for_each(item);
        self.not_full.notify_all();
    }

    pub(super) fn is_full(&self) -> bool {
        let state = self.lock();
        state.items.len() >= self.capacity && !state.closed
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().items.is_empty()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Distinguishes this queue from all others that exist.
    pub(super) fn identity(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// From here on every thread that waits for the bell finds the queue closed: the bell is not silenced any more.
    pub(super) fn close(&self) {
        let items = {
            let mut state = self.lock();
            state.closed = true;
            std::mem::take(&mut state.items)
        };
        self.not_full.notify_all();
        self.ring();
        drop(items);
    }

    fn lock(&self) -> MutexGuard<'_, Contents<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
