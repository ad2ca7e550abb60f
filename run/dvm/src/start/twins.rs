//! Detects two daemons on one host for which the user gave two names.
//!
//! Daemons are on one host if they have the same addresses and the same host name. Ports differ.

use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Debug, Default)]
pub(super) struct Twins {
    /// The addresses of the daemon on each host.
    reached: BTreeMap<usize, Box<str>>,
    known: BTreeMap<(Arc<str>, Box<str>), usize>,
}

impl Twins {
    /// The daemon of this host is reached at these comma-separated addresses.
    pub(super) fn reached(&mut self, host: usize, addresses: &str) {
        let without_port = |address: &str| address.rsplit_once(':').map_or("", |(at, _)| at).to_owned();
        let addresses: Vec<String> = addresses.split(',').map(without_port).collect();
        self.reached.insert(host, addresses.join(",").into());
    }

    /// An earlier entry for the same host, if there is one. `hostname` is the daemon's own name for it.
    pub(super) fn twin_of(&mut self, host: usize, hostname: &Arc<str>) -> Option<usize> {
        let addresses = self.reached.get(&host)?.clone();
        let first = *self.known.entry((hostname.clone(), addresses)).or_insert(host);
        (first != host).then_some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_known_by_its_name_and_addresses() {
        let mut twins = Twins::default();
        let (b, c): (Arc<str>, Arc<str>) = ("b".into(), "c".into());
        twins.reached(0, "10.0.0.2:700,[fd00::2]:700");
        twins.reached(1, "10.0.0.2:800,[fd00::2]:800");
        twins.reached(2, "10.0.0.3:700,[fd00::3]:700");
        assert_eq!(twins.twin_of(0, &b), None);
        assert_eq!(twins.twin_of(0, &b), None, "it may say it again");
        assert_eq!(twins.twin_of(1, &c), None, "a container with the network of its host");
        assert_eq!(twins.twin_of(2, &b), None, "a careless name");
        assert_eq!(twins.twin_of(1, &b), Some(0));
    }
}
