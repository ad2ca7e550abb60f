//! One number per rank, in the few words that mappers' regularity leaves: runs of equal steps.
//!
//! By-slot mapping is one run per node, by-node mapping one run per turn around the nodes, an app's ranks one run.

use serde::{Deserialize, Serialize};

use crate::ranges::Ranges;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column(Vec<Run>);

/// `value`, `value + step`, ... from index `at` up to the next run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Run {
    at: u32,
    value: u32,
    step: i32,
}

impl Column {
    pub fn get(&self, index: u32) -> u32 {
        let after = self.0.partition_point(|run| run.at <= index);
        match after.checked_sub(1).and_then(|i| self.0.get(i)) {
            Some(run) => {
                let steps = i64::from(index - run.at) * i64::from(run.step);
                (i64::from(run.value) + steps).clamp(0, i64::from(u32::MAX)) as u32
            }
            None => 0,
        }
    }

    /// The indices below `len` that hold `value`.
    pub fn indices_of(&self, value: u32, len: u32) -> Ranges {
        let mut found = Ranges::new();
        for (i, run) in self.0.iter().enumerate() {
            let end = self.0.get(i + 1).map_or(len, |next| next.at).min(len);
            if run.at >= end {
                continue;
            }
            let (count, ahead) = (i64::from(end - run.at), i64::from(value) - i64::from(run.value));
            match i64::from(run.step) {
                0 if ahead == 0 => found.insert_span(run.at, end - 1),
                0 => {}
                step if ahead % step == 0 && (0..count).contains(&(ahead / step)) => {
                    found.insert(run.at + (ahead / step) as u32);
                }
                _ => {}
            }
        }
        found
    }

    /// How many runs it takes.
    pub fn runs(&self) -> usize {
        self.0.len()
    }
}

impl FromIterator<u32> for Column {
    fn from_iter<I: IntoIterator<Item = u32>>(values: I) -> Column {
        let mut runs: Vec<Run> = Vec::new();
        let mut before = 0u32;
        for (at, value) in (0u32..).zip(values) {
            let step = i64::from(value) - i64::from(before);
            let fits = match runs.last_mut() {
                None => false,
                Some(run) if at - run.at == 1 => match i32::try_from(step) {
                    // A second value decides the step, but a jump is better the begin of the next run.
                    Ok(step) if (-1..=1).contains(&step) => {
                        run.step = step;
                        true
                    }
                    _ => false,
                },
                Some(run) => step == i64::from(run.step),
            };
            if !fits {
                runs.push(Run { at, value, step: 0 });
            }
            before = value;
        }
        Column(runs)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn holds_any_numbers(values in prop::collection::vec(prop_oneof![0u32..5, any::<u32>()], 0..100)) {
            let column: Column = values.iter().copied().collect();
            for (i, value) in values.iter().enumerate() {
                prop_assert_eq!(column.get(i as u32), *value);
                let same = values.iter().zip(0u32..).filter(|(v, _)| *v == value).map(|(_, i)| i).collect();
                prop_assert_eq!(column.indices_of(*value, values.len() as u32), same);
            }
        }
    }

    #[test]
    fn regular_maps_are_small() {
        let by_slot: Column = (0..100_000u32).map(|rank| rank / 100).collect();
        assert_eq!(by_slot.runs(), 1000);
        let by_node: Column = (0..100_000u32).map(|rank| rank % 1000).collect();
        assert_eq!(by_node.runs(), 100);
        assert_eq!((0..100_000u32).collect::<Column>().runs(), 1);
    }
}
