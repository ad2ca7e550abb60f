/* A program that makes progress itself: the library has no thread, and callbacks run only inside calls. */
#include <stdio.h>
#include <unistd.h>

#include <pmix.h>

#include "check.h"

int main(void)
{
    int before = entries("/proc/self/task");
    pmix_info_t info;
    pmix_proc_t me;

    alarm(600);
    PMIx_Progress();
    PMIX_INFO_LOAD(&info, PMIX_EXTERNAL_PROGRESS, NULL, PMIX_BOOL);
    for (int life = 0; life < 20; life++) {
        /* Each round has a code of its own: servers keep events for later registrations. */
        pmix_status_t code = PMIX_EXTERNAL_ERR_BASE - 7 - life;

        called_back = events = 0;
        CHECK(PMIx_Init(&me, &info, 1) == PMIX_SUCCESS);
        CHECK(entries("/proc/self/task") == before);
        uint32_t size = job_size(&me);
        CHECK(PMIx_Register_event_handler(&code, 1, NULL, 0, count_event, NULL, NULL) >= 0);
        CHECK(PMIx_Fence(NULL, 0, NULL, 0) == PMIX_SUCCESS);
        CHECK(PMIx_Fence_nb(NULL, 0, NULL, 0, call_back, NULL) == PMIX_SUCCESS);
        while (called_back == 0)
            PMIx_Progress();
        CHECK(called_back == 1);
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
