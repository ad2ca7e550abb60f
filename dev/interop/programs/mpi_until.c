/* Every rank initializes and leaves a file in the directory INTEROP_MEETING. When the file "go" appears there, the
 * ranks sum up their numbers and end. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    char path[4096];
    int rank, size, sum;
    FILE *file;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Barrier(MPI_COMM_WORLD);
    snprintf(path, sizeof path, "%s/%d", getenv("INTEROP_MEETING"), rank);
    file = fopen(path, "w");
    if (file == NULL)
        return 1;
    fclose(file);
    alarm(600);
    snprintf(path, sizeof path, "%s/go", getenv("INTEROP_MEETING"));
    while (access(path, F_OK) != 0)
        usleep(5000);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("rank %d of %d: the sum is %d\n", rank, size, sum);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
