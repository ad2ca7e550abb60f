//! The listener for PMIx clients: [`Listener`], on the loopback interface unless tools on other nodes are allowed.
//!
//! It passes connections to the owner of the node, which decides what a peer may do. At most [`MAX_CONNECTIONS`] are open at a time: others wait in
//! the kernel's queue until one has ended. Next: [`crate::conn`].

use std::future::poll_fn;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use phalanx_core::PeerCred;
use phalanx_shell::listen::Listener;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::conn::ConnEvent;
use crate::watched::watched;

/// A connection that is not served yet.
#[derive(Debug)]
pub(crate) struct Accepted {
    pub(crate) socket: AsyncFd<OwnedFd>,
    pub(crate) peer: Option<PeerCred>,
    /// Given back when the connection is gone.
    pub(crate) permit: OwnedSemaphorePermit,
}

/// A listener that tasks can wait for.
#[derive(Debug)]
pub(crate) struct WatchedListener {
    listener: Listener,
    sockets: Vec<AsyncFd<OwnedFd>>,
}

impl WatchedListener {
    pub(crate) fn new(listener: Listener) -> io::Result<WatchedListener> {
        let watch = |socket: BorrowedFd<'_>| watched(socket.try_clone_to_owned()?, Interest::READABLE);
        Ok(WatchedListener { sockets: listener.sockets().map(watch).collect::<io::Result<_>>()?, listener })
    }

    /// Waits until a connection may have arrived. Later ones wake it again.
    async fn knock(&self) -> io::Result<()> {
        poll_fn(|cx| {
            let mut knocked = Poll::Pending;
            for socket in &self.sockets {
                if let Poll::Ready(ready) = socket.poll_read_ready(cx) {
                    ready?.clear_ready();
                    knocked = Poll::Ready(Ok(()));
                }
            }
            knocked
        })
        .await
    }
}

/// Accepts until the owner is gone.
pub(crate) async fn accept(mut listener: WatchedListener, events: mpsc::Sender<ConnEvent>) {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok(permit) = places.clone().acquire_owned().await else { return };
        let accepted = match next(&mut listener).await {
            Ok((socket, peer)) => Accepted { socket, peer, permit },
            Err(e) => {
                // Out of descriptors or memory: peers keep waiting, but we must not spin.
                tracing::warn!("cannot accept a connection: {e}");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        if events.send(ConnEvent::Accepted(accepted)).await.is_err() {
            return;
        }
    }
}

async fn next(door: &mut WatchedListener) -> io::Result<(AsyncFd<OwnedFd>, Option<PeerCred>)> {
    loop {
        if let Some((socket, peer)) = door.listener.accept()? {
            return Ok((watched(socket, Interest::READABLE)?, peer));
        }
        door.knock().await?;
    }
}

/// Besides the ranks of the largest nodes, room for as many silent peers: the server ends those in time.
pub(crate) const MAX_CONNECTIONS: usize = 8192;
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
