//! Signals that we send ourselves, by their numbers on Linux.

/// As if the terminal of a job were gone: the tool that runs it is.
pub(crate) const SIGHUP: i32 = 1;
pub(crate) const SIGTERM: i32 = 15;
pub(crate) const SIGKILL: i32 = 9;
pub(crate) const SIGCONT: i32 = 18;
pub(crate) const SIGSTOP: i32 = 19;
