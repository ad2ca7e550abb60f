//! This process's own standard input, collected for others to read (`PMIX_IOF_PUSH_STDIN`).
//!
//! The next piece is read only when the previous one has been taken, so unwanted input stays for the next reader. In the background of a
//! terminal nothing is read, so the process is not stopped.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::thread::JoinHandle;

use phalanx_spec::Status;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;

use crate::thread;

/// One collection of standard input, which another thread can end.
#[derive(Debug)]
pub struct Collection {
    stop: OwnedFd,
}

impl Collection {
    pub fn new() -> io::Result<Collection> {
        Ok(Collection { stop: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)? })
    }

    /// Ends the collection.
    pub fn stop(&self) {
        // It only fails if the counter is full of earlier requests.
        let _ = rustix::io::write(&self.stop, &1u64.to_ne_bytes());
    }

    /// Reads input and passes it on, until the end of input (an empty piece), until `push` reports that no reader wants more, or until
    /// stopped. `push` returns when the piece has been taken. Runs on a thread on which no signal is delivered: there, reading from the
    /// background is an error instead of a stop.
    pub fn run(&self, mut push: impl FnMut(&[u8]) -> Result<(), Status>) -> Result<(), Status> {
        let stdin = rustix::stdio::stdin();
        let mut buffer = vec![0; PIECE];
        loop {
            match self.wait(stdin) {
                Ready::Stopped => return Ok(()),
                Ready::NotYet => continue,
                Ready::Input => {}
            }
            let count = match rustix::io::read(stdin, &mut buffer) {
                Ok(count) => count,
                Err(Errno::INTR | Errno::AGAIN) => continue,
                // We have moved to the background between the check and the read.
                Err(Errno::IO) if rustix::termios::isatty(stdin) => continue,
                // A descriptor that cannot be read counts as empty.
                Err(_) => 0,
            };
            match push(buffer.get(..count).unwrap_or_default()) {
                Ok(()) if count > 0 => {}
                Ok(()) => return Ok(()),
                Err(Status::ERR_IOF_COMPLETE | Status::ERR_NOT_FOUND) => return Ok(()),
                Err(status) => return Err(status),
            }
        }
    }

    /// The same on a thread of its own.
    pub fn spawn(
        self: Arc<Collection>,
        push: impl FnMut(&[u8]) -> Result<(), Status> + Send + 'static,
    ) -> io::Result<JoinHandle<()>> {
        thread::spawn("pmix-stdin", move || {
            if let Err(status) = self.run(push) {
                tracing::warn!(%status, "standard input is handed on no longer");
            }
        })
    }

    fn wait(&self, stdin: BorrowedFd<'_>) -> Ready {
        let later = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
        let mut all =
            [PollFd::new(&self.stop, PollFlags::IN), PollFd::from_borrowed_fd(stdin, PollFlags::IN)];
        let count = if is_in_background(stdin) { 1 } else { 2 };
        let polled = all.get_mut(..count).unwrap_or_default();
        if poll(polled, Some(&later)).is_err() {
            return Ready::NotYet;
        }
        let has = |at: usize| polled.get(at).is_some_and(|fd| !fd.revents().is_empty());
        match (has(0), has(1)) {
            (true, _) => Ready::Stopped,
            (false, true) => Ready::Input,
            (false, false) => Ready::NotYet,
        }
    }
}

enum Ready {
    Input,
    Stopped,
    NotYet,
}

/// Whether another process group has the terminal.
fn is_in_background(stdin: BorrowedFd<'_>) -> bool {
    rustix::termios::tcgetpgrp(stdin).is_ok_and(|owner| owner != rustix::process::getpgrp())
}

const PIECE: usize = 64 << 10;
