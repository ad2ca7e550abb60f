//! How values become bytes. One in-memory model, several generations of rules.
//!
//! [`Writer`] and [`Reader`] handle buffers: sequences of items. `values.rs` and `items.rs` hold the encoding of each
//! data type, `history.rs` what older generations do differently, `size.rs` the bounds that counts are checked against.

mod history;
mod items;
mod pack;
mod size;
mod unpack;
mod values;

use std::fmt;

use phalanx_spec::DataType;

pub(crate) use items::{BlockDirective, Cpuset, DESCRIBED, NOT_DESCRIBED};
pub use items::{Size, Time};
pub use pack::{Packer, Writer};
pub use unpack::{MAX_DEPTH, Reader, Unpacker};

/// A type that can be an item of a buffer, or part of one.
pub trait Item: Sized {
    const TYPE: DataType;
    fn pack(&self, to: &mut Packer);
    fn unpack(from: &mut Unpacker<'_>) -> Result<Self, DecodeError>;
}

/// The packing rules of a peer (OpenPMIx calls them bfrops modules). Ordered by age.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Generation {
    V21,
    V3,
    V4,
    V41,
    V51,
    V61,
    /// Used by no peer: like the newest, with a place for every data type that any generation has. For values that
    /// travel between processes of one program.
    Every,
}

/// What both ends of a connection agreed on in the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Format {
    pub generation: Generation,
    /// Whether each packed item is preceded by its data type.
    pub described: bool,
}

/// The OpenPMIx release that a peer reports: decides the layout of a few replies, never the encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Release {
    pub major: u16,
    pub minor: u16,
    pub patch: u16,
}

/// The format and layout that one connection uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Dialect {
    pub format: Format,
    pub release: Release,
}

impl Generation {
    /// The generations that peers use.
    pub const ALL: [Generation; 6] =
        [Generation::V21, Generation::V3, Generation::V4, Generation::V41, Generation::V51, Generation::V61];

    /// Its name in the handshake.
    pub fn module_name(self) -> &'static str {
        match self {
            Generation::V21 => "v21",
            Generation::V3 => "v3",
            Generation::V4 => "v4",
            Generation::V41 => "v41",
            Generation::V51 => "v51",
            Generation::V61 => "v61",
            Generation::Every => "every",
        }
    }

    pub fn from_module_name(name: &str) -> Option<Generation> {
        Generation::ALL.into_iter().find(|generation| generation.module_name() == name)
    }
}

impl Release {
    pub const fn new(major: u16, minor: u16, patch: u16) -> Release {
        Release { major, minor, patch }
    }

    /// Parses up to three numbers between dots, ignoring anything behind the digits of each: `4.2.2rc2`, `v5.0.11`, `6.1`. `None` if
    /// there is no number at the start.
    pub fn parse(text: &str) -> Option<Release> {
        let mut parts = text.strip_prefix('v').unwrap_or(text).split('.').map(|part| {
            let digits = part.find(|c: char| !c.is_ascii_digit()).map_or(part, |end| &part[..end]);
            digits.parse().ok()
        });
        let mut next = || parts.next().flatten();
        Some(Release { major: next()?, minor: next().unwrap_or(0), patch: next().unwrap_or(0) })
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// Why bytes cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeError {
    /// The bytes end before the item does.
    Truncated { what: &'static str },
    /// A length or count is larger than the rest of the message can hold, or than its limit.
    TooLong { what: &'static str, claimed: u64, limit: u64 },
    /// Another data type was found instead of `expected`.
    Type { expected: u16, found: u16 },
    /// A data type that this generation does not have.
    UnknownType { code: u16 },
    /// An integer does not fit into its type.
    Overflow { what: &'static str },
    /// Values are nested deeper than we allow.
    TooDeep,
    /// A field holds a value that its type forbids.
    Malformed { what: &'static str },
    /// Bytes are left over behind the last field.
    Trailing { bytes: usize },
    /// A command code that we do not know.
    UnknownCommand { code: u8 },
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecodeError::Truncated { what } => write!(f, "the bytes end inside {what}"),
            DecodeError::TooLong { what, claimed, limit } => {
                write!(f, "{what} claims {claimed} where at most {limit} fit")
            }
            DecodeError::Type { expected, found } => {
                write!(f, "data type {found} where {expected} was expected")
            }
            DecodeError::UnknownType { code } => write!(f, "unknown data type {code}"),
            DecodeError::Overflow { what } => write!(f, "{what} does not fit into its type"),
            DecodeError::TooDeep => f.write_str("values are nested too deeply"),
            DecodeError::Malformed { what } => write!(f, "{what} is malformed"),
            DecodeError::Trailing { bytes } => write!(f, "{bytes} bytes are left over behind the last field"),
            DecodeError::UnknownCommand { code } => write!(f, "unknown command {code}"),
        }
    }
}

impl std::error::Error for DecodeError {}

#[cfg(test)]
mod tests;
