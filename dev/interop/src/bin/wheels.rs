//! Installs Python's peers before the first test needs them.

use phalanx_interop::{intel_wheel, mpi4py_tests, mpich_wheel};

fn main() {
    // Open MPI's wheel comes with the tests of mpi4py.
    mpi4py_tests();
    mpich_wheel();
    intel_wheel();
}
