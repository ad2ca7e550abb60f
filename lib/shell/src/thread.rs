//! Starts a thread on which no signal is delivered.
//!
//! Signals belong to the program: they must interrupt its threads and respect the masks that it has set. A thread inherits the mask
//! of the thread that starts it, so all signals are blocked around the start and then restored.

use std::io;
use std::mem::MaybeUninit;
use std::thread::{Builder, JoinHandle};

pub fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    let builder = Builder::new().name(name.to_owned()).stack_size(STACK);
    let old = block_all_signals()?;
    let started = builder.spawn(body);
    restore_signals(&old)?;
    started
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
    // SAFETY: the mask is valid, and a null pointer means that the old one is not wanted.
    match unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, mask, std::ptr::null_mut()) } {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

/// Callbacks of the program run on it.
const STACK: usize = 8 << 20;
