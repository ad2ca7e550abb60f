/* Rank 0 invites all ranks into groups: one that all join, one that the last rank declines, one that may form without it. */
#include "check.h"

static volatile int invitations;
static pmix_proc_t leader;
static char invited_to[64];

static void invited(size_t handler, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[], size_t ninfo,
                    pmix_info_t *results, size_t nresults, pmix_event_notification_cbfunc_fn_t done, void *cbdata)
{
    (void)handler, (void)status, (void)results, (void)nresults;
    memcpy(&leader, source, sizeof leader);
    for (size_t i = 0; i < ninfo; i++)
        if (strcmp(info[i].key, PMIX_GROUP_ID) == 0)
            snprintf(invited_to, sizeof invited_to, "%s", info[i].value.data.string);
    done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, cbdata);
    __atomic_add_fetch(&invitations, 1, __ATOMIC_RELEASE);
}

static void await_invitation(const char *group, int number)
{
    while (__atomic_load_n(&invitations, __ATOMIC_ACQUIRE) < number)
        usleep(200);
    CHECK(strcmp(invited_to, group) == 0, "invited to %s", invited_to);
    CHECK(leader.rank == 0 && strcmp(leader.nspace, me.nspace) == 0, "by %s:%u", leader.nspace, leader.rank);
}

static void expect_members(pmix_info_t *results, size_t count, size_t members, bool numbered)
{
    bool seen = false, number = false;

    for (size_t i = 0; i < count; i++) {
        if (strcmp(results[i].key, PMIX_GROUP_MEMBERSHIP) == 0) {
            CHECK(results[i].value.data.darray->size == members, "%zu members", results[i].value.data.darray->size);
            seen = true;
        }
        number |= strcmp(results[i].key, PMIX_GROUP_CONTEXT_ID) == 0 && results[i].value.type == PMIX_SIZE;
    }
    CHECK(seen, "no members in %zu results", count);
    CHECK(number == numbered, "a context id: %d", number);
    PMIX_INFO_FREE(results, count);
}

static void everybody_joins(void)
{
    pmix_proc_t all = process(PMIX_RANK_WILDCARD);
    pmix_info_t info, *results = NULL;
    size_t count = 0;
    bool yes = true;

    if (me.rank == 0) {
        PMIX_INFO_LOAD(&info, PMIX_GROUP_ASSIGN_CONTEXT_ID, &yes, PMIX_BOOL);
        OK(PMIx_Group_invite("friends", &all, 1, &info, 1, &results, &count));
    } else {
        await_invitation("friends", 1);
        OK(PMIx_Group_join("friends", &leader, PMIX_GROUP_ACCEPT, NULL, 0, &results, &count));
    }
    expect_members(results, count, job_size, true);
    OK(PMIx_Group_destruct("friends", NULL, 0));
}

static void one_declines(const char *group, int number, bool optional)
{
    pmix_proc_t all = process(PMIX_RANK_WILDCARD);
    pmix_info_t info, *results = NULL;
    size_t count = 0;
    bool declines = me.rank == job_size - 1;
    pmix_status_t status;

    if (me.rank == 0) {
        PMIX_INFO_LOAD(&info, PMIX_GROUP_OPTIONAL, &optional, PMIX_BOOL);
        status = PMIx_Group_invite(group, &all, 1, &info, 1, &results, &count);
    } else {
        await_invitation(group, number);
        status = PMIx_Group_join(group, &leader, declines ? PMIX_GROUP_DECLINE : PMIX_GROUP_ACCEPT, NULL, 0, &results, &count);
    }
    if (declines)
        EXPECT(PMIX_SUCCESS, status);
    else if (optional) {
        OK(status);
        expect_members(results, count, job_size - 1, false);
    } else
        EXPECT(PMIX_GROUP_CONSTRUCT_ABORT, status);
}

static void nobody_answers(void)
{
    pmix_proc_t other = process(1);
    pmix_info_t info, *results = NULL;
    size_t count = 0;
    int seconds = 1;

    if (me.rank != 0)
        return;
    PMIX_INFO_LOAD(&info, PMIX_TIMEOUT, &seconds, PMIX_INT);
    EXPECT(PMIX_ERR_TIMEOUT, PMIx_Group_invite("silence", &other, 1, &info, 1, &results, &count));
}

int main(void)
{
    pmix_status_t code = PMIX_GROUP_INVITED;

    start();
    CHECK(PMIx_Register_event_handler(&code, 1, NULL, 0, invited, NULL, NULL) >= 0, "no handler");
    barrier();
    everybody_joins();
    barrier();
    if (job_size >= 2)
        one_declines("all or nothing", 2, false);
    barrier();
    if (job_size >= 2)
        one_declines("most", 3, true);
    barrier();
    if (job_size >= 2)
        nobody_answers();
    barrier();
    finish("invitations are right");
    return 0;
}
