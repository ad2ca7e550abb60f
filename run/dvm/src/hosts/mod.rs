//! The syntax in which nodes are named: `--host`, hostfiles, the variables of batch systems, and the files of the `seq` and
//! `rankfile` mappings.
//!
//! Owns these grammars and their errors, which state the position in the text and what was expected there. Never opens a file:
//! the caller reads it and passes its name. Names are taken as they stand; whether they exist is not checked.
//!
//! Next stop: the shell starts a daemon on each named node, and [`crate::map`] places ranks on them.

mod cpulist;
mod envs;
mod hostfile;
mod hostlist;
mod names;
mod ranges;
mod rankfile;
mod scan;
mod seqfile;

use std::fmt;

pub(crate) use cpulist::read_cpus;
pub use envs::{parse_grid_engine, parse_lsf, parse_slurm};
pub use hostfile::parse_hostfile;
pub use hostlist::parse_hosts;
pub(crate) use hostlist::read_host;
pub use names::HostNames;
pub use ranges::write_names;
pub use rankfile::parse_rankfile;
pub use scan::text_of;
pub use seqfile::parse_sequence;

/// One mention of a node, or of several by their place in the allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostEntry {
    /// The node.
    pub host: Host,
    /// How many ranks it is for.
    pub slots: Slots,
    /// More than this many ranks are never put there, whatever else is allowed.
    pub max_slots: Option<u32>,
    /// The account under which to log in there, if it is not the user's own.
    pub user: Option<String>,
}

/// The node that a mention is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Host {
    /// By name or address.
    Name(String),
    /// `+nK`: the allocation's node number K, from 0.
    Index(u32),
    /// `+e` or `+e:N`: all nodes, or the first N, on which nothing runs yet.
    Empty(Option<u32>),
}

/// How many ranks a node is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Slots {
    /// Unknown: as many as it has CPUs, and more if more are requested.
    #[default]
    Unstated,
    /// It was named so many times on a command line without a number: as many ranks before the next node's turn, and otherwise
    /// as if unknown.
    Mentioned(u32),
    /// Stated; more only where oversubscribing is allowed.
    Stated(u32),
}

impl HostEntry {
    /// A node by its name and nothing more.
    pub fn named(name: impl Into<String>) -> HostEntry {
        HostEntry { host: Host::Name(name.into()), slots: Slots::Unstated, max_slots: None, user: None }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Name(name) => f.write_str(name),
            Host::Index(index) => write!(f, "+n{index}"),
            Host::Empty(None) => f.write_str("+e"),
            Host::Empty(Some(count)) => write!(f, "+e:{count}"),
        }
    }
}

impl Slots {
    /// The slots of two mentions of one node together.
    pub(crate) fn plus(self, other: Slots) -> Slots {
        match (self, other) {
            (Slots::Stated(a), Slots::Stated(b) | Slots::Mentioned(b))
            | (Slots::Mentioned(a), Slots::Stated(b)) => Slots::Stated(a.saturating_add(b)),
            (Slots::Mentioned(a), Slots::Mentioned(b)) => Slots::Mentioned(a.saturating_add(b)),
            (Slots::Unstated, _) | (_, Slots::Unstated) => Slots::Unstated,
        }
    }
}

/// Joins mentions of the same node into one, at the place of the first. Slots add up; the last maximum and the last account
/// count.
pub fn merge_hosts(entries: Vec<HostEntry>) -> Vec<HostEntry> {
    let mut places = std::collections::BTreeMap::new();
    let mut merged: Vec<HostEntry> = Vec::with_capacity(entries.len());
    for entry in entries {
        let place = match entry.host {
            // Every mention takes nodes of its own.
            Host::Empty(_) => merged.len(),
            _ => *places.entry(entry.host.clone()).or_insert(merged.len()),
        };
        match merged.get_mut(place) {
            None => merged.push(entry),
            Some(known) => {
                known.slots = known.slots.plus(entry.slots);
                known.max_slots = entry.max_slots.or(known.max_slots);
                known.user = entry.user.or(known.user.take());
            }
        }
    }
    merged
}

/// Whether a name is an address; its dots separate no domains.
fn is_address(name: &str) -> bool {
    name.parse::<std::net::IpAddr>().is_ok()
}

/// Why a text is not a list of hosts, a hostfile, a sequence or a rankfile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostsError {
    /// The file, or the option.
    pub file: String,
    /// From 1.
    pub line: u32,
    /// In characters, from 1.
    pub column: u32,
    /// What should have been there.
    pub expected: String,
    /// What was there instead; empty at the end of the line.
    pub found: String,
}

impl fmt::Display for HostsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: expected {}", self.file, self.line, self.column, self.expected)?;
        match self.found.as_str() {
            "" => f.write_str(", found the end of the line"),
            found => write!(f, ", found \"{found}\""),
        }
    }
}

impl std::error::Error for HostsError {}

#[cfg(test)]
mod tests;
