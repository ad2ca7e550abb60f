/* Every rank prints its number and host, and checks that the job is one job and not n singletons. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int rank, size, expected = argc > 1 ? atoi(argv[1]) : -1;
    char node[MPI_MAX_PROCESSOR_NAME];
    int length;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Get_processor_name(node, &length);
    printf("hello from rank %d of %d on %s\n", rank, size, node);
    fflush(stdout);
    MPI_Finalize();
    if (expected >= 0 && size != expected) {
        fprintf(stderr, "rank %d: expected a world of %d, got %d\n", rank, expected, size);
        return 9;
    }
    return 0;
}
