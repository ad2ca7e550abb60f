//! Other launchers' command lines, for px under their names.

pub(crate) mod mpirun;
