//! The user at the other end of a loopback connection, client or server, as reported by the kernel.
//!
//! The peer's socket is looked up by its exact four-tuple: in the socket diagnostics of the kernel, or in /proc where
//! those are not available. A socket that its process has already closed has no owner; the kernel would name root.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::time::Duration;

use phalanx_core::PeerCred;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};
use rustix::process::{getegid, geteuid};

use crate::unmapped::{STRANGER, is_held_here, shared_user};

/// Queries the kernel.
#[derive(Debug)]
pub(crate) struct Identity {
    diagnostics: Option<OwnedFd>,
    sequence: u32,
    /// The uid of our own user, if users of other namespaces may appear under it.
    pub(crate) shared: Option<u32>,
}

impl Default for Identity {
    fn default() -> Identity {
        let diagnostics = socket_with(
            AddressFamily::NETLINK,
            SocketType::DGRAM,
            SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
            Some(netlink::SOCK_DIAG),
        );
        Identity { diagnostics: diagnostics.ok(), sequence: 0, shared: shared_user() }
    }
}

impl Identity {
    /// The owner of the socket at `peer` that is connected to `ours`.
    pub(crate) fn of(&mut self, peer: SocketAddrV4, ours: SocketAddrV4) -> Option<PeerCred> {
        let found = self.look_up(peer.into(), ours.into());
        let uid = self.owner(&found.ok()?.filter(|socket| socket.inode != 0)?);
        // The kernel keeps no group for a socket. A process of our user nearly always has our group; the group of others is unknown.
        let gid = if uid == geteuid().as_raw() { getegid().as_raw() } else { u32::MAX };
        Some(PeerCred { uid, gid, pid: None })
    }

    /// The owner of the server that has just let `ours` connect to it. None: it is on another node, or has closed the connection,
    /// so no process can read what is sent.
    ///
    /// A connection that the server has not accepted yet has no owner; then the listener's owner counts. Checking afterwards that it is
    /// still not accepted proves that the listener is that of this connection, since waiting connections end with their listener.
    pub(crate) fn of_server(&mut self, server: SocketAddr, ours: SocketAddr) -> io::Result<Option<u32>> {
        for _ in 0..ATTEMPTS {
            match self.look_up(server, ours)? {
                Some(socket) if socket.inode != 0 => return Ok(Some(self.owner(&socket))),
                Some(socket) if !socket.waits() => return Ok(None),
                Some(_) => {
                    let listener = self.look_up(server, nowhere(server))?;
                    let waits = self.look_up(server, ours)?.is_some_and(|socket| socket.waits());
                    if let (Some(listener), true) = (listener.filter(Socket::listens), waits) {
                        return Ok(Some(self.owner(&listener)));
                    }
                }
                None if !server.ip().to_canonical().is_loopback() => return Ok(None),
                // The connection is still being set up, or has been closed.
                None => std::thread::sleep(PAUSE),
            }
        }
        Err(io::Error::other("the kernel does not say whose server it is"))
    }

    /// The owner of the socket that listens on this node at `address`, if the kernel knows.
    pub(crate) fn of_listener(&mut self, address: SocketAddr) -> Option<u32> {
        let found = self.look_up(address, nowhere(address)).ok()?;
        found.filter(|socket| socket.listens() && socket.inode != 0).map(|socket| self.owner(&socket))
    }

    /// The owner of a socket that a process has open.
    fn owner(&self, socket: &Socket) -> u32 {
        match self.shared {
            Some(shared) if socket.uid == shared && !is_held_here(socket.inode) => STRANGER,
            _ => socket.uid,
        }
    }

    /// The socket at `peer` that is connected to `ours`, or else the one that listens there.
    fn look_up(&mut self, peer: SocketAddr, ours: SocketAddr) -> io::Result<Option<Socket>> {
        match self.by_diagnostics(peer, ours) {
            Ok(socket) => Ok(socket),
            Err(e) => {
                tracing::debug!("socket diagnostics: {e}; using /proc/net/tcp");
                let (SocketAddr::V4(peer), SocketAddr::V4(ours)) = (peer, ours) else { return Err(e) };
                Ok(by_table(&fs::read_to_string("/proc/net/tcp")?, peer, ours))
            }
        }
    }

    fn by_diagnostics(&mut self, peer: SocketAddr, ours: SocketAddr) -> io::Result<Option<Socket>> {
        let socket = self.diagnostics.as_ref().ok_or(io::ErrorKind::Unsupported)?;
        self.sequence = self.sequence.wrapping_add(1);
        send(socket, &question(self.sequence, peer, ours), SendFlags::empty())?;
        // The kernel answers within `send`. Anything but the answer to this question is dropped.
        loop {
            let mut buffer = [0_u8; 1024];
            let (length, _) = recv(socket, &mut buffer, RecvFlags::empty())?;
            let message = buffer.get(..length).unwrap_or_default();
            if native_u32(message, 8) == Some(self.sequence) {
                return answer(message, peer, ours);
            }
        }
    }
}

/// A socket as the kernel describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Socket {
    uid: u32,
    /// Zero: no process has it open.
    inode: u64,
    state: u8,
}

impl Socket {
    fn listens(&self) -> bool {
        const LISTENS: u8 = 10;
        self.state == LISTENS
    }

    /// Waits to be accepted. Closed sockets have no inode either.
    fn waits(&self) -> bool {
        const ESTABLISHED: u8 = 1;
        const BEING_MADE: [u8; 2] = [3, 12];
        self.inode == 0 && (self.state == ESTABLISHED || BEING_MADE.contains(&self.state))
    }
}

/// An address that no connection has at its other end.
fn nowhere(like: SocketAddr) -> SocketAddr {
    match like {
        SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    }
}

/// `inet_diag_req_v2` for one connection, seen from its end at `peer`.
fn question(sequence: u32, peer: SocketAddr, ours: SocketAddr) -> Vec<u8> {
    const SOCK_DIAG_BY_FAMILY: u16 = 20;
    const NLM_F_REQUEST: u16 = 1;
    const LENGTH: u32 = 72;
    let family = if peer.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    let mut message = Vec::with_capacity(LENGTH as usize);
    message.extend(LENGTH.to_ne_bytes());
    message.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    message.extend(NLM_F_REQUEST.to_ne_bytes());
    message.extend(sequence.to_ne_bytes());
    message.extend(0_u32.to_ne_bytes());
    message.extend([family as u8, libc::IPPROTO_TCP as u8, 0, 0]);
    message.extend(u32::MAX.to_ne_bytes()); // any state
    message.extend(peer.port().to_be_bytes());
    message.extend(ours.port().to_be_bytes());
    for address in [peer.ip(), ours.ip()] {
        match address {
            IpAddr::V4(ip) => message.extend([ip.octets().as_slice(), &[0; 12]].concat()),
            IpAddr::V6(ip) => message.extend(ip.octets()),
        }
    }
    message.extend(0_u32.to_ne_bytes()); // any interface
    message.extend([0xff; 8]); // no cookie
    message
}

/// The socket in an `inet_diag_msg`; `None` if there is none that matches.
fn answer(message: &[u8], peer: SocketAddr, ours: SocketAddr) -> io::Result<Option<Socket>> {
    const NLMSG_ERROR: u32 = 2;
    let short = || io::Error::from(io::ErrorKind::UnexpectedEof);
    let kind = native_u32(message, 4).ok_or_else(short)? & 0xffff;
    if kind == NLMSG_ERROR {
        let errno = native_u32(message, 16).ok_or_else(short)?.cast_signed().wrapping_neg();
        return if errno == libc::ENOENT { Ok(None) } else { Err(io::Error::from_raw_os_error(errno)) };
    }
    let field = |at: usize, length: usize| message.get(at..at + length).ok_or_else(short);
    let is_v4 = field(16, 1)? == [libc::AF_INET as u8];
    let ip = |at: usize| -> io::Result<IpAddr> {
        Ok(match is_v4 {
            true => IpAddr::from(<[u8; 4]>::try_from(field(at, 4)?).map_err(io::Error::other)?),
            // A server that listens for both families has IPv4 connections in IPv6 form.
            false => {
                IpAddr::from(<[u8; 16]>::try_from(field(at, 16)?).map_err(io::Error::other)?).to_canonical()
            }
        })
    };
    let is_at_port = field(20, 2)? == peer.port().to_be_bytes();
    let is_connected = field(22, 2)? == ours.port().to_be_bytes()
        && ip(24)? == peer.ip().to_canonical()
        && ip(40)? == ours.ip().to_canonical();
    let uid = native_u32(message, 80).ok_or_else(short)?;
    let inode = native_u32(message, 84).ok_or_else(short)?;
    let socket =
        Socket { uid, inode: inode.into(), state: field(17, 1)?.first().copied().unwrap_or_default() };
    let is_it = is_at_port && (is_connected || (socket.listens() && ours.port() == 0));
    Ok(is_it.then_some(socket))
}

fn native_u32(message: &[u8], at: usize) -> Option<u32> {
    let field = message.get(at..at + 4)?;
    Some(u32::from_ne_bytes(field.try_into().ok()?))
}

/// The same from the text of /proc/net/tcp.
fn by_table(table: &str, peer: SocketAddrV4, ours: SocketAddrV4) -> Option<Socket> {
    let sockets = table.lines().skip(1).filter_map(|line| {
        let mut fields = line.split_ascii_whitespace();
        let local = address(fields.nth(1)?)?;
        let remote = address(fields.next()?)?;
        let state = u8::from_str_radix(fields.next()?, 16).ok()?;
        let uid = fields.nth(3)?.parse().ok()?;
        let inode: u64 = fields.nth(1)?.parse().ok()?;
        Some((local, remote, Socket { uid, inode, state }))
    });
    let mut fits = sockets.filter(|(local, remote, socket)| match ours.port() {
        0 => {
            socket.listens()
                && (*local == peer || (local.ip().is_unspecified() && local.port() == peer.port()))
        }
        _ => *local == peer && *remote == ours,
    });
    fits.next().map(|(_, _, socket)| socket)
}

/// `0100007F:9C40`: the address as one number of this machine's byte order, the port as a plain number.
fn address(text: &str) -> Option<SocketAddrV4> {
    let (ip, port) = text.split_once(':')?;
    let ip = u32::from_str_radix(ip, 16).ok()?.to_ne_bytes();
    Some(SocketAddrV4::new(Ipv4Addr::from(ip), u16::from_str_radix(port, 16).ok()?))
}

/// How many times the kernel is asked for the owner of a server.
const ATTEMPTS: u32 = 10;
const PAUSE: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    fn v4(address: SocketAddr) -> SocketAddrV4 {
        match address {
            SocketAddr::V4(address) => address,
            SocketAddr::V6(_) => panic!("not IPv4: {address}"),
        }
    }

    fn connection() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let theirs = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (ours, _) = listener.accept().unwrap();
        (ours, theirs)
    }

    #[test]
    fn the_owner_of_a_connected_socket_is_known_both_ways() {
        let (ours, theirs) = connection();
        let (peer, here) = (v4(ours.peer_addr().unwrap()), v4(ours.local_addr().unwrap()));
        let me = geteuid().as_raw();
        let mut identity = Identity::default();
        for _ in 0..3 {
            assert_eq!(identity.of(peer, here).map(|cred| cred.uid), Some(me));
        }
        let table = fs::read_to_string("/proc/net/tcp").unwrap();
        assert_eq!(by_table(&table, peer, here).map(|socket| socket.uid), Some(me));
        identity.diagnostics = None;
        assert_eq!(identity.of(peer, here).map(|cred| cred.uid), Some(me));
        drop(theirs);
    }

    #[test]
    fn a_closed_socket_belongs_to_nobody() {
        let (ours, theirs) = connection();
        let (peer, here) = (v4(ours.peer_addr().unwrap()), v4(ours.local_addr().unwrap()));
        drop(theirs);
        assert_eq!(Identity::default().of(peer, here), None);
        let table = fs::read_to_string("/proc/net/tcp").unwrap();
        assert!(by_table(&table, peer, here).is_none_or(|socket| socket.inode == 0));
    }

    #[test]
    fn servers_have_owners_before_and_after_they_accept() {
        let me = Some(geteuid().as_raw());
        for at in ["127.0.0.1:0", "0.0.0.0:0", "[::1]:0", "[::]:0"] {
            let Ok(listener) = TcpListener::bind(at) else { continue };
            let mut server = listener.local_addr().unwrap();
            if server.ip().is_unspecified() {
                server.set_ip(Ipv4Addr::LOCALHOST.into());
            }
            let ours = TcpStream::connect(server).unwrap();
            let here = ours.local_addr().unwrap();
            let mut by_kernel = Identity::default();
            let mut by_text = Identity { diagnostics: None, ..Identity::default() };
            let mut check = |stage: &str| {
                assert_eq!(by_kernel.of_server(server, here).unwrap(), me, "{at} {stage}");
                if at.starts_with(char::is_numeric) {
                    assert_eq!(by_text.of_server(server, here).unwrap(), me, "{at} {stage}");
                }
            };
            check("waits");
            let (theirs, _) = listener.accept().unwrap();
            check("is accepted");
            drop(listener);
            check("is accepted, and nobody listens");
            drop(theirs);
            // A program that another test starts holds a copy of the connection for a moment.
            let mut tries = 0..1_000;
            let mut owner = || by_kernel.of_server(server, here).unwrap();
            while owner().is_some() {
                assert!(tries.next().is_some(), "{at} is closed");
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }

    #[test]
    fn servers_of_other_nodes_have_no_owner_here() {
        let (server, ours) = ("192.0.2.1:7".parse().unwrap(), "192.0.2.2:8".parse().unwrap());
        assert_eq!(Identity::default().of_server(server, ours).unwrap(), None);
    }

    #[test]
    fn strangers_answers_are_refused() {
        let (peer, ours) = ("127.0.0.1:1".parse().unwrap(), "127.0.0.1:2".parse().unwrap());
        assert!(answer(&[0; 12], peer, ours).is_err());
        assert_eq!(answer(&[0; 88], peer, ours).unwrap(), None);
        assert_eq!(by_table("header\n junk\n", v4(peer), v4(ours)), None);
    }
}
