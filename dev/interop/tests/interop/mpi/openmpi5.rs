//! Programs compiled with the Python wheel's Open MPI 5.0, running on the libpmix 5.0 inside it; and mpi4py on top of it.

use std::ffi::OsStr;

use phalanx_interop::{Library::OpenMpi5, Outcome, SIZES, host, mpi, mpi_programs, px, script, wheel};

#[test]
fn hello() {
    for ranks in SIZES {
        mpi_programs::hello(OpenMpi5, ranks);
    }
}

#[test]
fn ring() {
    for ranks in SIZES {
        mpi_programs::ring(OpenMpi5, ranks);
    }
}

#[test]
fn allreduce() {
    for ranks in SIZES {
        mpi_programs::allreduce(OpenMpi5, ranks);
    }
}

#[test]
fn abort() {
    for ranks in SIZES {
        mpi_programs::abort(OpenMpi5, ranks);
    }
}

#[test]
fn exit3() {
    for ranks in SIZES {
        mpi_programs::exit3(OpenMpi5, ranks);
    }
}

#[test]
fn segv() {
    for ranks in SIZES {
        mpi_programs::segv(OpenMpi5, ranks);
    }
}

#[test]
fn publish() {
    for ranks in SIZES {
        mpi_programs::publish(OpenMpi5, ranks);
    }
}

#[test]
fn spawn_of_a_missing_program_is_survived() {
    mpi_programs::spawn_missing(OpenMpi5, 2, "self,sm,tcp");
}

#[test]
fn survivors_shrink_their_communicator() {
    let options = ["-n", "3", "--kill-on-bad-exit", "none", "-x", "OMPI_MCA_mpi_ft_enable=true"];
    let job = px(options).arg(mpi(OpenMpi5, "shrink")).with(OpenMpi5);
    let outcome = job.run().expect_code(128 + 9);
    outcome.expect_lines([0, 2].map(|rank| format!("rank {rank}: 2 of 3 are left, failed 1, sum 2")));
}

#[test]
fn mpi4py_hello_world() {
    for ranks in SIZES {
        let width = ranks.to_string().len();
        let line = |rank| format!("Hello, World! I am process {rank:width$} of {ranks} on {}.", host());
        mpi4py(ranks, &["-m".as_ref(), "mpi4py.bench".as_ref(), "helloworld".as_ref()])
            .expect_lines((0..ranks).map(line));
    }
}

#[test]
fn mpi4py_ring_and_allreduce() {
    for ranks in SIZES {
        let line = |rank| format!("rank {rank} of {ranks}: ring and allreduce are right");
        mpi4py(ranks, &[script("mpi4py_ring_allreduce.py").as_os_str()]).expect_lines((0..ranks).map(line));
    }
}

#[test]
fn mpi4py_sessions() {
    for ranks in [1, 4] {
        let line = |rank| format!("rank {rank} of {ranks}: sessions are right");
        mpi4py(ranks, &[script("mpi4py_sessions.py").as_os_str()]).expect_lines((0..ranks).map(line));
    }
}

fn mpi4py(ranks: u32, arguments: &[&OsStr]) -> Outcome {
    let job = px(["-n", &ranks.to_string()]).arg(wheel().python()).args(arguments).with(OpenMpi5);
    job.run().expect_code(0).expect_nothing_left()
}
