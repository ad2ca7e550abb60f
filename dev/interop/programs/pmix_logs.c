/* The rank argv[1] logs what the other words of the command line are (see logs.h), and prints "rank R: STATUS". */
#include "check.h"
#include "logs.h"

int main(int argc, char **argv)
{
    CHECK(argc > 2, "%d words", argc);
    start();
    if (me.rank == (pmix_rank_t)atoi(argv[1])) {
        printf("rank %u: %d\n", me.rank, log_words(argc - 2, argv + 2));
        fflush(stdout);
    }
    barrier();
    OK(PMIx_Finalize(NULL, 0));
    return 0;
}
