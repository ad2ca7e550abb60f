//! The launcher's own standard input, read only as far as ranks want it.
//!
//! The descriptor is shared with the shell that started us, so its flags are never changed: a pipe or terminal is
//! opened anew where possible, and otherwise read only when it is known to hold something.

use std::path::PathBuf;

/// Where a job's standard input comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StdinSource {
    /// Descriptor 0 of this process.
    Inherited,
    File(PathBuf),
    /// Ends at once.
    Empty,
}
