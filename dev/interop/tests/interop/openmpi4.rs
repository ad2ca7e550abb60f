//! Programs compiled with Debian's Open MPI 4.1, running on Debian's libpmix 4.2.

use phalanx_interop::{Library::OpenMpi4, SIZES, mpi_programs};

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

/// With several ranks, all but the first of Open MPI 4.1 would wait for the next spawn instead.
#[test]
fn spawn_of_a_missing_program_is_survived() {
    mpi_programs::spawn_missing(OpenMpi4, 1, "self,vader,tcp");
}
