//! What each MPI program of `programs/` has to do under `px run -n N`, whichever library it is linked with.
//!
//! Each function runs one program once and fails the test when anything is wrong with it: its exit code, its lines, and
//! what it leaves in the directories that the MPI libraries use.

use crate::{Library, Outcome, host, mpi, px};

pub fn hello(library: Library, ranks: u32) {
    let outcome = run(library, "hello", ranks, &[&ranks.to_string()]).expect_code(0);
    outcome.expect_lines((0..ranks).map(|rank| format!("hello from rank {rank} of {ranks} on {}", host())));
}

pub fn ring(library: Library, ranks: u32) {
    let token = 10 * ranks;
    let line = format!("ring of {ranks}: token {token}, expected {token}");
    run(library, "ring", ranks, &[]).expect_code(0).expect_lines([line]);
}

pub fn allreduce(library: Library, ranks: u32) {
    let outcome = run(library, "allreduce", ranks, &[]).expect_code(0);
    let line = |rank| format!("rank {rank} of {ranks}: allreduce of 10000 elements, 0 wrong");
    outcome.expect_lines((0..ranks).map(line));
}

/// The last rank calls `MPI_Abort` with 7: all others are ended, and 7 is the exit code.
pub fn abort(library: Library, ranks: u32) {
    let last = ranks - 1;
    let outcome = run(library, "abort", ranks, &[]).expect_code(7);
    outcome.expect_lines([format!("rank {last} aborts")]).expect_stderr(&[&format!("rank {last}")]);
}

/// The last rank returns 3 after `MPI_Finalize`.
pub fn exit3(library: Library, ranks: u32) {
    let last = ranks - 1;
    let outcome = run(library, "exit3", ranks, &[]).expect_code(3);
    outcome.expect_lines([""; 0]).expect_stderr(&[&format!("rank {last}"), "3"]);
}

/// The last rank dies of a segmentation fault while the others wait for it.
pub fn segv(library: Library, ranks: u32) {
    let last = ranks - 1;
    let outcome = run(library, "segv", ranks, &[]).expect_code(128 + 11);
    outcome.expect_nowhere("must not come here").expect_stderr(&[&format!("rank {last}"), "SIGSEGV"]);
}

pub fn publish(library: Library, ranks: u32) {
    let outcome = run(library, "publish", ranks, &[]).expect_code(0);
    let line = |rank| format!("rank {rank} of {ranks}: publish, lookup and unpublish are right");
    outcome.expect_lines((0..ranks).map(line));
}

fn run(library: Library, program: &str, ranks: u32, arguments: &[&str]) -> Outcome {
    let job = px(["-n", &ranks.to_string()]).arg(mpi(library, program)).args(arguments).with(library);
    job.run().expect_nothing_left()
}
