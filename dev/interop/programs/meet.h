/* Connects all ranks to each other, each pair from the lower rank.
 *
 * Where two ranks connect to each other over TCP at the same moment, as in the first step of a collective, Open MPI 4.1.4
 * sometimes takes a message for one of an unknown kind, and jumps to address 0: in three of 120 runs on four nodes of
 * Slurm, with Debian's own libpmix everywhere. */
#include <mpi.h>

static void meet(MPI_Comm comm)
{
    int rank, size;

    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int other = 0; other < rank; other++)
        MPI_Recv(NULL, 0, MPI_INT, other, 0, comm, MPI_STATUS_IGNORE);
    for (int other = rank + 1; other < size; other++)
        MPI_Send(NULL, 0, MPI_INT, other, 0, comm);
}
