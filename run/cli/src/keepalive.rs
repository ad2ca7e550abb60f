//! Notices the end of the process that started us: it holds the other end of the pipe in `PMIX_KEEPALIVE_PIPE` open for as long as it lives, and a
//! connection back to it (`origin.rs`) is lost at its end. Either counts.
//!
//! The variable names the read end, as the standard has it, or the write end, as OpenPMIx's library does it.

use std::io::ErrorKind;

use phalanx_node::KeepalivePipe;
use rustix::io::Errno;
use tokio::io::Interest;
use tokio::net::unix::pipe::{OpenOptions, Receiver, Sender};

use crate::origin::Origin;

/// The signs of life of that process, until it has ended.
#[derive(Debug)]
pub(crate) struct Keepalive<'a> {
    pipe: Option<Pipe>,
    origin: Option<&'a Origin>,
}

/// Our end of the pipe.
#[derive(Debug)]
enum Pipe {
    Reads(Receiver),
    Writes(Sender),
    /// There was no other end any more.
    Closed,
}

impl Keepalive<'_> {
    /// A number of no pipe of ours is ignored.
    pub(crate) fn of_environment(origin: Option<&Origin>) -> Keepalive<'_> {
        Keepalive { pipe: KeepalivePipe::of_environment().and_then(Pipe::open), origin }
    }

    /// Returns once, when that process is gone; never without any sign of life.
    pub(crate) async fn lost(&mut self) {
        tokio::select! {
            () = closed(self.pipe.as_ref()) => {}
            () = gone(self.origin) => {}
        }
        *self = Keepalive { pipe: None, origin: None };
    }
}

impl Pipe {
    /// Opens it anew, to have flags of its own.
    fn open(pipe: KeepalivePipe) -> Option<Pipe> {
        let (options, place) = (OpenOptions::new(), |fd| format!("/proc/self/fd/{fd}"));
        match pipe {
            KeepalivePipe::ReadEnd(fd) => options.open_receiver(place(fd)).map(Pipe::Reads).ok(),
            KeepalivePipe::WriteEnd(fd) => match options.open_sender(place(fd)) {
                Ok(sender) => Some(Pipe::Writes(sender)),
                Err(e) => (Errno::from_io_error(&e) == Some(Errno::NXIO)).then_some(Pipe::Closed),
            },
        }
    }
}

async fn gone(origin: Option<&Origin>) {
    match origin {
        Some(origin) => origin.lost().await,
        None => std::future::pending().await,
    }
}

/// Waits until the other end of the pipe is closed.
async fn closed(pipe: Option<&Pipe>) {
    match pipe {
        Some(Pipe::Reads(receiver)) => end_of(receiver).await,
        Some(Pipe::Writes(sender)) => drop(sender.ready(Interest::ERROR).await),
        Some(Pipe::Closed) => {}
        None => std::future::pending().await,
    }
}

async fn end_of(pipe: &Receiver) {
    loop {
        if pipe.readable().await.is_err() {
            return;
        }
        match pipe.try_read(&mut [0; 64]) {
            Ok(0) => return,
            Ok(_) => {}
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => return,
        }
    }
}
