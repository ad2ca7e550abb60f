//! Finding a host by any of its names: in upper or lower case, with or without its domain.

use std::collections::BTreeMap;

use super::is_address;

/// Hosts by name; the owner numbers them. Further names are not looked up.
#[derive(Clone, Debug, Default)]
pub struct HostNames {
    whole: BTreeMap<String, usize>,
    /// Hosts with a domain, by their names without it.
    short: BTreeMap<String, usize>,
}

impl HostNames {
    /// If two hosts have the same name, the first counts.
    pub fn insert(&mut self, name: &str, number: usize) {
        self.whole.entry(name.to_ascii_lowercase()).or_insert(number);
        if let Some(short) = short_name(name) {
            self.short.entry(short).or_insert(number);
        }
    }

    /// A host with this name, or with this name plus or minus a domain.
    pub fn find(&self, name: &str) -> Option<usize> {
        let lower = name.to_ascii_lowercase();
        let found = self.whole.get(&lower).or_else(|| match short_name(name) {
            Some(short) => self.whole.get(&short),
            None => self.short.get(&lower),
        });
        found.copied()
    }
}

/// A name without its domain, in lower case, if it has one.
fn short_name(name: &str) -> Option<String> {
    let (short, _) = name.split_once('.').filter(|_| !is_address(name))?;
    Some(short.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_found_by_any_of_their_names() {
        let mut names = HostNames::default();
        for (number, name) in ["n1", "N2.a.org", "n2.b.org", "10.0.0.3", "fd77::4", "N1"].iter().enumerate() {
            names.insert(name, number);
        }
        for (name, number) in [
            ("N1", 0),
            ("n1.a.org", 0),
            ("n2", 1),
            ("n2.A.org", 1),
            ("n2.b.org", 2),
            ("10.0.0.3", 3),
            ("FD77::4", 4),
        ] {
            assert_eq!(names.find(name), Some(number), "{name}");
        }
        for name in ["n", "n11", "n2.c.org", "10", "10.0.0.4", ""] {
            assert_eq!(names.find(name), None, "{name}");
        }
    }
}
