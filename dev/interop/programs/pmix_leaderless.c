/* Rank 0 leads a group, but finalizes instead of inviting; the others join it, at once or when it is over, and again.
 *
 *     pmix_leaderless PLACE
 *
 * Rank 0 does not exit before the others have left their files in the directory PLACE. */
#include "check.h"

static void join(void)
{
    pmix_proc_t leader = process(0);
    pmix_info_t *results = NULL;
    size_t count = 0;

    EXPECT(PMIX_GROUP_LEADER_FAILED,
           PMIx_Group_join("leaderless", &leader, PMIX_GROUP_ACCEPT, NULL, 0, &results, &count));
}

static void path_of(const char *place, uint32_t rank, char *path, size_t size)
{
    snprintf(path, size, "%s/%u", place, rank);
}

int main(int argc, char **argv)
{
    char path[4096];

    start();
    CHECK(argc == 2, "usage: pmix_leaderless PLACE");
    barrier();
    if (me.rank == 0) {
        OK(PMIx_Finalize(NULL, 0));
        for (uint32_t rank = 1; rank < job_size; rank++) {
            path_of(argv[1], rank, path, sizeof path);
            while (access(path, F_OK) != 0)
                usleep(1000);
        }
        return 0;
    }
    if (me.rank > 1) {
        pmix_proc_t leader = process(0);
        pmix_value_t *value = NULL;
        /* Answered as soon as the server knows that rank 0 is over. */
        CHECK(PMIx_Get(&leader, "never put", NULL, 0, &value) != PMIX_SUCCESS, "a value that nobody has put");
    }
    join();
    join();
    path_of(argv[1], me.rank, path, sizeof path);
    FILE *file = fopen(path, "w");
    CHECK(file != NULL && fclose(file) == 0, "no file %s", path);
    finish("joins without a leader end");
    return 0;
}
