//! Which addresses of this host are announced to others: `--network CIDR|IFACE`.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

/// An address of this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnAddress {
    pub interface: String,
    pub address: IpAddr,
    /// The length of the network's prefix, in bits.
    pub prefix: u8,
}

/// What a user allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Network {
    /// By the name of an interface.
    Interface(String),
    /// `10.1.0.0/16`, `fd00::/8`, or a single address.
    Block { address: IpAddr, prefix: u8 },
}

/// No address of this host is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoAddress {
    wanted: Vec<Network>,
    own: Vec<OwnAddress>,
}

/// The allowed addresses, in the order of `own`. If `wanted` is empty: all that other hosts can use, or the loopback addresses on a host that has no
/// others.
pub fn choose_addresses(own: &[OwnAddress], wanted: &[Network]) -> Result<Vec<IpAddr>, NoAddress> {
    let of = |allowed: &dyn Fn(&OwnAddress) -> bool| -> Vec<IpAddr> {
        own.iter().filter(|own| allowed(own)).map(|own| own.address).collect()
    };
    // A link-local address would need the name of each host's own interface beside it.
    let mut chosen = match wanted {
        [] => of(&|own| !own.address.is_loopback() && !is_of_link(own.address)),
        _ => of(&|own| !is_of_link(own.address) && wanted.iter().any(|network| network.has(own))),
    };
    if wanted.is_empty() && chosen.is_empty() {
        chosen = of(&|own| own.address.is_loopback());
    }
    match chosen.is_empty() {
        true => Err(NoAddress { wanted: wanted.to_vec(), own: own.to_vec() }),
        false => Ok(chosen),
    }
}

impl Network {
    fn has(&self, own: &OwnAddress) -> bool {
        match self {
            Network::Interface(name) => *name == own.interface,
            Network::Block { address, prefix } => match (address, own.address) {
                (IpAddr::V4(network), IpAddr::V4(own)) => {
                    same_begin(network.to_bits().into(), own.to_bits().into(), 32, *prefix)
                }
                (IpAddr::V6(network), IpAddr::V6(own)) => {
                    same_begin(network.to_bits(), own.to_bits(), 128, *prefix)
                }
                _ => false,
            },
        }
    }
}

/// Whether the first `prefix` of `width` bits are equal.
fn same_begin(a: u128, b: u128, width: u32, prefix: u8) -> bool {
    let ignored = width.saturating_sub(prefix.into());
    ((a ^ b).checked_shr(ignored)).unwrap_or(0) == 0
}

fn is_of_link(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.is_unicast_link_local() || address == Ipv6Addr::UNSPECIFIED)
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Network, String> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let most = |address: &IpAddr| if address.is_ipv4() { 32 } else { 128 };
        match (address.parse::<IpAddr>(), prefix) {
            (Ok(address), None) => Ok(Network::Block { address, prefix: most(&address) }),
            (Ok(address), Some(digits)) => {
                let prefix = digits.parse().ok().filter(|prefix| *prefix <= most(&address));
                let prefix = prefix.ok_or_else(|| {
                    format!("invalid network {text:?}: expected a number up to {} after '/'", most(&address))
                })?;
                Ok(Network::Block { address, prefix })
            }
            // Linux allows names of up to 15 bytes without these characters.
            (Err(_), None)
                if (1..=15).contains(&text.len())
                    && !text.contains(|c: char| c.is_whitespace() || c == ':') =>
            {
                Ok(Network::Interface(text.to_owned()))
            }
            _ => Err(format!(
                "invalid network {text:?}: expected addresses such as 10.1.0.0/16, or the name of an interface"
            )),
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Network::Interface(name) => f.write_str(name),
            Network::Block { address, prefix } => write!(f, "{address}/{prefix}"),
        }
    }
}

impl fmt::Display for NoAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let own = |own: &OwnAddress| format!("{} {}/{}", own.interface, own.address, own.prefix);
        let own = self.own.iter().map(own).collect::<Vec<_>>().join(", ");
        let own = if own.is_empty() { "none".to_owned() } else { own };
        match self.wanted.is_empty() {
            true => write!(f, "this host has no address that others could use; it has {own}"),
            false => {
                let wanted = self.wanted.iter().map(Network::to_string).collect::<Vec<_>>().join(", ");
                write!(f, "no address of this host is in the network {wanted}; it has {own}")
            }
        }
    }
}

impl std::error::Error for NoAddress {}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(interface: &str, address: &str, prefix: u8) -> OwnAddress {
        OwnAddress { interface: interface.to_owned(), address: address.parse().unwrap(), prefix }
    }

    fn host() -> Vec<OwnAddress> {
        vec![
            own("lo", "127.0.0.1", 8),
            own("lo", "::1", 128),
            own("eth0", "192.168.7.9", 24),
            own("eth0", "fe80::1", 64),
            own("ib0", "10.1.200.3", 16),
            own("ib0", "fd00:1::3", 64),
        ]
    }

    fn chosen(wanted: &[&str]) -> Vec<String> {
        let wanted: Vec<Network> = wanted.iter().map(|text| text.parse().unwrap()).collect();
        choose_addresses(&host(), &wanted).unwrap().iter().map(IpAddr::to_string).collect()
    }

    #[test]
    fn addresses_that_others_can_use_are_chosen() {
        assert_eq!(chosen(&[]), ["192.168.7.9", "10.1.200.3", "fd00:1::3"]);
        let alone = [own("lo", "127.0.0.1", 8), own("eth0", "fe80::1", 64)];
        assert_eq!(choose_addresses(&alone, &[]).unwrap(), ["127.0.0.1".parse::<IpAddr>().unwrap()]);
    }

    #[test]
    fn networks_are_named_by_interface_or_addresses() {
        assert_eq!(chosen(&["ib0"]), ["10.1.200.3", "fd00:1::3"]);
        assert_eq!(chosen(&["10.1.0.0/16"]), ["10.1.200.3"]);
        assert_eq!(chosen(&["10.1.255.255/16"]), ["10.1.200.3"]);
        assert_eq!(chosen(&["fd00::/8"]), ["fd00:1::3"]);
        assert_eq!(chosen(&["192.168.7.9"]), ["192.168.7.9"]);
        assert_eq!(chosen(&["0.0.0.0/0"]), ["127.0.0.1", "192.168.7.9", "10.1.200.3"]);
        assert_eq!(chosen(&["::/0", "eth0"]), ["::1", "192.168.7.9", "fd00:1::3"]);
        assert_eq!(chosen(&["lo"]), ["127.0.0.1", "::1"]);
    }

    #[test]
    fn missing_network_is_an_error_that_shows_what_there_is() {
        let wanted = ["10.2.0.0/16".parse().unwrap(), "eth7".parse().unwrap()];
        let error = choose_addresses(&host()[2..4], &wanted).unwrap_err().to_string();
        assert_eq!(
            error,
            "no address of this host is in the network 10.2.0.0/16, eth7; it has eth0 192.168.7.9/24, eth0 fe80::1/64"
        );
        let error = choose_addresses(&[], &[]).unwrap_err().to_string();
        assert_eq!(error, "this host has no address that others could use; it has none");
    }

    #[test]
    fn words_that_are_no_networks_are_refused() {
        for text in [
            "",
            "10.1.0.0/33",
            "fd00::/129",
            "10.1.0.0/",
            "10.1/x",
            "a b",
            "much-too-long-a-name",
            "x/8",
            "10.1.0.0/-1",
        ] {
            let error = text.parse::<Network>().unwrap_err();
            assert!(error.starts_with("invalid network "), "{error}");
        }
    }
}
