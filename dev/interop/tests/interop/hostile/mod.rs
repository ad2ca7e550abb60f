//! Ranks that break the protocol, and other users of the machine that lay traps.

mod ranks;
mod strangers;
