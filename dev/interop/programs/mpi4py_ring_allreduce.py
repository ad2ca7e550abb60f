"""A token around all ranks and an allreduce of a numpy array, with every element checked."""

import sys

import numpy
from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size

token = world.sendrecv(rank, dest=(rank + 1) % size, source=(rank - 1) % size)
assert token == (rank - 1) % size, f"rank {rank}: token {token}"

mine = numpy.arange(10000, dtype="d") * (rank + 1)
total = numpy.empty_like(mine)
world.Allreduce(mine, total, op=MPI.SUM)
assert numpy.array_equal(total, numpy.arange(10000, dtype="d") * (size * (size + 1) // 2)), f"rank {rank}: wrong sum"

sys.stdout.write(f"rank {rank} of {size}: ring and allreduce are right\n")
sys.stdout.flush()
