//! Which of several servers take connections: all are asked side by side, and none is told anything.
//!
//! A server that has been stopped, or hangs, lets connections wait: the kernel says whether somebody has taken them. So such a server
//! costs a search one short deadline, however many there are, and comes last.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, getsockname, socket_with};

use crate::identity::Identity;

/// The numbers of those servers that have not taken a connection in time. Those that nobody can connect to are not among them:
/// who tries learns why at once.
pub(super) fn silent(servers: &[SocketAddr]) -> Vec<usize> {
    let mut identity = Identity::default();
    let mut waiting: Vec<(usize, SocketAddr, OwnedFd)> = servers
        .iter()
        .enumerate()
        .filter(|(_, server)| server.ip().is_loopback())
        .filter_map(|(at, server)| Some((at, *server, begin(*server)?)))
        .collect();
    let begun = Instant::now();
    let first = waiting.first().map(|(at, _, _)| *at);
    loop {
        waiting.retain(|(_, server, socket)| !is_taken(&mut identity, *server, socket));
        // Behind a first one that is there the others do not matter much.
        let is_first_there = waiting.first().map(|(at, _, _)| *at) != first;
        let patience = if is_first_there { SOON } else { PATIENCE };
        if waiting.is_empty() || begun.elapsed() > patience {
            return waiting.into_iter().map(|(at, _, _)| at).collect();
        }
        std::thread::sleep(PAUSE);
    }
}

/// None: it cannot be connected to.
fn begin(server: SocketAddr) -> Option<OwnedFd> {
    let family = if server.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(family, SocketType::STREAM, flags, None).ok()?;
    match connect(&socket, &server) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => Some(socket),
        Err(_) => None,
    }
}

/// Whether somebody has taken the connection, or it has failed.
fn is_taken(identity: &mut Identity, server: SocketAddr, socket: &OwnedFd) -> bool {
    let ours = getsockname(socket).and_then(SocketAddr::try_from);
    ours.is_ok_and(|ours| !identity.is_waiting(server, ours))
}

const PATIENCE: Duration = Duration::from_secs(1);
const SOON: Duration = Duration::from_millis(20);
const PAUSE: Duration = Duration::from_millis(2);

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn those_that_take_no_connections_are_named() {
        let listeners: Vec<TcpListener> = (0..4).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let mut servers: Vec<SocketAddr> = listeners.iter().map(|one| one.local_addr().unwrap()).collect();
        servers.push(TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap());
        let mut listeners = listeners.into_iter();
        let (silent_one, also_silent) = (listeners.next(), listeners.next());
        for listener in listeners {
            std::thread::spawn(move || listener.incoming().map(std::mem::forget).count());
        }
        assert_eq!(silent(&servers), [0, 1]);
        drop((silent_one, also_silent));
    }
}
