//! What each MPI program of `programs/` must do under `px run -n N`, with whichever library it is linked, and some under any
//! launcher.
//!
//! Each function runs one program once and fails the test if anything is wrong: its exit code, its lines, and,
//! under `px`, its leftovers in the directories that the MPI libraries use.

use crate::{Job, Library, Outcome, host, mpi, px};

pub fn hello(library: Library, ranks: u32) {
    expect_hello(run(library, "hello", ranks, &[&ranks.to_string()]), ranks);
}

pub fn ring(library: Library, ranks: u32) {
    expect_ring(run(library, "ring", ranks, &[]), ranks);
}

pub fn allreduce(library: Library, ranks: u32) {
    expect_allreduce(run(library, "allreduce", ranks, &[]), ranks);
}

/// These three in jobs started by another launcher.
pub fn launched(library: Library, ranks: u32, launcher: impl Fn() -> Job) {
    let job = |program| launcher().with(library).arg(mpi(library, program));
    expect_hello(job("hello").arg(ranks.to_string()).run(), ranks);
    expect_ring(job("ring").run(), ranks);
    expect_allreduce(job("allreduce").run(), ranks);
}

/// The last rank calls `MPI_Abort` with 7: all others are killed, and 7 is the exit code.
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
    expect_publish(run(library, "publish", ranks, &[]), ranks);
}

/// Spawning a missing program is an error; the next spawn succeeds. Shared memory does not connect two jobs: they need TCP.
pub fn spawn_missing(library: Library, ranks: u32, transports: &str) {
    let job = px(["-n", &ranks.to_string()]).arg(mpi(library, "spawn_missing")).with(library);
    let job = job.env("OMPI_MCA_btl", transports).env("OMPI_MCA_btl_tcp_if_include", "lo");
    let missing = (0..ranks).map(|rank| format!("rank {rank}: the missing program is an error"));
    let sum = format!("{} ranks, sum {}", ranks + 1, (0..=ranks).sum::<u32>());
    let outcome = job.run().expect_code(0).expect_nothing_left();
    outcome.expect_lines(missing.chain([sum])).expect_stderr(&["executing /no/such/program: No such file"]);
}

/// On any number of hosts: each rank prints hello once, and each of the hosts appears.
pub fn expect_hello_on(outcome: Outcome, ranks: u32, hosts: &[&str]) {
    let outcome = outcome.expect_code(0);
    let of = |rank: u32, host: &str| format!("hello from rank {rank} of {ranks} on {host}");
    let is_said = |rank, host| outcome.stdout.lines().any(|line| line == of(rank, host));
    assert_eq!(outcome.stdout.lines().count(), ranks as usize, "{outcome}");
    assert!((0..ranks).all(|rank| hosts.iter().any(|host| is_said(rank, host))), "{outcome}");
    assert!(hosts.iter().all(|host| (0..ranks).any(|rank| is_said(rank, host))), "{outcome}");
}

pub fn expect_hello(outcome: Outcome, ranks: u32) {
    let host = host();
    outcome
        .expect_code(0)
        .expect_lines((0..ranks).map(|rank| format!("hello from rank {rank} of {ranks} on {host}")));
}

pub fn expect_ring(outcome: Outcome, ranks: u32) {
    let token = 10 * ranks;
    outcome.expect_code(0).expect_lines([format!("ring of {ranks}: token {token}, expected {token}")]);
}

pub fn expect_allreduce(outcome: Outcome, ranks: u32) {
    let line = |rank| format!("rank {rank} of {ranks}: allreduce of 10000 elements, 0 wrong");
    outcome.expect_code(0).expect_lines((0..ranks).map(line));
}

pub fn expect_publish(outcome: Outcome, ranks: u32) {
    let line = |rank| format!("rank {rank} of {ranks}: publish, lookup and unpublish are right");
    outcome.expect_code(0).expect_lines((0..ranks).map(line));
}

fn run(library: Library, program: &str, ranks: u32, arguments: &[&str]) -> Outcome {
    let job = px(["-n", &ranks.to_string()]).arg(mpi(library, program)).args(arguments).with(library);
    job.run().expect_nothing_left()
}
