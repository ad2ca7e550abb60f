/* Rank 0 reads a value of rank 1, which is then started again and puts another: rank 0 reads it once more as usual, and with
 * PMIX_GET_REFRESH_CACHE. Meets rank 1 and the test by files in the current directory. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "check.h"

static void touch(const char *name) {
    FILE *file = fopen(name, "w");
    if (file != NULL) {
        fclose(file);
    }
}

static void await(const char *name) {
    while (access(name, F_OK) != 0) {
        usleep(10000);
    }
}

static void read_it(const pmix_proc_t *from, const char *when, bool refresh) {
    pmix_info_t info;
    pmix_value_t *value = NULL;
    PMIX_INFO_LOAD(&info, PMIX_GET_REFRESH_CACHE, &refresh, PMIX_BOOL);
    OK(PMIx_Get(from, "life", refresh ? &info : NULL, refresh ? 1 : 0, &value));
    printf("%s: %u\n", when, value->data.uint32);
    PMIX_VALUE_RELEASE(value);
}

int main(void) {
    pmix_proc_t me, other;
    OK(PMIx_Init(&me, NULL, 0));
    const char *restarts = getenv("PHALANX_RESTARTS");
    if (me.rank == 1) {
        uint32_t life = restarts == NULL ? 0 : (uint32_t)atoi(restarts);
        pmix_value_t value;
        PMIX_VALUE_LOAD(&value, &life, PMIX_UINT32);
        OK(PMIx_Put(PMIX_GLOBAL, "life", &value));
        OK(PMIx_Commit());
    }
    if (restarts == NULL) {
        OK(PMIx_Fence(NULL, 0, NULL, 0));
    } else {
        touch("again");
    }
    if (me.rank == 0) {
        PMIX_LOAD_PROCID(&other, me.nspace, 1);
        read_it(&other, "before", false);
        printf("has read\n");
        fflush(stdout);
        await("again");
        read_it(&other, "usually", false);
        read_it(&other, "refreshed", true);
        read_it(&other, "then", false);
        touch("end");
    }
    await("end");
    OK(PMIx_Finalize(NULL, 0));
    return 0;
}
