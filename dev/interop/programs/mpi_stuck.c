/* Rank 1 never comes to the barrier in which the others wait. It announces that it does something else. */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

__attribute__((noinline)) static void compute_for_ever(void)
{
    for (;;) {
        pause();
        __asm__ volatile("");
    }
}

int main(int argc, char **argv)
{
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    printf("rank %d is stuck\n", rank);
    fflush(stdout);
    alarm(600);
    if (rank == 1)
        compute_for_ever();
    MPI_Barrier(MPI_COMM_WORLD);
    return 0;
}
