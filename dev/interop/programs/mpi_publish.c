/* Rank 0 publishes a port name, every other rank looks it up; then it is unpublished and gone. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static const char SERVICE[] = "phalanx-interop-service";

int main(int argc, char **argv)
{
    char port[MPI_MAX_PORT_NAME] = "", found[MPI_MAX_PORT_NAME] = "";
    int rank, size, failed = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    strcpy(port, "port-name-of-rank-0:1234");
    if (rank == 0 && MPI_Publish_name(SERVICE, MPI_INFO_NULL, port) != MPI_SUCCESS) {
        fprintf(stderr, "rank 0: publish failed\n");
        failed = 1;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (MPI_Lookup_name(SERVICE, MPI_INFO_NULL, found) != MPI_SUCCESS || strcmp(found, port) != 0) {
        fprintf(stderr, "rank %d: lookup failed: \"%s\"\n", rank, found);
        failed = 1;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0 && MPI_Unpublish_name(SERVICE, MPI_INFO_NULL, port) != MPI_SUCCESS) {
        fprintf(stderr, "rank 0: unpublish failed\n");
        failed = 1;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (MPI_Lookup_name(SERVICE, MPI_INFO_NULL, found) == MPI_SUCCESS) {
        fprintf(stderr, "rank %d: the name is still there after unpublish\n", rank);
        failed = 1;
    }
    if (!failed)
        printf("rank %d of %d: publish, lookup and unpublish are right\n", rank, size);
    fflush(stdout);
    MPI_Finalize();
    return failed;
}
