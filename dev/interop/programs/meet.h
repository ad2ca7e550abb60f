/* Makes the connections between all ranks, each from the lower one.
 *
 * Where two ranks connect to each other over TCP at the same moment, as in the first step of a collective, Open MPI 4.1.4 now
 * and then takes a message for one of a kind that it does not know, and jumps to address 0: three of 120 runs on four nodes of
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
