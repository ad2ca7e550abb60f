//! Waiting for descriptors: level-triggered epoll, so that nothing has to be drained at once and no connection starves another.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};

use super::bell::Bell;

pub(super) struct Poller {
    epoll: OwnedFd,
    bell: Arc<Bell>,
}

/// What to watch for. A hang-up is always reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interest {
    pub(super) read: bool,
    pub(super) write: bool,
}

impl Interest {
    pub(super) const NOTHING: Interest = Interest { read: false, write: false };
    pub(super) const READ: Interest = Interest { read: true, write: false };
    const WRITE: Interest = Interest { read: false, write: true };
}

/// What became possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ready {
    pub(super) token: u64,
    /// Also on a hang-up: reading then reports it.
    pub(super) read: bool,
    pub(super) write: bool,
}

impl Poller {
    /// Creates a poller that watches this bell from the start.
    pub(super) fn new(bell: Arc<Bell>, interest: Interest) -> io::Result<Poller> {
        let poller = Poller { epoll: epoll::create(CreateFlags::CLOEXEC)?, bell };
        poller.add(&*poller.bell, BELL, interest)?;
        Ok(poller)
    }

    /// Wakes the thread that waits here, or the next one. For pollers that do not listen to the bell.
    pub(super) fn interrupt(&self) {
        // A bell is always writable, so this makes it ready at once, for this poller only.
        let _ = self.set(&*self.bell, BELL, Interest::WRITE);
    }

    /// Ends an interruption.
    pub(super) fn calm(&self) {
        let _ = self.set(&*self.bell, BELL, Interest::NOTHING);
    }

    pub(super) fn add(&self, fd: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, fd, EventData::new_u64(token), flags(interest))?)
    }

    pub(super) fn set(&self, fd: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        Ok(epoll::modify(&self.epoll, fd, EventData::new_u64(token), flags(interest))?)
    }

    pub(super) fn remove(&self, fd: impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.epoll, fd)?)
    }

    /// Waits until something is ready or the time is over; `None`: without a limit.
    pub(super) fn wait(&self, timeout: Option<Duration>) -> io::Result<Vec<Ready>> {
        let timeout =
            timeout.map(|it| Timespec::try_from(it).unwrap_or(Timespec { tv_sec: i64::MAX, tv_nsec: 0 }));
        let mut room = [const { MaybeUninit::<epoll::Event>::uninit() }; AT_ONCE];
        let ready = match epoll::wait(&self.epoll, &mut room, timeout.as_ref()) {
            Ok((ready, _)) => ready,
            Err(rustix::io::Errno::INTR) => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        };
        let ended = EventFlags::HUP | EventFlags::ERR;
        Ok(ready
            .iter()
            .map(|event| {
                let flags = event.flags;
                Ready {
                    token: event.data.u64(),
                    read: flags.intersects(EventFlags::IN | ended),
                    write: flags.intersects(EventFlags::OUT | ended),
                }
            })
            .collect())
    }
}

impl AsFd for Poller {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

/// The token of a poller's bell.
pub(super) const BELL: u64 = 0;
const AT_ONCE: usize = 64;

fn flags(interest: Interest) -> EventFlags {
    let mut flags = EventFlags::empty();
    flags.set(EventFlags::IN, interest.read);
    flags.set(EventFlags::OUT, interest.write);
    flags
}
