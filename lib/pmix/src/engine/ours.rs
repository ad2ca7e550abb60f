//! Our thread: when it begins, how it is woken, and when it is over.
//!
//! Servers and tools have it from the beginning. A client's begins when something is wanted that no caller sees to who waits
//! and receives: a callback, a call that does not wait, a second caller. Most processes of most jobs never want any of this,
//! and to start and to end a thread takes longer than to say hello and goodbye.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;

use super::progress::{Progress, Shared};
use super::queue::Queue;
use super::{Order, Role, thread};

pub(super) struct OurThread<M: Role> {
    queue: Arc<Queue<Order<M>>>,
    /// What it runs, which owns us.
    progress: Weak<Shared<M>>,
    state: Mutex<State>,
}

enum State {
    Unwanted,
    Running(JoinHandle<()>),
    Over,
}

impl<M: Role> OurThread<M> {
    pub(super) fn new(queue: Arc<Queue<Order<M>>>, progress: Weak<Shared<M>>) -> OurThread<M> {
        OurThread { queue, progress, state: Mutex::new(State::Unwanted) }
    }

    /// From here on it runs, unless it is over.
    pub(super) fn start(&self) -> io::Result<()> {
        let mut state = self.lock();
        if let (State::Unwanted, Some(progress)) = (&*state, self.progress.upgrade()) {
            let identity = self.queue.identity();
            *state =
                State::Running(thread::spawn("pmix-progress", move || Progress::run(&progress, identity))?);
        }
        Ok(())
    }

    /// There is something to do. False: as `begin`.
    pub(super) fn wake(&self) -> bool {
        self.queue.ring();
        self.begin()
    }

    /// Starts it for somebody who cannot say why that fails. False: there will be no progress any more.
    pub(super) fn begin(&self) -> bool {
        let started = self.start();
        if let Err(error) = &started {
            tracing::error!(%error, "the progress engine cannot start its thread and ends");
            self.queue.close();
        }
        started.is_ok()
    }

    /// Waits for its end, and has it never begin again. False: it never has begun.
    pub(super) fn end(&self) -> bool {
        let before = std::mem::replace(&mut *self.lock(), State::Over);
        if let State::Running(thread) = before {
            self.queue.ring();
            // Panics of the thread have been caught and reported inside.
            let _ = thread.join();
            return true;
        }
        matches!(before, State::Over)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
