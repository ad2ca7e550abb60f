/* Gets the key in its argument for the wildcard rank; rank 0 prints the resulting text. */
#include "check.h"

int main(int argc, char **argv)
{
    pmix_value_t *value = NULL;
    pmix_proc_t job;

    start();
    CHECK(argc == 2, "one argument, the key, is expected");
    job = process(PMIX_RANK_WILDCARD);
    OK(PMIx_Get(&job, argv[1], NULL, 0, &value));
    CHECK(value->type == PMIX_STRING, "a value of type %s", PMIx_Data_type_string(value->type));
    if (me.rank == 0)
        fputs(value->data.string, stdout);
    PMIX_VALUE_RELEASE(value);
    barrier();
    OK(PMIx_Finalize(NULL, 0));
    return 0;
}
