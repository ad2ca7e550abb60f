//! Programs of an MPI library without a PMIx client: px says so, instead of running N worlds of one rank each.

use std::path::Path;

use phalanx_interop::{
    Library::{Mpich, MpichWheel},
    mpi, px,
};

#[test]
fn debians_mpich_is_recognized() {
    refused(&mpi(Mpich, "hello"));
}

#[test]
fn the_mpich_of_the_wheel_is_recognized() {
    refused(&mpi(MpichWheel, "hello"));
}

#[test]
fn one_rank_of_mpich_is_a_world_of_its_own() {
    let outcome = px(["-n", "1"]).arg(mpi(Mpich, "hello")).run().expect_code(0).expect_nothing_left();
    outcome.expect_stdout(&["hello from rank 0 of 1"]);
}

fn refused(program: &Path) {
    let outcome = px(["-n", "2"]).arg(program).run().expect_failure().expect_nothing_left();
    outcome.expect_stderr(&["MPICH", "PMIx", "mpi_hello"]).expect_nowhere("hello from rank");
}
