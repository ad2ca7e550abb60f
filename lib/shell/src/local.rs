//! A shortcut between a server and a client that are both ours: a Unix socket instead of the network stack.
//!
//! A server of ours that listens on the loopback interface also listens on an abstract Unix socket named after that address, so a client
//! derives the name from the address. A message takes two thirds of the time there, and the kernel reports the peer's user directly.
//! Such names belong to a network namespace, as loopback addresses do. Peers that are not ours never look for the socket. Where it is missing, or
//! its owner is not trusted, we use TCP.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};

use phalanx_core::PeerCred;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with, sockopt,
};

use crate::trust::Trust;
use crate::unmapped::{STRANGER, is_open, shared_user};

/// Listens beside the TCP listener at this address.
pub(crate) fn open(address: SocketAddr, backlog: i32) -> io::Result<OwnedFd> {
    let socket = socket()?;
    bind(&socket, &name(address)?)?;
    listen(&socket, backlog)?;
    Ok(socket)
}

/// Connects beside this address. None: there is no such socket, its backlog is full, or its owner is not trusted.
pub(crate) fn enter(address: SocketAddr, trust: &Trust) -> Option<OwnedFd> {
    if !address.ip().is_loopback() {
        return None;
    }
    let socket = socket().ok()?;
    connect(&socket, &name(address).ok()?).ok()?;
    trust.includes(peer(&socket, shared_user())?.uid).then_some(socket)
}

/// The process at the other end. Users of other namespaces may appear as the `shared` user.
pub(crate) fn peer(socket: impl AsFd, shared: Option<u32>) -> Option<PeerCred> {
    let peer = sockopt::socket_peercred(socket).ok()?;
    let (uid, pid) = (peer.uid.as_raw(), peer.pid.as_raw_pid().cast_unsigned());
    let is_stranger = shared == Some(uid) && !is_open(pid);
    Some(PeerCred { uid: if is_stranger { STRANGER } else { uid }, gid: peer.gid.as_raw(), pid: Some(pid) })
}

fn socket() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?)
}

fn name(address: SocketAddr) -> io::Result<SocketAddrUnix> {
    Ok(SocketAddrUnix::new_abstract_name(format!("phalanx/{address}").as_bytes())?)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use rustix::process::geteuid;

    use super::*;

    fn enter(address: SocketAddr) -> Option<OwnedFd> {
        super::enter(address, &Trust::default())
    }

    /// An address that stays reserved while the listener lives.
    fn address() -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        (listener, address)
    }

    #[test]
    fn both_ends_know_each_other() {
        let (_tcp, address) = address();
        assert!(enter(address).is_none());
        let door = open(address, 4).unwrap();
        let client = enter(address).unwrap();
        let server = rustix::net::accept(&door).unwrap();
        for peer in [peer(&client, None).unwrap(), peer(&server, None).unwrap()] {
            assert_eq!(peer.uid, geteuid().as_raw());
            assert_eq!(peer.pid, Some(std::process::id()));
        }
        drop((door, server));
        assert!(enter(address).is_none());
    }

    #[test]
    fn connections_to_a_full_door_fail_at_once() {
        let (_tcp, address) = address();
        let _door = open(address, 0).unwrap();
        let entered = (0..4).map_while(|_| enter(address)).collect::<Vec<_>>();
        assert!((1..4).contains(&entered.len()), "{entered:?}");
    }

    #[test]
    fn only_addresses_of_this_node_are_looked_for() {
        let other = SocketAddr::from(([192, 0, 2, 1], 7));
        let _door = open(other, 4).unwrap();
        assert!(enter(other).is_none());
    }
}
