//! Debian's Open MPI 4.1 in all combinations: its launcher on its own libpmix or on ours, its ranks on either; and under `px`.

use phalanx_interop::{
    Job,
    Library::{OpenMpi4, Pmix4},
    SIZES, debian_dir, debian_file, libpmix, mpi, mpi_programs, pmix, px,
};

/// The libpmix that a process loads.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Side {
    Theirs,
    Ours,
}

use Side::{Ours, Theirs};

#[test]
fn each_side_uses_the_library_that_it_is_given() {
    for (launcher, ranks) in COMBINATIONS {
        let outcome = mpirun(launcher, ranks, 2).with(Pmix4).arg(pmix("version")).run().expect_code(0);
        let name = if ranks == Ours { "Phalanx" } else { "OpenPMIx" };
        outcome.expect_stdout(&[&format!("rank 0 of 2: {name}"), &format!("rank 1 of 2: {name}")]);
        let env = debian_file("/usr/bin/env", "coreutils");
        let outcome = mpirun(launcher, ranks, 1).arg(env).run().expect_code(0);
        let release = if launcher == Ours { "PMIX_VERSION=5.0.11\n" } else { "PMIX_VERSION=4.2" };
        outcome.expect_stdout(&[release]);
    }
}

#[test]
fn ranks_under_px() {
    for size in SIZES {
        programs(size, || on(Ours, px(["-n", &size.to_string()])));
    }
}

#[test]
fn ranks_under_their_launcher() {
    for size in SIZES {
        programs(size, || mpirun(Theirs, Ours, size));
    }
}

#[test]
fn launcher_and_ranks_on_ours() {
    for size in SIZES {
        programs(size, || mpirun(Ours, Ours, size));
    }
}

#[test]
fn launcher_on_ours_and_ranks_on_theirs() {
    for size in SIZES {
        programs(size, || mpirun(Ours, Theirs, size));
    }
}

#[test]
fn jobs_start_jobs_under_px() {
    for side in [Theirs, Ours] {
        spawn(on(side, px(["-n", "2"])));
    }
}

#[test]
fn jobs_start_jobs_under_their_launcher() {
    for (launcher, ranks) in COMBINATIONS {
        spawn(mpirun(launcher, ranks, 2));
    }
}

const COMBINATIONS: [(Side, Side); 4] = [(Theirs, Theirs), (Theirs, Ours), (Ours, Theirs), (Ours, Ours)];

fn programs(size: u32, launcher: impl Fn() -> Job) {
    mpi_programs::launched(OpenMpi4, size, &launcher);
    let published = launcher().with(OpenMpi4).arg(mpi(OpenMpi4, "publish")).run();
    mpi_programs::expect_publish(published, size);
}

/// Open MPI's shared memory does not connect two jobs: they need TCP.
fn spawn(job: Job) {
    let job =
        job.with(OpenMpi4).env("OMPI_MCA_btl", "self,vader,tcp").env("OMPI_MCA_btl_tcp_if_include", "lo");
    let outcome = job.arg(mpi(OpenMpi4, "spawn")).arg("2").run().expect_code(0);
    let line = |rank| format!("{} {rank} of 4: the sum is 6", if rank < 2 { "parent" } else { "child" });
    outcome.expect_lines((0..4).map(line));
}

fn mpirun(launcher: Side, ranks: Side, size: u32) -> Job {
    let job = on(launcher, Job::new(debian_file("/usr/bin/mpirun.openmpi", "openmpi-bin")));
    let library = format!("LD_LIBRARY_PATH={}", directory(ranks));
    job.args(["--allow-run-as-root", "--oversubscribe", "-x", &library, "-n", &size.to_string()])
}

fn on(side: Side, job: Job) -> Job {
    job.env("LD_LIBRARY_PATH", directory(side))
}

fn directory(side: Side) -> String {
    match side {
        Ours => libpmix().display().to_string(),
        Theirs => debian_dir("pmix2", "libpmix-dev").join("lib").display().to_string(),
    }
}
