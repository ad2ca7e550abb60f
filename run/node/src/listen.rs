//! The door for PMIx clients: a listener, on the loopback interface unless tools on other nodes are wanted.
//!
//! It accepts, asks the kernel who is there, and hands the connection to the owner of the node; what a peer may do is
//! decided there. Never more connections are open than [`MAX_CONNECTIONS`]: the next ones wait in the kernel's queue
//! until one has ended. Next: [`crate::conn`].

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use phalanx_core::PeerCred;
use pmix::identity::Identity;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::conn::ConnEvent;

/// A connection that nobody serves yet.
#[derive(Debug)]
pub(crate) struct Accepted {
    pub(crate) stream: TcpStream,
    pub(crate) peer: Option<PeerCred>,
    /// Given back when the connection is gone.
    pub(crate) permit: OwnedSemaphorePermit,
}

/// Opens the door at this address and a port of the kernel's choice.
pub(crate) fn open(at: Ipv4Addr) -> Result<TcpListener> {
    let socket = TcpSocket::new_v4().context("cannot make a socket")?;
    let cannot = || format!("cannot listen on {at}");
    socket.bind(SocketAddrV4::new(at, 0).into()).with_context(cannot)?;
    socket.listen(BACKLOG).with_context(cannot)
}

/// Accepts for as long as somebody serves.
pub(crate) async fn accept(listener: TcpListener, events: mpsc::Sender<ConnEvent>) {
    let mut identity = Identity::default();
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok(permit) = places.clone().acquire_owned().await else { return };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            // The peer has given up meanwhile.
            Err(e) if e.kind() == io::ErrorKind::ConnectionAborted => continue,
            Err(e) => {
                // Out of descriptors or memory: whoever waits keeps waiting, but we must not spin.
                tracing::warn!("cannot accept a connection: {e}");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let Some(peer) = identify(&stream, &mut identity) else { continue };
        if events.send(ConnEvent::Accepted(Accepted { stream, peer, permit })).await.is_err() {
            return;
        }
    }
}

/// `None`: the connection is gone already.
fn identify(stream: &TcpStream, identity: &mut Identity) -> Option<Option<PeerCred>> {
    // A reply is one small write that must not wait for the acknowledgement of the one before.
    stream.set_nodelay(true).ok()?;
    match (stream.peer_addr().ok()?, stream.local_addr().ok()?) {
        (SocketAddr::V4(peer), SocketAddr::V4(ours)) => Some(identity.of(peer, ours)),
        _ => Some(None),
    }
}

/// All ranks of a large node connect at the same time.
const BACKLOG: u32 = 4096;
/// Beside the ranks of the largest nodes, room for as many that say nothing: the server ends those in time.
pub(crate) const MAX_CONNECTIONS: usize = 8192;
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
