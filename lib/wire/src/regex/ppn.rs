//! Process maps in the native notation: nodes between semicolons, ranks and ranges of ranks between commas,
//! `pmix[0-15;16-31;32,40]`. Without the wrapping the same text is the plain notation.

use super::RegexError;

/// The map of these ranks, a list per node. OpenPMIx's readers drop nodes without ranks: leave them out of both maps.
pub fn ppn_to_regex(nodes: &[Vec<u32>]) -> String {
    let nodes: Vec<String> = nodes.iter().map(|ranks| ranges(ranks)).collect();
    format!("pmix[{}]", nodes.join(";"))
}

fn ranges(ranks: &[u32]) -> String {
    let mut text = String::new();
    for run in ranks.chunk_by(|a, b| a.checked_add(1) == Some(*b)) {
        if !text.is_empty() {
            text.push(',');
        }
        match run {
            [first, .., last] => text.push_str(&format!("{first}-{last}")),
            _ => run.iter().for_each(|rank| text.push_str(&rank.to_string())),
        }
    }
    text
}

pub(super) fn expand(map: &str, limit: usize) -> Result<Vec<Vec<u32>>, RegexError> {
    if map.is_empty() {
        return Ok(Vec::new());
    }
    let mut left = limit;
    let mut nodes = Vec::new();
    for node in map.split(';') {
        let mut ranks = Vec::new();
        for range in node.split(',').map(str::trim).filter(|range| !range.is_empty()) {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last) = (rank(first)?, rank(last)?);
            let count =
                last.checked_sub(first).ok_or(RegexError::Malformed("a range of ranks"))? as usize + 1;
            left = left.checked_sub(count).ok_or(RegexError::TooMany { limit })?;
            ranks.extend(first..=last);
        }
        nodes.push(ranks);
    }
    Ok(nodes)
}

fn rank(text: &str) -> Result<u32, RegexError> {
    text.trim().parse().map_err(|_| RegexError::Malformed("a rank"))
}
