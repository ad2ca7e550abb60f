/* Publish, lookup and unpublish: types, ranges, persistence, waiting, and missing names. */
#include "check.h"

static pmix_status_t publish(const char *key, const char *text, pmix_data_range_t range, pmix_persistence_t persistence)
{
    pmix_info_t infos[3];

    PMIX_INFO_LOAD(&infos[0], key, text, PMIX_STRING);
    PMIX_INFO_LOAD(&infos[1], PMIX_RANGE, &range, PMIX_DATA_RANGE);
    PMIX_INFO_LOAD(&infos[2], PMIX_PERSISTENCE, &persistence, PMIX_PERSIST);
    pmix_status_t status = PMIx_Publish(infos, 3);
    PMIX_INFO_DESTRUCT(&infos[0]);
    return status;
}

/* Results of looking up one name: the text and its publisher. */
static char found[256];
static pmix_proc_t publisher;

static pmix_status_t lookup(const char *key, pmix_data_range_t range, bool wait)
{
    pmix_pdata_t data;
    pmix_info_t infos[2];
    int all = 0;
    size_t count = 1;

    found[0] = '\0';
    PMIX_PDATA_CONSTRUCT(&data);
    strcpy(data.key, key);
    PMIX_INFO_LOAD(&infos[0], PMIX_RANGE, &range, PMIX_DATA_RANGE);
    if (wait) {
        PMIX_INFO_LOAD(&infos[1], PMIX_WAIT, &all, PMIX_INT);
        count = 2;
    }
    pmix_status_t status = PMIx_Lookup(&data, 1, infos, count);
    if (status == PMIX_SUCCESS && data.value.type == PMIX_STRING)
        snprintf(found, sizeof found, "%s", data.value.data.string);
    publisher = data.proc;
    PMIX_PDATA_DESTRUCT(&data);
    return status;
}

static pmix_status_t unpublish(const char *key)
{
    char *keys[] = {(char *)key, NULL};

    return PMIx_Unpublish(keys, NULL, 0);
}

static void everybody_finds_everybody(void)
{
    OK(publish(keyed("session", me.rank), keyed("text of", me.rank), PMIX_RANGE_SESSION, PMIX_PERSIST_APP));
    OK(publish(keyed("nspace", me.rank), keyed("text of", me.rank), PMIX_RANGE_NAMESPACE, PMIX_PERSIST_SESSION));
    barrier();
    for (pmix_rank_t rank = 0; rank < job_size; rank++) {
        OK(lookup(keyed("session", rank), PMIX_RANGE_SESSION, false));
        CHECK(strcmp(found, keyed("text of", rank)) == 0, "found \"%s\"", found);
        CHECK(publisher.rank == rank && strcmp(publisher.nspace, me.nspace) == 0, "published by %s.%u",
              publisher.nspace, publisher.rank);
        OK(lookup(keyed("nspace", rank), PMIX_RANGE_NAMESPACE, false));
    }
    barrier();
}

static void absent_names(void)
{
    EXPECT(PMIX_ERR_NOT_FOUND, lookup("nobody-published-this", PMIX_RANGE_SESSION, false));
    OK(unpublish(keyed("session", me.rank)));
    barrier();
    for (pmix_rank_t rank = 0; rank < job_size; rank++)
        EXPECT(PMIX_ERR_NOT_FOUND, lookup(keyed("session", rank), PMIX_RANGE_SESSION, false));
    barrier();
    /* The name is free again. */
    OK(publish(keyed("session", me.rank), "again", PMIX_RANGE_SESSION, PMIX_PERSIST_APP));
    /* Taken by me: published twice. */
    EXPECT(PMIX_ERR_DUPLICATE_KEY, publish(keyed("session", me.rank), "twice", PMIX_RANGE_SESSION, PMIX_PERSIST_APP));
    barrier();
}

/* All ranks but the last wait for a name that the last one publishes, most likely after they have asked. */
static void waiting(void)
{
    if (me.rank == job_size - 1) {
        usleep(20000);
        OK(publish("awaited", "here I am", PMIX_RANGE_SESSION, PMIX_PERSIST_APP));
    } else {
        OK(lookup("awaited", PMIX_RANGE_SESSION, true));
        CHECK(strcmp(found, "here I am") == 0, "found \"%s\"", found);
    }
    barrier();
}

/* Data that may be read once is gone after the first lookup. */
static void first_read(void)
{
    if (me.rank == 0) {
        OK(publish("once", "only", PMIX_RANGE_SESSION, PMIX_PERSIST_FIRST_READ));
        OK(lookup("once", PMIX_RANGE_SESSION, false));
        EXPECT(PMIX_ERR_NOT_FOUND, lookup("once", PMIX_RANGE_SESSION, false));
    }
    barrier();
}

/* Two names in one call, of two types. */
static void several(void)
{
    pmix_info_t infos[2];
    pmix_pdata_t data[2];
    uint64_t number = UINT64_MAX - me.rank;
    char *all[] = {strdup(keyed("number", me.rank)), strdup(keyed("bytes", me.rank)), NULL};
    pmix_byte_object_t bytes = {.bytes = "\1\0\2", .size = 3};

    PMIX_INFO_LOAD(&infos[0], all[0], &number, PMIX_UINT64);
    PMIX_INFO_LOAD(&infos[1], all[1], &bytes, PMIX_BYTE_OBJECT);
    OK(PMIx_Publish(infos, 2));
    barrier();
    pmix_rank_t other = (me.rank + 1) % job_size;
    PMIX_PDATA_CONSTRUCT(&data[0]);
    PMIX_PDATA_CONSTRUCT(&data[1]);
    strcpy(data[0].key, keyed("bytes", other));
    strcpy(data[1].key, keyed("number", other));
    OK(PMIx_Lookup(data, 2, NULL, 0));
    CHECK(data[0].value.type == PMIX_BYTE_OBJECT && data[0].value.data.bo.size == 3, "wrong bytes");
    CHECK(memcmp(data[0].value.data.bo.bytes, "\1\0\2", 3) == 0, "wrong bytes");
    CHECK(data[1].value.type == PMIX_UINT64 && data[1].value.data.uint64 == UINT64_MAX - other, "wrong number");
    barrier();
    OK(PMIx_Unpublish(all, NULL, 0));
    barrier();
    EXPECT(PMIX_ERR_NOT_FOUND, lookup(keyed("number", other), PMIX_RANGE_SESSION, false));
}

int main(void)
{
    start();
    everybody_finds_everybody();
    absent_names();
    waiting();
    first_read();
    several();
    barrier();
    finish("publish, lookup and unpublish are right");
    return 0;
}
