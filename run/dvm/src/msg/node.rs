//! Nodes, as their daemons describe them and as all daemons know them.

use std::sync::Arc;

use crate::encoding::{Encode, Malformed, Reader, Writer, encoded};
use crate::hosts::Slots;
use crate::id::NodeId;

/// A daemon's report on its node.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NodeReport {
    pub hostname: Arc<str>,
    pub slots: Slots,
    pub max_slots: Option<u32>,
    /// Equal for nodes with equal topologies.
    pub signature: Arc<str>,
}

/// The names of all nodes by number. Names that count up, as those of hosts do (`n0007`, `n0008` ...), are kept as one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct NodeTable {
    size: u32,
    runs: Vec<Run>,
}

/// Names that differ in a number, each by one more than the one before.
#[derive(Clone, Debug, PartialEq)]
struct Run {
    /// The first node of the run.
    at: u32,
    before: String,
    number: Option<Number>,
    after: String,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Number {
    first: u64,
    /// Padded with zeros to this many digits.
    digits: u32,
}

impl NodeTable {
    pub(crate) fn new(names: impl IntoIterator<Item = Arc<str>>) -> NodeTable {
        let mut table = NodeTable::default();
        for name in names {
            let at = table.size;
            let run = Run::of(at, &name);
            if !table.runs.last().is_some_and(|last| last.goes_on_with(&run)) {
                table.runs.push(run);
            }
            table.size += 1;
        }
        table
    }

    /// A node's name; empty for a number that no node has.
    pub(crate) fn name(&self, node: NodeId) -> Arc<str> {
        let after = self.runs.partition_point(|run| run.at <= node.0);
        match after.checked_sub(1).and_then(|i| self.runs.get(i)) {
            Some(run) if node.0 < self.size => run.name(node.0).into(),
            _ => Arc::default(),
        }
    }
}

impl Run {
    /// The number of a name is the last one in its first label: `node12` of `node12.site3.org`.
    fn of(at: u32, name: &str) -> Run {
        let label = name.find('.').unwrap_or(name.len());
        let end = name[..label].rfind(|c: char| c.is_ascii_digit()).map_or(0, |last| last + 1);
        let from = name[..end].rfind(|c: char| !c.is_ascii_digit()).map_or(0, |i| i + 1);
        let number = name[from..end].parse().ok().map(|first| Number { first, digits: (end - from) as u32 });
        match number {
            Some(_) => Run { at, before: name[..from].to_owned(), number, after: name[end..].to_owned() },
            None => Run { at, before: name.to_owned(), number, after: String::new() },
        }
    }

    fn goes_on_with(&self, next: &Run) -> bool {
        let alike = self.before == next.before && self.after == next.after;
        let (Some(own), Some(other)) = (self.number, next.number) else { return false };
        let counts_on = own.first.checked_add(u64::from(next.at - self.at)) == Some(other.first);
        // 9 and 10 are one run, 09 and 010 are not.
        let padded = |number: Number, n: u64| format!("{n:0width$}", width = number.digits as usize);
        alike && counts_on && padded(own, other.first) == padded(other, other.first)
    }

    fn name(&self, node: u32) -> String {
        match self.number {
            Some(Number { first, digits }) => {
                let number = first.saturating_add(u64::from(node - self.at));
                format!("{}{number:0width$}{}", self.before, self.after, width = digits as usize)
            }
            None => self.before.clone(),
        }
    }
}

encoded!(struct NodeReport { hostname, slots, max_slots, signature });
encoded!(struct Run { at, before, number, after });

impl Encode for Number {
    fn encode(&self, to: &mut Writer) {
        self.first.encode(to);
        self.digits.encode(to);
    }

    fn decode(from: &mut Reader<'_>) -> Result<Number, Malformed> {
        let number = Number { first: u64::decode(from)?, digits: u32::decode(from)? };
        match number.digits {
            0..=20 => Ok(number),
            digits => Err(from.malformed(format!("a number of {digits} digits"))),
        }
    }
}

impl Encode for NodeTable {
    fn encode(&self, to: &mut Writer) {
        self.size.encode(to);
        self.runs.encode(to);
    }

    fn decode(from: &mut Reader<'_>) -> Result<NodeTable, Malformed> {
        let table = NodeTable { size: u32::decode(from)?, runs: Vec::decode(from)? };
        match table.runs.is_sorted_by(|a, b| a.at < b.at) {
            true => Ok(table),
            false => Err(from.malformed("names of nodes that are not in order")),
        }
    }
}
encoded!(enum Slots { 0 Unstated, 1 Mentioned(times), 2 Stated(count) });

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn names_come_back_whatever_they_are(
            names in prop::collection::vec("[ab]{0,1}[0-9]{0,3}(\\.c[0-9])?", 0..40),
        ) {
            let table = NodeTable::new(names.iter().map(|name| Arc::from(&**name)));
            for (node, name) in (0u32..).zip(&names) {
                prop_assert_eq!(&*table.name(NodeId(node)), &**name);
            }
            prop_assert_eq!(&*table.name(NodeId(names.len() as u32)), "");
        }
    }

    #[test]
    fn names_that_count_on_are_kept_as_one() {
        let names = (0..16_000).map(|n| format!("node{n:05}.site2.org").into());
        assert_eq!(NodeTable::new(names).runs.len(), 1);
        let names = ["a8", "a9", "a10", "b11", "c"].into_iter().map(Arc::from);
        assert_eq!(NodeTable::new(names).runs.len(), 3);
    }
}
