//! The door for a server's peers: a listener, on the loopback interface or wider, which asks the kernel who has knocked.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use phalanx_core::PeerCred;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, accept_with, bind, getpeername, getsockname};
use rustix::net::{listen, socket_with, sockopt};

use crate::identity::Identity;

pub(crate) struct Listener {
    socket: OwnedFd,
    address: SocketAddr,
    identity: Identity,
}

impl Listener {
    /// Opens the door at this address and a port of the kernel's choice.
    pub(crate) fn open(at: Ipv4Addr) -> io::Result<Listener> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
        bind(&socket, &SocketAddrV4::new(at, 0))?;
        listen(&socket, BACKLOG)?;
        let address = SocketAddr::try_from(getsockname(&socket)?)?;
        Ok(Listener { socket, address, identity: Identity::default() })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The next connection, if one waits.
    pub(super) fn accept(&mut self) -> io::Result<Option<(OwnedFd, Option<PeerCred>)>> {
        loop {
            let socket = match accept_with(&self.socket, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
                Ok(socket) => socket,
                Err(Errno::AGAIN) => return Ok(None),
                // The peer has given up meanwhile.
                Err(Errno::INTR | Errno::CONNABORTED) => continue,
                Err(error) => return Err(error.into()),
            };
            match self.identify(&socket) {
                Ok(peer) => return Ok(Some((socket, peer))),
                Err(error) => tracing::debug!(%error, "a connection that has gone before it was looked at"),
            }
        }
    }

    fn identify(&mut self, socket: &OwnedFd) -> io::Result<Option<PeerCred>> {
        // A reply is one small write that must not wait for the acknowledgement of the one before.
        sockopt::set_tcp_nodelay(socket, true)?;
        let peer = getpeername(socket)?.map(SocketAddr::try_from).transpose()?;
        Ok(match (peer, SocketAddr::try_from(getsockname(socket)?)?) {
            (Some(SocketAddr::V4(peer)), SocketAddr::V4(ours)) => self.identity.of(peer, ours),
            _ => None,
        })
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// All ranks of a large node connect at the same time.
const BACKLOG: i32 = 4096;
