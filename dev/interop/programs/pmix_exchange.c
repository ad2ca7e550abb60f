/* Services that any resource manager must provide to ranks on several nodes: their places, and values with and without collection. */
#include "check.h"

static uint32_t number(pmix_rank_t rank, const char *key)
{
    pmix_proc_t proc = process(rank);
    pmix_value_t *value = NULL;
    uint32_t result = 0;
    pmix_status_t status = PMIx_Get(&proc, key, NULL, 0, &value);

    CHECK(status == PMIX_SUCCESS, "%s of rank %u: %s", key, rank, PMIx_Error_string(status));
    PMIX_VALUE_GET_NUMBER(status, value, result, uint32_t);
    CHECK(status == PMIX_SUCCESS, "%s of rank %u has type %d", key, rank, value->type);
    PMIX_VALUE_RELEASE(value);
    return result;
}

static char *string(pmix_rank_t rank, const char *key)
{
    pmix_proc_t proc = process(rank);
    pmix_value_t *value = NULL;
    char *result;
    pmix_status_t status = PMIx_Get(&proc, key, NULL, 0, &value);

    CHECK(status == PMIX_SUCCESS, "%s of rank %u: %s", key, rank, PMIx_Error_string(status));
    CHECK(value->type == PMIX_STRING, "%s of rank %u has type %d", key, rank, value->type);
    result = strdup(value->data.string);
    PMIX_VALUE_RELEASE(value);
    return result;
}

/* Ranks of one node are its local peers, numbered from 0, and all nodes together have all of them. */
static void places(void)
{
    uint32_t local_size = number(PMIX_RANK_WILDCARD, PMIX_LOCAL_SIZE), here = 0;
    char *mine = string(me.rank, PMIX_HOSTNAME), *peers = string(PMIX_RANK_WILDCARD, PMIX_LOCAL_PEERS);

    CHECK(number(me.rank, PMIX_LOCAL_RANK) < local_size, "local size %u", local_size);
    CHECK(number(PMIX_RANK_WILDCARD, PMIX_UNIV_SIZE) >= job_size, "too small a universe");
    for (pmix_rank_t rank = 0; rank < job_size; rank++) {
        char *host = string(rank, PMIX_HOSTNAME);
        here += strcmp(host, mine) == 0;
        free(host);
    }
    CHECK(here == local_size, "%u ranks on %s, local size %u", here, mine, local_size);
    CHECK(strlen(peers) >= 2 * local_size - 1, "local peers %s", peers);
    free(mine);
    free(peers);
}

static void round_trip(const char *name, bool collect)
{
    pmix_info_t info;

    put_text(PMIX_GLOBAL, keyed(name, me.rank), keyed("value of rank", me.rank));
    OK(PMIx_Commit());
    PMIX_INFO_LOAD(&info, PMIX_COLLECT_DATA, &collect, PMIX_BOOL);
    OK(PMIx_Fence(NULL, 0, &info, 1));
    PMIX_INFO_DESTRUCT(&info);
    for (pmix_rank_t rank = 0; rank < job_size; rank++)
        expect_text(rank, keyed(name, rank), NULL, keyed("value of rank", rank));
}

int main(void)
{
    start();
    places();
    /* In this order: 4.2 never requests a key of a rank of which it has received others. */
    round_trip("asked-for", false);
    round_trip("collected", true);
    round_trip("collected-again", true);
    barrier();
    finish("everybody's values are right");
    return 0;
}
