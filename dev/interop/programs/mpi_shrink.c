/* Rank 1 dies; the others shrink the communicator and count themselves (ULFM). */
#include <mpi.h>
#include <mpi-ext.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int rank, size, rest, sum = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1)
        raise(SIGKILL);
    int failed = MPI_Barrier(MPI_COMM_WORLD) != MPI_SUCCESS;
    MPI_Comm shrunk;
    if (MPIX_Comm_shrink(MPI_COMM_WORLD, &shrunk) != MPI_SUCCESS)
        return 2;
    MPI_Comm_size(shrunk, &rest);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, shrunk);
    printf("rank %d: %d of %d are left, failed %d, sum %d\n", rank, rest, size, failed, sum);
    fflush(stdout);
    MPI_Comm_free(&shrunk);
    MPI_Finalize();
    return 0;
}
