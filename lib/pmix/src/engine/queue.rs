//! From the program's threads to the progress thread: a bounded queue that wakes a poller.
//!
//! A full queue makes its callers wait. When the receiving end is gone, everything in the queue is dropped and pushing fails.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::bell::Bell;

pub(super) struct Queue<T> {
    state: Mutex<Contents<T>>,
    not_full: Condvar,
    /// Rings while something may be in the queue.
    bell: Arc<Bell>,
}

struct Contents<T> {
    items: VecDeque<T>,
    closed: bool,
}

impl<T> Queue<T> {
    pub(super) fn new() -> std::io::Result<Queue<T>> {
        Ok(Queue {
            state: Mutex::new(Contents { items: VecDeque::new(), closed: false }),
            not_full: Condvar::new(),
            bell: Arc::new(Bell::new()?),
        })
    }

    /// Gives the item back when nobody takes items any more. Who waits for room looks at `gives_up` when it is roused.
    pub(super) fn push(&self, item: T, gives_up: impl Fn() -> bool) -> Result<(), T> {
        let mut state = self.lock();
        while state.items.len() >= CAPACITY && !state.closed && !gives_up() {
            state = self.not_full.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        self.push_into(state, item)
    }

    /// Like `push`, but never waits: for who must not, because it takes the items itself.
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

    /// Wakes whoever waits for the bell.
    pub(super) fn ring(&self) {
        self.bell.ring();
    }

    pub(super) fn bell(&self) -> Arc<Bell> {
        self.bell.clone()
    }

    /// Takes all that is there, and silences the bell.
    pub(super) fn take(&self) -> VecDeque<T> {
        self.bell.silence();
        let items = std::mem::take(&mut self.lock().items);
        self.not_full.notify_all();
        items
    }

    /// Shows what is there, and rouses who waits for room.
    pub(super) fn rouse(&self, item: impl FnMut(&T)) {
        self.lock().items.iter().for_each(item);
        self.not_full.notify_all();
    }

    pub(super) fn is_full(&self) -> bool {
        let state = self.lock();
        state.items.len() >= CAPACITY && !state.closed
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().items.is_empty()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// What tells this queue from any other that exists.
    pub(super) fn identity(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Whoever hears the bell from here on finds that it is over: nobody silences it any more.
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

/// Blocking callers have one item each; this many threads can call before one has to wait for the queue itself.
const CAPACITY: usize = 1024;

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    use super::*;

    fn rings(queue: &Queue<u32>, patience: Duration) -> bool {
        let timeout = Timespec::try_from(patience).unwrap();
        poll(&mut [PollFd::new(&*queue.bell, PollFlags::IN)], Some(&timeout)).unwrap() == 1
    }

    #[test]
    fn the_bell_rings_while_there_is_something() {
        let queue = Queue::new().unwrap();
        assert!(!rings(&queue, Duration::ZERO));
        queue.push(1, || false).unwrap();
        queue.push(2, || false).unwrap();
        assert!(rings(&queue, Duration::ZERO));
        assert_eq!(queue.take(), [1, 2]);
        assert!(!rings(&queue, Duration::ZERO));
        queue.push(3, || false).unwrap();
        assert!(rings(&queue, Duration::ZERO));
    }

    #[test]
    fn nothing_is_lost_between_many_threads() {
        const EACH: u32 = 5000;
        let queue = Arc::new(Queue::new().unwrap());
        let pushers: Vec<_> = (0..4)
            .map(|_| {
                let queue = queue.clone();
                std::thread::spawn(move || (0..EACH).for_each(|n| queue.push(n, || false).unwrap()))
            })
            .collect();
        let mut taken = 0;
        while taken < 4 * EACH as usize {
            assert!(rings(&queue, Duration::from_secs(60)));
            let items = queue.take();
            assert!(items.len() <= CAPACITY);
            taken += items.len();
        }
        pushers.into_iter().for_each(|pusher| pusher.join().unwrap());
    }

    #[test]
    fn a_closed_queue_lets_nobody_wait() {
        let queue = Arc::new(Queue::new().unwrap());
        (0..CAPACITY).for_each(|n| queue.push(n, || false).unwrap());
        let pusher = {
            let queue = queue.clone();
            std::thread::spawn(move || queue.push(0, || false))
        };
        queue.close();
        assert_eq!(pusher.join().unwrap(), Err(0));
        assert_eq!(queue.push(7, || false), Err(7));
        assert!(queue.take().is_empty());
    }

    #[test]
    fn its_end_is_heard_by_who_waits_for_the_bell() {
        let queue = Queue::<u32>::new().unwrap();
        assert!(!rings(&queue, Duration::ZERO));
        queue.close();
        assert!(rings(&queue, Duration::ZERO));
    }

    #[test]
    fn sender_waiting_for_room_is_woken() {
        let queue = Arc::new(Queue::new().unwrap());
        (0..CAPACITY).for_each(|n| queue.push(n, || false).unwrap());
        let gives_up = Arc::new(AtomicBool::new(false));
        let pusher = {
            let (queue, gives_up) = (queue.clone(), gives_up.clone());
            std::thread::spawn(move || queue.push(0, || gives_up.load(Ordering::Relaxed)))
        };
        gives_up.store(true, Ordering::Relaxed);
        let mut seen = 0;
        queue.rouse(|_| seen += 1);
        assert!(seen >= CAPACITY);
        assert_eq!(pusher.join().unwrap(), Ok(()));
        assert_eq!(queue.take().len(), CAPACITY + 1);
    }
}
