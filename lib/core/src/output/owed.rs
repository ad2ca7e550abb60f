//! Output that has arrived for a reader and has not left again: which senders to notify, when, and how much is still held.
//!
//! The sender of output is notified when it has left. While the beginning of a line is held the sender waits, because lines end
//! soon; but a line may be longer than the sender's limit, and collected output may stay for long. Then the sender is notified
//! at once of how many of the last bytes are still here, so that it can keep those alone.

use std::collections::{BTreeMap, VecDeque};

use super::Stream;

/// `T`: the notification for one arrival, used once.
#[derive(Debug)]
pub struct Owed<T> {
    streams: BTreeMap<Stream, VecDeque<(usize, T)>>,
}

/// Bytes of one stream that have not left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// The beginning of a line, or lines behind the open one of another stream: they leave soon in any case.
    pub lines: usize,
    /// Bytes in front of those, collected until there are enough.
    pub collected: usize,
}

impl<T> Default for Owed<T> {
    fn default() -> Self {
        Owed { streams: BTreeMap::new() }
    }
}

impl<T> Owed<T> {
    pub fn arrived(&mut self, stream: Stream, bytes: usize, who: T) {
        self.streams.entry(stream).or_default().push_back((bytes, who));
    }

    /// The notifications due now, each with the number of held bytes at the end of the stream up to its arrival. Once more
    /// than `patience` bytes wait in a stream, its senders do not wait for the end of a line.
    pub fn settle(&mut self, patience: usize, held: impl Fn(&Stream) -> Held) -> Vec<(T, usize)> {
        let mut told = Vec::new();
        for (stream, waiting) in &mut self.streams {
            let Held { lines, collected } = held(stream);
            let mut behind: usize = waiting.iter().map(|(bytes, _)| bytes).sum();
            let mut cost: usize = waiting.iter().map(|(bytes, _)| (*bytes).max(LEAST_COST)).sum();
            while let Some((bytes, _)) = waiting.front() {
                let rest = (lines + collected).saturating_sub(behind - bytes);
                if rest > 0 && lines > 0 && cost <= patience {
                    break;
                }
                behind -= bytes;
                cost -= (*bytes).max(LEAST_COST);
                told.extend(waiting.pop_front().map(|(_, who)| (who, rest)));
            }
        }
        self.streams.retain(|_, waiting| !waiting.is_empty());
        told
    }

    pub fn into_all(self) -> impl Iterator<Item = T> {
        self.streams.into_values().flatten().map(|(_, who)| who)
    }
}

/// The minimum cost of a tiny piece, as where it is read.
const LEAST_COST: usize = 256;

#[cfg(test)]
mod tests {
    use phalanx_spec::Rank;
    use phalanx_wire::{Nspace, ProcId};

    use super::*;
    use crate::output::Channel;

    fn stream() -> Stream {
        Stream { proc: ProcId::new(&Nspace::new("job").unwrap(), Rank(0)), channel: Channel::Stdout }
    }

    fn holding(lines: usize, collected: usize) -> impl Fn(&Stream) -> Held {
        move |_| Held { lines, collected }
    }

    #[test]
    fn senders_wait_for_a_line_while_their_bytes_are_held() {
        let mut owed = Owed::default();
        owed.arrived(stream(), 300, 'a');
        owed.arrived(stream(), 300, 'b');
        assert_eq!(owed.settle(1_000, holding(300, 0)), [('a', 0)]);
        owed.arrived(stream(), 300, 'c');
        assert_eq!(owed.settle(1_000, holding(600, 0)), []);
        // Too much to wait for: the first is notified of what is held up to its end.
        owed.arrived(stream(), 500, 'd');
        assert_eq!(owed.settle(1_000, holding(1_050, 0)), [('b', 250)]);
        assert_eq!(owed.settle(1_000, holding(0, 0)), [('c', 0), ('d', 0)]);
    }

    #[test]
    fn collected_output_keeps_no_sender_waiting() {
        let mut owed = Owed::default();
        owed.arrived(stream(), 10, 'a');
        owed.arrived(stream(), 10, 'b');
        assert_eq!(owed.settle(1_000, holding(0, 15)), [('a', 5), ('b', 15)]);
        owed.arrived(stream(), 10, 'c');
        assert_eq!(owed.settle(1_000, holding(10, 15)), []);
        assert_eq!(owed.settle(1_000, holding(0, 25)), [('c', 25)]);
        // Tiny pieces have a minimum cost.
        (0..5).for_each(|_| owed.arrived(stream(), 1, 'd'));
        assert_eq!(owed.settle(1_000, holding(5, 0)), [('d', 1), ('d', 2)]);
        assert_eq!(owed.into_all().count(), 3);
    }
}
