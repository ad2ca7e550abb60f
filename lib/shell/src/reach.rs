//! Where a server can be reached from: this node alone, or others as well.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use phalanx_core::server::Remote;
use rustix::rand::{GetRandomFlags, getrandom};

/// Which processes can connect to a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// Processes of this node.
    #[default]
    Node,
    /// Tools on other nodes as well, at this local address; without one, at the first that is not a loopback address.
    Network(Option<Ipv4Addr>),
}

/// Where to listen, and which address to announce.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Door {
    pub listen: Ipv4Addr,
    /// The address for the rendezvous files, if it differs from the listener's.
    outside: Option<Ipv4Addr>,
    /// The secret that tools on other nodes must present.
    pub secret: Option<String>,
}

impl Reach {
    pub fn door(self) -> io::Result<Door> {
        let (listen, outside) = match self {
            Reach::Node => return Ok(Door { listen: Ipv4Addr::LOCALHOST, outside: None, secret: None }),
            Reach::Network(Some(address)) => (address, None),
            Reach::Network(None) => (Ipv4Addr::UNSPECIFIED, Some(first_outside()?)),
        };
        Ok(Door { listen, outside, secret: Some(secret()?) })
    }
}

impl Door {
    /// The address of a listener for processes of this node.
    pub fn inside(&self, listener: SocketAddr) -> SocketAddr {
        match listener.ip().is_unspecified() {
            true => SocketAddr::from((Ipv4Addr::LOCALHOST, listener.port())),
            false => listener,
        }
    }

    /// How tools on other nodes connect, if they may.
    pub fn remote(&self, listener: SocketAddr) -> Option<Remote> {
        let secret = self.secret.clone()?;
        Some(Remote { address: format!("tcp4://{}", self.outside(listener)), secret })
    }

    /// The address of a listener for tools.
    pub fn outside(&self, listener: SocketAddr) -> SocketAddr {
        self.outside.map_or(listener, |address| SocketAddr::from((address, listener.port())))
    }
}

fn first_outside() -> io::Result<Ipv4Addr> {
    let none = || io::Error::new(io::ErrorKind::AddrNotAvailable, "this node has loopback addresses only");
    own_addresses(&fs::read_to_string("/proc/net/fib_trie")?).next().ok_or_else(none)
}

/// The addresses of this machine, from the kernel's routing table: each is a leaf followed by a line with `LOCAL`.
fn own_addresses(table: &str) -> impl Iterator<Item = Ipv4Addr> {
    let mut leaf = None;
    table.lines().filter_map(move |line| {
        let line = line.trim_start();
        if let Some(address) = line.strip_prefix("|-- ") {
            leaf = address.parse().ok();
        }
        let is_own = line.starts_with("/32 host LOCAL");
        leaf.filter(|address: &Ipv4Addr| is_own && !address.is_loopback())
    })
}

fn secret() -> io::Result<String> {
    let mut bytes = [0_u8; 16];
    getrandom(&mut bytes, GetRandomFlags::empty())?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_addresses_are_those_that_the_kernel_calls_local() {
        let table = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 0.0.0.0\n        /0 universe UNICAST\n     +-- 10.1.0.0/24 2 0 2\n        \
                     |-- 10.1.0.0\n           /24 link UNICAST\n        |-- 10.1.0.7\n           /32 host LOCAL\n        |-- 10.1.0.255\n           \
                     /32 link BROADCAST\n     |-- 127.0.0.1\n        /32 host LOCAL\n";
        assert_eq!(own_addresses(table).collect::<Vec<_>>(), [Ipv4Addr::new(10, 1, 0, 7)]);
    }

    #[test]
    fn a_server_of_this_node_alone_has_no_secret() {
        let door = Reach::Node.door().unwrap();
        assert_eq!((door.listen, &door.secret), (Ipv4Addr::LOCALHOST, &None));
        let listener = SocketAddr::from((Ipv4Addr::LOCALHOST, 7));
        assert_eq!((door.inside(listener), door.outside(listener)), (listener, listener));
        let wide = Door { listen: Ipv4Addr::UNSPECIFIED, outside: Some([10, 1, 0, 7].into()), secret: None };
        let listener = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 7));
        assert_eq!(wide.inside(listener).to_string(), "127.0.0.1:7");
        assert_eq!(wide.outside(listener).to_string(), "10.1.0.7:7");
    }
}
