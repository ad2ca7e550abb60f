//! The results of `cargo xtask dist`.

mod dist;
