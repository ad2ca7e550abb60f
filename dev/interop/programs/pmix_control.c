/* Job control: results that name the targets not reached, and cancellation. For two ranks, of which the second ends at
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

/* The ranks and the status in a result. */
static pmix_status_t why(const pmix_info_t *result, const char **ranks)
{
    const pmix_info_t *parts = result->value.data.darray->array;
    pmix_status_t status = PMIX_SUCCESS;

    CHECK(result->value.type == PMIX_DATA_ARRAY && result->value.data.darray->type == PMIX_INFO, "type %d",
          result->value.type);
    for (size_t i = 0; i < result->value.data.darray->size; i++) {
        if (strcmp(parts[i].key, "phalanx.of_ranks") == 0)
            *ranks = parts[i].value.data.string;
        if (strcmp(parts[i].key, "phalanx.status") == 0)
            status = parts[i].value.data.status;
    }
    return status;
}

/* Unknown targets are named in the result, and nothing is done to the others. */
static void unknown(void)
{
    pmix_info_t directive[1], *results = NULL;
    pmix_proc_t targets[2] = { process(0), process(99) };
    const char *ranks = "";
    bool kill = true;
    size_t found = 0;

    PMIX_INFO_LOAD(&directive[0], PMIX_JOB_CTRL_KILL, &kill, PMIX_BOOL);
    EXPECT(PMIX_ERR_BAD_PARAM, PMIx_Job_control(targets, 2, directive, 1, &results, &found));
    CHECK(found == 1 && why(&results[0], &ranks) == PMIX_ERR_BAD_PARAM, "%zu results", found);
    CHECK(strcmp(ranks, "99") == 0, "ranks %s", ranks);
}

/* The outcome of a request can be queried afterwards by its name. */
static void status_of(const char *id, const char *expected)
{
    pmix_query_t query;
    pmix_info_t *answer = NULL;
    const pmix_info_t *parts;
    const char *state = "";
    pmix_status_t status;
    size_t found = 0;

    PMIX_QUERY_CONSTRUCT(&query);
    PMIX_ARGV_APPEND(status, query.keys, "phalanx.requests");
    CHECK(status == PMIX_SUCCESS, "%s", PMIx_Error_string(status));
    PMIX_QUERY_QUALIFIERS_CREATE(&query, 1);
    PMIX_INFO_LOAD(&query.qualifiers[0], PMIX_JOB_CTRL_ID, id, PMIX_STRING);
    OK(PMIx_Query_info(&query, 1, &answer, &found));
    CHECK(found == 1 && answer->value.type == PMIX_DATA_ARRAY, "%zu answers", found);
    CHECK(answer->value.data.darray->size > 0, "no request %s", id);
    parts = answer->value.data.darray->array;
    parts = parts[0].value.data.darray->array;
    for (size_t i = 0; i < 4; i++)
        if (strcmp(parts[i].key, "phalanx.state") == 0)
            state = parts[i].value.data.string;
    CHECK(strcmp(state, expected) == 0, "%s", state);
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
        const char *named = "";
        size_t found = 0;

        cancel();
        unknown();
        do {
            usleep(10000);
            PMIX_INFO_LOAD(&directives[0], PMIX_JOB_CTRL_ID, "mine", PMIX_STRING);
            PMIX_INFO_LOAD(&directives[1], PMIX_JOB_CTRL_RESUME, NULL, PMIX_BOOL);
            status = control(&other, directives, 2, &results, &found);
        } while (status == PMIX_SUCCESS);
        CHECK(status == PMIX_ERR_NOT_FOUND, "%s", PMIx_Error_string(status));
        CHECK(found == 2 && strcmp(results[0].key, PMIX_JOB_CTRL_ID) == 0, "%zu results", found);
        CHECK(strcmp(results[0].value.data.string, "mine") == 0, "%s", results[0].value.data.string);
        CHECK(strcmp(results[1].key, "phalanx.result") == 0, "%s", results[1].key);
        status = why(&results[1], &named);
        CHECK(status == PMIX_ERR_NOT_FOUND && strcmp(named, "1") == 0, "%s: %s", named, PMIx_Error_string(status));
        status_of("mine", "done");
        printf("rank 0: was told that rank 1 has ended\n");
    }
    OK(PMIx_Finalize(NULL, 0));
    return 0;
}
