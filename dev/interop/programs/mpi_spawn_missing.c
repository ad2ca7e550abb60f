/* Spawns a missing program, which is an error that every rank survives, and then an existing one: itself. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    MPI_Comm parent, between, everybody;
    int rank, size, sum, status;
    char *arguments[] = { (char *) "child", NULL };

    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    if (parent == MPI_COMM_NULL) {
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        status = MPI_Comm_spawn("/no/such/program", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &between,
                                MPI_ERRCODES_IGNORE);
        printf("rank %d: the missing program is %s\n", rank, status == MPI_SUCCESS ? "a success" : "an error");
        fflush(stdout);
        MPI_Comm_spawn(argv[0], arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &between, MPI_ERRCODES_IGNORE);
    }
    MPI_Intercomm_merge(parent == MPI_COMM_NULL ? between : parent, parent != MPI_COMM_NULL, &everybody);
    MPI_Comm_rank(everybody, &rank);
    MPI_Comm_size(everybody, &size);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, everybody);
    if (rank == 0)
        printf("%d ranks, sum %d\n", size, sum);
    MPI_Comm_free(&everybody);
    MPI_Comm_disconnect(parent == MPI_COMM_NULL ? &between : &parent);
    MPI_Finalize();
    return 0;
}
