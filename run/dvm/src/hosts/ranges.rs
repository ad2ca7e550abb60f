//! Host names with numbers in brackets: `node[001-010,20]-ib[0-1]`, as Slurm and others write them.
//!
//! A leading zero asks for that width, in every number of the range. Several brackets count like digits, the last
//! fastest.

use super::HostsError;
use super::scan::{Line, MOST_HOSTS};

/// What a host name may consist of outside brackets. A colon belongs to it only in an IPv6 address, which the caller
/// recognises.
fn is_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '.' | '-' | '_')
}

/// Reads one name, with or without brackets, and returns all names that it stands for.
pub(super) fn names(line: &mut Line<'_>) -> Result<Vec<String>, HostsError> {
    let start = *line;
    if let Some(address) = ipv6(line) {
        return Ok(vec![address]);
    }
    let mut names = vec![String::new()];
    loop {
        let plain = line.take_while(is_name);
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
    match names.first().map(String::as_str) {
        None | Some("") => Err(start.expected("a host name")),
        Some(name) if !name.starts_with(|c: char| c.is_alphanumeric()) => Err(start.expected("a host name")),
        _ => Ok(names),
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

fn digits<'a>(line: &mut Line<'a>) -> Result<&'a str, HostsError> {
    let start = *line;
    match line.take_while(|c| c.is_ascii_digit()) {
        digits if (1..=18).contains(&digits.len()) => Ok(digits),
        _ => Err(start.expected("a number")),
    }
}
