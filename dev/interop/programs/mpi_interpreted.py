"""MPI in an interpreter: loads the library that the first argument names at run time, as mpi4py does."""

import ctypes
import sys

mpi = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
mpi.MPI_Init(None, None)
# MPI_COMM_WORLD in MPICH's binary interface.
world = ctypes.c_int(0x44000000)
rank, size = ctypes.c_int(), ctypes.c_int()
mpi.MPI_Comm_rank(world, ctypes.byref(rank))
mpi.MPI_Comm_size(world, ctypes.byref(size))
print(f"hello from rank {rank.value} of {size.value}", flush=True)
mpi.MPI_Finalize()
