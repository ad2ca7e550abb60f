/* Ends a pull, with any library. */
#ifndef PULL_H
#define PULL_H

#include <pmix_tool.h>
#include <string.h>
#include <time.h>

static volatile int pull_ended;
static volatile pmix_status_t pull_status;

static void on_pull_ended(pmix_status_t status, void *cbdata)
{
    (void) cbdata;
    pull_status = status;
    pull_ended = 1;
}

/* Without a callback 4.2.2 sometimes waits for a lock in freed memory. If its server is gone, too, no answer comes. */
static pmix_status_t end_pull(size_t handle, const volatile int *gone)
{
    pmix_status_t status;

    if (strncmp(PMIx_Get_version(), "Phalanx", 7) == 0)
        return PMIx_IOF_deregister(handle, NULL, 0, NULL, NULL);
    pull_ended = 0;
    status = PMIx_IOF_deregister(handle, NULL, 0, on_pull_ended, NULL);
    if (status != PMIX_SUCCESS)
        return status;
    while (!pull_ended && !(gone && *gone))
        nanosleep(&(struct timespec) { .tv_nsec = 1000000 }, NULL);
    return pull_ended ? pull_status : PMIX_ERR_LOST_CONNECTION;
}

#endif
