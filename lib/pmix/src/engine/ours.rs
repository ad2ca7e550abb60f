//! Our thread: when it begins, how it is woken, and when it is over.
//!
//! Servers and tools have it from the beginning. A client's begins when something is wanted that no caller sees to who waits
//! and receives: a callback, a call that does not wait, a second caller. Most processes of most jobs never want any of this,
//! and to start and to end a thread takes longer than to say hello and goodbye.
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
    /// What it runs, which owns us.
    progress: Weak<Shared<M>>,
    state: Mutex<ThreadState>,
    /// It is to leave.
    leaves: AtomicBool,
    /// It has left.
    handed_over: AtomicBool,
}

enum ThreadState {
    Unwanted,
    Running(JoinHandle<()>),
    /// The program makes progress. What has called for that from inside of a callback could not wait for its end.
    HandedOver(Option<JoinHandle<()>>),
    Over,
}

/// What the thread is called, as debuggers and `ps -T` show it.
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

    /// From here on it runs, unless it is over.
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

    pub(super) fn is_running(&self) -> bool {
        matches!(*self.lock(), ThreadState::Running(_))
    }

    /// Whether it is to hand over what it runs.
    pub(super) fn leaves(&self) -> bool {
        self.leaves.load(Ordering::Acquire)
    }

    /// From here on who waits makes progress: not before it hears the bell no more, which others would silence.
    pub(super) fn hand_over(&self) {
        self.handed_over.store(true, Ordering::Release);
    }

    /// Whether the program makes progress.
    pub(super) fn is_handed_over(&self) -> bool {
        self.handed_over.load(Ordering::Acquire)
    }

    /// Has it hand over what it runs, and waits until it has left; from inside of it, it leaves afterwards. False: it never has
    /// begun, and never will.
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

    /// Waits for its end, and has it never begin again. False: it never has begun.
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
