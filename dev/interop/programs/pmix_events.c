/* Events: ranges, codes, default handlers, chains, custom ranges, handlers for certain processes, and an event that was
 * sent before any handler was registered. */
#include "check.h"

#include <semaphore.h>

enum { FIRST = PMIX_EXTERNAL_ERR_BASE - 1, SECOND = FIRST - 1, PRIVATE = FIRST - 2, EARLY = FIRST - 3, NOBODYS = FIRST - 4, CONCERNS = FIRST - 5 };

struct seen {
    sem_t arrived;
    volatile int count;
    pmix_status_t status;
    pmix_proc_t source;
    char text[64];
};

static struct seen first, second, any, private_, early, concerns;
static sem_t registered;
static size_t handler_id;

static void on_event(size_t id, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[], size_t ninfo,
                     pmix_info_t *results, size_t nresults, pmix_event_notification_cbfunc_fn_t done, void *cbdata)
{
    struct seen *seen = NULL;

    (void)id, (void)results, (void)nresults;
    for (size_t i = 0; i < ninfo; i++)
        if (strcmp(info[i].key, PMIX_EVENT_RETURN_OBJECT) == 0)
            seen = info[i].value.data.ptr;
    CHECK(seen != NULL, "no return object with event %d", status);
    for (size_t i = 0; i < ninfo; i++)
        if (strcmp(info[i].key, "text") == 0)
            snprintf(seen->text, sizeof seen->text, "%s", info[i].value.data.string);
    seen->status = status;
    seen->source = *source;
    seen->count++;
    sem_post(&seen->arrived);
    done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, cbdata);
}

static void on_registered(pmix_status_t status, size_t id, void *cbdata)
{
    (void)cbdata;
    CHECK(status == PMIX_SUCCESS, "registering a handler: %s", PMIx_Error_string(status));
    handler_id = id;
    sem_post(&registered);
}

/* `about`: only events that affect this process, or that name none; NULL: all. */
static size_t listen_about(pmix_status_t code, struct seen *seen, pmix_proc_t *about)
{
    pmix_info_t infos[2];

    PMIX_INFO_LOAD(&infos[0], PMIX_EVENT_RETURN_OBJECT, seen, PMIX_POINTER);
    if (about != NULL)
        PMIX_INFO_LOAD(&infos[1], PMIX_EVENT_AFFECTED_PROC, about, PMIX_PROC);
    PMIx_Register_event_handler(code == 0 ? NULL : &code, code != 0, infos, 1 + (about != NULL), on_event, on_registered,
                                NULL);
    sem_wait(&registered);
    return handler_id;
}

static size_t listen_for(pmix_status_t code, struct seen *seen)
{
    return listen_about(code, seen, NULL);
}

static void notify_about(pmix_status_t code, pmix_proc_t *whom, const char *text)
{
    pmix_info_t infos[2];

    PMIX_INFO_LOAD(&infos[0], "text", text, PMIX_STRING);
    PMIX_INFO_LOAD(&infos[1], PMIX_EVENT_AFFECTED_PROC, whom, PMIX_PROC);
    pmix_status_t status = PMIx_Notify_event(code, &me, PMIX_RANGE_NAMESPACE, infos, 2, NULL, NULL);
    CHECK(status == PMIX_SUCCESS || status == PMIX_OPERATION_SUCCEEDED, "notify: %s", PMIx_Error_string(status));
}

static void notify(pmix_status_t code, pmix_data_range_t range, const char *text, pmix_proc_t *only)
{
    pmix_info_t infos[2];
    pmix_data_array_t target = {.type = PMIX_PROC, .size = 1, .array = only};

    PMIX_INFO_LOAD(&infos[0], "text", text, PMIX_STRING);
    if (only != NULL)
        PMIX_INFO_LOAD(&infos[1], PMIX_EVENT_CUSTOM_RANGE, &target, PMIX_DATA_ARRAY);
    pmix_status_t status = PMIx_Notify_event(code, &me, range, infos, 1 + (only != NULL), NULL, NULL);
    CHECK(status == PMIX_SUCCESS || status == PMIX_OPERATION_SUCCEEDED, "notify: %s", PMIx_Error_string(status));
}

static void expect_event(struct seen *seen, pmix_status_t code, pmix_rank_t source, const char *text)
{
    sem_wait(&seen->arrived);
    CHECK(seen->status == code, "status %d, expected %d", seen->status, code);
    CHECK(seen->source.rank == source && strcmp(seen->source.nspace, me.nspace) == 0, "from %s.%u, expected rank %u",
          seen->source.nspace, seen->source.rank, source);
    CHECK(strcmp(seen->text, text) == 0, "text \"%s\", expected \"%s\"", seen->text, text);
}

int main(void)
{
    struct seen *all[] = {&first, &second, &any, &private_, &early, &concerns};
    pmix_rank_t last;
    size_t id;

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        sem_init(&all[i]->arrived, 0, 0);
    sem_init(&registered, 0, 0);
    start();
    last = job_size - 1;

    /* Sent before any handler is registered: one that registers later still gets it. */
    if (me.rank == 0)
        notify(EARLY, PMIX_RANGE_NAMESPACE, "before you came", NULL);
    barrier();
    listen_for(EARLY, &early);
    expect_event(&early, EARLY, 0, "before you came");

    id = listen_for(FIRST, &first);
    listen_for(SECOND, &second);
    listen_for(PRIVATE, &private_);
    listen_for(0, &any);
    barrier();

    /* To the whole nspace, including the sender; the handler for the code gets it, not the default handler. */
    if (me.rank == 0)
        notify(FIRST, PMIX_RANGE_NAMESPACE, "for all", NULL);
    expect_event(&first, FIRST, 0, "for all");
    if (me.rank == last)
        notify(SECOND, PMIX_RANGE_LOCAL, "for this node", NULL);
    if (is_near(last))
        expect_event(&second, SECOND, last, "for this node");
    CHECK(any.count == 0, "the default handler got event %d", any.status);
    barrier();

    barrier();

    /* A code without a handler of its own goes to the default handler. */
    if (me.rank == 0)
        notify(NOBODYS, PMIX_RANGE_NAMESPACE, "whoever", NULL);
    expect_event(&any, NOBODYS, 0, "whoever");
    barrier();

    /* To one rank only. */
    if (me.rank == 0) {
        pmix_proc_t target = process(last);
        notify(PRIVATE, PMIX_RANGE_CUSTOM, "for the last", &target);
    }
    if (me.rank == last)
        expect_event(&private_, PRIVATE, 0, "for the last");
    barrier();
    /* This one reaches all ranks after the private one, over the same connections. */
    if (me.rank == 0)
        notify(SECOND, PMIX_RANGE_NAMESPACE, "marker", NULL);
    expect_event(&second, SECOND, 0, "marker");
    CHECK(private_.count == (me.rank == last), "%d private events", private_.count);

    /* A deregistered handler gets nothing. */
    PMIx_Deregister_event_handler(id, NULL, NULL);
    barrier();
    if (me.rank == 0)
        notify(FIRST, PMIX_RANGE_NAMESPACE, "without a handler", NULL);
    expect_event(&any, FIRST, 0, "without a handler");
    CHECK(first.count == 1, "%d events for a handler that is gone", first.count - 1);
    CHECK(PMIx_Deregister_event_handler(id, NULL, NULL) == PMIX_SUCCESS, "deregistering it again");
    barrier();

    /* A handler for one affected process gets events that name it or none, but not those that name another. */
    pmix_proc_t this_one = process(last), other = {.nspace = "elsewhere", .rank = 0};
    listen_about(CONCERNS, &concerns, &this_one);
    barrier();
    if (me.rank == 0)
        notify_about(CONCERNS, &this_one, "of this one");
    expect_event(&concerns, CONCERNS, 0, "of this one");
    barrier();
    if (me.rank == 0) {
        notify_about(CONCERNS, &other, "of another");
        notify(CONCERNS, PMIX_RANGE_NAMESPACE, "of nobody", NULL);
    }
    expect_event(&concerns, CONCERNS, 0, "of nobody");
    CHECK(concerns.count == 2, "%d events for a handler of two", concerns.count);
    barrier();
    finish("events are right");
    return 0;
}
