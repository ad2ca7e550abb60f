//! The names of PMIx: attributes, status codes, data types, commands and the other enumerations.
//!
//! Everything here comes from the tables in `data/`, from which `cargo xtask gen` writes `src/gen`. Numbers that a peer
//! sends are kept unchanged: each type is a number with names for the known values, never a closed enum. This crate
//! knows no encoding; `phalanx-wire` makes the bytes.
#![forbid(unsafe_code)]

mod attribute;
mod named;
mod packed;
mod rank;
pub mod required;
mod status;

#[rustfmt::skip]
mod r#gen;

pub use attribute::{Attribute, Standing, attribute, attribute_by_name, attributes};
pub use r#gen::codes::*;
pub use r#gen::commands::Command;

/// The names of functions that appear outside of their callers; each constant has the name of its function without `PMIx_`.
pub mod functions {
    pub use crate::r#gen::functions::*;
}

/// The keys of all attributes; each constant has the name of its attribute without `PMIX_`.
pub mod keys {
    pub use crate::r#gen::keys::*;
}
