//! Programs of an MPI library without a PMIx client: px reports that, instead of running N worlds of one rank each.

// A test that cannot continue prints why and stops.
#![allow(clippy::expect_used)]

use std::fs;
use std::path::Path;

use phalanx_interop::{
    Job,
    Library::{Mpich, MpichWheel},
    debian_file, mpi, mpich_wheel, new_directory, px, px_binary, script,
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

#[test]
fn mpich_inside_mpi4py_is_recognized() {
    let job = px(["-n", "2"]).arg(mpich_wheel().python()).arg(script("mpi4py_loaded.py"));
    ended(job, "lib/libmpi.so.12");
}

/// It is not killed, because the script may want such worlds.
#[test]
fn mpich_inside_mpi4py_below_a_script_gets_a_line() {
    let place = new_directory();
    let seen = place.path().join("seen");
    let python = debian_file("/usr/bin/python3", "python3");
    let script = format!(
        "'{}' '{}' libmpich.so.12 '{}'; :",
        python.display(),
        script("mpi_loaded.py").display(),
        seen.display()
    );
    let running = px(["-vv", "-n", "2", "sh", "-c"]).arg(script).start();
    running.until_said("a rank has loaded MPI");
    fs::write(&seen, "").expect("writing");
    let outcome = running.wait().expect_code(0).expect_nothing_left();
    outcome.expect_stderr(&["none of the 2 ranks has called PMIx_Init", "libmpich.so.12"]);
}

#[test]
fn one_rank_that_loads_mpich_is_left_alone() {
    let place = new_directory();
    let seen = place.path().join("seen");
    fs::write(&seen, "").expect("writing");
    let python = debian_file("/usr/bin/python3", "python3");
    let job = px(["-n", "1"]).arg(python).arg(script("mpi_loaded.py")).arg("libmpich.so.12").arg(seen);
    let outcome = job.run().expect_code(0).expect_nothing_left();
    assert_eq!(outcome.stderr, "", "{outcome}");
}

#[test]
fn mpich_that_an_interpreter_loads_is_recognized() {
    let python = debian_file("/usr/bin/python3", "python3");
    let job = px(["-n", "2"]).arg(python).arg(script("mpi_loaded.py"));
    ended(job.args(["libmpich.so.12", "/nonexistent"]), "libmpich.so.12");
}

#[test]
fn mpich_inside_mpi4py_is_recognized_in_a_dvm() {
    let dvm = Job::new(px_binary()).args(["dvm", "start"]).start();
    let _ = dvm.job_name();
    let pid = dvm.pid().to_string();
    let at = |words: &[&str]| Job::new(px_binary()).args(words).env("TMPDIR", dvm.tmpdir());
    let job = at(&["run", "--pid", &pid, "-n", "2"]);
    let job = job.arg(mpich_wheel().python()).arg(script("mpi4py_loaded.py"));
    ended(job, "lib/libmpi.so.12");
    let _ = at(&["dvm", "stop", "--pid", &pid]).run().expect_code(0);
    let _ = dvm.wait().expect_code(0).expect_nothing_left();
}

/// MPICH releases that notice it themselves may be faster than px.
#[test]
fn a_hello_world_of_mpi4py_on_mpich_does_not_succeed() {
    let job = px(["-n", "2"]).arg(mpich_wheel().python()).args(["-m", "mpi4py.bench", "helloworld"]);
    let outcome = job.run().expect_failure().expect_nothing_left();
    outcome.expect_stderr(&["PMIx"]).expect_nowhere("Hello, World");
}

fn refused(program: &Path) {
    let outcome = px(["-n", "2"]).arg(program).run().expect_failure().expect_nothing_left();
    outcome.expect_stderr(&["MPICH", "PMIx", "mpi_hello"]).expect_nowhere("hello from rank");
}

/// The ranks would run forever.
fn ended(job: Job, library: &str) {
    let outcome = job.run().expect_code(1);
    outcome.expect_stderr(&[
        "has loaded MPICH (",
        library,
        "which was built without PMIx: each rank would run alone, as rank 0 of 1",
        "hint: start it with MPICH's own mpiexec",
    ]);
}
