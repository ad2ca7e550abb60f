//! One connection: connecting, whole frames out, bytes in. Nothing here blocks.
//!
//! OpenPMIx loses a connection when the header of a message arrives in two pieces. So the end of each frame is marked: the
//! kernel starts a new segment for the next frame, and accepts either none of it or more than a header.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, sockopt};

use crate::identity::Identity;
use crate::local;
use crate::trust::Trust;

pub struct Link {
    socket: OwnedFd,
    connecting: bool,
    frames: VecDeque<Vec<u8>>,
    /// How many bytes of the first frame have been sent.
    sent: usize,
    /// How many bytes are still to be sent.
    queued: usize,
    /// Our direction has been shut down.
    ended: bool,
    /// The server's owner is still to be determined.
    is_unknown: bool,
}

impl Link {
    /// Starts to connect. The link becomes writable when that has succeeded or failed.
    pub fn connect(address: SocketAddr, trust: &Trust) -> io::Result<Link> {
        if let Some(socket) = local::enter(address, trust) {
            return Ok(Link { connecting: true, ..Link::accepted(socket) });
        }
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
        sockopt::set_tcp_nodelay(&socket, true)?;
        match rustix::net::connect(&socket, &address) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(Link { connecting: true, is_unknown: true, ..Link::accepted(socket) })
    }

    /// Wraps a connection that is already established.
    pub fn accepted(socket: OwnedFd) -> Link {
        let frames = VecDeque::new();
        Link { socket, connecting: false, frames, sent: 0, queued: 0, ended: false, is_unknown: false }
    }

    /// The outcome of connecting, once the link has become writable for the first time. `false`: it was connected before.
    pub fn finish_connecting(&mut self) -> io::Result<bool> {
        if !std::mem::replace(&mut self.connecting, false) {
            return Ok(false);
        }
        sockopt::socket_error(&self.socket)??;
        Ok(true)
    }

    /// The owner of the server at the other end of a connection that has just been made. None: it was already checked, or the server is on
    /// another node.
    pub fn server_owner(&mut self) -> io::Result<Option<u32>> {
        if !std::mem::take(&mut self.is_unknown) {
            return Ok(None);
        }
        // Not the address that the caller passed: 0.0.0.0, for one, leads to this node.
        let Some(server) = rustix::net::getpeername(&self.socket)? else { return Ok(None) };
        let server = SocketAddr::try_from(server)?;
        let ours = SocketAddr::try_from(rustix::net::getsockname(&self.socket)?)?;
        Identity::default().of_server(server, ours)
    }

    pub fn push(&mut self, frame: Vec<u8>) {
        self.queued += frame.len();
        self.frames.push_back(frame);
    }

    /// How many bytes are still to be sent.
    pub fn queued(&self) -> usize {
        self.queued
    }

    pub fn wants_to_write(&self) -> bool {
        self.connecting || !self.frames.is_empty()
    }

    /// Sends as much as there is room for.
    pub fn flush(&mut self) -> io::Result<()> {
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT | SendFlags::EOR;
        while let Some(frame) = self.frames.front() {
            if self.connecting {
                return Ok(());
            }
            let rest = frame.get(self.sent..).unwrap_or_default();
            match rustix::net::send(&self.socket, rest, flags) {
                Ok(count) => {
                    self.queued -= count;
                    self.sent += count;
                    if count == rest.len() {
                        self.frames.pop_front();
                        self.sent = 0;
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Shuts down our direction, after all that was sent.
    pub fn end_writing(&mut self) -> io::Result<()> {
        if !std::mem::replace(&mut self.ended, true) {
            rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Write)?;
        }
        Ok(())
    }

    /// Reads once. `None`: there is nothing to read now; zero bytes: the peer has closed.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        if self.connecting {
            return Ok(None);
        }
        match rustix::net::recv(&self.socket, buffer, RecvFlags::DONTWAIT) {
            Ok((count, _)) => Ok(Some(count)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
