/* Every rank initializes, leaves a file in the directory INTEROP_MEETING and then waits to be killed. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "meet.h"

int main(int argc, char **argv)
{
    char path[4096];
    int rank;
    FILE *file;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    meet(MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    snprintf(path, sizeof path, "%s/%d", getenv("INTEROP_MEETING"), rank);
    file = fopen(path, "w");
    if (file == NULL)
        return 1;
    fclose(file);
    alarm(600);
    for (;;)
        pause();
}
