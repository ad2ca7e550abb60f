/* The last rank calls MPI_Abort with code 7 while all others wait for it in a barrier. */
#include <mpi.h>
#include <stdio.h>

#include "meet.h"

int main(int argc, char **argv)
{
    int rank, size;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == size - 1) {
        printf("rank %d aborts\n", rank);
        fflush(stdout);
        MPI_Abort(MPI_COMM_WORLD, 7);
    }
    meet(MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    printf("rank %d must not come here\n", rank);
    MPI_Finalize();
    return 0;
}
