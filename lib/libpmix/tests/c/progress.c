/* A program that makes progress itself: no thread of the library's, callbacks only inside of calls. */
#include <stdio.h>
#include <unistd.h>

#include <pmix.h>

#include "check.h"

static int ended, events;

static void done(pmix_status_t status, void *cbdata)
{
    (void)cbdata;
    ended = status == PMIX_SUCCESS ? 1 : -1;
}

static void on_event(size_t handler, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[], size_t ninfo,
                     pmix_info_t *results, size_t nresults, pmix_event_notification_cbfunc_fn_t complete, void *cbdata)
{
    (void)handler, (void)status, (void)source, (void)info, (void)ninfo, (void)results, (void)nresults;
    events++;
    complete(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, cbdata);
}

int main(void)
{
    int before = entries("/proc/self/task");
    pmix_info_t info;
    pmix_proc_t me;

    alarm(600);
    PMIx_Progress();
    PMIX_INFO_LOAD(&info, PMIX_EXTERNAL_PROGRESS, NULL, PMIX_BOOL);
    for (int life = 0; life < 20; life++) {
        /* Each life has a code of its own: servers keep events for those who ask late. */
        pmix_status_t code = PMIX_EXTERNAL_ERR_BASE - 7 - life;

        ended = events = 0;
        CHECK(PMIx_Init(&me, &info, 1) == PMIX_SUCCESS);
        CHECK(entries("/proc/self/task") == before);
        uint32_t size = job_size(&me);
        CHECK(PMIx_Register_event_handler(&code, 1, NULL, 0, on_event, NULL, NULL) >= 0);
        CHECK(PMIx_Fence(NULL, 0, NULL, 0) == PMIX_SUCCESS);
        CHECK(PMIx_Fence_nb(NULL, 0, NULL, 0, done, NULL) == PMIX_SUCCESS);
        while (ended == 0)
            PMIx_Progress();
        CHECK(ended == 1);
        CHECK(PMIx_Notify_event(code, &me, PMIX_RANGE_NAMESPACE, NULL, 0, NULL, NULL) == PMIX_SUCCESS);
        while (events < (int)size)
            PMIx_Progress();
        CHECK(PMIx_Fence(NULL, 0, NULL, 0) == PMIX_SUCCESS);
        CHECK(events == (int)size);
        CHECK(PMIx_Finalize(NULL, 0) == PMIX_SUCCESS);
    }
    CHECK(entries("/proc/self/task") == before);
    printf("progress is ours\n");
    return 0;
}
