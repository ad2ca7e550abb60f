//! Node maps in the native notation: `pmix[login,node[3:1-16,20]-ib]`.
//!
//! A group is a prefix, the number of digits, ranges of numbers, a suffix. All names of a group have the same number of
//! digits, padded with zeros; their order is that of the list.

use super::{MAX_NAME, RegexError};

/// The map of these hosts, in this order. `None` if a name is empty or contains a character that the notation uses.
pub fn nodes_to_regex<S: AsRef<str>>(names: &[S]) -> Option<String> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for name in names {
        let name = name.as_ref();
        if name.is_empty() || name.contains([',', '[', ']', '\0']) {
            return None;
        }
        let new = Group::of(name);
        if !groups.last_mut().is_some_and(|last| last.takes(&new)) {
            groups.push(new);
        }
    }
    let groups: Vec<String> = groups.iter().map(Group::text).collect();
    Some(format!("pmix[{}]", groups.join(",")))
}

/// Consecutive names that differ in one number only.
struct Group<'a> {
    prefix: &'a str,
    digits: usize,
    /// First and last. Empty: a name without a number.
    ranges: Vec<(u64, u64)>,
    suffix: &'a str,
}

impl<'a> Group<'a> {
    fn of(name: &'a str) -> Group<'a> {
        let plain = Group { prefix: name, digits: 0, ranges: Vec::new(), suffix: "" };
        let Some(last) = name.rfind(|c: char| c.is_ascii_digit()) else { return plain };
        let (head, suffix) = name.split_at(last + 1);
        let prefix = head.trim_end_matches(|c: char| c.is_ascii_digit());
        let digits = &head[prefix.len()..];
        match digits.parse() {
            Ok(number) if digits.len() <= MAX_DIGITS => {
                Group { prefix, digits: digits.len(), ranges: vec![(number, number)], suffix }
            }
            _ => plain,
        }
    }

    /// Adds the single number of `next`, if it is of the same kind.
    fn takes(&mut self, next: &Group<'_>) -> bool {
        let (Some(range), Some(&(number, _))) = (self.ranges.last_mut(), next.ranges.first()) else {
            return false;
        };
        if (self.prefix, self.digits, self.suffix) != (next.prefix, next.digits, next.suffix) {
            return false;
        }
        if number == range.1 + 1 {
            range.1 = number;
        } else {
            self.ranges.push((number, number));
        }
        true
    }

    fn text(&self) -> String {
        match self.ranges[..] {
            [] => self.prefix.to_owned(),
            [(first, last)] if first == last => {
                format!("{}{first:0width$}{}", self.prefix, self.suffix, width = self.digits)
            }
            _ => {
                let ranges: Vec<String> = self
                    .ranges
                    .iter()
                    .map(
                        |(first, last)| {
                            if first == last { first.to_string() } else { format!("{first}-{last}") }
                        },
                    )
                    .collect();
                format!("{}[{}:{}]{}", self.prefix, self.digits, ranges.join(","), self.suffix)
            }
        }
    }
}

/// Expands the text between the outer brackets.
pub(super) fn expand(map: &str, limit: usize) -> Result<Vec<String>, RegexError> {
    let mut names = Vec::new();
    let mut rest = map;
    while !rest.is_empty() {
        let (prefix, behind) = match rest.find([',', '[']) {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        let Some(group) = behind.strip_prefix('[') else {
            push(&mut names, prefix.to_owned(), limit)?;
            rest = behind.strip_prefix(',').unwrap_or(behind);
            continue;
        };
        let (inside, behind) = group.split_once(']').ok_or(RegexError::Malformed("a group of nodes"))?;
        let (suffix, next) = behind.split_once(',').unwrap_or((behind, ""));
        let (digits, ranges) = inside.split_once(':').ok_or(RegexError::Malformed("a group of nodes"))?;
        let digits = digits.parse().ok().filter(|digits| *digits <= MAX_NAME);
        let digits = digits.ok_or(RegexError::Malformed("a number of digits"))?;
        for range in ranges.split(',') {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last) = (number(first)?, number(last)?);
            for number in first..=last {
                push(&mut names, format!("{prefix}{number:0digits$}{suffix}"), limit)?;
            }
        }
        rest = next;
    }
    Ok(names)
}

fn push(names: &mut Vec<String>, name: String, limit: usize) -> Result<(), RegexError> {
    if name.is_empty() || name.len() > MAX_NAME {
        return Err(RegexError::Malformed("a host name"));
    }
    if names.len() == limit {
        return Err(RegexError::TooMany { limit });
    }
    names.push(name);
    Ok(())
}

fn number(text: &str) -> Result<u64, RegexError> {
    text.trim().parse().map_err(|_| RegexError::Malformed("a number of a node"))
}

/// OpenPMIx reads these numbers into a C `int`.
const MAX_DIGITS: usize = 9;
