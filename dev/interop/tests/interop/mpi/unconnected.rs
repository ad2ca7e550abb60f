//! Jobs of several ranks that use MPI but never connect to `px`: a line at their end reports that; other jobs do not get it.

// A test that cannot continue prints why and stops.
#![allow(clippy::expect_used)]

use std::fs;
use std::path::Path;

use phalanx_interop::{
    Job,
    Library::{IntelMpi, OpenMpi4},
    Outcome, Running, debian_file, eventually, intel_wheel, libpmix, mpi, new_directory, px, px_binary,
    script,
};

const ALONE: &str = "none of the 2 ranks has called PMIx_Init";

#[test]
fn mpi_that_is_never_initialized_gets_a_line() {
    let outcome = px(["-n", "2"]).arg(mpi(OpenMpi4, "no_init")).run().expect_code(0).expect_nothing_left();
    outcome.expect_stdout(&["initialized: 0"]).expect_stderr(&[ALONE, "libmpi.so.40", "MPI_Init"]);
}

#[test]
fn the_line_can_be_had_as_json_or_not_at_all() {
    let outcome = px(["--json", "-n", "2"]).arg(mpi(OpenMpi4, "no_init")).run().expect_code(0);
    let note = outcome.stderr.lines().find(|line| line.contains(ALONE)).expect("the line");
    assert!(note.contains(r#""type":"note""#), "{note}");
    let outcome = px(["--quiet", "-n", "2"]).arg(mpi(OpenMpi4, "no_init")).run().expect_code(0);
    assert_eq!(outcome.stderr, "", "{outcome}");
}

#[test]
fn ranks_that_failed_or_connected_or_are_one_get_none() {
    let no_init = mpi(OpenMpi4, "no_init");
    without_line(px(["-n", "2"]).arg(&no_init).arg("3").run().expect_code(3));
    without_line(px(["-n", "1"]).arg(&no_init).run().expect_code(0));
    without_line(px(["-n", "2"]).arg(mpi(OpenMpi4, "hello")).arg("2").with(OpenMpi4).run().expect_code(0));
    without_line(px(["-n", "2", "sh", "-c", "sleep 0.2"]).run().expect_code(0));
}

/// The library only reports that it cannot open the file, and each rank runs alone.
#[test]
fn intel_mpi_that_finds_no_pmix_gets_a_line() {
    let job = px(["-n", "2", "-x", "I_MPI_PMI_LIBRARY=/nonexistent/libpmix.so.2"]).with(IntelMpi);
    let outcome = job.arg(mpi(IntelMpi, "hello")).run().expect_code(0).expect_nothing_left();
    let outcome = outcome.expect_stdout(&["hello from rank 0 of 1"]);
    outcome.expect_stderr(&[ALONE, "libmpi.so.12", "I_MPI_PMI_LIBRARY (here '/nonexistent/libpmix.so.2')"]);
}

/// Only a look at the running processes reveals it.
#[test]
fn mpi_that_an_interpreter_loads_is_seen() {
    let open_mpi = Path::new("libmpi.so.40").to_owned();
    let intel_mpi = intel_wheel().root.join("lib/libmpi.so.12");
    for (library, name) in [(open_mpi, "libmpi.so.40"), (intel_mpi, "libmpi.so.12")] {
        let place = new_directory();
        let seen = place.path().join("seen");
        let python = debian_file("/usr/bin/python3", "python3");
        let job = px(["-vv", "-n", "2"]).env("LD_LIBRARY_PATH", libpmix());
        let running = job.arg(python).arg(script("mpi_loaded.py")).arg(&library).arg(&seen).start();
        running.until_said("a rank has loaded MPI");
        fs::write(&seen, "").expect("writing");
        let outcome = running.wait().expect_code(0).expect_nothing_left();
        outcome.expect_stdout(&["rank 0 has seen", "rank 1 has seen"]).expect_stderr(&[ALONE, name]);
    }
}

#[test]
fn jobs_in_a_dvm_get_the_line_as_well() {
    let dvm = Job::new(px_binary()).args(["dvm", "start"]).start();
    let _ = dvm.job_name();
    let pid = dvm.pid().to_string();
    let at = |words: &[&str]| Job::new(px_binary()).args(words).env("TMPDIR", dvm.tmpdir());
    let no_init = at(&["run", "--pid", &pid, "-n", "2"]).arg(mpi(OpenMpi4, "no_init"));
    let _ = no_init.run().expect_code(0).expect_stderr(&[ALONE, "libmpi.so.40"]);
    let seen = dvm.tmpdir().join("seen");
    let loaded = at(&["run", "--pid", &pid, "-n", "2"]).arg(debian_file("/usr/bin/python3", "python3"));
    let loaded = loaded.arg(script("mpi_loaded.py")).arg("libmpi.so.40").arg(&seen).start();
    let jobs = || at(&["query", "--pid", &pid, "phalanx.jobs"]).run().stdout;
    eventually("the server knows of the library", || jobs().contains("phalanx.mpi"));
    fs::write(&seen, "").expect("writing");
    let _ = loaded.wait().expect_code(0).expect_stderr(&[ALONE, "libmpi.so.40"]);
    without_line(at(&["run", "--pid", &pid, "-n", "2", "sh", "-c", "true"]).run().expect_code(0));
    fs::remove_file(&seen).expect("removing");
    stop(dvm);
}

fn without_line(outcome: Outcome) {
    let _ = outcome.expect_nowhere("PMIx_Init");
}

fn stop(dvm: Running) {
    let pid = dvm.pid().to_string();
    let stop = Job::new(px_binary()).args(["dvm", "stop", "--pid", &pid]).env("TMPDIR", dvm.tmpdir());
    let _ = stop.run().expect_code(0);
    let _ = dvm.wait().expect_code(0).expect_nothing_left();
}
