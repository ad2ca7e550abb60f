//! Between the machines of `phalanx-core` and the operating system: what the native library, the C library and `px` share.
//!
//! Sockets and the users at their other end (`net`, `listen`, `local`, `identity`, `unmapped`, `trust`), how servers are found
//! (`rendezvous`, `reach`), and files and streams of a process (`collected`, `files`, `peek`, `stdin`, `walk`). This crate decides nothing
//! that a machine decides, and makes no PMIx calls.

pub mod collected;
pub mod files;
mod identity;
pub mod listen;
mod local;
pub mod look;
pub mod net;
pub mod peek;
pub mod reach;
pub mod rendezvous;
pub mod stdin;
pub mod thread;
mod trust;
mod unmapped;
pub mod walk;

pub use trust::{NotAUser, TRUST_USER, Trust};
