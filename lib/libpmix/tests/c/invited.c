/* Rank 0 invites all: each that joins finds the others' values, and their group information, under the group's context id. */
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include <pmix.h>

#include "check.h"

static volatile int invitations;
static pmix_proc_t me, leader;

static void on_invitation(size_t handler, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[], size_t ninfo,
                          pmix_info_t *results, size_t nresults, pmix_event_notification_cbfunc_fn_t complete, void *cbdata)
{
    (void)handler, (void)status, (void)info, (void)ninfo, (void)results, (void)nresults;
    memcpy(&leader, source, sizeof leader);
    complete(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, cbdata);
    __atomic_add_fetch(&invitations, 1, __ATOMIC_RELEASE);
}

static void load_saying(pmix_info_t *info)
{
    uint32_t colour = me.rank + 20;
    pmix_data_array_t said;

    PMIX_DATA_ARRAY_CONSTRUCT(&said, 1, PMIX_INFO);
    PMIX_INFO_LOAD((pmix_info_t *)said.array, "colour", &colour, PMIX_UINT32);
    PMIX_INFO_LOAD(info, PMIX_GROUP_INFO, &said, PMIX_DATA_ARRAY);
    PMIX_DATA_ARRAY_DESTRUCT(&said);
}

/* The server is not asked for it. */
static void expect(uint32_t rank, const char *key, size_t number, uint32_t expected)
{
    pmix_value_t *value = NULL;
    pmix_info_t infos[2];
    pmix_proc_t peer;

    PMIX_LOAD_PROCID(&peer, me.nspace, rank);
    PMIX_INFO_LOAD(&infos[0], PMIX_GROUP_CONTEXT_ID, &number, PMIX_SIZE);
    PMIX_INFO_SET_QUALIFIER(&infos[0]);
    PMIX_INFO_LOAD(&infos[1], PMIX_OPTIONAL, NULL, PMIX_BOOL);
    CHECK(PMIx_Get(&peer, key, infos, 2, &value) == PMIX_SUCCESS);
    CHECK(value->type == PMIX_UINT32 && value->data.uint32 == expected);
    PMIX_VALUE_RELEASE(value);
}

int main(void)
{
    pmix_status_t code = PMIX_GROUP_INVITED;
    pmix_info_t infos[2], *results = NULL;
    size_t count = 0, number = 0;
    pmix_value_t value;
    pmix_proc_t all;
    uint32_t card, size;

    alarm(600);
    CHECK(PMIx_Init(&me, NULL, 0) == PMIX_SUCCESS);
    size = job_size(&me);
    card = me.rank + 10;
    PMIX_VALUE_LOAD(&value, &card, PMIX_UINT32);
    CHECK(PMIx_Put(PMIX_REMOTE, "card", &value) == PMIX_SUCCESS);
    CHECK(PMIx_Register_event_handler(&code, 1, NULL, 0, on_invitation, NULL, NULL) >= 0);
    CHECK(PMIx_Fence(NULL, 0, NULL, 0) == PMIX_SUCCESS);
    load_saying(&infos[0]);
    if (me.rank == 0) {
        PMIX_LOAD_PROCID(&all, me.nspace, PMIX_RANK_WILDCARD);
        PMIX_INFO_LOAD(&infos[1], PMIX_GROUP_ASSIGN_CONTEXT_ID, NULL, PMIX_BOOL);
        CHECK(PMIx_Group_invite("all", &all, 1, infos, 2, &results, &count) == PMIX_SUCCESS);
    } else {
        while (__atomic_load_n(&invitations, __ATOMIC_ACQUIRE) == 0)
            usleep(200);
        CHECK(PMIx_Group_join("all", &leader, PMIX_GROUP_ACCEPT, infos, 1, &results, &count) == PMIX_SUCCESS);
    }
    for (size_t i = 0; i < count; i++)
        if (strcmp(results[i].key, PMIX_GROUP_CONTEXT_ID) == 0)
            number = results[i].value.data.size;
    CHECK(number != 0);
    for (uint32_t rank = 0; rank < size; rank++) {
        if (rank != me.rank)
            expect(rank, "card", number, rank + 10);
        expect(rank, "colour", number, rank + 20);
    }
    PMIX_INFO_FREE(results, count);
    CHECK(PMIx_Finalize(NULL, 0) == PMIX_SUCCESS);
    printf("the invited know each other\n");
    return 0;
}
