//! A set of CPUs, by the kernel's numbers.
//!
//! Owns the set operations and its two text forms: the list form that people, `taskset -c` and hwloc use
//! (`0-3,8`), and the mask form of the kernel's `*_map` files (`00ff,ffffffff`). A set is always finite: hwloc's
//! open-ended `4-` means "and all the rest" and is refused here, since no process may be bound to CPUs that do not
//! exist.

use std::fmt;
use std::str::FromStr;

/// CPU numbers are below this; it bounds what a text from a peer can make us allocate (8 KiB).
pub const MAX_CPUS: u32 = 1 << 16;

/// A set of CPU numbers. The default is empty. Ordered as ascending lists of members, so disjoint sets sort by
/// their lowest CPU.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct CpuSet {
    /// Bit `i` of word `w` is CPU `64 * w + i`; the last word is never zero.
    words: Vec<u64>,
}

/// Why a text is not a CPU set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CpuSetError {
    /// Not a number, at this byte of the text.
    NotANumber { text: String, at: usize },
    /// A range whose end is below its start, at this byte.
    Backwards { text: String, at: usize },
    /// A range without an end (`4-`), which only hwloc's infinite sets have.
    OpenEnded { text: String },
    /// A CPU number of [`MAX_CPUS`] or more.
    TooLarge { text: String, limit: u32 },
}

impl CpuSet {
    /// The empty set.
    pub const fn new() -> CpuSet {
        CpuSet { words: Vec::new() }
    }

    /// The set of one CPU. Numbers from [`MAX_CPUS`] on are not representable and leave it empty.
    pub fn single(cpu: u32) -> CpuSet {
        let mut set = CpuSet::new();
        set.insert(cpu);
        set
    }

    /// The CPUs `first..=last` that are below [`MAX_CPUS`].
    pub fn range(first: u32, last: u32) -> CpuSet {
        let mut set = CpuSet::new();
        set.insert_range(first, last);
        set
    }

    /// Reads the list form: numbers and ranges separated by commas; blanks around them and an empty text are
    /// allowed (the kernel writes an empty line for a set without members).
    pub fn from_list(text: &str) -> Result<CpuSet, CpuSetError> {
        let mut set = CpuSet::new();
        let trimmed = text.trim();
        if trimmed.is_empty() {
            return Ok(set);
        }
        let mut at = text.len() - text.trim_start().len();
        for item in trimmed.split(',') {
            let number = |part: &str, at: usize| -> Result<u32, CpuSetError> {
                let digits = part.trim();
                if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
                    return Err(CpuSetError::NotANumber { text: excerpt(text), at });
                }
                match digits.parse() {
                    Ok(n) if n < MAX_CPUS => Ok(n),
                    _ => Err(CpuSetError::TooLarge { text: excerpt(text), limit: MAX_CPUS }),
                }
            };
            match item.split_once('-') {
                None => set.insert(number(item, at)?),
                Some((_, last)) if last.trim().is_empty() => {
                    return Err(CpuSetError::OpenEnded { text: excerpt(text) });
                }
                Some((first, last)) => {
                    let (low, high) = (number(first, at)?, number(last, at + first.len() + 1)?);
                    if high < low {
                        return Err(CpuSetError::Backwards { text: excerpt(text), at });
                    }
                    set.insert_range(low, high);
                }
            }
            at += item.len() + 1;
        }
        Ok(set)
    }

    /// Reads the mask form: hexadecimal words of 32 bits, most significant first, separated by commas, each
    /// with or without `0x`. hwloc's infinite masks (`0xf...f`) are refused.
    pub fn from_mask(text: &str) -> Result<CpuSet, CpuSetError> {
        let mut set = CpuSet::new();
        let trimmed = text.trim();
        if trimmed.is_empty() {
            return Ok(set);
        }
        let count = trimmed.split(',').count();
        if count > MAX_CPUS as usize / 32 {
            return Err(CpuSetError::TooLarge { text: excerpt(text), limit: MAX_CPUS });
        }
        let mut at = text.len() - text.trim_start().len();
        for (index, item) in trimmed.split(',').enumerate() {
            let digits = item.trim().trim_start_matches("0x");
            if digits.starts_with("f...f") {
                return Err(CpuSetError::OpenEnded { text: excerpt(text) });
            }
            // hwloc leaves zero words in between empty; a single word may be written without padding.
            let word = if digits.is_empty() && count > 1 {
                0
            } else if digits.len() > 8 || digits.starts_with('+') {
                return Err(CpuSetError::NotANumber { text: excerpt(text), at });
            } else {
                u32::from_str_radix(digits, 16)
                    .map_err(|_| CpuSetError::NotANumber { text: excerpt(text), at })?
            };
            let base = (count - 1 - index) as u32 * 32;
            (0..32).filter(|bit| word & (1 << bit) != 0).for_each(|bit| set.insert(base + bit));
            at += item.len() + 1;
        }
        Ok(set)
    }

    /// Adds one CPU. Numbers from [`MAX_CPUS`] on are not representable and are ignored.
    pub fn insert(&mut self, cpu: u32) {
        if cpu < MAX_CPUS {
            *self.word_mut(cpu as usize / 64) |= 1 << (cpu % 64);
        }
    }

    /// Adds the CPUs `first..=last` that are below [`MAX_CPUS`].
    pub fn insert_range(&mut self, first: u32, last: u32) {
        let last = last.min(MAX_CPUS - 1);
        if first > last {
            return;
        }
        for word in first / 64..=last / 64 {
            let low = if word == first / 64 { first % 64 } else { 0 };
            let high = if word == last / 64 { last % 64 } else { 63 };
            *self.word_mut(word as usize) |= (u64::MAX << low) & (u64::MAX >> (63 - high));
        }
    }

    /// Removes one CPU.
    pub fn remove(&mut self, cpu: u32) {
        if let Some(word) = self.words.get_mut(cpu as usize / 64) {
            *word &= !(1 << (cpu % 64));
            self.trim();
        }
    }

    /// Whether the CPU is a member.
    pub fn contains(&self, cpu: u32) -> bool {
        self.words.get(cpu as usize / 64).is_some_and(|word| word & (1 << (cpu % 64)) != 0)
    }

    /// Members of both.
    pub fn and(&self, other: &CpuSet) -> CpuSet {
        let words = self.words.iter().zip(&other.words).map(|(a, b)| a & b).collect();
        CpuSet { words }.trimmed()
    }

    /// Members of either.
    pub fn or(&self, other: &CpuSet) -> CpuSet {
        let mut union = self.clone();
        union.add(other);
        union
    }

    /// Members of this set that are not in `other`.
    pub fn andnot(&self, other: &CpuSet) -> CpuSet {
        let mut rest = self.clone();
        rest.subtract(other);
        rest
    }

    /// Adds all members of `other`.
    pub fn add(&mut self, other: &CpuSet) {
        if self.words.len() < other.words.len() {
            self.words.resize(other.words.len(), 0);
        }
        self.words.iter_mut().zip(&other.words).for_each(|(a, b)| *a |= b);
    }

    /// Removes all members of `other`.
    pub fn subtract(&mut self, other: &CpuSet) {
        self.words.iter_mut().zip(&other.words).for_each(|(a, b)| *a &= !b);
        self.trim();
    }

    /// Whether every member is in `other`; the empty set is a subset of every set.
    pub fn is_subset(&self, other: &CpuSet) -> bool {
        self.words.len() <= other.words.len() && self.words.iter().zip(&other.words).all(|(a, b)| a & !b == 0)
    }

    /// Whether the sets have a member in common.
    pub fn intersects(&self, other: &CpuSet) -> bool {
        self.words.iter().zip(&other.words).any(|(a, b)| a & b != 0)
    }

    /// The number of members.
    pub fn count(&self) -> u32 {
        self.words.iter().map(|word| word.count_ones()).sum()
    }

    /// Whether the set has no members.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The lowest member.
    pub fn first(&self) -> Option<u32> {
        self.iter().next()
    }

    /// The highest member.
    pub fn last(&self) -> Option<u32> {
        let word = self.words.last()?;
        Some((self.words.len() as u32 - 1) * 64 + 63 - word.leading_zeros())
    }

    /// The members, lowest first.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.words.iter().enumerate().flat_map(|(index, &word)| {
            let mut rest = word;
            std::iter::from_fn(move || {
                if rest == 0 {
                    return None;
                }
                let bit = rest.trailing_zeros();
                rest &= rest - 1;
                Some(index as u32 * 64 + bit)
            })
        })
    }

    /// The members as ranges `first..=last`, lowest first, adjacent ones joined.
    pub fn ranges(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let mut cpus = self.iter().peekable();
        std::iter::from_fn(move || {
            let first = cpus.next()?;
            let mut last = first;
            while cpus.next_if_eq(&(last + 1)).is_some() {
                last += 1;
            }
            Some((first, last))
        })
    }

    /// The kernel's mask form, e.g. `00ff,ffffffff`, without `0x` and without leading zero words.
    pub fn to_mask(&self) -> String {
        let mut text = String::new();
        for half in self.halves() {
            text.push_str(&if text.is_empty() { format!("{half:x}") } else { format!(",{half:08x}") });
        }
        if text.is_empty() { "0".to_owned() } else { text }
    }

    /// hwloc's mask form, e.g. `0x000000ff,0xffffffff`; the empty set is `0x0`.
    pub fn to_hwloc(&self) -> String {
        let words: Vec<String> = self.halves().map(|half| format!("0x{half:08x}")).collect();
        if words.is_empty() { "0x0".to_owned() } else { words.join(",") }
    }

    /// How many 64-bit words the set occupies, which a decoder counts against its budget.
    pub(crate) fn weight(&self) -> usize {
        self.words.len()
    }

    /// The 32-bit words, most significant first, without leading zero words.
    fn halves(&self) -> impl Iterator<Item = u32> + '_ {
        self.words
            .iter()
            .rev()
            .flat_map(|word| [(word >> 32) as u32, *word as u32])
            .skip_while(|half| *half == 0)
    }

    fn word_mut(&mut self, index: usize) -> &mut u64 {
        if self.words.len() <= index {
            self.words.resize(index + 1, 0);
        }
        &mut self.words[index]
    }

    fn trimmed(mut self) -> CpuSet {
        self.trim();
        self
    }

    fn trim(&mut self) {
        while self.words.last() == Some(&0) {
            self.words.pop();
        }
    }
}

impl Ord for CpuSet {
    /// Compares the members, lowest first, as two ascending lists.
    fn cmp(&self, other: &CpuSet) -> std::cmp::Ordering {
        self.iter().cmp(other.iter())
    }
}

impl PartialOrd for CpuSet {
    fn partial_cmp(&self, other: &CpuSet) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl FromIterator<u32> for CpuSet {
    fn from_iter<I: IntoIterator<Item = u32>>(cpus: I) -> CpuSet {
        let mut set = CpuSet::new();
        cpus.into_iter().for_each(|cpu| set.insert(cpu));
        set
    }
}

impl FromStr for CpuSet {
    type Err = CpuSetError;

    /// The list form.
    fn from_str(text: &str) -> Result<CpuSet, CpuSetError> {
        CpuSet::from_list(text)
    }
}

impl fmt::Display for CpuSet {
    /// The list form; empty for the empty set.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (first, last)) in self.ranges().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            match last - first {
                0 => write!(f, "{comma}{first}")?,
                _ => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

impl fmt::Debug for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{self}}}")
    }
}

impl fmt::Display for CpuSetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CpuSetError::NotANumber { text, at } => {
                write!(f, "\"{text}\": expected a CPU number at column {}, as in \"0-3,8\"", at + 1)
            }
            CpuSetError::Backwards { text, at } => {
                write!(f, "\"{text}\": the range at column {} ends before it starts", at + 1)
            }
            CpuSetError::OpenEnded { text } => write!(f, "\"{text}\": a range of CPUs needs an end"),
            CpuSetError::TooLarge { text, limit } => {
                write!(f, "\"{text}\": CPU numbers of {limit} and more are not supported")
            }
        }
    }
}

impl std::error::Error for CpuSetError {}

/// The text for an error message: short, on one line.
fn excerpt(text: &str) -> String {
    const LONGEST: usize = 60;
    let line = text.trim().escape_debug().to_string();
    match line.char_indices().nth(LONGEST) {
        None => line,
        Some((end, _)) => format!("{}...", &line[..end]),
    }
}

#[cfg(test)]
mod tests;
