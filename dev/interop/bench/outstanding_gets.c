/* The time of many outstanding gets: before rank 0 commits, rank 1 makes as many requests for rank 0's keys as the argument states.
 * Rank 1 prints "gets-COUNT MICROSECONDS", from the first request to the last answer.
 *
 * There are a few hundred keys only: OpenPMIx 4.2 compares each name with all names that it has seen before, so that with more of
 * them its own search would take most of the time, whatever the server. */
#include "check.h"

#include <stdatomic.h>
#include <time.h>

enum { KEYS = 250 };

static atomic_int answered, right;

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e6 + time.tv_nsec / 1e3;
}

static void take(pmix_status_t status, pmix_value_t *value, void *which)
{
    right += status == PMIX_SUCCESS && value->type == PMIX_UINT32 && value->data.uint32 == (uint32_t)(intptr_t)which % KEYS;
    answered++;
}

int main(int argc, char **argv)
{
    int count = argc > 1 ? atoi(argv[1]) : 0;
    /* OpenPMIx keeps the pointers, not the names. */
    static char keys[KEYS][32];

    start();
    CHECK(count > 0 && job_size == 2, "two ranks and a count are expected");
    for (int n = 0; n < KEYS; n++)
        snprintf(keys[n], sizeof *keys, "key-%d", n);
    pmix_proc_t other = process(1 - me.rank);
    for (int n = 0; n < KEYS && me.rank == 0; n++) {
        pmix_value_t value = { .type = PMIX_UINT32, .data.uint32 = (uint32_t)n };

        OK(PMIx_Put(PMIX_GLOBAL, keys[n], &value));
    }
    barrier();
    if (me.rank == 1) {
        double begin = now();

        for (int n = 0; n < count; n++)
            OK(PMIx_Get_nb(&other, keys[n % KEYS], NULL, 0, take, (void *)(intptr_t)n));
        put_text(PMIX_GLOBAL, "asked", "yes");
        OK(PMIx_Commit());
        while (answered < count)
            usleep(200);
        CHECK(right == count, "%d of %d are right", (int)right, count);
        printf("gets-%d %.0f\n", count, now() - begin);
    } else {
        expect_text(1, "asked", NULL, "yes");
        OK(PMIx_Commit());
    }
    barrier();
    OK(PMIx_Finalize(NULL, 0));
    return 0;
}
