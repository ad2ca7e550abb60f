//! Starts a thread that no signal is delivered to, and knows which engine a thread is inside of.
//!
//! Signals are the program's: they must interrupt its threads and find the masks that it has set. A thread inherits the mask
//! of the one that starts it, so everything is blocked around the start and then restored.

use std::cell::Cell;
use std::io;
use std::mem::MaybeUninit;
use std::thread::{Builder, JoinHandle};

pub(crate) fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    let builder = Builder::new().name(name.to_owned()).stack_size(STACK);
    let old = block_all_signals()?;
    let started = builder.spawn(body);
    restore_signals(&old)?;
    started
}

thread_local! {
    /// Without a destructor, so that it does not pin the library.
    static INSIDE: Cell<usize> = const { Cell::new(0) };
}

/// While it exists, the thread runs the engine of this identity.
pub(super) struct Inside {
    before: usize,
}

pub(super) fn enter(engine: usize) -> Inside {
    Inside { before: INSIDE.replace(engine) }
}

/// Whether this thread was called by that engine.
pub(super) fn is_inside(engine: usize) -> bool {
    INSIDE.get() == engine
}

/// What tells this thread from all others that live: a handle of the standard library's would have a destructor.
pub(super) fn identity() -> usize {
    INSIDE.with(|inside| std::ptr::from_ref(inside).addr())
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.set(self.before);
    }
}

fn block_all_signals() -> io::Result<libc::sigset_t> {
    let mut all = MaybeUninit::uninit();
    let mut old = MaybeUninit::uninit();
    // SAFETY: sigfillset initialises what it is given; pthread_sigmask reads the one set and writes the other.
    let result = unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), old.as_mut_ptr())
    };
    match result {
        // SAFETY: the call has succeeded, so it has written the old mask.
        0 => Ok(unsafe { old.assume_init() }),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

fn restore_signals(mask: &libc::sigset_t) -> io::Result<()> {
    // SAFETY: the mask is valid and the old one is not asked for.
    match unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, mask, std::ptr::null_mut()) } {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

/// Callbacks of the program run on it.
const STACK: usize = 8 << 20;
