/* A master replaces its workers again and again: each round spawns as many as the first argument states, hears all of their
   ranks, and disconnects. The second argument is the number of rounds. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static void worker(MPI_Comm parent)
{
    int rank;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Send(&rank, 1, MPI_INT, 0, 0, parent);
    MPI_Comm_disconnect(&parent);
}

static void master(char *program, int workers, int rounds)
{
    for (int round = 0; round < rounds; round++) {
        MPI_Comm between;
        int sum = 0;

        MPI_Comm_spawn(program, MPI_ARGV_NULL, workers, MPI_INFO_NULL, 0, MPI_COMM_SELF, &between, MPI_ERRCODES_IGNORE);
        for (int i = 0; i < workers; i++) {
            int rank;

            MPI_Recv(&rank, 1, MPI_INT, MPI_ANY_SOURCE, 0, between, MPI_STATUS_IGNORE);
            sum += rank;
        }
        MPI_Comm_disconnect(&between);
        if (sum != workers * (workers - 1) / 2)
            MPI_Abort(MPI_COMM_WORLD, 9);
    }
    printf("%d rounds of %d workers\n", rounds, workers);
}

int main(int argc, char **argv)
{
    MPI_Comm parent;

    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL)
        worker(parent);
    else
        master(argv[0], atoi(argv[1]), atoi(argv[2]));
    MPI_Finalize();
    return 0;
}
