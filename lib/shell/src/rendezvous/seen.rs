//! Whether servers may be reached from here: a process with the pid in their file exists, or their address does not refuse connections.
//!
//! Addresses are tried in parallel, so many unresponsive ones take no longer than one.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use phalanx_wire::rendezvous::Rendezvous;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with, sockopt};
use rustix::process::{Pid, test_kill_process};

pub(super) fn is_seen(of: &Rendezvous) -> bool {
    all_seen(&[of]) == [true]
}

pub(super) fn all_seen(all: &[&Rendezvous]) -> Vec<bool> {
    let mut seen: Vec<bool> = all.iter().map(|of| !of.pid.is_some_and(is_no_process)).collect();
    let asked: Vec<usize> = (0..all.len()).filter(|at| !seen[*at]).collect();
    for asked in asked.chunks(AT_ONCE) {
        let addresses: Vec<SocketAddr> = asked.iter().map(|at| all[*at].uri.address).collect();
        for (at, deserted) in asked.iter().zip(are_deserted(&addresses)) {
            seen[*at] = !deserted;
        }
    }
    seen
}

pub(super) fn is_no_process(pid: u32) -> bool {
    i32::try_from(pid).ok().and_then(Pid::from_raw).is_none_or(is_gone)
}

/// Containers often have no init process that reaps orphans: a process that has ended stays as a zombie.
fn is_gone(pid: Pid) -> bool {
    let stat = || std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    test_kill_process(pid) == Err(Errno::SRCH)
        || stat().rsplit_once(") ").is_some_and(|(_, state)| state.starts_with(['Z', 'X']))
}

/// Which addresses refuse connections.
fn are_deserted(addresses: &[SocketAddr]) -> Vec<bool> {
    let mut deserted = vec![false; addresses.len()];
    let mut waiting: Vec<(usize, OwnedFd)> = Vec::new();
    for (at, address) in addresses.iter().enumerate() {
        match begin(*address) {
            Ok(Some(socket)) => waiting.push((at, socket)),
            Ok(None) => {}
            Err(error) => deserted[at] = error == Errno::CONNREFUSED,
        }
    }
    let until = Instant::now() + PATIENCE;
    while !waiting.is_empty() {
        let left = until.saturating_duration_since(Instant::now());
        let Ok(left) = Timespec::try_from(left) else { break };
        let mut polled: Vec<PollFd<'_>> =
            waiting.iter().map(|(_, socket)| PollFd::new(socket, PollFlags::OUT)).collect();
        match poll(&mut polled, Some(&left)) {
            Ok(0) => break,
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => break,
        }
        let ended: Vec<bool> = polled.iter().map(|polled| !polled.revents().is_empty()).collect();
        let mut ended = ended.into_iter();
        waiting.retain(|(at, socket)| {
            let ended = ended.next().unwrap_or(false);
            if ended {
                deserted[*at] = sockopt::socket_error(socket) == Ok(Err(Errno::CONNREFUSED));
            }
            !ended
        });
    }
    deserted
}

/// None: the connection was accepted at once.
fn begin(address: SocketAddr) -> Result<Option<OwnedFd>, Errno> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)?;
    match connect(&socket, &address) {
        Ok(()) => Ok(None),
        Err(Errno::INPROGRESS) => Ok(Some(socket)),
        Err(error) => Err(error),
    }
}

const AT_ONCE: usize = 64;
const PATIENCE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn many_addresses_are_tried_side_by_side() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut addresses = vec!["192.0.2.1:7".parse().unwrap(); AT_ONCE];
        addresses[3] = listener.local_addr().unwrap();
        addresses[7] = gone;
        let begun = Instant::now();
        let deserted = are_deserted(&addresses);
        assert!(!deserted[3] && deserted[7]);
        assert!(begun.elapsed() < PATIENCE * 20, "one after the other they would take {} s", AT_ONCE);
    }
}
