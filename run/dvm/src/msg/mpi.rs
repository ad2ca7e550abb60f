//! MPI libraries that processes have loaded. The shell looks; the root decides what that means.

use crate::encoding::encoded;

/// An MPI library that a process has loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MpiLibrary {
    pub file: String,
    /// It can reach PMIx, as far as its file tells.
    pub has_pmix: bool,
    /// Not the rank's own process has loaded it but one that it has started.
    pub below: bool,
}

encoded!(struct MpiLibrary { file, has_pmix, below });
