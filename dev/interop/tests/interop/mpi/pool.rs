//! A master that replaces its workers again and again, in exactly the slots that there are.

// A test that cannot continue prints why and stops.
#![allow(clippy::expect_used)]

use phalanx_interop::{
    Job,
    Library::{self, OpenMpi4, OpenMpi5},
    mpi, px, px_binary,
};

const ROUNDS: &str = "50";

/// Open MPI's shared memory does not connect two jobs: they need TCP.
fn pool(job: Job, library: Library) -> Job {
    let transports = if library == OpenMpi4 { "self,vader,tcp" } else { "self,sm,tcp" };
    let job = job.arg(mpi(library, "pool")).args(["2", ROUNDS]).with(library);
    job.env("OMPI_MCA_btl", transports).env("OMPI_MCA_btl_tcp_if_include", "lo")
}

fn expect_rounds(job: Job) {
    let _ = job.run().expect_code(0).expect_lines(["50 rounds of 2 workers"]);
}

#[test]
fn a_pool_of_workers_is_replaced_in_its_slots() {
    for library in [OpenMpi4, OpenMpi5] {
        expect_rounds(pool(px(["-n", "1", "--host", "localhost:3"]), library));
    }
}

#[test]
fn a_pool_of_workers_is_replaced_in_the_slots_of_a_dvm() {
    let dvm = Job::new(px_binary()).args(["dvm", "start", "--host", "localhost:3"]).start();
    dvm.until_said("is ready");
    let pid = dvm.pid().to_string();
    for library in [OpenMpi4, OpenMpi5] {
        let job = Job::new(px_binary()).args(["run", "-q", "--pid", &pid, "-n", "1"]);
        expect_rounds(pool(job.env("TMPDIR", dvm.tmpdir()), library));
    }
    let stop = Job::new(px_binary()).args(["dvm", "stop", "--pid", &pid]).env("TMPDIR", dvm.tmpdir());
    let _ = stop.run().expect_code(0);
    dvm.wait().expect_code(0).expect_nothing_left();
}
