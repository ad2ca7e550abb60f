//! This process's own standard input, collected for others to read (`PMIX_IOF_PUSH_STDIN`).
//!
//! The next piece is read only when the previous one has been taken, so unwanted input stays for the next reader. The first piece is only looked
//! at until then, and a terminal, which cannot be looked at, is read when a reader waits for input. In the background of a terminal nothing is
//! read, so the process is not stopped.

use std::fmt;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::thread::JoinHandle;

use phalanx_spec::Status;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;

use crate::peek::{FIRST_PIECE, Peek};
use crate::thread;

/// One collection of standard input, which another thread can end.
pub struct Collection {
    stop: OwnedFd,
    ask: Option<Box<dyn Fn() -> Result<(), Status> + Send + Sync>>,
}

impl fmt::Debug for Collection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Collection").field("stop", &self.stop).finish_non_exhaustive()
    }
}

impl Collection {
    pub fn new() -> io::Result<Collection> {
        Ok(Collection { stop: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?, ask: None })
    }

    /// Each line of a terminal is read only after `ask` has returned, which it does when a reader waits for input.
    #[must_use]
    pub fn asking(self, ask: impl Fn() -> Result<(), Status> + Send + Sync + 'static) -> Collection {
        Collection { ask: Some(Box::new(ask)), ..self }
    }

    /// Ends the collection.
    pub fn stop(&self) {
        // It only fails if the counter is full of earlier requests.
        let _ = rustix::io::write(&self.stop, &1u64.to_ne_bytes());
    }

    /// Reads input and passes it on, until the end of input (an empty piece), until `push` reports that no reader wants more, or until
    /// stopped. `push` returns when the piece has been taken; a positive status is the number of bytes that were taken of it before the
    /// end. Runs on a thread on which no signal is delivered: there, reading from the background is an error instead of a stop.
    pub fn run(&self, mut push: impl FnMut(&[u8]) -> Result<(), Status>) -> Result<(), Status> {
        let stdin = rustix::stdio::stdin();
        let ask = self.ask.as_ref().filter(|_| rustix::termios::isatty(stdin));
        let (mut is_first, mut is_wanted) = (true, ask.is_none());
        let mut buffer = vec![0; PIECE];
        loop {
            match self.wait(stdin) {
                Ready::Stopped => return Ok(()),
                Ready::NotYet => continue,
                Ready::Input => {}
            }
            let pushed = if is_wanted {
                let mut peek = match is_first.then(|| Peek::of(stdin, FIRST_PIECE)) {
                    Some(Err(Errno::INTR | Errno::AGAIN)) => continue,
                    Some(Ok(peek)) => peek,
                    Some(Err(_)) | None => None,
                };
                let count = match &peek {
                    Some(peek) => peek.left(),
                    None => match rustix::io::read(stdin, &mut buffer) {
                        Ok(count) => count,
                        Err(Errno::INTR | Errno::AGAIN) => continue,
                        // We have moved to the background between the check and the read.
                        Err(Errno::IO) if rustix::termios::isatty(stdin) => continue,
                        // A descriptor that cannot be read counts as empty.
                        Err(_) => 0,
                    },
                };
                let read = buffer.get(..count).unwrap_or_default();
                let pushed = push(peek.as_ref().map_or(read, |peek| peek.data()));
                let taken = match pushed {
                    Ok(()) => count,
                    Err(status) => usize::try_from(status.0).unwrap_or(0),
                };
                peek.iter_mut().for_each(|peek| peek.take(stdin, taken));
                (is_first, is_wanted) = (false, ask.is_none());
                pushed.map(|()| count > 0)
            } else {
                is_wanted = true;
                ask.map_or(Ok(()), |ask| ask()).map(|()| true)
            };
            match pushed {
                Ok(true) => {}
                Ok(false) | Err(Status(1..) | Status::ERR_IOF_COMPLETE | Status::ERR_NOT_FOUND) => {
                    return Ok(());
                }
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
