//! Other launchers' command lines, for when px is called by their names.

pub(crate) mod mpirun;
