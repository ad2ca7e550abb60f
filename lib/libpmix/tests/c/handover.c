/* A program that ends the library's thread and makes progress from then on, even while other threads of it wait. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <pmix.h>

#include "check.h"

#define LIVES 8
#define THREADS "/proc/self/task"

static volatile int stops;
static char key[PMIX_MAX_KEYLEN + 1];

static void on_event(size_t handler, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[], size_t ninfo,
                     pmix_info_t *results, size_t nresults, pmix_event_notification_cbfunc_fn_t complete, void *cbdata)
{
    if (stops)
        PMIx_Progress_thread_stop(NULL, 0);
    count_event(handler, status, source, info, ninfo, results, nresults, complete, cbdata);
}

/* Waits for what the main thread publishes after it has ended the library's. */
static void *wait_for_it(void *arg)
{
    pmix_pdata_t found;
    pmix_info_t info;

    (void)arg;
    PMIX_INFO_LOAD(&info, PMIX_WAIT, NULL, PMIX_BOOL);
    PMIX_PDATA_CONSTRUCT(&found);
    PMIX_LOAD_KEY(found.key, key);
    CHECK(PMIx_Lookup(&found, 1, &info, 1) == PMIX_SUCCESS);
    CHECK(found.value.data.uint32 == 7);
    PMIX_PDATA_DESTRUCT(&found);
    return NULL;
}

static void step(void)
{
    PMIx_Progress();
    sched_yield();
}

int main(void)
{
    int before = entries(THREADS);
    uint32_t seven = 7;
    pthread_t waits[2];
    pmix_info_t info;
    pmix_proc_t me;

    alarm(600);
    PMIx_Progress_thread_stop(NULL, 0);
    for (int life = 0; life < LIVES; life++) {
        /* Each round has codes of its own: servers keep events for later registrations. */
        pmix_status_t code = PMIX_EXTERNAL_ERR_BASE - 7 - 2 * life, after = code - 1;
        bool flush = life % 2 == 0;

        called_back = events = stops = 0;
        CHECK(PMIx_Init(&me, NULL, 0) == PMIX_SUCCESS);
        snprintf(key, sizeof key, "handover-%u-%d", me.rank, life);
        CHECK(PMIx_Register_event_handler(&code, 1, NULL, 0, on_event, NULL, NULL) >= 0);
        CHECK(PMIx_Register_event_handler(&after, 1, NULL, 0, on_event, NULL, NULL) >= 0);
        comes_to(THREADS, before + 1);
        PMIX_INFO_LOAD(&info, PMIX_PROGRESS_THREAD_NAME, "another", PMIX_STRING);
        PMIx_Progress_thread_stop(&info, 1);
        comes_to(THREADS, before + 1);
        PMIX_INFO_DESTRUCT(&info);
        for (int n = 0; n < 2; n++)
            CHECK(pthread_create(&waits[n], NULL, wait_for_it, NULL) == 0);

        if (life % 4 < 2) {
            PMIX_INFO_LOAD(&info, PMIX_PROGRESS_THREAD_FLUSH, &flush, PMIX_BOOL);
            PMIx_Progress_thread_stop(&info, 1);
        } else {
            /* In a callback: the thread ends after it. */
            stops = 1;
            CHECK(PMIx_Notify_event(code, &me, PMIX_RANGE_PROC_LOCAL, NULL, 0, NULL, NULL) == PMIX_SUCCESS);
            while (events == 0)
                sched_yield();
            stops = events = 0;
        }
        comes_to(THREADS, before + 2);
        PMIx_Progress_thread_stop(NULL, 0);

        /* Waiting threads make progress, for themselves and for others. */
        PMIX_INFO_LOAD(&info, key, &seven, PMIX_UINT32);
        CHECK(PMIx_Publish(&info, 1) == PMIX_SUCCESS);
        for (int n = 0; n < 2; n++)
            CHECK(pthread_join(waits[n], NULL) == 0);
        comes_to(THREADS, before);
        CHECK(PMIx_Fence(NULL, 0, NULL, 0) == PMIX_SUCCESS);

        /* The rest is up to the program. */
        CHECK(PMIx_Fence_nb(NULL, 0, NULL, 0, call_back, NULL) == PMIX_SUCCESS);
        while (called_back == 0)
            step();
        CHECK(called_back == 1);
        CHECK(PMIx_Notify_event(after, &me, PMIX_RANGE_PROC_LOCAL, NULL, 0, NULL, NULL) == PMIX_SUCCESS);
        while (events == 0)
            step();
        CHECK(entries(THREADS) == before);
        CHECK(PMIx_Finalize(NULL, 0) == PMIX_SUCCESS);
    }
    comes_to(THREADS, before);
    PMIx_Progress_thread_stop(NULL, 0);
    printf("progress was handed over\n");
    return 0;
}
