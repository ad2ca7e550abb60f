//! The C interface of PMIx: every function of the headers in `lib/libpmix/include`, over the native library.
//!
//! `pointer.rs` follows pointers, `cmem.rs` allocates, `guard.rs` makes C functions of Rust bodies, `held.rs` stores our objects that programs hold.
//! Elsewhere `unsafe` marks only the places that rely on a program, or on the type beside a union, for what is behind a pointer: `cargo xtask
//! sources` has the list of these files. `element.rs`, `from_c.rs`, `to_c.rs` and `release.rs` handle the structures, `instance.rs` the process's
//! client; the rest are the functions, one file per section of the standard. Nothing here talks to a server itself.
#![allow(non_camel_case_types)]

mod argv;
mod client;
mod cmem;
mod data;
mod element;
mod frameworks;
mod from_c;
/// Written by `cargo xtask gen`.
#[rustfmt::skip]
mod r#gen {
    pub(crate) mod layout;
    pub(crate) mod name_block;
}
mod guard;
mod held;
mod hwloc;
mod info_list;
mod instance;
mod names;
mod native;
mod nesting;
mod pointer;
mod regex;
mod release;
mod server;
mod strings;
mod structs;
mod to_c;
mod tool;
mod value;
mod verbose;

use r#gen::{layout, name_block};
