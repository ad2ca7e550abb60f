//! Programs of the Python wheel's Open MPI 5.0, and Debian's Python module, with our library in their ranks.
//!
//! The wheel's launcher links private symbols of OpenPMIx, so it stays on its own library.

use phalanx_interop::{Job, Library::OpenMpi5, SIZES, debian_file, libpmix, mpi_programs, px, script, wheel};

#[test]
fn ranks_under_px() {
    for size in SIZES {
        mpi_programs::launched(OpenMpi5, size, || {
            px(["-n", &size.to_string()]).env("LD_LIBRARY_PATH", libpmix())
        });
    }
}

#[test]
fn ranks_under_their_launcher() {
    for size in SIZES {
        mpi_programs::launched(OpenMpi5, size, || {
            let library = format!("LD_LIBRARY_PATH={}", libpmix().display());
            let job = Job::new(wheel().root.join("bin/mpirun"));
            job.args(["--allow-run-as-root", "--oversubscribe", "-x", &library, "-n", &size.to_string()])
        });
    }
}

#[test]
fn sessions_under_either_launcher() {
    let library = libpmix();
    let variable = format!("LD_LIBRARY_PATH={}", library.display());
    let theirs = Job::new(wheel().root.join("bin/mpirun"));
    for launch in [
        px(["-n", "4"]).env("LD_LIBRARY_PATH", library),
        theirs.args(["--allow-run-as-root", "--oversubscribe", "-x", &variable, "-n", "4"]),
    ] {
        let job = launch.with(OpenMpi5).arg(wheel().python()).arg(script("mpi4py_sessions.py"));
        let line = |rank| format!("rank {rank} of 4: sessions are right");
        job.run().expect_code(0).expect_lines((0..4).map(line));
    }
}

#[test]
fn python_clients_under_px() {
    let python = debian_file("/usr/bin/python3", "python3");
    debian_file("/usr/lib/python3/dist-packages/pypmix-4.2.2-py3.11.egg-info", "python3-pmix");
    for size in SIZES {
        let job = px(["-n", &size.to_string()]).arg(python).arg(script("python_client.py"));
        let outcome = job.env("LD_LIBRARY_PATH", libpmix()).run().expect_code(0).expect_nothing_left();
        for rank in 0..size {
            outcome.assert_line(&format!("rank {rank} of {size}: python3-pmix is right"));
        }
    }
}
