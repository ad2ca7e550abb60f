//! Ranks: mostly plain numbers, with a few reserved ones at the upper end.

use std::fmt;

use crate::Rank;

impl Rank {
    /// Whether this is the rank of one process rather than a reserved number.
    pub const fn is_process(self) -> bool {
        self.0 < Rank::VALID.0
    }
}

impl fmt::Display for Rank {
    /// The number, or the name of a reserved one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "{}", self.0),
        }
    }
}
