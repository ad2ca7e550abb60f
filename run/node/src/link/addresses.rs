//! The addresses of this host, as the kernel lists them, with the names of their interfaces.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use rustix::fd::OwnedFd;
use rustix::net::netdevice::index_to_name;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with};

use super::network::OwnAddress;

/// All addresses that are in use, of both families.
pub fn own_addresses() -> io::Result<Vec<OwnAddress>> {
    // NETLINK_ROUTE is protocol 0.
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::NETLINK, SocketType::DGRAM, flags, None)?;
    send(&socket, &question(), SendFlags::empty())?;
    let mut own = Vec::new();
    let mut buffer = vec![0; 64 << 10];
    // The kernel has the next part of its answer ready whenever it is read.
    loop {
        let (length, _) = recv(&socket, &mut buffer, RecvFlags::empty())?;
        if !read(buffer.get(..length).unwrap_or_default(), &socket, &mut own)? {
            return Ok(own);
        }
    }
}

/// `nlmsghdr` and `ifaddrmsg`: lists everything.
fn question() -> Vec<u8> {
    const LENGTH: u32 = 24;
    const RTM_GETADDR: u16 = 22;
    const REQUEST_AND_DUMP: u16 = 0x301;
    let mut message = Vec::with_capacity(LENGTH as usize);
    message.extend(LENGTH.to_ne_bytes());
    message.extend(RTM_GETADDR.to_ne_bytes());
    message.extend(REQUEST_AND_DUMP.to_ne_bytes());
    message.resize(LENGTH as usize, 0);
    message
}

/// One part of the answer, with several messages. `false`: it was the last.
fn read(mut part: &[u8], socket: &OwnedFd, own: &mut Vec<OwnAddress>) -> io::Result<bool> {
    while let Some((message, rest)) = cut(part) {
        match u16::from_ne_bytes([message[4], message[5]]) {
            ADDRESS => {
                if let Some((index, address, prefix)) = address(message.get(HEADER..).unwrap_or_default()) {
                    // An interface that has gone meanwhile has no name.
                    if let Ok(interface) = index_to_name(socket, index) {
                        own.push(OwnAddress { interface, address, prefix });
                    }
                }
            }
            DONE => return Ok(false),
            ERROR => return Err(io::Error::other("the kernel does not list the addresses of this host")),
            _ => {}
        }
        part = rest;
    }
    Ok(true)
}

/// A message that begins with its length, and the rest.
fn cut(part: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = u32::from_ne_bytes(*part.first_chunk()?) as usize;
    if length < HEADER || length > part.len() {
        return None;
    }
    let next = length.next_multiple_of(4).min(part.len());
    Some((part.get(..length)?, part.get(next..)?))
}

/// Index of the interface, address and prefix of an `ifaddrmsg` and what follows it.
fn address(message: &[u8]) -> Option<(u32, IpAddr, u8)> {
    let (head, mut attributes) = message.split_first_chunk::<8>()?;
    let [family, prefix, flags, _scope, index @ ..] = *head;
    if flags & UNUSABLE != 0 {
        return None;
    }
    let (mut of_peer, mut local) = (None, None);
    while let Some((length, rest)) = attributes.split_first_chunk::<2>() {
        let length = usize::from(u16::from_ne_bytes(*length));
        let kind = u16::from_ne_bytes(*rest.first_chunk()?);
        let value = attributes.get(4..length)?;
        match kind {
            1 => of_peer = to_address(family, value),
            2 => local = to_address(family, value),
            _ => {}
        }
        attributes = attributes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Some((u32::from_ne_bytes(index), local.or(of_peer)?, prefix))
}

fn to_address(family: u8, value: &[u8]) -> Option<IpAddr> {
    match i32::from(family) {
        libc::AF_INET => Some(Ipv4Addr::from(<[u8; 4]>::try_from(value).ok()?).into()),
        libc::AF_INET6 => Some(Ipv6Addr::from(<[u8; 16]>::try_from(value).ok()?).into()),
        _ => None,
    }
}

const HEADER: usize = 16;
const ERROR: u16 = 2;
const DONE: u16 = 3;
const ADDRESS: u16 = 20;
/// Tentative, or a duplicate of another host's address.
const UNUSABLE: u8 = 0x40 | 0x08;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_host_has_a_loopback_address() {
        let own = own_addresses().unwrap();
        assert!(own.iter().all(|own| !own.interface.is_empty()));
        if let Some(loopback) = own.iter().find(|own| own.address == Ipv4Addr::LOCALHOST) {
            assert_eq!((loopback.interface.as_str(), loopback.prefix), ("lo", 8));
        }
    }

    #[test]
    fn bytes_that_are_no_answer_do_no_harm() {
        for length in 0..40 {
            let part = vec![length; usize::from(length)];
            assert!(cut(&part).is_none() || part.len() >= HEADER);
            let _ = address(&part);
        }
    }
}
