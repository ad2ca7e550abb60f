/* Some ranks are lost while the others wait for them: every call that waits for them ends with an error, their ends are reported, and
 * the others continue. The first argument names the ranks that will be lost. */
#include "check.h"

#include <stdatomic.h>

enum { CALLS = 3, RANKS = 64 };

static atomic_int answered, heard;
static pmix_status_t answers[CALLS];
static bool will_be_lost[RANKS];

static void on_end(size_t id, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[], size_t ninfo,
                   pmix_info_t *results, size_t nresults, pmix_event_notification_cbfunc_fn_t done, void *cbdata)
{
    (void)id, (void)status, (void)source, (void)results, (void)nresults;
    for (size_t i = 0; i < ninfo; i++)
        if (strcmp(info[i].key, PMIX_EVENT_AFFECTED_PROC) == 0)
            heard += will_be_lost[info[i].value.data.proc->rank % RANKS];
    done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, cbdata);
}

static void on_registered(pmix_status_t status, size_t id, void *registered)
{
    (void)id;
    CHECK(status == PMIX_SUCCESS, "registering a handler: %s", PMIx_Error_string(status));
    *(atomic_int *)registered = 1;
}

static void on_done(pmix_status_t status, void *which)
{
    answers[(intptr_t)which] = status;
    answered++;
}

static void on_value(pmix_status_t status, pmix_value_t *value, void *which)
{
    (void)value;
    on_done(status, which);
}

int main(int argc, char **argv)
{
    pmix_status_t code = PMIX_EVENT_PROC_TERMINATED;
    atomic_int registered = 0;
    pmix_proc_t survivors[RANKS], whole;
    pmix_proc_t first_lost;
    size_t living = 0;
    int lost = 0;

    start();
    CHECK(argc == 2 && job_size <= RANKS, "arguments");
    for (char *rest = argv[1]; *rest != '\0'; rest += *rest == ',') {
        unsigned long rank = strtoul(rest, &rest, 10);

        first_lost = lost++ == 0 ? process(rank) : first_lost;
        will_be_lost[rank] = true;
    }
    for (pmix_rank_t rank = 0; rank < job_size; rank++)
        if (!will_be_lost[rank])
            survivors[living++] = process(rank);
    PMIx_Register_event_handler(&code, 1, NULL, 0, on_end, on_registered, &registered);
    while (!registered)
        usleep(1000);
    barrier();
    if (will_be_lost[me.rank]) {
        printf("rank %u waits\n", me.rank);
        fflush(stdout);
        pause();
    }

    whole = process(PMIX_RANK_WILDCARD);
    OK(PMIx_Fence_nb(NULL, 0, NULL, 0, on_done, (void *)0));
    OK(PMIx_Connect_nb(&whole, 1, NULL, 0, on_done, (void *)1));
    OK(PMIx_Get_nb(&first_lost, "never.put", NULL, 0, on_value, (void *)2));
    /* The requests have been sent: the fence of the survivors follows them. */
    OK(PMIx_Fence(survivors, living, NULL, 0));
    printf("rank %u waits\n", me.rank);
    fflush(stdout);
    while (answered < CALLS || heard < lost)
        usleep(1000);
    for (int call = 0; call < 2; call++)
        CHECK(answers[call] == PMIX_ERR_LOST_CONNECTION, "collective %d ended with %s", call, PMIx_Error_string(answers[call]));
    CHECK(answers[2] == PMIX_ERR_PROC_TERM_WO_SYNC, "the get ended with %s", PMIx_Error_string(answers[2]));

    put_text(PMIX_GLOBAL, keyed("after", me.rank), "the loss");
    OK(PMIx_Commit());
    OK(PMIx_Fence(survivors, living, NULL, 0));
    for (size_t i = 0; i < living; i++)
        expect_text(survivors[i].rank, keyed("after", survivors[i].rank), NULL, "the loss");
    finish("went on without the lost");
    return 0;
}
