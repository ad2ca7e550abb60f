//! Intel MPI programs, with Debian's libpmix and with ours, under our launcher, Open MPI's and Slurm.
//!
//! Intel MPI loads the PMIx library that a variable names; `px` sets that variable.

use phalanx_interop::{
    Job, Library::IntelMpi, SIZES, Slurm, Whose, debian_dir, debian_file, debians_libpmix_copied, host,
    intel_wheel, libpmix, mpi, new_directory, px, script,
};

const OURS: &str = concat!("Phalanx ", env!("CARGO_PKG_VERSION"));
const THEIRS: &str = "OpenPMIx 4.2";

#[test]
fn ours_under_px() {
    for size in SIZES {
        programs(size, OURS, || px(["-n", &size.to_string()]).env("LD_LIBRARY_PATH", libpmix()));
    }
}

#[test]
fn debians_under_px() {
    let directory = new_directory();
    let library = debians_libpmix_copied(directory.path());
    for size in [1, 4] {
        programs(size, THEIRS, || px(["-n", &size.to_string()]).env("LD_LIBRARY_PATH", library));
    }
}

/// From outside the program is not recognizable as an MPI program.
#[test]
fn a_library_loaded_by_an_interpreter_under_px() {
    let python = debian_file("/usr/bin/python3", "python3");
    let job = px(["-n", "2"]).env("LD_LIBRARY_PATH", libpmix()).with(IntelMpi).arg(python);
    let job = job.arg(script("mpi_interpreted.py")).arg(intel_wheel().root.join("lib/libmpi.so.12"));
    let outcome = job.run().expect_code(0);
    (0..2).for_each(|rank| outcome.assert_line(&format!("hello from rank {rank} of 2")));
}

/// The user's choice of the library takes precedence.
#[test]
fn the_library_that_the_user_names_under_px() {
    let ours = libpmix().join("libpmix.so.2");
    programs(2, OURS, || px(["-n", "2"]).env("I_MPI_PMI_LIBRARY", &ours));
    programs(2, OURS, || px(["-n", "2", "-x", &format!("I_MPI_PMI_LIBRARY={}", ours.display())]));
}

#[test]
fn ours_under_the_launcher_of_open_mpi_4() {
    let ours = libpmix().join("libpmix.so.2");
    for size in [1, 4] {
        programs(size, OURS, || {
            let job = Job::new(debian_file("/usr/bin/mpirun.openmpi", "openmpi-bin"))
                .env("I_MPI_PMI_LIBRARY", &ours);
            job.args(["--allow-run-as-root", "--oversubscribe", "-n", &size.to_string()])
        });
    }
}

/// Over the network, with the system's libfabric, as this release supports it.
#[test]
fn ours_in_slurmstepd_and_in_the_ranks() {
    let slurm = Slurm::start(&[Whose::Ours; 2]);
    let fabric = debian_dir("libfabric.so.1", "libfabric1");
    programs_on(&["n1", "n2"], 4, OURS, || {
        let job = slurm.srun(&["-N", "2", "-n", "4"]).with(IntelMpi).env("I_MPI_FABRICS", "shm:ofi");
        let job = job.env("I_MPI_OFI_LIBRARY", &fabric).env("FI_PROVIDER", "sockets");
        job.env("I_MPI_PMI_LIBRARY", libpmix().join("libpmix.so.2"))
    });
}

fn programs(size: u32, version: &str, launch: impl Fn() -> Job) {
    programs_on(&[&host()], size, version, || launch().with(IntelMpi));
}

fn programs_on(hosts: &[&str], size: u32, version: &str, launch: impl Fn() -> Job) {
    let run = |program, arguments: &[&str]| {
        let outcome = launch().arg(mpi(IntelMpi, program)).args(arguments).run().expect_code(0);
        outcome.expect_stdout(&[&format!("PMIx version: {version}")])
    };
    let hello = run("hello", &[&size.to_string()]);
    let token = 10 * size;
    // Other launchers do not keep lines of several ranks apart, and this library writes some in pieces.
    let ring = run("ring", &[]);
    let _ = ring.expect_stdout(&[&format!("ring of {size}: token {token}, expected {token}")]);
    let sums = run("allreduce", &[]);
    let said = |rank, host| {
        let line = format!("hello from rank {rank} of {size} on {host}");
        hello.stdout.contains(&line)
    };
    assert!(hosts.iter().all(|host| (0..size).any(|rank| said(rank, host))), "{hello}");
    for rank in 0..size {
        assert!(hosts.iter().any(|host| said(rank, host)), "{hello}");
        let line = format!("rank {rank} of {size}: allreduce of 10000 elements, 0 wrong");
        assert!(sums.stdout.contains(&line), "{sums}");
    }
}
