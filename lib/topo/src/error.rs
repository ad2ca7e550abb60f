//! Why a node's hardware could not be read, or a received topology not be decoded.

use std::fmt;
use std::path::PathBuf;

/// Every failure of this crate except a malformed CPU set on its own ([`crate::CpuSetError`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TopologyError {
    /// A file that must exist could not be read.
    Read { path: PathBuf, what: &'static str, reason: String },
    /// A file was read but has unexpected content.
    Content { path: PathBuf, what: &'static str, found: String },
    /// Neither of the files that name the online CPUs exists.
    NoCpus { tried: Vec<PathBuf> },
    /// Bytes from another daemon are not an encoded topology: the problem, and at which byte.
    Decode { what: &'static str, at: usize },
    /// A locality string has an invalid part.
    Locality { text: String, part: String },
}

impl fmt::Display for TopologyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TopologyError::Read { path, what, reason } => {
                write!(f, "reading the hardware: {} ({what}): {reason}", path.display())
            }
            TopologyError::Content { path, what, found } => {
                write!(f, "reading the hardware: {}: expected {what}, found \"{found}\"", path.display())
            }
            TopologyError::NoCpus { tried } => {
                let tried: Vec<_> = tried.iter().map(|path| path.display().to_string()).collect();
                write!(f, "reading the hardware: no list of online CPUs in {}", tried.join(" or "))
            }
            TopologyError::Decode { what, at } => {
                write!(f, "a topology received from another node is malformed at byte {at}: {what}")
            }
            TopologyError::Locality { text, part } => {
                write!(
                    f,
                    "locality string \"{text}\": \"{part}\" is not of the form CODE and a list, as in L30-1"
                )
            }
        }
    }
}

impl std::error::Error for TopologyError {}
