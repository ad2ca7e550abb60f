//! Recognizes the notations; handles the plain one (`raw:` and a list) and the compressed one, a list in a zlib stream.
//!
//! 4.2 sends compressed maps without their content, so no peer should get any: we write none, but read them.

use std::borrow::Cow;

use super::{MAX_NAME, RegexError};
use crate::compress;

pub fn nodes_to_raw<S: AsRef<str>>(names: &[S]) -> String {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    format!("raw:{}", names.join(","))
}

/// Ranks are listed individually: readers of the plain notation do not know ranges.
pub fn ppn_to_raw(nodes: &[Vec<u32>]) -> String {
    let list = |ranks: &Vec<u32>| ranks.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    format!("raw:{}", nodes.iter().map(list).collect::<Vec<_>>().join(";"))
}

pub(super) enum Notation<'a> {
    /// The text between the brackets of `pmix[...]`.
    Native(&'a str),
    List(Cow<'a, str>),
}

/// `limit`: the most names or ranks that the map may expand to.
pub(super) fn notation(map: &[u8], limit: usize) -> Result<Notation<'_>, RegexError> {
    let not_text = |_| RegexError::Malformed("the text");
    if blob_length(map) == Some(map.len()) {
        let stream = map.splitn(4, |byte| *byte == 0).nth(3).unwrap_or_default();
        let plain =
            compress::inflate(stream, limit.saturating_mul(MAX_NAME + 1)).map_err(RegexError::Compressed)?;
        let mut plain = String::from_utf8(plain).map_err(|error| not_text(error.utf8_error()))?;
        plain.truncate(plain.trim_end_matches('\0').len());
        return Ok(Notation::List(Cow::Owned(plain)));
    }
    let map = map.split(|byte| *byte == 0).next().unwrap_or_default();
    let map = std::str::from_utf8(map).map_err(not_text)?;
    if let Some(list) = map.strip_prefix("raw:") {
        return Ok(Notation::List(Cow::Borrowed(list)));
    }
    let inside = map.strip_prefix("pmix[").ok_or(RegexError::UnknownNotation)?;
    inside.strip_suffix(']').map(Notation::Native).ok_or(RegexError::Malformed("the closing bracket"))
}

pub(super) fn names(list: &str, limit: usize) -> Result<Vec<String>, RegexError> {
    let mut names = Vec::new();
    for name in list.split(',').filter(|name| !name.is_empty()) {
        if name.len() > MAX_NAME {
            return Err(RegexError::Malformed("a host name"));
        }
        if names.len() == limit {
            return Err(RegexError::TooMany { limit });
        }
        names.push(name.to_owned());
    }
    Ok(names)
}

/// The length of the compressed map at the start of `bytes`, if there is one.
///
/// Three texts, each with its NUL (`blob:`, `component=zlib:`, `size=N:`), then N bytes.
pub(crate) fn blob_length(bytes: &[u8]) -> Option<usize> {
    let rest = bytes.strip_prefix(b"blob:\0")?.strip_prefix(b"component=zlib:\0")?;
    let end = rest.iter().take(MAX_SIZE_TEXT).position(|byte| *byte == 0)?;
    let digits = rest.get(..end)?.strip_prefix(b"size=")?.strip_suffix(b":")?;
    let size: usize = std::str::from_utf8(digits).ok()?.parse().ok()?;
    (bytes.len() - rest.len() + end + 1).checked_add(size)
}

/// `size=`, twenty digits, `:`, NUL.
const MAX_SIZE_TEXT: usize = 27;
