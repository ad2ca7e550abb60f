/* Linked with MPI, and never calls MPI_Init. Exits with the number that it is given. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int initialized;

    MPI_Initialized(&initialized);
    printf("initialized: %d\n", initialized);
    return argc > 1 ? atoi(argv[1]) : 0;
}
