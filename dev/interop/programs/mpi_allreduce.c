/* Sums a vector over all ranks and compares every element with the expected value. */
#include <mpi.h>
#include <stdio.h>

#include "meet.h"

enum { LENGTH = 10000 };

int main(int argc, char **argv)
{
    static double mine[LENGTH], sum[LENGTH];
    int rank, size, wrong = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < LENGTH; i++)
        mine[i] = (double)(rank + 1) * (i + 1);
    meet(MPI_COMM_WORLD);
    MPI_Allreduce(mine, sum, LENGTH, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < LENGTH; i++)
        wrong += sum[i] != (double)size * (size + 1) / 2 * (i + 1);
    printf("rank %d of %d: allreduce of %d elements, %d wrong\n", rank, size, LENGTH, wrong);
    fflush(stdout);
    MPI_Finalize();
    return wrong != 0;
}
