/* Behaviour that programs rely on and that no document states clearly: found in the examples of OpenPMIx. To be run in 4 ranks. */
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include <pmix.h>

#include "check.h"

static pmix_proc_t me;
static volatile int formed, answered;

static void asks_what_the_library_is(pmix_status_t with_namespaces)
{
    pmix_query_t *queries;
    pmix_info_t *results = NULL;
    size_t count = 0;

    PMIX_QUERY_CREATE(queries, 2);
    PMIx_Argv_append_nosize(&queries[0].keys, PMIX_QUERY_STABLE_ABI_VERSION);
    PMIx_Argv_append_nosize(&queries[0].keys, PMIX_QUERY_PROVISIONAL_ABI_VERSION);
    CHECK(PMIx_Query_info(queries, 1, &results, &count) == PMIX_SUCCESS);
    CHECK(count == 2);
    CHECK(PMIX_CHECK_KEY(&results[0], PMIX_QUERY_STABLE_ABI_VERSION));
    CHECK(PMIX_CHECK_KEY(&results[1], PMIX_QUERY_PROVISIONAL_ABI_VERSION));
    CHECK(strchr(results[0].value.data.string, '.') != NULL && strchr(results[1].value.data.string, '.') != NULL);
    PMIX_INFO_FREE(results, count);

    PMIx_Argv_append_nosize(&queries[1].keys, PMIX_QUERY_NAMESPACES);
    CHECK(PMIx_Query_info(queries, 2, &results, &count) == with_namespaces);
    if (with_namespaces == PMIX_SUCCESS) {
        CHECK(count == 3);
        PMIX_INFO_FREE(results, count);
    }
    PMIX_QUERY_FREE(queries, 2);
}

static void asks_who_it_is(void)
{
    pmix_proc_t unknown;
    pmix_value_t *value = NULL;

    PMIX_LOAD_PROCID(&unknown, me.nspace, PMIX_RANK_INVALID);
    CHECK(PMIx_Get(&unknown, PMIX_RANK, NULL, 0, &value) == PMIX_SUCCESS);
    CHECK(value->type == PMIX_PROC_RANK && value->data.rank == me.rank);
    PMIX_VALUE_RELEASE(value);
    CHECK(PMIx_Get(&me, PMIX_SERVER_URI, NULL, 0, &value) == PMIX_SUCCESS);
    CHECK(strstr(value->data.string, "tcp4://") != NULL);
    PMIX_VALUE_RELEASE(value);
}

static void without_a_callback(void)
{
    pmix_info_t info;
    uint32_t number = 1;

    CHECK(PMIx_Fence_nb(NULL, 0, NULL, 0, NULL, NULL) == PMIX_SUCCESS);
    PMIX_INFO_LOAD(&info, "habit", &number, PMIX_UINT32);
    if (me.rank == 0)
        CHECK(PMIx_Publish_nb(&info, 1, NULL, NULL) == PMIX_SUCCESS);
    CHECK(PMIx_Group_invite_nb("nobody", &me, 1, NULL, 0, NULL, NULL) == PMIX_ERR_BAD_PARAM);
}

static void joined(pmix_status_t status, pmix_info_t info[], size_t ninfo, void *cbdata, pmix_release_cbfunc_t release,
                   void *release_cbdata)
{
    bool named = false;

    (void)cbdata;
    CHECK(status == PMIX_SUCCESS);
    for (size_t i = 0; i < ninfo; i++)
        named |= PMIX_CHECK_KEY(&info[i], PMIX_GROUP_ID) && strcmp(info[i].value.data.string, "guests") == 0;
    CHECK(named);
    release(release_cbdata);
    __atomic_add_fetch(&answered, 1, __ATOMIC_RELEASE);
}

/* Even ranks learn of the group by its event alone. */
static void invited(size_t handler, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[], size_t ninfo,
                    pmix_info_t *results, size_t nresults, pmix_event_notification_cbfunc_fn_t done, void *cbdata)
{
    const char *group = NULL;

    (void)handler, (void)status, (void)results, (void)nresults;
    for (size_t i = 0; i < ninfo; i++)
        if (PMIX_CHECK_KEY(&info[i], PMIX_GROUP_ID))
            group = info[i].value.data.string;
    CHECK(group != NULL);
    if (source->rank != me.rank)
        CHECK(PMIx_Group_join_nb(group, source, PMIX_GROUP_ACCEPT, NULL, 0, me.rank % 2 == 0 ? NULL : joined, NULL)
              == PMIX_SUCCESS);
    done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, cbdata);
}

static void complete(size_t handler, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[], size_t ninfo,
                     pmix_info_t *results, size_t nresults, pmix_event_notification_cbfunc_fn_t done, void *cbdata)
{
    (void)handler, (void)status, (void)source, (void)info, (void)ninfo, (void)results, (void)nresults;
    __atomic_add_fetch(&formed, 1, __ATOMIC_RELEASE);
    done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, cbdata);
}

static void handle(pmix_status_t code, pmix_notification_fn_t handler)
{
    CHECK(PMIx_Register_event_handler(&code, 1, NULL, 0, handler, NULL, NULL) >= 0);
}

/* The leader gets its group's event as the others do, and all members can name the group instead of its members. */
static void accepts_inside_of_the_handler(uint32_t size)
{
    pmix_proc_t procs[64], group;
    pmix_value_t *value = NULL;
    pmix_info_t *results = NULL;
    size_t count = 0;

    handle(PMIX_GROUP_INVITED, invited);
    handle(PMIX_GROUP_CONSTRUCT_COMPLETE, complete);
    CHECK(PMIx_Fence(NULL, 0, NULL, 0) == PMIX_SUCCESS);
    if (me.rank == 0) {
        for (uint32_t rank = 0; rank < size; rank++)
            PMIX_LOAD_PROCID(&procs[rank], me.nspace, rank);
        CHECK(PMIx_Group_invite("guests", procs, size, NULL, 0, &results, &count) == PMIX_SUCCESS);
        PMIX_INFO_FREE(results, count);
    } else if (me.rank % 2 == 1) {
        while (__atomic_load_n(&answered, __ATOMIC_ACQUIRE) == 0)
            usleep(1000);
    }
    while (__atomic_load_n(&formed, __ATOMIC_ACQUIRE) == 0)
        usleep(1000);
    PMIX_LOAD_PROCID(&group, "guests", PMIX_RANK_WILDCARD);
    CHECK(PMIx_Fence(&group, 1, NULL, 0) == PMIX_SUCCESS);
    group.rank = size - 1;
    CHECK(PMIx_Get(&group, PMIX_LOCAL_RANK, NULL, 0, &value) == PMIX_SUCCESS);
    CHECK(value->data.uint16 == size - 1);
    PMIX_VALUE_RELEASE(value);
    CHECK(PMIx_Group_destruct("guests", NULL, 0) == PMIX_SUCCESS);
}

/* The group information of members is found by the group's context id, even after the group has ended. */
static void says_what_number_it_uses(uint32_t size)
{
    pmix_info_t infos[2], *said, *results = NULL, qualifier;
    pmix_data_array_t array;
    pmix_proc_t peer, job;
    size_t count = 0, number = 1000 + me.rank, id = 0;
    pmix_value_t *value = NULL;

    PMIX_DATA_ARRAY_CONSTRUCT(&array, 1, PMIX_INFO);
    said = array.array;
    PMIX_INFO_LOAD(said, PMIX_GROUP_LOCAL_CID, &number, PMIX_SIZE);
    PMIX_INFO_LOAD(&infos[0], PMIX_GROUP_INFO, &array, PMIX_DATA_ARRAY);
    PMIX_DATA_ARRAY_DESTRUCT(&array);
    PMIX_INFO_LOAD(&infos[1], PMIX_GROUP_ASSIGN_CONTEXT_ID, NULL, PMIX_BOOL);
    PMIX_LOAD_PROCID(&job, me.nspace, PMIX_RANK_WILDCARD);
    CHECK(PMIx_Group_construct("numbers", &job, 1, infos, 2, &results, &count) == PMIX_SUCCESS);
    PMIX_INFO_DESTRUCT(&infos[0]);
    for (size_t i = 0; i < count; i++)
        if (PMIX_CHECK_KEY(&results[i], PMIX_GROUP_CONTEXT_ID))
            CHECK(PMIx_Value_get_number(&results[i].value, &id, PMIX_SIZE) == PMIX_SUCCESS);
    PMIX_INFO_FREE(results, count);
    CHECK(PMIx_Group_destruct("numbers", NULL, 0) == PMIX_SUCCESS);

    PMIX_INFO_LOAD(&qualifier, PMIX_GROUP_CONTEXT_ID, &id, PMIX_SIZE);
    PMIX_INFO_SET_QUALIFIER(&qualifier);
    for (uint32_t rank = 0; rank < size; rank++) {
        PMIX_LOAD_PROCID(&peer, me.nspace, rank);
        CHECK(PMIx_Get(&peer, PMIX_GROUP_LOCAL_CID, &qualifier, 1, &value) == PMIX_SUCCESS);
        CHECK(value->type == PMIX_SIZE && value->data.size == 1000 + rank);
        PMIX_VALUE_RELEASE(value);
        CHECK(PMIx_Get(&peer, PMIX_GROUP_LOCAL_CID, NULL, 0, &value) == PMIX_ERR_NOT_FOUND);
    }
    id++;
    PMIX_INFO_LOAD(&qualifier, PMIX_GROUP_CONTEXT_ID, &id, PMIX_SIZE);
    PMIX_INFO_SET_QUALIFIER(&qualifier);
    CHECK(PMIx_Get(&me, PMIX_GROUP_LOCAL_CID, &qualifier, 1, &value) == PMIX_ERR_NOT_FOUND);
}

/* The first two ranks add one more each, and may know each other. No rank knows all members before the group is formed. */
static void brings_others(uint32_t size, bool bootstrap)
{
    pmix_info_t infos[3], *results = NULL;
    pmix_data_array_t array;
    pmix_proc_t *members, known[2], group;
    size_t count = 0, leaders = 2, told = 0;

    CHECK(size >= 4);
    if (me.rank >= 4)
        return;
    if (me.rank < leaders) {
        PMIX_DATA_ARRAY_CONSTRUCT(&array, 1, PMIX_PROC);
        members = array.array;
        PMIX_LOAD_PROCID(&members[0], me.nspace, me.rank + 2);
        PMIX_INFO_LOAD(&infos[0], PMIX_GROUP_ADD_MEMBERS, &array, PMIX_DATA_ARRAY);
        PMIX_DATA_ARRAY_DESTRUCT(&array);
        PMIX_INFO_LOAD(&infos[1], PMIX_GROUP_ASSIGN_CONTEXT_ID, NULL, PMIX_BOOL);
        PMIX_INFO_LOAD(&infos[2], PMIX_GROUP_BOOTSTRAP, &leaders, PMIX_SIZE);
        for (uint32_t rank = 0; rank < leaders; rank++)
            PMIX_LOAD_PROCID(&known[rank], me.nspace, rank);
        if (bootstrap)
            CHECK(PMIx_Group_construct("grown", &me, 1, infos, 3, &results, &count) == PMIX_SUCCESS);
        else
            CHECK(PMIx_Group_construct("grown", known, leaders, infos, 2, &results, &count) == PMIX_SUCCESS);
        PMIX_INFO_DESTRUCT(&infos[0]);
    } else {
        CHECK(PMIx_Group_construct("grown", NULL, 0, NULL, 0, &results, &count) == PMIX_SUCCESS);
    }
    for (size_t i = 0; i < count; i++) {
        if (PMIX_CHECK_KEY(&results[i], PMIX_GROUP_MEMBERSHIP)) {
            CHECK(results[i].value.data.darray->size == 4);
            members = results[i].value.data.darray->array;
            for (uint32_t rank = 0; rank < 4; rank++)
                CHECK(PMIX_CHECK_NSPACE(members[rank].nspace, me.nspace) && members[rank].rank == rank);
            told++;
        }
        if (PMIX_CHECK_KEY(&results[i], PMIX_GROUP_CONTEXT_ID))
            told++;
    }
    CHECK(told == 2);
    PMIX_INFO_FREE(results, count);
    PMIX_LOAD_PROCID(&group, "grown", PMIX_RANK_WILDCARD);
    CHECK(PMIx_Fence(&group, 1, NULL, 0) == PMIX_SUCCESS);
    CHECK(PMIx_Group_destruct("grown", NULL, 0) == PMIX_SUCCESS);
}

int main(void)
{
    uint32_t size;

    alarm(600);
    asks_what_the_library_is(PMIX_ERR_INIT);
    CHECK(PMIx_Init(&me, NULL, 0) == PMIX_SUCCESS);
    asks_what_the_library_is(PMIX_SUCCESS);
    size = job_size(&me);
    CHECK(size <= 64);
    asks_who_it_is();
    without_a_callback();
    accepts_inside_of_the_handler(size);
    says_what_number_it_uses(size);
    brings_others(size, true);
    brings_others(size, false);
    /* A rank that has left is not asked any more. */
    CHECK(PMIx_Fence(NULL, 0, NULL, 0) == PMIX_SUCCESS);
    CHECK(PMIx_Finalize(NULL, 0) == PMIX_SUCCESS);
    printf("habits are honoured\n");
    return 0;
}
