/* A token travels ten times around all ranks and is increased by each of them. */
#include <mpi.h>
#include <stdio.h>

enum { LAPS = 10 };

int main(int argc, char **argv)
{
    int rank, size, token = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int lap = 0; lap < LAPS; lap++) {
        int next = (rank + 1) % size, previous = (rank + size - 1) % size;
        if (size == 1) {
            token++;
        } else if (rank == 0) {
            token++;
            MPI_Send(&token, 1, MPI_INT, next, lap, MPI_COMM_WORLD);
            MPI_Recv(&token, 1, MPI_INT, previous, lap, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(&token, 1, MPI_INT, previous, lap, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            token++;
            MPI_Send(&token, 1, MPI_INT, next, lap, MPI_COMM_WORLD);
        }
    }
    int failed = rank == 0 && token != LAPS * size;
    if (rank == 0)
        printf("ring of %d: token %d, expected %d\n", size, token, LAPS * size);
    MPI_Finalize();
    return failed;
}
