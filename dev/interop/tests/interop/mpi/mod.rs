//! Programs of MPI libraries: Open MPI, MPICH, Intel MPI.

mod intel;
mod mpich;
mod openmpi4;
mod openmpi4_on_ours;
mod openmpi4_over_ssh;
mod openmpi5;
mod openmpi5_on_ours;
mod pool;
mod unconnected;
