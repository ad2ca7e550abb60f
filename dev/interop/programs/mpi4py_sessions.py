"""MPI sessions: communicators made from groups, without MPI_Init. Ranks have made different numbers of them before."""

import sys

import mpi4py

mpi4py.rc.initialize = False
from mpi4py import MPI

session = MPI.Session.Init()
names = [session.Get_nth_pset(n) for n in range(session.Get_num_psets())]
assert "mpi://WORLD" in names and all(names), names

alone = session.Create_group("mpi://SELF")
everybody = session.Create_group("mpi://WORLD")
rank, size = everybody.rank, everybody.size
mine = [MPI.Intracomm.Create_from_group(alone, f"alone.{n}") for n in range(rank)]

world = MPI.Intracomm.Create_from_group(everybody, "world")
assert (world.rank, world.size) == (rank, size)
again = world.Dup()
for comm in world, again:
    token = comm.sendrecv(rank, dest=(rank + 1) % size, source=(rank - 1) % size)
    assert token == (rank - 1) % size, f"rank {rank}: token {token}"
    assert comm.allreduce(rank) == size * (size - 1) // 2

for comm in again, world, *mine:
    comm.Free()
alone.Free()
everybody.Free()
session.Finalize()
sys.stdout.write(f"rank {rank} of {size}: sessions are right\n")
sys.stdout.flush()
