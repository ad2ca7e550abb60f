//! Signals that we send ourselves, by their numbers on Linux.

pub(crate) const SIGTERM: i32 = 15;
pub(crate) const SIGKILL: i32 = 9;
pub(crate) const SIGCONT: i32 = 18;
pub(crate) const SIGSTOP: i32 = 19;
