//! Descriptors that tasks can wait for.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

pub(crate) fn watched(fd: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` keeps one and the same descriptor open, and the `AsyncFd` owns it from here on.
    Ok(unsafe { AsyncFd::register_with_interest(fd, interest) }?)
}
