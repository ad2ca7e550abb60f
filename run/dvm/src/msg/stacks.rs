//! The stacks of a job's processes, equal ones merged.

use crate::encoding::encoded;
use crate::ranges::Ranges;

/// What daemons have read. Each merge keeps it small, however many ranks there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stacks {
    pub all: Vec<Stack>,
    pub unread: Vec<Unread>,
    /// Ranks with stacks for which there was no room.
    pub omitted: Ranges,
}

/// Threads with the same stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stack {
    /// The name of the process that they belong to: a rank may have started others.
    pub program: String,
    /// The outermost function first.
    pub frames: Vec<String>,
    pub ranks: Ranges,
    pub threads: u32,
}

/// Ranks that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unread {
    pub why: String,
    pub ranks: Ranges,
}

impl Stacks {
    pub(crate) fn merge(&mut self, more: Stacks) {
        more.all.into_iter().for_each(|stack| self.add(stack));
        more.unread.into_iter().for_each(|one| self.miss(one.why, &one.ranks));
        self.omitted.add(&more.omitted);
    }

    pub(crate) fn add(&mut self, stack: Stack) {
        let is_same = |other: &&mut Stack| (&other.program, &other.frames) == (&stack.program, &stack.frames);
        if let Some(same) = self.all.iter_mut().find(is_same) {
            same.ranks.add(&stack.ranks);
            same.threads = same.threads.saturating_add(stack.threads);
        } else if self.all.len() < MOST_STACKS {
            self.all.push(stack);
        } else {
            self.omitted.add(&stack.ranks);
        }
    }

    /// These ranks could not be read.
    pub(crate) fn miss(&mut self, why: String, ranks: &Ranges) {
        if let Some(same) = self.unread.iter_mut().find(|one| one.why == why) {
            same.ranks.add(ranks);
        } else if self.unread.len() < MOST_REASONS {
            self.unread.push(Unread { why, ranks: ranks.clone() });
        } else {
            self.omitted.add(ranks);
        }
    }
}

/// The most different stacks of a job that are reported.
const MOST_STACKS: usize = 512;
const MOST_REASONS: usize = 32;

encoded!(struct Stacks { all, unread, omitted });
encoded!(struct Stack { program, frames, ranks, threads });
encoded!(struct Unread { why, ranks });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_stacks_are_one_and_the_rest_is_counted() {
        let stack = |rank: u32, name: String| Stack {
            program: "a".to_owned(),
            frames: vec!["main".to_owned(), name],
            ranks: Ranges::single(rank),
            threads: 1,
        };
        let of = |ranks: std::ops::Range<u32>, name: &dyn Fn(u32) -> String| {
            let mut stacks = Stacks::default();
            ranks.for_each(|rank| stacks.add(stack(rank, name(rank))));
            stacks
        };
        let mut same = of(0..4, &|_| "wait".to_owned());
        same.merge(of(4..8, &|_| "wait".to_owned()));
        let [one] = &same.all[..] else { panic!("{same:?}") };
        assert_eq!((one.ranks.to_string(), one.threads), ("0-7".to_owned(), 8));

        let mut different = of(0..500, &|rank| format!("f{rank}"));
        different.merge(of(500..600, &|rank| format!("f{rank}")));
        assert_eq!((different.all.len(), different.omitted.to_string()), (512, "512-599".to_owned()));

        for rank in 0..40 {
            different.miss(format!("reason {}", rank / 2), &Ranges::single(rank));
        }
        assert_eq!((different.unread.len(), different.unread[3].ranks.to_string()), (20, "6-7".to_owned()));
    }
}
