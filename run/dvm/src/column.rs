//! One number per rank, compressed by the regularity of mappings: however many nodes there are, ranks by slot or by node are
//! one run.

use crate::encoding::{Encode, Malformed, Reader, Writer, encoded};
use crate::ranges::Ranges;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Column(Vec<Run>);

/// From index `at` up to the next run: `value` repeated `times` times, then `value + step` as often, and so on; after `wrap`
/// different values it starts over, unless `wrap` is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    at: u32,
    value: u32,
    step: i32,
    times: u32,
    wrap: u32,
}

impl Column {
    pub(crate) fn get(&self, index: u32) -> u32 {
        let after = self.0.partition_point(|run| run.at <= index);
        let run = after.checked_sub(1).and_then(|i| self.0.get(i));
        run.map_or(0, |run| run.get(index - run.at).clamp(0, i64::from(u32::MAX)) as u32)
    }

    /// The indices below `len` with this value.
    pub(crate) fn indices_of(&self, value: u32, len: u32) -> Ranges {
        let mut found = Ranges::new();
        for (i, run) in self.0.iter().enumerate() {
            let end = self.0.get(i + 1).map_or(len, |next| next.at).min(len);
            if run.at < end {
                run.add_indices_of(value, end - run.at, &mut found);
            }
        }
        found
    }

    /// Bytes in memory.
    pub(crate) fn weight(&self) -> usize {
        size_of_val(&*self.0)
    }
}

impl Run {
    fn get(&self, ahead: u32) -> i64 {
        let block = ahead / self.times;
        let block = if self.wrap == 0 { block } else { block % self.wrap };
        i64::from(self.value) + i64::from(block) * i64::from(self.step)
    }

    fn add_indices_of(&self, value: u32, len: u32, found: &mut Ranges) {
        let ahead = i64::from(value) - i64::from(self.value);
        let first = match i64::from(self.step) {
            0 if ahead == 0 => return found.insert_span(self.at, self.at + len - 1),
            0 => return,
            step if ahead % step != 0 => return,
            step => ahead / step,
        };
        let blocks = i64::from(len.div_ceil(self.times));
        let distinct = if self.wrap == 0 { blocks } else { i64::from(self.wrap).min(blocks) };
        if !(0..distinct).contains(&first) {
            return;
        }
        for block in (first..blocks).step_by(if self.wrap == 0 { blocks } else { distinct } as usize) {
            let from = block as u32 * self.times;
            found.insert_span(self.at + from, self.at + from.saturating_add(self.times).min(len) - 1);
        }
    }

    /// The run at the beginning of `values`, and its length.
    fn of(at: u32, values: &[u32]) -> (Run, usize) {
        let same = |value: u32| values.iter().take_while(|v| **v == value).count();
        let value = values.first().copied().unwrap_or_default();
        let times = same(value);
        let once = Run { at, value, step: 0, times: 1, wrap: 0 };
        let next = values.get(times).map(|next| i64::from(*next) - i64::from(value));
        let Some(step) = next.and_then(|step| i32::try_from(step).ok()) else { return (once, times) };
        let reach =
            |run: &Run| values.iter().zip(0u32..).take_while(|(v, i)| i64::from(**v) == run.get(*i)).count();

        let straight = Run { step, times: times as u32, ..once };
        let far = reach(&straight);
        // A pattern that does not even occur twice may be the beginning of another one.
        if far < 2 * times && far < values.len() {
            return (once, times);
        }
        let wrapped = Run { wrap: (far / times) as u32, ..straight };
        match reach(&wrapped) {
            _ if far % times > 0 || far == values.len() => (straight, far),
            farther if farther >= 2 * far || farther == values.len() => (wrapped, farther),
            _ => (straight, far),
        }
    }
}

impl FromIterator<u32> for Column {
    fn from_iter<I: IntoIterator<Item = u32>>(values: I) -> Column {
        let values: Vec<u32> = values.into_iter().collect();
        let (mut runs, mut at) = (Vec::new(), 0);
        while let Some(rest) = values.get(at..).filter(|rest| !rest.is_empty()) {
            let (run, reach) = Run::of(at as u32, rest);
            runs.push(run);
            at += reach;
        }
        Column(runs)
    }
}

encoded!(struct Run { at, value, step, times, wrap });

impl Encode for Column {
    fn encode(&self, to: &mut Writer) {
        self.0.encode(to);
    }

    fn decode(from: &mut Reader<'_>) -> Result<Column, Malformed> {
        let runs = Vec::<Run>::decode(from)?;
        match runs.is_sorted_by(|a, b| a.at < b.at) && runs.iter().all(|run| run.times > 0) {
            true => Ok(Column(runs)),
            false => Err(from.malformed("a column whose runs are not in order")),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn holds_any_numbers(values in prop::collection::vec(prop_oneof![6 => 0u32..3, 1 => any::<u32>()], 0..100)) {
            let column: Column = values.iter().copied().collect();
            for (i, value) in values.iter().enumerate() {
                prop_assert_eq!(column.get(i as u32), *value);
                let same = values.iter().zip(0u32..).filter(|(v, _)| *v == value).map(|(_, i)| i).collect();
                prop_assert_eq!(column.indices_of(*value, values.len() as u32), same);
            }
        }
    }

    #[test]
    fn runs_of_any_length_are_cut_off_at_the_end() {
        let run = Run { at: 0, value: 1, step: 1, times: 3_000_000_000, wrap: 0 };
        let found = Column(vec![run]).indices_of(2, 4_000_000_000);
        assert_eq!(found.spans().collect::<Vec<_>>(), [(3_000_000_000, 3_999_999_999)]);
    }

    #[test]
    fn regular_maps_are_small() {
        let runs = |of: &dyn Fn(u32) -> u32| (0..100_000).map(of).collect::<Column>().0.len();
        assert_eq!(runs(&|rank| rank), 1);
        // By slot: the node, and the rank on it.
        assert_eq!([runs(&|rank| rank / 128), runs(&|rank| rank % 128)], [1, 1]);
        // By node.
        assert_eq!([runs(&|rank| rank % 1000), runs(&|rank| rank / 1000)], [1, 1]);
        // Two apps, each numbered from its first rank; a node with one slot less.
        assert_eq!(runs(&|rank| if rank < 500 { rank } else { rank - 500 }), 2);
        assert!(runs(&|rank| (rank + u32::from(rank > 700)) / 128) <= 4);
    }
}
