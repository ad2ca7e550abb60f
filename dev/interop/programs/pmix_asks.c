/* Gets the keys in its arguments, each in the form RANK:KEY:HOW; rank 0 prints the answers in order.
 *
 * RANK is own, all (the wildcard) or peer (rank 1). HOW is plain, optional or immediate: MPI libraries use all three.
 * An answer is the type of the value and, for numbers, flags and processes, the value. */
#include "check.h"

static void answer(const pmix_value_t *value)
{
    switch (value->type) {
    case PMIX_STRING: printf("PMIX_STRING of %s\n", strlen(value->data.string) > 0 ? "text" : "nothing"); break;
    case PMIX_UINT16: printf("PMIX_UINT16 %u\n", value->data.uint16); break;
    case PMIX_UINT32: printf("PMIX_UINT32 %u\n", value->data.uint32); break;
    case PMIX_PROC_RANK: printf("PMIX_PROC_RANK %u\n", value->data.rank); break;
    case PMIX_BOOL: printf("PMIX_BOOL %s\n", value->data.flag ? "true" : "false"); break;
    case PMIX_PROC: printf("PMIX_PROC %u\n", value->data.proc->rank); break;
    default: printf("%s\n", PMIx_Data_type_string(value->type));
    }
}

static void ask(char *request)
{
    char *rank = strtok(request, ":"), *key = strtok(NULL, ":"), *how = strtok(NULL, ":");
    pmix_proc_t proc = me;
    pmix_value_t *value = NULL;
    pmix_info_t info;
    size_t count = 1;

    CHECK(how != NULL, "a request has three parts");
    if (strcmp(rank, "own") != 0)
        proc.rank = strcmp(rank, "peer") == 0 ? 1 : PMIX_RANK_WILDCARD;
    if (strcmp(how, "optional") == 0)
        PMIX_INFO_LOAD(&info, PMIX_OPTIONAL, NULL, PMIX_BOOL);
    else if (strcmp(how, "immediate") == 0)
        PMIX_INFO_LOAD(&info, PMIX_IMMEDIATE, NULL, PMIX_BOOL);
    else
        count = 0;
    pmix_status_t status = PMIx_Get(&proc, key, count > 0 ? &info : NULL, count, &value);
    printf("%s %s %s: ", rank, key, how);
    if (status == PMIX_SUCCESS && value != NULL)
        answer(value);
    else
        printf("%s\n", status == PMIX_ERR_NOT_FOUND ? "missing" : PMIx_Error_string(status));
    if (value != NULL)
        PMIX_VALUE_RELEASE(value);
}

int main(int argc, char **argv)
{
    start();
    if (me.rank == 0)
        for (int i = 1; i < argc; i++)
            ask(argv[i]);
    barrier();
    OK(PMIx_Finalize(NULL, 0));
    return 0;
}
