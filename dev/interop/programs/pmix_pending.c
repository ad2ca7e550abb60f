/* Thousands of gets of one rank are outstanding before it commits: each is answered, and no client is disconnected. */
#include "check.h"

#include <stdatomic.h>

enum { GETS = 3000, LENGTH = 200 };

static atomic_int answered, right;

static void take(pmix_status_t status, pmix_value_t *value, void *which)
{
    char expected[LENGTH];

    snprintf(expected, sizeof expected, "%0*d", LENGTH - 1, (int)(intptr_t)which);
    right += status == PMIX_SUCCESS && value->type == PMIX_STRING && strcmp(value->data.string, expected) == 0;
    answered++;
}

int main(void)
{
    static char keys[GETS][16];
    char text[LENGTH];
    pmix_proc_t other;

    start();
    other = process(1 - me.rank);
    for (int n = 0; n < GETS; n++) {
        snprintf(keys[n], sizeof keys[n], "key-%d", n);
    }
    if (me.rank == 1) {
        for (int n = 0; n < GETS; n++) {
            OK(PMIx_Get_nb(&other, keys[n], NULL, 0, take, (void *)(intptr_t)n));
        }
        put_text(PMIX_GLOBAL, "ready", "yes");
        OK(PMIx_Commit());
        while (answered < GETS) {
            usleep(1000);
        }
        CHECK(right == GETS, "%d of %d are right", (int)right, GETS);
    } else {
        expect_text(1, "ready", NULL, "yes");
        for (int n = 0; n < GETS; n++) {
            snprintf(text, sizeof text, "%0*d", LENGTH - 1, n);
            put_text(PMIX_GLOBAL, keys[n], text);
        }
        OK(PMIx_Commit());
    }
    barrier();
    finish("all gets were answered");
    return 0;
}
