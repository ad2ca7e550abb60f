//! The three names of PMIx: namespace, process, key. All are cheap to clone.

use std::fmt;
use std::sync::Arc;

use phalanx_spec::{MAX_KEYLEN, MAX_NSLEN, Rank};

/// A namespace: 1 to 255 bytes of UTF-8 without NUL. The empty one stands for "no particular namespace".
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nspace(Arc<str>);

/// An attribute key: at most 511 bytes of UTF-8 without NUL.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Arc<str>);

/// One process: its namespace and its rank there (or a wildcard, see [`Rank`]).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcId {
    pub nspace: Nspace,
    pub rank: Rank,
}

/// Why bytes are not a valid name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameError {
    TooLong { limit: usize },
    NotUtf8,
    HoldsNul,
}

impl Nspace {
    pub fn new(name: &str) -> Result<Nspace, NameError> {
        check(name, MAX_NSLEN).map(|s| Nspace(s.into()))
    }

    /// The namespace that stands for "no particular one".
    pub fn none() -> Nspace {
        Nspace("".into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn is_none(&self) -> bool {
        self.0.is_empty()
    }
}

impl Key {
    pub fn new(name: &str) -> Result<Key, NameError> {
        check(name, MAX_KEYLEN).map(|s| Key(s.into()))
    }

    /// A key that is a constant of the program (from `phalanx_spec::keys`).
    pub fn of(name: &'static str) -> Key {
        debug_assert!(check(name, MAX_KEYLEN).is_ok());
        Key(name.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Keys that begin with `pmix` are the standard's; all others belong to users.
    pub fn is_reserved(&self) -> bool {
        self.0.starts_with("pmix")
    }
}

impl ProcId {
    pub fn new(nspace: &Nspace, rank: Rank) -> ProcId {
        ProcId { nspace: nspace.clone(), rank }
    }

    /// Every rank of `nspace`.
    pub fn all(nspace: &Nspace) -> ProcId {
        ProcId::new(nspace, Rank::WILDCARD)
    }

    /// Whether `other` is this process, or is included in this wildcard.
    pub fn covers(&self, other: &ProcId) -> bool {
        self.nspace == other.nspace && (self.rank == other.rank || self.rank == Rank::WILDCARD)
    }
}

fn check(name: &str, limit: usize) -> Result<&str, NameError> {
    if name.len() > limit {
        return Err(NameError::TooLong { limit });
    }
    if name.as_bytes().contains(&0) {
        return Err(NameError::HoldsNul);
    }
    Ok(name)
}

macro_rules! shown_as_its_text {
    ($($name:ident)+) => {$(
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl PartialEq<str> for $name {
            fn eq(&self, other: &str) -> bool {
                &*self.0 == other
            }
        }
        impl PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                &*self.0 == *other
            }
        }
        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    )+};
}
shown_as_its_text!(Nspace Key);

impl fmt::Debug for ProcId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// `NSPACE:RANK`, with `*` for the wildcard rank.
impl fmt::Display for ProcId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rank {
            Rank::WILDCARD => write!(f, "{}:*", self.nspace),
            Rank::UNDEF => write!(f, "{}:?", self.nspace),
            rank => write!(f, "{}:{}", self.nspace, rank.0),
        }
    }
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NameError::TooLong { limit } => write!(f, "longer than {limit} bytes"),
            NameError::NotUtf8 => f.write_str("not UTF-8"),
            NameError::HoldsNul => f.write_str("holds a NUL byte"),
        }
    }
}

impl std::error::Error for NameError {}
