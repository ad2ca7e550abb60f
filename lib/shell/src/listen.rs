//! A server's listener, on the loopback interface or wider, with a Unix socket beside it for clients of ours. It asks the kernel which
//! user has connected.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use phalanx_core::PeerCred;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, accept_with, bind, getpeername, getsockname};
use rustix::net::{listen, socket_with, sockopt};

use crate::identity::Identity;
use crate::local;

#[derive(Debug)]
pub struct Listener {
    socket: OwnedFd,
    /// The Unix socket beside a loopback listener. None elsewhere, or if its name is taken, which does no harm.
    local: Option<OwnedFd>,
    address: SocketAddr,
    identity: Identity,
}

impl Listener {
    /// Listens at this address, on a port that the kernel chooses.
    pub fn open(at: Ipv4Addr) -> io::Result<Listener> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
        bind(&socket, &SocketAddrV4::new(at, 0))?;
        listen(&socket, BACKLOG)?;
        let address = SocketAddr::try_from(getsockname(&socket)?)?;
        let inside = if at.is_unspecified() { Ipv4Addr::LOCALHOST } else { at };
        let local = inside.is_loopback().then(|| local::open((inside, address.port()).into(), BACKLOG));
        let local = local.transpose().unwrap_or_else(|error| {
            tracing::debug!(%error, "no short way for clients of ours");
            None
        });
        Ok(Listener { socket, local, address, identity: Identity::default() })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Each becomes readable when a peer connects.
    pub fn sockets(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        [Some(&self.socket), self.local.as_ref()].into_iter().flatten().map(AsFd::as_fd)
    }

    /// The next waiting connection, if any, and its peer's identity, if the kernel knows it.
    pub fn accept(&mut self) -> io::Result<Option<(OwnedFd, Option<PeerCred>)>> {
        if let Some(local) = &self.local
            && let Some(socket) = accept(local)?
        {
            let peer = local::peer(&socket, self.identity.shared);
            return Ok(Some((socket, peer)));
        }
        while let Some(socket) = accept(&self.socket)? {
            match self.identify(&socket) {
                Ok(peer) => return Ok(Some((socket, peer))),
                Err(error) => tracing::debug!(%error, "a connection that has gone before it was looked at"),
            }
        }
        Ok(None)
    }

    fn identify(&mut self, socket: &OwnedFd) -> io::Result<Option<PeerCred>> {
        // A reply is one small write that must not wait for the acknowledgement of the previous one.
        sockopt::set_tcp_nodelay(socket, true)?;
        let peer = getpeername(socket)?.map(SocketAddr::try_from).transpose()?;
        Ok(match (peer, SocketAddr::try_from(getsockname(socket)?)?) {
            (Some(SocketAddr::V4(peer)), SocketAddr::V4(ours)) => self.identity.of(peer, ours),
            _ => None,
        })
    }
}

fn accept(listener: &OwnedFd) -> io::Result<Option<OwnedFd>> {
    loop {
        match accept_with(listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
            Ok(socket) => return Ok(Some(socket)),
            Err(Errno::AGAIN) => return Ok(None),
            // The peer has given up in the meantime.
            Err(Errno::INTR | Errno::CONNABORTED) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// All ranks of a large node connect at the same time.
const BACKLOG: i32 = 4096;
