//! Host names with numbers in brackets: `node[001-010,20]-ib[0-1]`, as Slurm and others write them.
//!
//! A leading zero sets the width of every number of the range. Several brackets count like digits, the last fastest.

use super::scan::{Line, MOST_HOSTS};
use super::{HostsError, is_address};

/// What a host name may consist of outside brackets. A colon belongs to it only in an IPv6 address, which the caller
/// recognises.
fn is_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '.' | '-' | '_')
}

/// Whether a name server or a file of hosts could know this name: labels of letters, digits, and dashes between them.
/// Underscores are against the rules, but in use. Letters beyond ASCII are in use as well, but name servers know such hosts by
/// another name (xn--...).
fn is_host_name(name: &str) -> bool {
    let is_inner = |label: &str| !label.starts_with('-') && !label.ends_with('-');
    let is_label = |label: &str| (1..=MOST_IN_LABEL).contains(&label.len()) && is_inner(label);
    name.len() <= MOST_IN_NAME && name.strip_suffix('.').unwrap_or(name).split('.').all(is_label)
}

/// Reads one name, with or without brackets, and returns all names that it stands for.
pub(super) fn names(line: &mut Line<'_>) -> Result<Vec<String>, HostsError> {
    let start = *line;
    if let Some(address) = ipv6(line) {
        return Ok(vec![address]);
    }
    let mut names = vec![String::new()];
    let mut is_named = false;
    loop {
        let plain = line.take_while(is_name);
        if !plain.is_ascii() {
            return Err(start.expected("a host name in ASCII"));
        }
        is_named |= !plain.is_empty();
        names.iter_mut().for_each(|name| name.push_str(plain));
        if !line.take("[") {
            break;
        }
        let numbers = numbers(line)?;
        if names.len() * numbers.len() > MOST_HOSTS {
            return Err(start.expected(&format!("at most {MOST_HOSTS} names")));
        }
        names = names
            .iter()
            .flat_map(|name| numbers.iter().map(move |number| format!("{name}{number}")))
            .collect();
    }
    match names.iter().all(|name| is_host_name(name)) {
        true if is_named => Ok(names),
        true => Err(start.expected("a name around the numbers")),
        false => Err(start.expected("a host name")),
    }
}

/// Writes names in their order, with ranges for those whose last numbers follow each other: `n3,n[1-2]`.
pub fn write_names<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut ranges: Vec<Range<'a>> = Vec::new();
    for name in names {
        let next = Range::of(name);
        match ranges.last_mut() {
            Some(last) if last.precedes(&next) => last.last = next.first,
            _ => ranges.push(next),
        }
    }
    let write = |range: &Range<'_>| match (range.first, range.last) {
        ("", _) => range.prefix.to_owned(),
        (first, last) if first == last => format!("{}{first}", range.prefix),
        (first, last) => format!("{}[{first}-{last}]", range.prefix),
    };
    ranges.iter().map(write).collect::<Vec<_>>().join(",")
}

/// Names that differ in the number at their end.
struct Range<'a> {
    prefix: &'a str,
    /// Empty: there is no number.
    first: &'a str,
    last: &'a str,
}

impl<'a> Range<'a> {
    fn of(name: &'a str) -> Range<'a> {
        let prefix = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let number = name.get(prefix.len()..).unwrap_or_default();
        match prefix.is_empty() || is_address(name) {
            true => Range { prefix: name, first: "", last: "" },
            false => Range { prefix, first: number, last: number },
        }
    }

    /// A range is as wide as its first number if that begins with a zero; otherwise none of its numbers may.
    fn precedes(&self, next: &Range<'_>) -> bool {
        let is_padded = |number: &str| number.len() > 1 && number.starts_with('0');
        let (Ok(last), Ok(number)) = (self.last.parse::<u64>(), next.first.parse::<u64>()) else {
            return false;
        };
        let is_alike = match is_padded(self.first) {
            true => self.first.len() == next.first.len(),
            false => !is_padded(next.first) && self.first != "0",
        };
        self.prefix == next.prefix && is_alike && last.checked_add(1) == Some(number)
    }
}

/// Reads an IPv6 address, bare or in brackets.
fn ipv6(line: &mut Line<'_>) -> Option<String> {
    let mut ahead = *line;
    let bracket = ahead.take("[");
    let digits = ahead.take_while(|c| c.is_ascii_hexdigit() || matches!(c, ':' | '.'));
    digits.parse::<std::net::Ipv6Addr>().ok()?;
    if bracket && !ahead.take("]") {
        return None;
    }
    *line = ahead;
    Some(digits.to_owned())
}

/// Reads `001-010,20]`.
fn numbers(line: &mut Line<'_>) -> Result<Vec<String>, HostsError> {
    let mut numbers = Vec::new();
    loop {
        let start = *line;
        let first = digits(line)?;
        let last = if line.take("-") { digits(line)? } else { first };
        let value = |text: &str| text.parse::<u64>().unwrap_or(u64::MAX);
        let (low, high) = (value(first), value(last));
        if high < low {
            return Err(start.expected("a range that ends after its start"));
        }
        if high - low >= (MOST_HOSTS - numbers.len()) as u64 {
            return Err(start.expected(&format!("at most {MOST_HOSTS} names")));
        }
        let width = if first.starts_with('0') { first.len() } else { 0 };
        numbers.extend((low..=high).map(|number| format!("{number:0width$}")));
        if line.take("]") {
            return Ok(numbers);
        }
        if !line.take(",") {
            return Err(line.expected("\",\", \"-\" or \"]\""));
        }
    }
}

const MOST_IN_LABEL: usize = 63;
const MOST_IN_NAME: usize = 254;

fn digits<'a>(line: &mut Line<'a>) -> Result<&'a str, HostsError> {
    let start = *line;
    match line.take_while(|c| c.is_ascii_digit()) {
        digits if (1..=18).contains(&digits.len()) => Ok(digits),
        _ => Err(start.expected("a number")),
    }
}
