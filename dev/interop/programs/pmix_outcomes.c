/* The outcome of a call in which all other ranks wait for rank 1, depending on what rank 1 does.
 *
 *   pmix_outcomes CALL FATE DIRECTORY
 *
 * CALL: fence, connect, group (construct) or get, of a key that rank 1 puts
 * FATE: what rank 1 does:
 *   late     the same a while after the others
 *   never    nothing until their time limit has passed
 *   behind   the same after their time limit has passed, with a limit of its own
 *   after    for gets: it commits another key first, and this one three seconds later; the others wait for a minute
 *   ends     it finalizes at once, and ends with 0
 *   fails    it ends with 3, not finalized
 *   again    it is started again while it waits in the call, and then makes it once more; the others make it after that
 *
 * Each rank whose call ends prints "RANK: STATUS", the number. Files of these names in DIRECTORY show that it has ended. */
#include "check.h"

static const char *call, *fate, *directory;

static bool is(const char *word, const char *wanted)
{
    return strcmp(word, wanted) == 0;
}

static void file_of(pmix_rank_t rank, char *path, size_t size)
{
    snprintf(path, size, "%s/%u", directory, rank);
}

static void await(pmix_rank_t rank)
{
    char path[1024];

    file_of(rank, path, sizeof path);
    while (access(path, F_OK) != 0)
        usleep(5000);
}

static void ended(pmix_status_t status, void *data)
{
    (void)status, (void)data;
}

static void told(pmix_status_t status, pmix_info_t *info, size_t count, void *data, pmix_release_cbfunc_t release,
                 void *release_data)
{
    (void)status, (void)info, (void)count, (void)data;
    if (release != NULL)
        release(release_data);
}

/* Requests reach the server in order, so it waits in the call when its restart begins. */
static void restart_while_it_waits(void)
{
    pmix_proc_t all = process(PMIX_RANK_WILDCARD), one = process(1);
    pmix_info_t restart;

    if (is(call, "fence"))
        OK(PMIx_Fence_nb(&all, 1, NULL, 0, ended, NULL));
    if (is(call, "connect"))
        OK(PMIx_Connect_nb(&all, 1, NULL, 0, ended, NULL));
    if (is(call, "group"))
        OK(PMIx_Group_construct_nb("all", &all, 1, NULL, 0, told, NULL));
    PMIX_INFO_LOAD(&restart, PMIX_JOB_CTRL_RESTART, NULL, PMIX_STRING);
    PMIx_Job_control_nb(&one, 1, &restart, 1, told, NULL);
    for (;;)
        pause();
}

static pmix_status_t ask(bool limited)
{
    pmix_proc_t all = process(PMIX_RANK_WILDCARD), one = process(1);
    pmix_info_t limit, *results = NULL;
    pmix_value_t *value = NULL;
    pmix_status_t status;
    size_t count = 0;
    int seconds = is(fate, "after") ? 60 : 1;

    PMIX_INFO_LOAD(&limit, PMIX_TIMEOUT, &seconds, PMIX_INT);
    if (is(call, "fence"))
        return PMIx_Fence(&all, 1, &limit, limited);
    if (is(call, "connect"))
        return PMIx_Connect(&all, 1, &limit, limited);
    if (is(call, "group"))
        return PMIx_Group_construct("all", &all, 1, &limit, limited, &results, &count);
    if (me.rank != 1)
        return PMIx_Get(&one, "key", &limit, limited, &value);
    put_text(PMIX_GLOBAL, "key", "value");
    status = PMIx_Commit();
    return status;
}

static void leave_file(void)
{
    char path[1024];
    FILE *file;

    file_of(me.rank, path, sizeof path);
    file = fopen(path, "w");
    CHECK(file != NULL, "%s", path);
    fclose(file);
}

static void say(pmix_status_t status)
{
    printf("%u: %d\n", me.rank, status);
    fflush(stdout);
    leave_file();
}

int main(int argc, char **argv)
{
    bool limited;

    if (argc != 4)
        return 2;
    call = argv[1], fate = argv[2], directory = argv[3];
    limited = is(fate, "never") || is(fate, "behind") || is(fate, "after");
    start();
    if (me.rank == 1) {
        if (is(fate, "fails"))
            _exit(3);
        if (is(fate, "again") && getenv("PHALANX_RESTARTS") == NULL)
            restart_while_it_waits();
        if (is(fate, "again"))
            leave_file();
        if (is(fate, "late"))
            usleep(300000);
        if (is(fate, "after")) {
            put_text(PMIX_GLOBAL, "another", "value");
            OK(PMIx_Commit());
            sleep(3);
        }
        for (pmix_rank_t rank = 0; limited && !is(fate, "after") && rank < job_size; rank++)
            if (rank != 1)
                await(rank);
    }
    if (me.rank != 1 && is(fate, "again"))
        await(1);
    if (me.rank != 1 || is(fate, "late") || is(fate, "behind") || is(fate, "after") || is(fate, "again"))
        say(ask(limited));
    PMIx_Finalize(NULL, 0);
    return 0;
}
