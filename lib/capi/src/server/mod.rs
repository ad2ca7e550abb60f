//! The server's calls, a file per verb; and the other direction, requests to the host (`host.rs`).

mod args;
mod dmodex;
mod host;
mod init;
mod iof;
mod job;
pub(crate) mod module;
mod pset;
pub(crate) mod register;
pub(crate) mod serving;
mod setup;
mod upcalls;
