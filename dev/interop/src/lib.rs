//! Runs programs that know nothing of us: MPI libraries, PMIx programs in C and Python, clients that misbehave.
//!
//! This crate is the harness; the tests are in `tests/interop`, one folder per subject, and the programs in `programs/`. The
//! programs are compiled against foreign libraries. The tests in `tests/alone` need none of these: they compile our own C
//! programs, and some of the others, against our headers. Every test runs `px` as a user would and checks its
//! exit code, its output and its leftovers.
//!
//! No test is skipped: a missing compiler, package or wheel is a failure that names it.

// A test that cannot continue prints why and stops.
#![allow(clippy::expect_used)]

mod install;
mod job;
pub mod load;
pub mod mpi_programs;
mod outcome;
mod program;
mod slurm;
mod tools;
mod watch;

pub use install::{Wheel, debian_dir, debian_file, intel_wheel, mpi4py_tests, mpich_wheel, wheel};
pub use job::{
    Job, Running, libpmix, needs_root, new_directory, new_plain_directory, new_shared_directory, px,
    px_binary, rust_tool,
};
pub use outcome::{Ended, Outcome};
pub use phalanx_cluster::workspace;
pub use program::{
    CLIENT_PROGRAMS, Library, bench, copy_program, headers, mpi, own, own_source, pmix, pmix_on_ours,
    pmix_tool, script, tool_on_ours, write_program,
};
pub use slurm::{Slurm, Whose, debians_libpmix_copied};
pub use tools::{Prterun, c_tool, launcher, mpirun_4, some_prterun, soon};
pub use watch::{children_of, eventually, host, lives, rests, rss_kib, survivors};

/// The numbers of ranks in tests with MPI programs.
pub const SIZES: [u32; 4] = [1, 2, 4, 16];
