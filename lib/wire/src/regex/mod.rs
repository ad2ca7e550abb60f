//! The compact notations for maps of nodes and processes (values of type REGEX).
//!
//! A node map lists host names, a process map the ranks on each of those hosts. `node.rs` and `ppn.rs` hold the native
//! notation, `raw.rs` the plain and the compressed list; all OpenPMIx readers understand the native and the plain
//! one. Everything parsed here may come from a peer, so the caller limits every expansion.

mod node;
mod ppn;
mod raw;

use std::fmt;

pub use node::nodes_to_regex;
pub use ppn::ppn_to_regex;
pub(crate) use raw::blob_length;
pub use raw::{nodes_to_raw, ppn_to_raw};

use crate::compress::InflateError;

/// Why a map cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegexError {
    /// In none of the known notations.
    UnknownNotation,
    /// The named part is malformed.
    Malformed(&'static str),
    /// It expands to more than this many names or ranks.
    TooMany {
        limit: usize,
    },
    Compressed(InflateError),
}

/// The host names of a node map, at most `limit`.
pub fn regex_to_nodes(map: &[u8], limit: usize) -> Result<Vec<String>, RegexError> {
    match raw::notation(map, limit)? {
        raw::Notation::Native(inside) => node::expand(inside, limit),
        raw::Notation::List(list) => raw::names(&list, limit),
    }
}

/// The ranks on each node of a process map, at most `limit` ranks.
pub fn regex_to_ppn(map: &[u8], limit: usize) -> Result<Vec<Vec<u32>>, RegexError> {
    match raw::notation(map, limit)? {
        raw::Notation::Native(inside) => ppn::expand(inside, limit),
        raw::Notation::List(list) => ppn::expand(&list, limit),
    }
}

impl fmt::Display for RegexError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RegexError::UnknownNotation => f.write_str("the map is in no known notation"),
            RegexError::Malformed(part) => write!(f, "{part} in the map is malformed"),
            RegexError::TooMany { limit } => write!(f, "the map stands for more than {limit} entries"),
            RegexError::Compressed(error) => write!(f, "the map: {error}"),
        }
    }
}

impl std::error::Error for RegexError {}

/// The longest host name that is accepted, in bytes.
const MAX_NAME: usize = 255;

#[cfg(test)]
mod tests;
