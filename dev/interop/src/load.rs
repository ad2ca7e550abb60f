//! Checks the output of `bench/stream.c`, byte for byte, after it went through a launcher.

use std::thread;
use std::time::Duration;

/// A reader that takes its time, so that a tool can join before the writer ends: the later the tool comes, the slower it reads.
#[derive(Debug)]
pub struct Unhurried(Duration);

impl Default for Unhurried {
    fn default() -> Unhurried {
        Unhurried(Duration::from_millis(20))
    }
}

impl Unhurried {
    /// Call this after each piece.
    pub fn pause(&mut self) {
        thread::sleep(self.0);
        self.0 = (self.0 * 103 / 100).min(Duration::from_secs(2));
    }
}

/// Numbered blocks of one writer, in order.
#[derive(Debug)]
pub struct Blocks {
    pattern: Vec<u8>,
    /// How many bytes have arrived.
    pub bytes: u64,
    /// Pieces that differ from what was written there.
    pub wrong: u64,
}

/// Lines of several ranks, in any mixture.
#[derive(Debug)]
pub struct Lines {
    length: usize,
    /// Lines may have a prefix, such as a tag.
    tagged: bool,
    ranks: Vec<Rank>,
    /// The beginning of a line that is still incomplete.
    partial: Vec<u8>,
    pub bytes: u64,
    /// Lines that no rank has written.
    pub torn: u64,
    /// Lines that are not the next one of their rank.
    pub misplaced: u64,
}

#[derive(Debug)]
struct Rank {
    /// The line expected next.
    next: Vec<u8>,
    seen: u64,
}

impl Default for Blocks {
    fn default() -> Blocks {
        let mut state = 88_172_645_463_325_252_u64;
        let pattern = (0..BLOCK).map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()[0]
        });
        Blocks { pattern: pattern.collect(), bytes: 0, wrong: 0 }
    }
}

impl Blocks {
    pub fn feed(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (offset, number) = ((self.bytes % BLOCK as u64) as usize, self.bytes / BLOCK as u64);
            let (piece, rest) = bytes.split_at(bytes.len().min(BLOCK - offset));
            let header = &number.to_le_bytes()[offset.min(8)..];
            let header = &header[..header.len().min(piece.len())];
            let body = &self.pattern[(offset + header.len())..][..piece.len() - header.len()];
            self.wrong += u64::from(!piece.starts_with(header) || !piece.ends_with(body));
            self.bytes += piece.len() as u64;
            bytes = rest;
        }
    }

    /// Appends what stream.c writes from byte `from` on: `bytes` bytes.
    pub fn write(&self, from: u64, bytes: usize, into: &mut Vec<u8>) {
        let end = from + bytes as u64;
        let mut at = from;
        while at < end {
            let (number, offset) = (at / BLOCK as u64, (at % BLOCK as u64) as usize);
            let mut block = self.pattern.clone();
            block[..8].copy_from_slice(&number.to_le_bytes());
            let size = (BLOCK - offset).min((end - at) as usize);
            into.extend_from_slice(&block[offset..][..size]);
            at += size as u64;
        }
    }
}

impl Lines {
    pub fn new(ranks: u32, length: usize, tagged: bool) -> Lines {
        let rank = |rank: u32| {
            let letter = b'a' + (rank % 26) as u8;
            let mut next = format!("{rank:05} {:010} ", 0).into_bytes();
            next.resize(length - 1, letter);
            next.push(b'\n');
            Rank { next, seen: 0 }
        };
        Lines {
            length,
            tagged,
            ranks: (0..ranks).map(rank).collect(),
            partial: Vec::new(),
            bytes: 0,
            torn: 0,
            misplaced: 0,
        }
    }

    pub fn feed(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        let mut rest = bytes;
        while !rest.is_empty() {
            // An expected line needs no search for its end.
            if self.partial.is_empty()
                && !self.tagged
                && let Some(line) = rest.get(..self.length)
                && line.ends_with(b"\n")
                && self.take(line)
            {
                rest = &rest[self.length..];
                continue;
            }
            let end = rest.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
            let (piece, after) = rest.split_at(end.unwrap_or(rest.len()));
            self.partial.extend_from_slice(piece);
            if end.is_some() {
                let line = std::mem::take(&mut self.partial);
                self.line(&line);
                self.partial = line;
                self.partial.clear();
            }
            rest = after;
        }
    }

    /// Appends the next `count` lines that stream.c writes for this rank.
    pub fn write(&mut self, rank: u32, count: u64, into: &mut Vec<u8>) {
        let next = &mut self.ranks[rank as usize].next;
        for _ in 0..count {
            into.extend_from_slice(next);
            count_up(next);
        }
    }

    /// The number of complete lines, over all ranks.
    pub fn whole(&self) -> u64 {
        self.ranks.iter().map(|rank| rank.seen).sum()
    }

    /// The same by rank.
    pub fn seen(&self) -> Vec<u64> {
        self.ranks.iter().map(|rank| rank.seen).collect()
    }

    /// Whether each rank's first `count` lines came complete and in order, and nothing else did.
    pub fn are_complete(&self, count: u64) -> bool {
        self.torn == 0
            && self.misplaced == 0
            && self.partial.is_empty()
            && self.ranks.iter().all(|rank| rank.seen == count)
    }

    /// The faults, given that each rank has written `count` lines.
    pub fn faults(&self, count: u64) -> Option<String> {
        let missing = (count * self.ranks.len() as u64).saturating_sub(self.whole());
        let (torn, misplaced) = (self.torn, self.misplaced);
        let faulty = !self.are_complete(count);
        faulty.then(|| format!("{missing} lines missing, {torn} torn, {misplaced} out of order"))
    }

    fn line(&mut self, line: &[u8]) {
        let at = line.len().saturating_sub(self.length);
        let glued = at > 0 && !self.tagged;
        if glued || !(self.take(&line[at..]) || self.misplaced_line(&line[at..])) {
            self.torn += 1;
        }
    }

    /// `true`: it was the next line of its rank.
    fn take(&mut self, line: &[u8]) -> bool {
        let Some(rank) = rank_of(line).and_then(|rank| self.ranks.get_mut(rank)) else { return false };
        let expected = rank.next == line;
        if expected {
            rank.seen += 1;
            count_up(&mut rank.next);
        }
        expected
    }

    /// A line that some rank writes, but not now.
    fn misplaced_line(&mut self, line: &[u8]) -> bool {
        let Some(rank) = rank_of(line).and_then(|rank| self.ranks.get_mut(rank)) else { return false };
        let digits = line.get(NUMBER).unwrap_or_default();
        let whole = line.len() == self.length
            && digits.iter().all(u8::is_ascii_digit)
            && line.get(NUMBER.end..) == rank.next.get(NUMBER.end..);
        if whole {
            rank.seen += 1;
            self.misplaced += 1;
            rank.next[NUMBER].copy_from_slice(digits);
            count_up(&mut rank.next);
        }
        whole
    }
}

fn rank_of(line: &[u8]) -> Option<usize> {
    std::str::from_utf8(line.get(..5)?).ok()?.parse().ok()
}

fn count_up(line: &mut [u8]) {
    for digit in line[NUMBER].iter_mut().rev() {
        *digit += 1;
        if *digit <= b'9' {
            return;
        }
        *digit = b'0';
    }
}

const BLOCK: usize = 4096;
/// The position of a line's number.
const NUMBER: std::ops::Range<usize> = 6..16;

#[cfg(test)]
mod tests {
    use super::*;

    fn line(rank: u32, number: u32) -> String {
        format!(
            "{rank:05} {number:010} {}\n",
            "ab".chars().nth(rank as usize).unwrap().to_string().repeat(12)
        )
    }

    #[test]
    fn lines_in_any_mixture_are_complete() {
        let text: String = [line(0, 0), line(1, 0), line(1, 1), line(0, 1)].concat();
        for piece in [1, 7, 30, 31, 1000] {
            let mut lines = Lines::new(2, 30, false);
            text.as_bytes().chunks(piece).for_each(|piece| lines.feed(piece));
            assert_eq!((lines.faults(2), lines.whole()), (None, 4));
        }
        let mut tagged = Lines::new(2, 30, true);
        text.split_inclusive('\n').for_each(|line| tagged.feed(format!("[1,0] {line}").as_bytes()));
        assert_eq!(tagged.faults(2), None);
    }

    #[test]
    fn torn_missing_and_misplaced_lines_are_counted() {
        let mut lines = Lines::new(2, 30, false);
        let (a, b) = (line(0, 0), line(1, 0));
        lines.feed(format!("{}{b}{}{}", &a[..20], &a[20..], line(0, 3)).as_bytes());
        assert_eq!(lines.faults(4).unwrap(), "7 lines missing, 2 torn, 1 out of order");
    }

    #[test]
    fn blocks_are_known_by_their_place() {
        let (mut good, mut all) = (Blocks::default(), Vec::new());
        good.write(0, 20_000, &mut all);
        for piece in [1, 5, 4096, 5000, 20_000] {
            good.bytes = 0;
            all.chunks(piece).for_each(|piece| good.feed(piece));
            assert_eq!((good.bytes, good.wrong), (20_000, 0));
        }
        let mut part = Vec::new();
        good.write(4090, 100, &mut part);
        assert_eq!(part, all[4090..4190]);
        all.drain(5000..5001);
        let mut bad = Blocks::default();
        bad.feed(&all);
        assert!(bad.wrong > 0);
    }
}
