//! MPI libraries that processes have loaded. The shell finds them; the root decides what that means.

use crate::encoding::encoded;

/// An MPI library that a process has loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MpiLibrary {
    pub file: String,
    /// Whether it can use PMIx, judging by its file.
    pub has_pmix: bool,
    /// It was loaded by a process that the rank has started, not by the rank itself.
    pub below: bool,
}

encoded!(struct MpiLibrary { file, has_pmix, below });
