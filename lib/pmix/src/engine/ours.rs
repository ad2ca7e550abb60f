//! Our thread: when it begins, how it is woken, and when it ends.
//!
//! Servers and tools have it from the beginning. A client's begins with the first task that a waiting, receiving caller does not
//! cover: a callback, a call that does not wait, a second caller. Most processes of most jobs need none of this, and starting and
//! ending a thread takes longer than connecting to the server and leaving it.
//!
//! A program may also take its work over: then it leaves, or never begins, and the engine goes on as one that the program drives.
//!
//! Starting the thread took a third of init. When a program takes the work over (`PMIx_Progress_thread_stop`), the thread leaves first and
//! reports that itself; otherwise it could miss a bell that another thread silences.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;

use super::progress::{Progress, Shared};
use super::queue::Queue;
use super::{Order, Role};

pub(super) struct OurThread<M: Role> {
    queue: Arc<Queue<Order<M>>>,
    /// What it runs; owns this.
    progress: Weak<Shared<M>>,
    state: Mutex<ThreadState>,
    /// The thread is asked to leave.
    leaves: AtomicBool,
    /// The thread has left.
    handed_over: AtomicBool,
}

enum ThreadState {
    Unwanted,
    Running(JoinHandle<()>),
    /// The program makes progress. A handle is left if the thread was dismissed from inside a callback, which could not wait
    /// for its end.
    HandedOver(Option<JoinHandle<()>>),
    Over,
}

/// The thread's name, as debuggers and `ps -T` show it.
pub const PROGRESS_THREAD: &str = "pmix-progress";

impl<M: Role> OurThread<M> {
    pub(super) fn new(queue: Arc<Queue<Order<M>>>, progress: Weak<Shared<M>>) -> OurThread<M> {
        let state = Mutex::new(ThreadState::Unwanted);
        OurThread {
            queue,
            progress,
            state,
            leaves: AtomicBool::new(false),
            handed_over: AtomicBool::new(false),
        }
    }

    /// Starts the thread, unless it is over.
    pub(super) fn start(&self) -> io::Result<()> {
        let mut state = self.lock();
        if let (ThreadState::Unwanted, Some(progress)) = (&*state, self.progress.upgrade()) {
            let identity = self.queue.identity();
            *state = ThreadState::Running(phalanx_shell::thread::spawn(PROGRESS_THREAD, move || {
                Progress::run(&progress, identity)
            })?);
        }
        Ok(())
    }

    /// Rings the bell, and starts the thread if needed. Returns false as `begin` does.
    pub(super) fn wake(&self) -> bool {
        self.queue.ring();
        self.begin()
    }

    /// Starts the thread for a caller that cannot report a failure. False: there will be no more progress.
    pub(super) fn begin(&self) -> bool {
        let started = self.start();
        if let Err(error) = &started {
            tracing::error!(%error, "the progress engine cannot start its thread and ends");
            self.queue.close();
        }
        started.is_ok()
    }

    pub(super) fn is_running(&self) -> bool {
        matches!(*self.lock(), ThreadState::Running(_))
    }

    /// Whether the thread is asked to hand over.
    pub(super) fn leaves(&self) -> bool {
        self.leaves.load(Ordering::Acquire)
    }

    /// From here on waiting callers make progress. Must not be called before the thread has stopped listening to the bell,
    /// which others would silence.
    pub(super) fn hand_over(&self) {
        self.handed_over.store(true, Ordering::Release);
    }

    /// Whether the program makes progress.
    pub(super) fn is_handed_over(&self) -> bool {
        self.handed_over.load(Ordering::Acquire)
    }

    /// Makes the thread hand over, and waits until it has left; called on that thread, it leaves afterwards. False: it has
    /// never begun, and never will.
    pub(super) fn dismiss(&self, is_inside: bool) -> bool {
        let mut state = self.lock();
        match std::mem::replace(&mut *state, ThreadState::HandedOver(None)) {
            ThreadState::Running(thread) | ThreadState::HandedOver(Some(thread)) if is_inside => {
                self.leaves.store(true, Ordering::Release);
                *state = ThreadState::HandedOver(Some(thread));
            }
            ThreadState::Running(thread) | ThreadState::HandedOver(Some(thread)) => {
                drop(state);
                self.leaves.store(true, Ordering::Release);
                self.queue.ring();
                // Panics of the thread have been caught and reported inside.
                let _ = thread.join();
            }
            ThreadState::Unwanted => return false,
            before => *state = before,
        }
        true
    }

    /// Waits for the thread's end, and prevents that it begins again. False: it has never begun.
    pub(super) fn end(&self) -> bool {
        let before = std::mem::replace(&mut *self.lock(), ThreadState::Over);
        match before {
            ThreadState::Running(thread) | ThreadState::HandedOver(Some(thread)) => {
                self.queue.ring();
                // As above.
                let _ = thread.join();
                true
            }
            ThreadState::HandedOver(None) | ThreadState::Over => true,
            ThreadState::Unwanted => false,
        }
    }

    fn lock(&self) -> MutexGuard<'_, ThreadState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
