/* Ways to end. The last rank ends as the first argument states; all others wait for it in a fence. */
#include "check.h"

#include <signal.h>

static void on_value(pmix_status_t status, pmix_value_t *value, void *cbdata)
{
    (void)status, (void)value, (void)cbdata;
}

static void on_looked_up(pmix_status_t status, pmix_pdata_t data[], size_t ndata, void *cbdata)
{
    (void)status, (void)data, (void)ndata, (void)cbdata;
}

static void on_done(pmix_status_t status, void *cbdata)
{
    (void)status, (void)cbdata;
}

/* Dies with requests of every waiting kind under way. */
static void die_waiting(void)
{
    pmix_proc_t first = process(0);
    char *keys[] = {"never.published", NULL};
    pmix_info_t wait;
    int all = 0;

    OK(PMIx_Get_nb(&first, "never.put", NULL, 0, on_value, NULL));
    PMIX_INFO_LOAD(&wait, PMIX_WAIT, &all, PMIX_INT);
    OK(PMIx_Lookup_nb(keys, &wait, 1, on_looked_up, NULL));
    OK(PMIx_Fence_nb(&first, 1, NULL, 0, on_done, NULL));
    raise(SIGKILL);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";

    alarm(600);
    if (strcmp(how, "before-init") == 0 && strcmp(getenv("PMIX_RANK"), "0") == 0) {
        fprintf(stderr, "rank 0 leaves before PMIx_Init\n");
        return 6;
    }
    start();
    if (strcmp(how, "init-twice") == 0) {
        pmix_proc_t again;
        OK(PMIx_Init(&again, NULL, 0));
        CHECK(again.rank == me.rank, "rank %u the second time", again.rank);
        OK(PMIx_Finalize(NULL, 0));
    }
    if (strcmp(how, "everybody-leaves") == 0) {
        barrier();
        _exit(0);
    }
    if (me.rank == job_size - 1) {
        if (strcmp(how, "abort") == 0) {
            fprintf(stderr, "about to abort\n");
            PMIx_Abort(5, "it went wrong here", NULL, 0);
            pause();
        } else if (strcmp(how, "leave") == 0) {
            _exit(0);
        } else if (strcmp(how, "exit-4") == 0) {
            _exit(4);
        } else if (strcmp(how, "killed") == 0) {
            raise(SIGKILL);
        } else if (strcmp(how, "killed-waiting") == 0) {
            die_waiting();
        } else if (strcmp(how, "stuck") == 0) {
            printf("rank %u is stuck\n", me.rank);
            fflush(stdout);
            pause();
        }
    }
    barrier();
    OK(PMIx_Finalize(NULL, 0));
    if (strcmp(how, "finalize-twice") == 0) {
        pmix_status_t status = PMIx_Finalize(NULL, 0);
        CHECK(status == PMIX_ERR_INIT || status == PMIX_SUCCESS, "%s", PMIx_Error_string(status));
    }
    printf("rank %u of %u: ended well\n", me.rank, job_size);
    return 0;
}
