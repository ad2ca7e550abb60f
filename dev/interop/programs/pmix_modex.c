/* Direct modex: values fetched one by one, before and after their owner commits them, and values that never come. */
#include "check.h"

#include <semaphore.h>

static sem_t arrived;
static char text[64];

static void on_value(pmix_status_t status, pmix_value_t *value, void *cbdata)
{
    (void)cbdata;
    if (status == PMIX_SUCCESS && value != NULL && value->type == PMIX_STRING)
        snprintf(text, sizeof text, "%s", value->data.string);
    else
        snprintf(text, sizeof text, "status %d", status);
    sem_post(&arrived);
}

/* Every rank fetches from all others after a fence without data. */
static void after_commit(void)
{
    put_text(PMIX_GLOBAL, keyed("direct", me.rank), keyed("value of rank", me.rank));
    OK(PMIx_Commit());
    barrier();
    for (pmix_rank_t rank = 0; rank < job_size; rank++)
        expect_text(rank, keyed("direct", rank), NULL, keyed("value of rank", rank));
}

/* Each rank asks its neighbour for a value, and only then the neighbour puts it. */
static void before_commit(void)
{
    pmix_rank_t next = (me.rank + 1) % job_size, previous = (me.rank + job_size - 1) % job_size;
    pmix_proc_t neighbour = process(next);
    static pmix_info_t limit;
    pmix_info_t asked;
    pmix_pdata_t who;
    int seconds = 300;

    if (job_size == 1)
        return;
    /* Without a limit some servers wait only for seconds. */
    PMIX_INFO_LOAD(&limit, PMIX_TIMEOUT, &seconds, PMIX_INT);
    OK(PMIx_Get_nb(&neighbour, keyed("late", next), &limit, 1, on_value, NULL));

    PMIX_INFO_LOAD(&asked, keyed("asked-by", me.rank), "yes", PMIX_STRING);
    OK(PMIx_Publish(&asked, 1));
    PMIX_INFO_DESTRUCT(&asked);
    PMIX_INFO_LOAD(&asked, PMIX_WAIT, NULL, PMIX_INT);
    PMIX_PDATA_CONSTRUCT(&who);
    strcpy(who.key, keyed("asked-by", previous));
    OK(PMIx_Lookup(&who, 1, &asked, 1));
    CHECK(who.proc.rank == previous, "published by rank %u", who.proc.rank);
    PMIX_PDATA_DESTRUCT(&who);
    PMIX_INFO_DESTRUCT(&asked);

    put_text(PMIX_GLOBAL, keyed("late", me.rank), keyed("late value of", me.rank));
    OK(PMIx_Commit());
    sem_wait(&arrived);
    CHECK(strcmp(text, keyed("late value of", next)) == 0, "got \"%s\"", text);
}

/* Gets that must not wait for a value that no rank puts. */
static void never(void)
{
    pmix_rank_t other = (me.rank + 1) % job_size;
    pmix_info_t info;
    bool yes = true;
    int one = 1;

    PMIX_INFO_LOAD(&info, PMIX_OPTIONAL, &yes, PMIX_BOOL);
    expect_no_value(other, "nobody.puts.this", &info, PMIX_ERR_NOT_FOUND);
    PMIX_INFO_LOAD(&info, PMIX_IMMEDIATE, &yes, PMIX_BOOL);
    expect_no_value(other, "nobody.puts.this", &info, PMIX_ERR_NOT_FOUND);
    PMIX_INFO_LOAD(&info, PMIX_TIMEOUT, &one, PMIX_INT);
    if (job_size > 1)
        expect_no_value(other, "nobody.puts.this", &info, PMIX_ERR_TIMEOUT);
}

/* Without a key: everything the rank has put. */
static void everything(void)
{
    pmix_proc_t other = process((me.rank + 1) % job_size);
    pmix_value_t *value = NULL;
    bool found = false;

    OK(PMIx_Get(&other, NULL, NULL, 0, &value));
    CHECK(value->type == PMIX_DATA_ARRAY && value->data.darray->type == PMIX_INFO, "got type %u", value->type);
    pmix_info_t *infos = value->data.darray->array;
    for (size_t i = 0; i < value->data.darray->size; i++)
        found |= strcmp(infos[i].key, keyed("direct", other.rank)) == 0;
    CHECK(found, "%zu values, but not the one that was put", value->data.darray->size);
    PMIX_VALUE_RELEASE(value);
}

int main(void)
{
    sem_init(&arrived, 0, 0);
    start();
    after_commit();
    everything();
    before_commit();
    barrier();
    never();
    barrier();
    finish("direct modex is right");
    return 0;
}
