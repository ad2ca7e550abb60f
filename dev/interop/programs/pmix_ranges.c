/* Publications and events in every range, seen from every rank: which ranks find and receive which. */
#include "check.h"

#include <semaphore.h>

static const pmix_data_range_t ranges[] = { PMIX_RANGE_PROC_LOCAL, PMIX_RANGE_LOCAL,  PMIX_RANGE_NAMESPACE, PMIX_RANGE_SESSION,
                                            PMIX_RANGE_GLOBAL,     PMIX_RANGE_CUSTOM, PMIX_RANGE_RM };
enum { RANGES = sizeof ranges / sizeof ranges[0], FIRST = PMIX_EXTERNAL_ERR_BASE - 1, LAST = FIRST - RANGES };

/* The rank that another names in its custom range. */
static pmix_rank_t named_by(pmix_rank_t rank)
{
    return (rank + 1) % job_size;
}

/* Whether a range of this rank includes us. */
static bool is_for_us(pmix_rank_t from, pmix_data_range_t range)
{
    switch (range) {
    case PMIX_RANGE_PROC_LOCAL:
        return from == me.rank;
    case PMIX_RANGE_LOCAL:
        return is_near(from);
    case PMIX_RANGE_CUSTOM:
        return from == me.rank || named_by(from) == me.rank;
    default:
        return range != PMIX_RANGE_RM;
    }
}

static size_t said_for(pmix_info_t infos[2], pmix_data_range_t range, pmix_proc_t *named)
{
    *named = process(named_by(me.rank));
    PMIX_INFO_LOAD(&infos[0], PMIX_RANGE, &range, PMIX_DATA_RANGE);
    PMIX_INFO_LOAD(&infos[1], PMIX_EVENT_CUSTOM_RANGE, named, PMIX_PROC);
    return range == PMIX_RANGE_CUSTOM ? 2 : 1;
}

static void publish(pmix_data_range_t range)
{
    pmix_info_t infos[3];
    pmix_proc_t named;
    char key[64];
    size_t count = said_for(infos, range, &named);

    snprintf(key, sizeof key, "range %d of %u", range, me.rank);
    PMIX_INFO_LOAD(&infos[count], key, key, PMIX_STRING);
    OK(PMIx_Publish(infos, count + 1));
}

static void look_up(pmix_rank_t from, pmix_data_range_t range, pmix_data_range_t where)
{
    pmix_pdata_t data;
    pmix_info_t info;

    PMIX_PDATA_CONSTRUCT(&data);
    snprintf(data.key, sizeof data.key, "range %d of %u", range, from);
    PMIX_INFO_LOAD(&info, PMIX_RANGE, &where, PMIX_DATA_RANGE);
    pmix_status_t status = PMIx_Lookup(&data, 1, &info, 1);
    /* Both ranges must allow it. */
    bool found = is_for_us(from, range) && is_for_us(from, where);
    CHECK(status == (found ? PMIX_SUCCESS : PMIX_ERR_NOT_FOUND), "%s, looked up in range %d: %s", data.key, where,
          PMIx_Error_string(status));
    CHECK(!found || strcmp(data.value.data.string, data.key) == 0, "%s is \"%s\"", data.key, data.value.data.string);
    PMIX_PDATA_DESTRUCT(&data);
}

/* By code and sender. */
static volatile int heard[RANGES + 1][64];
static sem_t arrived;

static void on_event(size_t id, pmix_status_t code, const pmix_proc_t *source, pmix_info_t *info, size_t count,
                     pmix_info_t *results, size_t found, pmix_event_notification_cbfunc_fn_t done, void *object)
{
    (void)id, (void)info, (void)count, (void)results, (void)found;
    heard[FIRST - code][source->rank]++;
    if (code == LAST)
        sem_post(&arrived);
    if (done != NULL)
        done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, object);
}

static void events(void)
{
    pmix_status_t codes[RANGES + 1];
    pmix_info_t infos[2];
    pmix_proc_t named;

    OK(sem_init(&arrived, 0, 0));
    for (int i = 0; i <= RANGES; i++)
        codes[i] = FIRST - i;
    pmix_status_t id = PMIx_Register_event_handler(codes, RANGES + 1, NULL, 0, on_event, NULL, NULL);
    CHECK(id >= 0, "%s", PMIx_Error_string(id));
    barrier();
    for (int i = 0; i < RANGES; i++) {
        size_t count = said_for(infos, ranges[i], &named);
        OK(PMIx_Notify_event(FIRST - i, &me, ranges[i], infos + 1, count - 1, NULL, NULL));
    }
    /* Earlier events of a rank must not arrive after this one. */
    OK(PMIx_Notify_event(LAST, &me, PMIX_RANGE_NAMESPACE, NULL, 0, NULL, NULL));
    for (pmix_rank_t rank = 0; rank < job_size; rank++)
        sem_wait(&arrived);
    for (pmix_rank_t rank = 0; rank < job_size; rank++)
        for (int i = 0; i < RANGES; i++)
            /* Ranges do not determine whether a rank receives its own events. */
            CHECK(rank == me.rank || heard[i][rank] == is_for_us(rank, ranges[i]), "range %d of rank %u was heard %d times",
                  ranges[i], rank, heard[i][rank]);
}

int main(void)
{
    start();
    CHECK(job_size <= 64, "too many ranks");
    for (int i = 0; i < RANGES; i++)
        publish(ranges[i]);
    barrier();
    for (pmix_rank_t rank = 0; rank < job_size; rank++)
        for (int i = 0; i < RANGES; i++)
            for (int j = 0; j < RANGES; j++)
                if (ranges[j] != PMIX_RANGE_CUSTOM)
                    look_up(rank, ranges[i], ranges[j]);
    events();
    barrier();
    finish("all ranges are right");
    return 0;
}
