//! Notices the end of the process that started us: it holds the other end of the pipe in `PMIX_KEEPALIVE_PIPE` open for as long as it lives, and a
//! connection back to it (`origin.rs`) is lost at its end. Either counts.

use std::io::ErrorKind;
use std::os::fd::RawFd;

use phalanx_node::keepalive_pipe;
use tokio::net::unix::pipe::{OpenOptions, Receiver};

use crate::origin::Origin;

/// The signs of life of that process, until it has ended.
#[derive(Debug)]
pub(crate) struct Keepalive<'a> {
    pipe: Option<Receiver>,
    origin: Option<&'a Origin>,
}

impl Keepalive<'_> {
    /// A number of no pipe of ours is ignored.
    pub(crate) fn of_environment(origin: Option<&Origin>) -> Keepalive<'_> {
        // Opened anew, to have flags of its own.
        let open = |fd: RawFd| OpenOptions::new().open_receiver(format!("/proc/self/fd/{fd}")).ok();
        Keepalive { pipe: keepalive_pipe().and_then(open), origin }
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

async fn gone(origin: Option<&Origin>) {
    match origin {
        Some(origin) => origin.lost().await,
        None => std::future::pending().await,
    }
}

/// Waits until the other end of the pipe is closed.
async fn closed(pipe: Option<&Receiver>) {
    let Some(pipe) = pipe else { return std::future::pending().await };
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
