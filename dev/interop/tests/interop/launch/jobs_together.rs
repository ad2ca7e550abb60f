//! Unrelated jobs in one DVM, and MPI jobs that spawn others and outlive them.

// A test that cannot continue prints why and stops.
#![allow(clippy::expect_used)]

use std::fs::File;
use std::os::unix::fs::symlink;

use phalanx_interop::{
    Job, Library,
    Library::{OpenMpi4, OpenMpi5, Pmix4, Pmix5},
    Running, eventually, mpi, mpi4py_tests, new_directory, new_plain_directory, pmix, px, px_binary, wheel,
};
use tempfile::TempDir;

/// A DVM that tools can find.
fn dvm() -> Running {
    let place = new_directory();
    let file = place.path().join("here");
    let dvm = Job::new(px_binary()).args(["dvm", "start"]).env("PMIX_LAUNCHER_RNDZ_FILE", &file).start();
    eventually("the DVM can be found", || file.exists());
    dvm
}

/// `px run` in the DVM.
fn in_dvm(dvm: &Running, library: Library) -> Job {
    let run = Job::new(px_binary()).args(["run", "--pid", &dvm.pid().to_string(), "-n", "2"]);
    run.with(library).env("TMPDIR", dvm.tmpdir())
}

/// Two MPI ranks that run until they are told to stop.
fn lasting(dvm: &Running, library: Library) -> (Running, TempDir) {
    let meeting = new_directory();
    let job = in_dvm(dvm, library).arg(mpi(library, "until")).env("INTEROP_MEETING", meeting.path()).start();
    eventually("its ranks have initialized", || {
        (0..2).all(|rank| meeting.path().join(rank.to_string()).exists())
    });
    (job, meeting)
}

fn end(job: (Running, TempDir)) {
    File::create(job.1.path().join("go")).expect("made");
    job.0.wait().expect_code(0).expect_lines(["rank 0 of 2: the sum is 1", "rank 1 of 2: the sum is 1"]);
}

fn stop(dvm: Running) {
    let stop = ["dvm", "stop", "--pid", &dvm.pid().to_string()];
    let _ = Job::new(px_binary()).args(stop).env("TMPDIR", dvm.tmpdir()).run().expect_code(0);
    dvm.wait().expect_code(0).expect_nothing_left();
}

/// Jobs begin and end beside others that continue undisturbed.
fn ends_disturb_nobody(library: Library) {
    let dvm = dvm();
    for first_ends_first in [true, false] {
        let first = lasting(&dvm, library);
        let _ = in_dvm(&dvm, library).arg("true").run().expect_code(0);
        let _ = in_dvm(&dvm, library).args(["sh", "-c", "exit 3"]).run().expect_code(3);
        let second = lasting(&dvm, library);
        let (sooner, later) = if first_ends_first { (first, second) } else { (second, first) };
        end(sooner);
        end(later);
    }
    stop(dvm);
}

#[test]
fn ends_of_jobs_disturb_no_open_mpi_4_job() {
    ends_disturb_nobody(OpenMpi4);
}

#[test]
fn ends_of_jobs_disturb_no_open_mpi_5_job() {
    ends_disturb_nobody(OpenMpi5);
}

/// Tests of mpi4py's own suite, with any number of ranks; each rank runs all of them.
fn suite(library: Library, ranks: u32, file: &str, tests: &[&str]) {
    // Its tests write scripts for their interpreter, whose path must have no blank.
    let place = new_plain_directory();
    let venv = place.path().join("venv");
    symlink(wheel().root, &venv).expect("a link");
    let job = px(["-n", &ranks.to_string()]).arg(venv.join("bin/python")).arg("-B");
    let job = job.arg(mpi4py_tests().join(file));
    // Spawned jobs reach their parents only through sockets.
    let job = job.with(library).env("OMPI_MCA_btl", "self,tcp").env("OMPI_MCA_btl_tcp_if_include", "lo");
    // The wheel's mpi4py works with any Open MPI.
    let job = match library {
        OpenMpi4 => job.env("LD_LIBRARY_PATH", debians_libraries()),
        _ => job,
    };
    let chosen = tests.iter().flat_map(|test| ["-k", test]);
    let outcome = job.args(chosen).run().expect_code(0).expect_nothing_left();
    let passed = outcome.stderr.lines().filter(|line| line.starts_with("OK")).count();
    assert_eq!(passed, ranks as usize, "{outcome}");
    assert!(!outcome.stderr.contains("Ran 0 tests"), "{outcome}");
}

fn debians_libraries() -> String {
    format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH)
}

/// Spawns in sequence: the parent survives the end of each child job, and the next one starts like the first.
const SPAWN: &[&str] = &[
    "TestSpawnSingleSelf.testNoArgs",
    "TestSpawnSingleWorld.testCommSpawn",
    "TestSpawnMultipleSelf.testCommSpawn",
    "TestSpawnMultipleWorld.testErrcodes",
];

#[test]
fn parents_survive_their_children_with_open_mpi_4() {
    suite(OpenMpi4, 1, "test_spawn.py", SPAWN);
    suite(OpenMpi4, 2, "test_spawn.py", SPAWN);
}

#[test]
fn parents_survive_their_children_with_open_mpi_5() {
    suite(OpenMpi5, 1, "test_spawn.py", SPAWN);
    suite(OpenMpi5, 2, "test_spawn.py", SPAWN);
}

#[test]
fn pools_of_spawned_workers_come_and_go() {
    for library in [OpenMpi4, OpenMpi5] {
        suite(library, 1, "test_util_pool.py", &["TestProcessPool.test_map", "TestProcessPool.test_apply"]);
    }
}

/// Both write it through their launcher: Open MPI 5 with a log call.
#[test]
fn messages_of_mpi_abort_are_shown_in_a_dvm_too() {
    let dvm = dvm();
    for library in [OpenMpi4, OpenMpi5] {
        let alone = px(["-n", "2"]).with(library).arg(mpi(library, "abort")).run().expect_code(7);
        let inside = in_dvm(&dvm, library).arg(mpi(library, "abort")).run().expect_code(7);
        for seen in [&alone, &inside] {
            assert!(seen.stderr.contains("MPI_ABORT was invoked on rank 1"), "{library:?}: {seen}");
            assert!(seen.stderr.contains("exactly when Open MPI kills them."), "{library:?}: {seen}");
        }
    }
    stop(dvm);
}

/// All use the same group name, and 4.2 clients send only the name when they destruct it.
#[test]
fn groups_of_one_name_do_not_disturb_each_other() {
    let dvm = dvm();
    for library in [Pmix4, Pmix5] {
        let program = pmix("groups");
        let jobs: Vec<Running> = (0..4).map(|_| in_dvm(&dvm, library).arg(&program).start()).collect();
        for job in jobs {
            let lines = (0..2).map(|rank| format!("rank {rank} of 2: groups and connections are right"));
            job.wait().expect_code(0).expect_lines(lines);
        }
    }
    stop(dvm);
}
