/* Linked with MPI, but never calls MPI_Init. Exits with the code in its argument. */
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
