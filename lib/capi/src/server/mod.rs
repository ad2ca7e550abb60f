//! The server's calls, one file per verb; and the other direction, requests to the host (`host.rs`).

mod args;
mod dmodex;
mod host;
mod init;
mod inventory;
mod iof;
pub(crate) mod module;
mod pset;
pub(crate) mod register;
mod resources;
pub(crate) mod serving;
mod setup;
mod upcalls;
