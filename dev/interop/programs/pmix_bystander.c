/* A rank that works while another rank of its job misbehaves.
 *
 * It starts when the file `begin` is in the directory INTEROP_MEETING, works with all ranks but the misbehaving rank 0,
 * and leaves a file of its own there. */
#include "check.h"

#include <sys/stat.h>

static void work_without_rank_0(void)
{
    pmix_proc_t *friends = calloc(job_size, sizeof *friends);
    pmix_info_t info, published;
    pmix_pdata_t found;
    bool yes = true;

    for (pmix_rank_t rank = 1; rank < job_size; rank++)
        friends[rank - 1] = process(rank);
    put_text(PMIX_GLOBAL, keyed("friend", me.rank), keyed("from", me.rank));
    OK(PMIx_Commit());
    PMIX_INFO_LOAD(&info, PMIX_COLLECT_DATA, &yes, PMIX_BOOL);
    OK(PMIx_Fence(friends, job_size - 1, &info, 1));
    for (pmix_rank_t rank = 1; rank < job_size; rank++)
        expect_text(rank, keyed("friend", rank), NULL, keyed("from", rank));
    PMIX_INFO_LOAD(&published, keyed("name", me.rank), "published", PMIX_STRING);
    OK(PMIx_Publish(&published, 1));
    OK(PMIx_Fence(friends, job_size - 1, NULL, 0));
    PMIX_PDATA_CONSTRUCT(&found);
    strcpy(found.key, keyed("name", me.rank + 1 < job_size ? me.rank + 1 : 1));
    OK(PMIx_Lookup(&found, 1, NULL, 0));
    OK(PMIx_Fence(friends, job_size - 1, NULL, 0));
}

int main(void)
{
    const char *meeting = getenv("INTEROP_MEETING");
    char path[4096];
    struct stat status;
    FILE *mine;

    start();
    CHECK(meeting != NULL, "INTEROP_MEETING is not set");
    snprintf(path, sizeof path, "%s/begin", meeting);
    while (stat(path, &status) != 0)
        usleep(2000);
    work_without_rank_0();
    finish("not disturbed");
    snprintf(path, sizeof path, "%s/done-%u", meeting, me.rank);
    mine = fopen(path, "w");
    CHECK(mine != NULL, "making %s", path);
    fclose(mine);
    return 0;
}
