/* The job spawns another with as many ranks as the argument states; both sum up their ranks together. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    MPI_Comm parent, between, everybody;
    int rank, size, sum, children = argc > 1 ? atoi(argv[1]) : 2;
    char *arguments[] = {(char *)"child", NULL};

    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    if (parent == MPI_COMM_NULL)
        MPI_Comm_spawn(argv[0], arguments, children, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &between, MPI_ERRCODES_IGNORE);
    else
        between = parent;
    MPI_Intercomm_merge(between, parent != MPI_COMM_NULL, &everybody);
    MPI_Comm_rank(everybody, &rank);
    MPI_Comm_size(everybody, &size);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, everybody);
    printf("%s %d of %d: the sum is %d\n", parent == MPI_COMM_NULL ? "parent" : "child", rank, size, sum);
    fflush(stdout);
    MPI_Comm_free(&everybody);
    MPI_Comm_disconnect(&between);
    MPI_Finalize();
    return 0;
}
