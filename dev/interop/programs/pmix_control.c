/* Job control whose results name the targets that were not reached, and cancellation. For two ranks, of which the second ends at
 * once. */
#include "check.h"

static pmix_status_t control(const pmix_proc_t *target, pmix_info_t directives[], size_t count, pmix_info_t **results,
                             size_t *found)
{
    pmix_status_t status = PMIx_Job_control(target, target == NULL ? 0 : 1, directives, count, results, found);

    for (size_t i = 0; i < count; i++)
        PMIX_INFO_DESTRUCT(&directives[i]);
    return status;
}

/* The target that a result names, and why it was not reached. */
static pmix_status_t why(const pmix_info_t *result, pmix_rank_t *rank)
{
    const pmix_info_t *parts = result->value.data.darray->array;
    pmix_status_t status = PMIX_SUCCESS;

    CHECK(result->value.type == PMIX_DATA_ARRAY && result->value.data.darray->type == PMIX_INFO, "type %d",
          result->value.type);
    for (size_t i = 0; i < result->value.data.darray->size; i++) {
        if (strcmp(parts[i].key, PMIX_PROCID) == 0)
            *rank = parts[i].value.data.proc->rank;
        if (strcmp(parts[i].key, "phalanx.status") == 0)
            status = parts[i].value.data.status;
    }
    return status;
}

static void cancel(void)
{
    pmix_info_t directive[1], *results = NULL;
    size_t found = 0;

    PMIX_INFO_LOAD(&directive[0], PMIX_JOB_CTRL_CANCEL, "nothing", PMIX_STRING);
    EXPECT(PMIX_ERR_NOT_FOUND, control(NULL, directive, 1, &results, &found));
    PMIX_INFO_LOAD(&directive[0], PMIX_JOB_CTRL_CANCEL, NULL, PMIX_STRING);
    OK(control(NULL, directive, 1, &results, &found));
}

int main(void)
{
    start();
    if (me.rank == 0) {
        pmix_info_t directives[2], *results = NULL;
        pmix_proc_t other = process(1);
        pmix_status_t status;
        pmix_rank_t named = PMIX_RANK_UNDEF;
        size_t found = 0;

        cancel();
        do {
            usleep(10000);
            PMIX_INFO_LOAD(&directives[0], PMIX_JOB_CTRL_ID, "mine", PMIX_STRING);
            PMIX_INFO_LOAD(&directives[1], PMIX_JOB_CTRL_RESUME, NULL, PMIX_BOOL);
            status = control(&other, directives, 2, &results, &found);
        } while (status == PMIX_SUCCESS);
        CHECK(status == PMIX_ERR_NOT_FOUND, "%s", PMIx_Error_string(status));
        CHECK(found == 2 && strcmp(results[0].key, PMIX_JOB_CTRL_ID) == 0, "%zu results", found);
        CHECK(strcmp(results[0].value.data.string, "mine") == 0, "%s", results[0].value.data.string);
        CHECK(strcmp(results[1].key, PMIX_PROC_INFO_ARRAY) == 0, "%s", results[1].key);
        status = why(&results[1], &named);
        CHECK(status == PMIX_ERR_NOT_FOUND && named == 1, "rank %u: %s", named, PMIx_Error_string(status));
        printf("rank 0: was told that rank 1 has ended\n");
    }
    OK(PMIx_Finalize(NULL, 0));
    return 0;
}
