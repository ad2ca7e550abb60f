/* Groups, connect and disconnect, and fences of a part of the job. */
#include "check.h"

static void part_of_the_job(void)
{
    pmix_proc_t pair[2] = {process(0), process(1)};
    pmix_info_t info;
    bool yes = true;

    if (job_size < 2 || me.rank > 1)
        return;
    put_text(PMIX_GLOBAL, keyed("pair", me.rank), "fenced by two");
    OK(PMIx_Commit());
    PMIX_INFO_LOAD(&info, PMIX_COLLECT_DATA, &yes, PMIX_BOOL);
    for (int round = 0; round < 10; round++)
        OK(PMIx_Fence(pair, 2, &info, 1));
    expect_text(1 - me.rank, keyed("pair", 1 - me.rank), NULL, "fenced by two");
}

/* Two fences of different members that overlap in time. */
static void odd_and_even(void)
{
    pmix_proc_t *procs = calloc(job_size, sizeof *procs);
    size_t count = 0;

    for (pmix_rank_t rank = me.rank % 2; rank < job_size; rank += 2)
        procs[count++] = process(rank);
    for (int round = 0; round < 10; round++)
        OK(PMIx_Fence(procs, count, NULL, 0));
    free(procs);
}

static void connected(void)
{
    pmix_proc_t all = process(PMIX_RANK_WILDCARD);

    OK(PMIx_Connect(&all, 1, NULL, 0));
    OK(PMIx_Disconnect(&all, 1, NULL, 0));
}

static void group(void)
{
    pmix_proc_t all = process(PMIX_RANK_WILDCARD);
    pmix_info_t info, *results = NULL;
    size_t count = 0;
    bool yes = true, numbered = false;

    PMIX_INFO_LOAD(&info, PMIX_GROUP_ASSIGN_CONTEXT_ID, &yes, PMIX_BOOL);
    OK(PMIx_Group_construct("everybody", &all, 1, &info, 1, &results, &count));
    for (size_t i = 0; i < count; i++)
        if (strcmp(results[i].key, PMIX_GROUP_CONTEXT_ID) == 0) {
            CHECK(results[i].value.type == PMIX_SIZE, "the context id has type %u", results[i].value.type);
            numbered = true;
        }
    CHECK(numbered, "no context id in %zu results", count);
    OK(PMIx_Group_destruct("everybody", NULL, 0));
}

int main(void)
{
    start();
    barrier();
    part_of_the_job();
    odd_and_even();
    barrier();
    connected();
    barrier();
    group();
    barrier();
    finish("groups and connections are right");
    return 0;
}
