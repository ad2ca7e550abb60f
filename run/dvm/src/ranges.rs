//! Sets of small numbers (ranks, nodes) as ascending ranges: "all but three of a million" takes four entries.
//!
//! Everything that crosses the tree names processes and nodes by these, so no message grows with ranks times ranks.

use std::fmt;
use std::str::FromStr;

use crate::encoding::{Encode, Malformed, Reader, Writer};
use crate::words;

/// Ascending, disjoint, non-adjacent inclusive spans.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ranges(Vec<(u32, u32)>);

/// Received spans are not ascending, or not apart; or a text names none.
#[derive(Debug)]
pub struct Disordered;

impl Ranges {
    pub const fn new() -> Ranges {
        Ranges(Vec::new())
    }

    pub fn single(n: u32) -> Ranges {
        Ranges(vec![(n, n)])
    }

    /// `0..count`.
    pub fn first(count: u32) -> Ranges {
        match count.checked_sub(1) {
            Some(last) => Ranges(vec![(0, last)]),
            None => Ranges::new(),
        }
    }

    pub fn insert(&mut self, n: u32) {
        self.insert_span(n, n);
    }

    /// Adds `first..=last`. Appending at the end is constant time.
    pub fn insert_span(&mut self, first: u32, last: u32) {
        if first > last {
            return;
        }
        let from = match self.0.last() {
            None => 0,
            Some(tail) if tail.1.saturating_add(1) < first => self.0.len(),
            Some(_) => self.0.partition_point(|span| span.1.saturating_add(1) < first),
        };
        let to = from + self.0[from..].partition_point(|span| span.0 <= last.saturating_add(1));
        let merged = self.0[from..to]
            .iter()
            .fold((first, last), |(low, high), span| (low.min(span.0), high.max(span.1)));
        self.0.splice(from..to, [merged]);
    }

    pub fn remove(&mut self, n: u32) {
        let at = self.0.partition_point(|span| span.1 < n);
        let Some(&(first, last)) = self.0.get(at).filter(|span| span.0 <= n) else { return };
        let mut rest = Vec::with_capacity(2);
        if first < n {
            rest.push((first, n - 1));
        }
        if n < last {
            rest.push((n + 1, last));
        }
        self.0.splice(at..=at, rest);
    }

    pub fn add(&mut self, other: &Ranges) {
        for &(first, last) in &other.0 {
            self.insert_span(first, last);
        }
    }

    /// Removes `others`, and returns those that were members.
    pub fn take(&mut self, others: &Ranges) -> Ranges {
        let taken = self.and(others);
        taken.iter().for_each(|n| self.remove(n));
        taken
    }

    pub fn contains(&self, n: u32) -> bool {
        self.intersects_span(n, n)
    }

    pub fn intersects_span(&self, first: u32, last: u32) -> bool {
        let at = self.0.partition_point(|span| span.1 < first);
        self.0.get(at).is_some_and(|span| span.0 <= last)
    }

    pub fn intersects(&self, other: &Ranges) -> bool {
        let (few, many) = if self.0.len() < other.0.len() { (self, other) } else { (other, self) };
        few.0.iter().any(|&(first, last)| many.intersects_span(first, last))
    }

    /// Members of both.
    pub fn and(&self, other: &Ranges) -> Ranges {
        let (few, many) = if self.0.len() < other.0.len() { (self, other) } else { (other, self) };
        let mut both = Ranges::new();
        for &(first, last) in &few.0 {
            let from = many.0.partition_point(|span| span.1 < first);
            for span in many.0[from..].iter().take_while(|span| span.0 <= last) {
                both.insert_span(span.0.max(first), span.1.min(last));
            }
        }
        both
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn count(&self) -> u32 {
        self.0.iter().map(|&(first, last)| last - first + 1).sum()
    }

    /// How many members are below `n`, which is the index of `n` if it is a member.
    pub fn index_of(&self, n: u32) -> u32 {
        self.0.iter().take_while(|span| span.0 < n).map(|&(first, last)| last.min(n - 1) - first + 1).sum()
    }

    /// The member with this index.
    pub fn nth(&self, mut index: u32) -> Option<u32> {
        for (first, last) in self.spans() {
            match last - first {
                more if index <= more => return Some(first + index),
                more => index -= more + 1,
            }
        }
        None
    }

    pub fn min(&self) -> Option<u32> {
        self.0.first().map(|span| span.0)
    }

    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().flat_map(|&(first, last)| first..=last)
    }

    pub fn spans(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.0.iter().copied()
    }

    /// `rank 3`, `ranks 0-3, 7`, for people.
    pub(crate) fn in_words(&self) -> String {
        words::ranks(&self.iter().collect::<Vec<_>>())
    }
}

impl FromIterator<u32> for Ranges {
    fn from_iter<I: IntoIterator<Item = u32>>(numbers: I) -> Ranges {
        let mut set = Ranges::new();
        numbers.into_iter().for_each(|n| set.insert(n));
        set
    }
}

impl TryFrom<Vec<(u32, u32)>> for Ranges {
    type Error = Disordered;

    fn try_from(spans: Vec<(u32, u32)>) -> Result<Ranges, Disordered> {
        let apart = spans.windows(2).all(|pair| match pair {
            [a, b] => a.1 < u32::MAX && a.1 + 1 < b.0,
            _ => true,
        });
        if apart && spans.iter().all(|span| span.0 <= span.1) { Ok(Ranges(spans)) } else { Err(Disordered) }
    }
}

impl From<Ranges> for Vec<(u32, u32)> {
    fn from(set: Ranges) -> Vec<(u32, u32)> {
        set.0
    }
}

impl fmt::Display for Disordered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("spans are not ascending and apart")
    }
}

/// `0-3,8`.
impl FromStr for Ranges {
    type Err = Disordered;

    fn from_str(text: &str) -> Result<Ranges, Disordered> {
        let mut ranges = Ranges::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            match (first.parse(), last.parse()) {
                (Ok(first), Ok(last)) if first <= last => ranges.insert_span(first, last),
                _ => return Err(Disordered),
            }
        }
        Ok(ranges)
    }
}

/// `0-3,8`.
impl fmt::Display for Ranges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (first, last)) in self.spans().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            if first == last { write!(f, "{comma}{first}")? } else { write!(f, "{comma}{first}-{last}")? }
        }
        Ok(())
    }
}

impl fmt::Debug for Ranges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{self}}}")
    }
}

/// Each span as its distance from the one before and its length: ranges of large numbers are short, too.
impl Encode for Ranges {
    fn encode(&self, to: &mut Writer) {
        to.number(self.spans().count() as u64);
        let mut next = 0;
        for (first, last) in self.spans() {
            (first - next).encode(to);
            (last - first).encode(to);
            next = last;
        }
    }

    fn decode(from: &mut Reader<'_>) -> Result<Ranges, Malformed> {
        let count = from.count()?;
        let mut spans = Vec::with_capacity(count.min(ROOM));
        let mut next = 0u32;
        for _ in 0..count {
            let (gap, more) = (u32::decode(from)?, u32::decode(from)?);
            let span = next.checked_add(gap).and_then(|first| Some((first, first.checked_add(more)?)));
            // The number of members must fit the same type.
            let Some((first, last)) = span.filter(|(_, last)| *last < u32::MAX) else {
                return Err(from.malformed("a range of numbers that are too large"));
            };
            spans.push((first, last));
            next = last;
        }
        Ranges::try_from(spans).map_err(|error| from.malformed(error.to_string()))
    }
}

/// Entries to allocate before it is known that so many follow.
const ROOM: usize = 64;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn small() -> impl Strategy<Value = BTreeSet<u32>> {
        prop::collection::btree_set(0u32..60, 0..30)
    }

    proptest! {
        #[test]
        fn behaves_like_a_set(a in small(), b in small(), out in prop::collection::vec(0u32..60, 0..10)) {
            let (x, y): (Ranges, Ranges) = (a.iter().rev().copied().collect(), b.iter().copied().collect());
            prop_assert_eq!(x.iter().collect::<BTreeSet<_>>(), a.clone());
            prop_assert_eq!(x.count() as usize, a.len());
            prop_assert_eq!(x.and(&y).iter().collect::<BTreeSet<_>>(), &a & &b);
            prop_assert_eq!(x.intersects(&y), !(&a & &b).is_empty());
            let mut union = x.clone();
            union.add(&y);
            prop_assert_eq!(union.iter().collect::<BTreeSet<_>>(), &a | &b);
            for n in 0..60 {
                prop_assert_eq!(x.contains(n), a.contains(&n));
                prop_assert_eq!(x.index_of(n) as usize, a.range(..n).count());
                prop_assert_eq!(x.nth(n), a.iter().nth(n as usize).copied());
            }
            let (mut rest, mut model) = (x.clone(), a);
            for n in out {
                rest.remove(n);
                model.remove(&n);
            }
            prop_assert_eq!(rest.iter().collect::<BTreeSet<_>>(), model);
            prop_assert!(Ranges::try_from(Vec::from(rest)).is_ok());
        }
    }

    #[test]
    fn foreign_spans_are_checked() {
        for bad in [vec![(3, 1)], vec![(0, 1), (2, 3)], vec![(5, 6), (1, 2)], vec![(0, u32::MAX), (1, 1)]] {
            assert!(Ranges::try_from(bad).is_err());
        }
    }
}
