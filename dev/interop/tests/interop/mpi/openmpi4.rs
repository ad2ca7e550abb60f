//! Programs compiled with Debian's Open MPI 4.1, running on Debian's libpmix 4.2.

use phalanx_interop::{Library::OpenMpi4, SIZES, mpi, mpi_programs, px};
use rustix::process::Signal;

#[test]
fn hello() {
    for ranks in SIZES {
        mpi_programs::hello(OpenMpi4, ranks);
    }
}

#[test]
fn ring() {
    for ranks in SIZES {
        mpi_programs::ring(OpenMpi4, ranks);
    }
}

#[test]
fn allreduce() {
    for ranks in SIZES {
        mpi_programs::allreduce(OpenMpi4, ranks);
    }
}

#[test]
fn abort() {
    for ranks in SIZES {
        mpi_programs::abort(OpenMpi4, ranks);
    }
}

#[test]
fn exit3() {
    for ranks in SIZES {
        mpi_programs::exit3(OpenMpi4, ranks);
    }
}

#[test]
fn segv() {
    for ranks in SIZES {
        mpi_programs::segv(OpenMpi4, ranks);
    }
}

#[test]
fn publish() {
    for ranks in SIZES {
        mpi_programs::publish(OpenMpi4, ranks);
    }
}

#[test]
fn spawn_of_a_missing_program_is_survived() {
    mpi_programs::spawn_missing(OpenMpi4, 1, "self,vader,tcp");
}

/// In Open MPI 4.1 the others wait inside of MPI then, where nobody else can end their wait.
#[test]
fn a_failed_spawn_of_several_ranks_is_reported_with_its_effect() {
    let job = px(["-n", "2"]).arg(mpi(OpenMpi4, "spawn_missing")).with(OpenMpi4);
    let running = job.env("OMPI_MCA_btl", "self,vader,tcp").start();
    running.until_said("executing /no/such/program: No such file or directory");
    running.until_said("with Open MPI 4 they wait until the job is ended");
    running.signal(Signal::TERM);
    let _ = running.wait().expect_code(143).expect_nothing_left();
}
