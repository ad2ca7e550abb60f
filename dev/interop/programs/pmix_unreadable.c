/* Rank 0 commits a value that is nested too deeply for servers of Phalanx; the others get it. Each prints the result. */
#include "check.h"

enum { DEPTH = 40 };

int main(void)
{
    static pmix_data_array_t arrays[DEPTH];
    static pmix_info_t infos[DEPTH];
    pmix_value_t value, *got = NULL;
    pmix_status_t status;
    pmix_proc_t zero;
    int i;

    start();
    if (me.rank == 0) {
        for (i = 0; i < DEPTH; i++) {
            PMIX_INFO_CONSTRUCT(&infos[i]);
            PMIX_LOAD_KEY(infos[i].key, "deeper");
            arrays[i].type = PMIX_INFO;
            arrays[i].size = 1;
            arrays[i].array = &infos[i];
            infos[i].value.type = i + 1 < DEPTH ? PMIX_DATA_ARRAY : PMIX_INT;
            if (i + 1 < DEPTH)
                infos[i].value.data.darray = &arrays[i + 1];
        }
        value.type = PMIX_DATA_ARRAY;
        value.data.darray = &arrays[0];
        OK(PMIx_Put(PMIX_GLOBAL, "deep", &value));
        status = PMIx_Commit();
    } else {
        zero = process(0);
        status = PMIx_Get(&zero, "deep", NULL, 0, &got);
    }
    printf("%u: %d\n", me.rank, status);
    fflush(stdout);
    barrier();
    OK(PMIx_Finalize(NULL, 0));
    return 0;
}
