//! Who is at the other end of a loopback connection, as the kernel says.
//!
//! The peer's socket is looked up by its exact four-tuple: in the socket diagnostics of the kernel, or in /proc where
//! those are not to be had. A socket that its process has closed already is nobody's: the kernel would name root as
//! its owner.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;

use phalanx_core::PeerCred;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};
use rustix::process::{getegid, geteuid};

/// Asks the kernel.
#[derive(Debug)]
pub(crate) struct Identity {
    diagnostics: Option<OwnedFd>,
    sequence: u32,
}

impl Default for Identity {
    fn default() -> Identity {
        let diagnostics = socket_with(
            AddressFamily::NETLINK,
            SocketType::DGRAM,
            SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
            Some(netlink::SOCK_DIAG),
        );
        Identity { diagnostics: diagnostics.ok(), sequence: 0 }
    }
}

impl Identity {
    /// The owner of the socket at `peer` that is connected to `ours`.
    pub(crate) fn of(&mut self, peer: SocketAddrV4, ours: SocketAddrV4) -> Option<PeerCred> {
        let uid = match self.by_diagnostics(peer, ours) {
            Ok(uid) => uid,
            Err(e) => {
                tracing::debug!("socket diagnostics: {e}; using /proc/net/tcp");
                by_table(&fs::read_to_string("/proc/net/tcp").ok()?, peer, ours)
            }
        }?;
        // The kernel keeps no group for a socket. A process of ours nearly always has ours; of others nothing is known.
        let gid = if uid == geteuid().as_raw() { getegid().as_raw() } else { u32::MAX };
        Some(PeerCred { uid, gid, pid: None })
    }

    fn by_diagnostics(&mut self, peer: SocketAddrV4, ours: SocketAddrV4) -> io::Result<Option<u32>> {
        let socket = self.diagnostics.as_ref().ok_or(io::ErrorKind::Unsupported)?;
        self.sequence = self.sequence.wrapping_add(1);
        send(socket, &question(self.sequence, peer, ours), SendFlags::empty())?;
        // The kernel answers within `send`. Whatever is not the answer to this question is dropped.
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

/// `inet_diag_req_v2` for one connection, seen from its end at `peer`.
fn question(sequence: u32, peer: SocketAddrV4, ours: SocketAddrV4) -> Vec<u8> {
    const SOCK_DIAG_BY_FAMILY: u16 = 20;
    const NLM_F_REQUEST: u16 = 1;
    const LENGTH: u32 = 72;
    let mut message = Vec::with_capacity(LENGTH as usize);
    message.extend(LENGTH.to_ne_bytes());
    message.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    message.extend(NLM_F_REQUEST.to_ne_bytes());
    message.extend(sequence.to_ne_bytes());
    message.extend(0_u32.to_ne_bytes());
    message.extend([libc::AF_INET as u8, libc::IPPROTO_TCP as u8, 0, 0]);
    message.extend(u32::MAX.to_ne_bytes()); // any state
    message.extend(peer.port().to_be_bytes());
    message.extend(ours.port().to_be_bytes());
    for address in [peer.ip(), ours.ip()] {
        message.extend(address.octets());
        message.extend([0; 12]);
    }
    message.extend(0_u32.to_ne_bytes()); // any interface
    message.extend([0xff; 8]); // no cookie
    message
}

/// The uid in an `inet_diag_msg`; `None` if there is no such socket, or nobody owns it any more.
fn answer(message: &[u8], peer: SocketAddrV4, ours: SocketAddrV4) -> io::Result<Option<u32>> {
    const NLMSG_ERROR: u32 = 2;
    let short = || io::Error::from(io::ErrorKind::UnexpectedEof);
    let kind = native_u32(message, 4).ok_or_else(short)? & 0xffff;
    if kind == NLMSG_ERROR {
        let errno = native_u32(message, 16).ok_or_else(short)?.cast_signed().wrapping_neg();
        return if errno == libc::ENOENT { Ok(None) } else { Err(io::Error::from_raw_os_error(errno)) };
    }
    let field = |at: usize, length: usize| message.get(at..at + length).ok_or_else(short);
    let same = field(20, 2)? == peer.port().to_be_bytes()
        && field(22, 2)? == ours.port().to_be_bytes()
        && field(24, 4)? == peer.ip().octets()
        && field(40, 4)? == ours.ip().octets();
    let uid = native_u32(message, 80).ok_or_else(short)?;
    let inode = native_u32(message, 84).ok_or_else(short)?;
    Ok((same && inode != 0).then_some(uid))
}

fn native_u32(message: &[u8], at: usize) -> Option<u32> {
    let field = message.get(at..at + 4)?;
    Some(u32::from_ne_bytes(field.try_into().ok()?))
}

/// The same from the text of /proc/net/tcp.
fn by_table(table: &str, peer: SocketAddrV4, ours: SocketAddrV4) -> Option<u32> {
    table.lines().skip(1).find_map(|line| {
        let mut fields = line.split_ascii_whitespace();
        let local = address(fields.nth(1)?)?;
        let remote = address(fields.next()?)?;
        let uid = fields.nth(4)?.parse().ok()?;
        let inode: u64 = fields.nth(1)?.parse().ok()?;
        (local == peer && remote == ours && inode != 0).then_some(uid)
    })
}

/// `0100007F:9C40`: the address as one number of this machine's byte order, the port as a plain number.
fn address(text: &str) -> Option<SocketAddrV4> {
    let (ip, port) = text.split_once(':')?;
    let ip = u32::from_str_radix(ip, 16).ok()?.to_ne_bytes();
    Some(SocketAddrV4::new(Ipv4Addr::from(ip), u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, TcpListener, TcpStream};

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
        assert_eq!(by_table(&table, peer, here), Some(me));
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
        assert_eq!(by_table(&table, peer, here), None);
    }

    #[test]
    fn strangers_answers_are_refused() {
        let (peer, ours) = ("127.0.0.1:1".parse().unwrap(), "127.0.0.1:2".parse().unwrap());
        assert!(answer(&[0; 12], peer, ours).is_err());
        assert_eq!(answer(&[0; 88], peer, ours).unwrap(), None);
        assert_eq!(by_table("header\n junk\n", peer, ours), None);
    }
}
