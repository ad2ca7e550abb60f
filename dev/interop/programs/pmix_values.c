/* One value of every data type, in every scope: put, commit, fence with data, get one's own and all others.
 *
 * short: no long text. 5.0 compresses it, which crashes 4.2.2. */
#include "check.h"

#include <limits.h>
#include <sys/time.h>

static char long_text[1 << 20];

/* Values point into static memory: nothing here is ever freed. */
static void *remember(const void *bytes, size_t size)
{
    void *copy = malloc(size);

    CHECK(copy != NULL, "no memory");
    return memcpy(copy, bytes, size);
}

static pmix_data_array_t *array_of(pmix_data_type_t type, const void *elements, size_t count, size_t each)
{
    pmix_data_array_t array = {.type = type, .size = count, .array = count ? remember(elements, count * each) : NULL};

    return remember(&array, sizeof array);
}

/* The value of type `type` that rank `rank` puts; false if this program has no value of that type. */
static bool sample(pmix_data_type_t type, pmix_rank_t rank, pmix_value_t *value)
{
    memset(value, 0, sizeof *value);
    value->type = type;
    switch (type) {
    case PMIX_BOOL: value->data.flag = rank % 2 == 0; return true;
    case PMIX_BYTE: value->data.byte = 200 + rank; return true;
    case PMIX_STRING: value->data.string = strdup(keyed("text of rank", rank)); return true;
    case PMIX_SIZE: value->data.size = SIZE_MAX - rank; return true;
    case PMIX_PID: value->data.pid = INT_MAX - rank; return true;
    case PMIX_INT: value->data.integer = INT_MIN + (int)rank; return true;
    case PMIX_INT8: value->data.int8 = -128 + (int)rank; return true;
    case PMIX_INT16: value->data.int16 = -32768 + (int)rank; return true;
    case PMIX_INT32: value->data.int32 = INT32_MIN + (int)rank; return true;
    case PMIX_INT64: value->data.int64 = INT64_MIN + rank; return true;
    case PMIX_UINT: value->data.uint = 3000000000u + rank; return true;
    case PMIX_UINT8: value->data.uint8 = 255 - rank; return true;
    case PMIX_UINT16: value->data.uint16 = 65535 - rank; return true;
    case PMIX_UINT32: value->data.uint32 = UINT32_MAX - rank; return true;
    case PMIX_UINT64: value->data.uint64 = UINT64_MAX - rank; return true;
    case PMIX_FLOAT: value->data.fval = 0.5f + rank; return true;
    case PMIX_DOUBLE: value->data.dval = -1024.25 - rank; return true;
    case PMIX_TIMEVAL: value->data.tv = (struct timeval){.tv_sec = 1700000000 + rank, .tv_usec = 999999}; return true;
    case PMIX_TIME: value->data.time = 1800000000 + rank; return true;
    case PMIX_STATUS: value->data.status = PMIX_ERR_TIMEOUT - (int)rank; return true;
    case PMIX_PROC: {
        pmix_proc_t proc = process(rank + 1000);
        value->data.proc = remember(&proc, sizeof proc);
        return true;
    }
    case PMIX_BYTE_OBJECT:
        value->data.bo.size = 5 + rank;
        value->data.bo.bytes = calloc(1, value->data.bo.size);
        value->data.bo.bytes[0] = 'b';
        value->data.bo.bytes[4] = rank;
        return true;
    case PMIX_PERSIST: value->data.persist = PMIX_PERSIST_APP; return true;
    case PMIX_SCOPE: value->data.scope = PMIX_REMOTE; return true;
    case PMIX_DATA_RANGE: value->data.range = PMIX_RANGE_NAMESPACE; return true;
    case PMIX_PROC_STATE: value->data.state = PMIX_PROC_STATE_RUNNING; return true;
    case PMIX_PROC_INFO: {
        pmix_proc_info_t info = {.proc = process(rank), .hostname = "host.example", .executable_name = "/bin/program",
                                 .pid = 4711 + rank, .state = PMIX_PROC_STATE_CONNECTED};
        value->data.pinfo = remember(&info, sizeof info);
        return true;
    }
    case PMIX_DATA_ARRAY: {
        uint32_t numbers[] = {rank, 1u << 31, 7};
        value->data.darray = array_of(PMIX_UINT32, numbers, 3, sizeof numbers[0]);
        return true;
    }
    case PMIX_PROC_RANK: value->data.rank = PMIX_RANK_WILDCARD - rank; return true;
    case PMIX_ALLOC_DIRECTIVE: value->data.adir = PMIX_ALLOC_EXTEND; return true;
    case PMIX_ENVAR:
        value->data.envar = (pmix_envar_t){.envar = "PATH", .value = strdup(keyed("/opt", rank)), .separator = ':'};
        return true;
    case PMIX_COORD: {
        uint32_t numbers[] = {1, 2, rank};
        pmix_coord_t coord = {.view = PMIX_COORD_LOGICAL_VIEW, .dims = 3, .coord = remember(numbers, sizeof numbers)};
        value->data.coord = remember(&coord, sizeof coord);
        return true;
    }
    case PMIX_JOB_STATE: value->data.jstate = PMIX_JOB_STATE_RUNNING; return true;
    case PMIX_LINK_STATE: value->data.linkstate = PMIX_LINK_UP; return true;
    case PMIX_DEVTYPE: value->data.devtype = PMIX_DEVTYPE_GPU | PMIX_DEVTYPE_DMA; return true;
    case PMIX_LOCTYPE: value->data.locality = PMIX_LOCALITY_SHARE_CORE; return true;
    case PMIX_PROC_NSPACE:
        value->data.nspace = calloc(1, sizeof(pmix_nspace_t));
        strcpy((char *)*value->data.nspace, keyed("nspace", rank));
        return true;
    case PMIX_DEVICE_DIST: {
        pmix_device_distance_t dist = {.uuid = "uuid-1", .osname = "eth0", .type = PMIX_DEVTYPE_NETWORK,
                                       .mindist = 1, .maxdist = 10 + rank};
        value->data.devdist = remember(&dist, sizeof dist);
        return true;
    }
    default: return false;
    }
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static bool same_proc(const pmix_proc_t *a, const pmix_proc_t *b)
{
    return strncmp(a->nspace, b->nspace, PMIX_MAX_NSLEN) == 0 && a->rank == b->rank;
}

static bool same(const pmix_value_t *a, const pmix_value_t *b)
{
    if (a->type != b->type)
        return false;
    switch (a->type) {
    case PMIX_BOOL: return a->data.flag == b->data.flag;
    case PMIX_BYTE: case PMIX_INT8: case PMIX_UINT8: case PMIX_PERSIST: case PMIX_SCOPE: case PMIX_DATA_RANGE:
    case PMIX_PROC_STATE: case PMIX_ALLOC_DIRECTIVE: case PMIX_JOB_STATE: case PMIX_LINK_STATE:
        return a->data.byte == b->data.byte;
    case PMIX_INT16: case PMIX_UINT16: case PMIX_LOCTYPE: return a->data.uint16 == b->data.uint16;
    case PMIX_PID: case PMIX_INT: case PMIX_INT32: case PMIX_UINT: case PMIX_UINT32: case PMIX_STATUS:
    case PMIX_PROC_RANK: return a->data.uint32 == b->data.uint32;
    case PMIX_FLOAT: return a->data.fval == b->data.fval;
    case PMIX_SIZE: case PMIX_INT64: case PMIX_UINT64: case PMIX_TIME: case PMIX_DEVTYPE:
        return a->data.uint64 == b->data.uint64;
    case PMIX_DOUBLE: return a->data.dval == b->data.dval;
    case PMIX_TIMEVAL: return a->data.tv.tv_sec == b->data.tv.tv_sec && a->data.tv.tv_usec == b->data.tv.tv_usec;
    case PMIX_STRING: return same_text(a->data.string, b->data.string);
    case PMIX_PROC: return same_proc(a->data.proc, b->data.proc);
    case PMIX_PROC_NSPACE: return same_text((char *)*a->data.nspace, (char *)*b->data.nspace);
    case PMIX_BYTE_OBJECT:
        return a->data.bo.size == b->data.bo.size && memcmp(a->data.bo.bytes, b->data.bo.bytes, a->data.bo.size) == 0;
    case PMIX_ENVAR:
        return same_text(a->data.envar.envar, b->data.envar.envar) && same_text(a->data.envar.value, b->data.envar.value) &&
               a->data.envar.separator == b->data.envar.separator;
    case PMIX_PROC_INFO: {
        const pmix_proc_info_t *x = a->data.pinfo, *y = b->data.pinfo;
        return same_proc(&x->proc, &y->proc) && same_text(x->hostname, y->hostname) &&
               same_text(x->executable_name, y->executable_name) && x->pid == y->pid && x->state == y->state;
    }
    case PMIX_COORD: {
        const pmix_coord_t *x = a->data.coord, *y = b->data.coord;
        return x->view == y->view && x->dims == y->dims && memcmp(x->coord, y->coord, x->dims * sizeof(uint32_t)) == 0;
    }
    case PMIX_DEVICE_DIST: {
        const pmix_device_distance_t *x = a->data.devdist, *y = b->data.devdist;
        return same_text(x->uuid, y->uuid) && same_text(x->osname, y->osname) && x->type == y->type &&
               x->mindist == y->mindist && x->maxdist == y->maxdist;
    }
    case PMIX_DATA_ARRAY: {
        const pmix_data_array_t *x = a->data.darray, *y = b->data.darray;
        return x->type == y->type && x->size == y->size && memcmp(x->array, y->array, x->size * sizeof(uint32_t)) == 0;
    }
    default: return false;
    }
}

static void put(const char *key, pmix_scope_t scope, pmix_value_t *value)
{
    pmix_status_t status = PMIx_Put(scope, key, value);

    CHECK(status == PMIX_SUCCESS, "put of %s: %s", key, PMIx_Error_string(status));
}

static int types;

static void check_types_of(pmix_rank_t rank)
{
    pmix_proc_t proc = process(rank);

    for (pmix_data_type_t type = 1; type < 70; type++) {
        pmix_value_t expected, *value = NULL;
        char name[32];

        if (!sample(type, rank, &expected))
            continue;
        snprintf(name, sizeof name, "type-%u", type);
        pmix_status_t status = PMIx_Get(&proc, name, NULL, 0, &value);
        CHECK(status == PMIX_SUCCESS, "get of %s from rank %u: %s", name, rank, PMIx_Error_string(status));
        CHECK(same(value, &expected), "%s from rank %u came back wrong, as type %u", name, rank, value->type);
        PMIX_VALUE_RELEASE(value);
        types++;
    }
}

/* Types whose values are integers in memory, and how many bytes they have. */
static const struct {
    pmix_data_type_t type;
    size_t size;
} integers[] = {
    { PMIX_BOOL, sizeof(bool) },     { PMIX_BYTE, 1 },      { PMIX_SIZE, sizeof(size_t) }, { PMIX_PID, sizeof(pid_t) },
    { PMIX_INT, sizeof(int) },       { PMIX_INT8, 1 },      { PMIX_INT16, 2 },             { PMIX_INT32, 4 },
    { PMIX_INT64, 8 },               { PMIX_UINT, sizeof(int) }, { PMIX_UINT8, 1 },        { PMIX_UINT16, 2 },
    { PMIX_UINT32, 4 },              { PMIX_UINT64, 8 },    { PMIX_TIME, sizeof(time_t) }, { PMIX_STATUS, sizeof(pmix_status_t) },
    { PMIX_PROC_RANK, sizeof(pmix_rank_t) },
};

enum { INTEGERS = sizeof integers / sizeof *integers, LONGEST = 3 };

static pmix_data_array_t *numbers(int which, size_t count)
{
    char bytes[LONGEST * 8] = { 0 };

    for (size_t n = 0; n < count; n++)
        bytes[n * integers[which].size] = (char) (integers[which].type == PMIX_BOOL ? n % 2 : n + 1);
    return array_of(integers[which].type, bytes, count, integers[which].size);
}

static bool is_of_numbers(const pmix_value_t *value, int which, size_t count)
{
    const pmix_data_array_t *found = value->data.darray, *expected = numbers(which, count);

    if (value->type != PMIX_DATA_ARRAY || (count > 0 && found == NULL))
        return false;
    return count == 0 ? found == NULL || found->size == 0
                      : found->type == expected->type && found->size == count &&
                            memcmp(found->array, expected->array, count * integers[which].size) == 0;
}

/* For each type an array of each length, alone and inside of an array of infos. */
static void put_numbers(void)
{
    pmix_value_t value = {.type = PMIX_DATA_ARRAY};
    char name[32];

    for (int which = 0; which < INTEGERS; which++) {
        for (size_t count = 0; count <= LONGEST; count++) {
            pmix_info_t info;

            value.data.darray = numbers(which, count);
            snprintf(name, sizeof name, "numbers-%u-%zu", integers[which].type, count);
            put(name, PMIX_GLOBAL, &value);
            PMIX_INFO_CONSTRUCT(&info);
            strcpy(info.key, "numbers");
            info.value = value;
            value.data.darray = array_of(PMIX_INFO, &info, 1, sizeof info);
            snprintf(name, sizeof name, "inside-%u-%zu", integers[which].type, count);
            put(name, PMIX_GLOBAL, &value);
        }
    }
}

static void check_numbers_of(pmix_rank_t rank)
{
    pmix_proc_t proc = process(rank);
    pmix_value_t *value = NULL;
    char name[32];

    for (int which = 0; which < INTEGERS; which++) {
        for (size_t count = 0; count <= LONGEST; count++) {
            snprintf(name, sizeof name, "numbers-%u-%zu", integers[which].type, count);
            OK(PMIx_Get(&proc, name, NULL, 0, &value));
            CHECK(is_of_numbers(value, which, count), "%s of rank %u came back wrong", name, rank);
            PMIX_VALUE_RELEASE(value);
            snprintf(name, sizeof name, "inside-%u-%zu", integers[which].type, count);
            OK(PMIx_Get(&proc, name, NULL, 0, &value));
            CHECK(value->type == PMIX_DATA_ARRAY && value->data.darray->type == PMIX_INFO && value->data.darray->size == 1,
                  "%s of rank %u is no array of one info", name, rank);
            CHECK(is_of_numbers(&((pmix_info_t *) value->data.darray->array)->value, which, count),
                  "%s of rank %u came back wrong", name, rank);
            PMIX_VALUE_RELEASE(value);
        }
    }
}

static void put_arrays(void)
{
    pmix_value_t value = {.type = PMIX_DATA_ARRAY};
    char *texts[] = {"one", "", strdup(keyed("three", me.rank))};
    pmix_info_t infos[2], inner;
    uint32_t number = 77;

    value.data.darray = array_of(PMIX_STRING, texts, 3, sizeof texts[0]);
    put("array-of-strings", PMIX_GLOBAL, &value);
    PMIX_INFO_LOAD(&infos[0], "first", &number, PMIX_UINT32);
    PMIX_INFO_LOAD(&inner, "deep", "down", PMIX_STRING);
    PMIX_INFO_CONSTRUCT(&infos[1]);
    strcpy(infos[1].key, "second");
    infos[1].value.type = PMIX_DATA_ARRAY;
    infos[1].value.data.darray = array_of(PMIX_INFO, &inner, 1, sizeof inner);
    value.data.darray = array_of(PMIX_INFO, infos, 2, sizeof infos[0]);
    put("array-of-infos", PMIX_GLOBAL, &value);
}

static void check_arrays_of(pmix_rank_t rank)
{
    pmix_proc_t proc = process(rank);
    pmix_value_t *value = NULL;

    OK(PMIx_Get(&proc, "array-of-strings", NULL, 0, &value));
    CHECK(value->type == PMIX_DATA_ARRAY && value->data.darray->type == PMIX_STRING && value->data.darray->size == 3,
          "wrong array of strings");
    char **texts = value->data.darray->array;
    CHECK(same_text(texts[0], "one") && same_text(texts[2], keyed("three", rank)), "wrong strings");
    CHECK(texts[1] == NULL || texts[1][0] == '\0', "the empty string is \"%s\"", texts[1]);
    PMIX_VALUE_RELEASE(value);
    OK(PMIx_Get(&proc, "array-of-infos", NULL, 0, &value));
    CHECK(value->type == PMIX_DATA_ARRAY && value->data.darray->type == PMIX_INFO && value->data.darray->size == 2,
          "wrong array of infos");
    pmix_info_t *infos = value->data.darray->array;
    CHECK(same_text(infos[0].key, "first") && infos[0].value.data.uint32 == 77, "wrong first info");
    CHECK(same_text(infos[1].key, "second") && infos[1].value.type == PMIX_DATA_ARRAY, "wrong second info");
    pmix_info_t *deep = infos[1].value.data.darray->array;
    CHECK(same_text(deep->key, "deep") && same_text(deep->value.data.string, "down"), "wrong info inside the array");
    PMIX_VALUE_RELEASE(value);
}

/* libpmix 5.0 compresses long texts in put, and get may return them compressed. */
static void check_long_text_of(pmix_rank_t rank)
{
    pmix_proc_t proc = process(rank);
    pmix_value_t *value = NULL;

    OK(PMIx_Get(&proc, "long-text", NULL, 0, &value));
    if (value->type == PMIX_COMPRESSED_STRING)
        CHECK(value->data.bo.size > 500, "compressed to %zu bytes", value->data.bo.size);
    else
        CHECK(value->type == PMIX_STRING && same_text(value->data.string, long_text), "wrong, type %u", value->type);
    PMIX_VALUE_RELEASE(value);
}

int main(int argc, char **argv)
{
    bool is_short = argc > 1 && strcmp(argv[1], "short") == 0;
    pmix_value_t value;

    start();
    for (pmix_data_type_t type = 1; type < 70; type++) {
        char name[32];

        snprintf(name, sizeof name, "type-%u", type);
        if (sample(type, me.rank, &value))
            put(name, PMIX_GLOBAL, &value);
    }
    put_arrays();
    put_numbers();
    memset(long_text, 'x', is_short ? 10 : sizeof long_text - 1);
    put_text(PMIX_GLOBAL, "long-text", long_text);
    put_text(PMIX_GLOBAL, "empty-text", "");
    put_text(PMIX_LOCAL, "local-text", "for this node");
    put_text(PMIX_REMOTE, "remote-text", "for other nodes");
    put_text(PMIX_INTERNAL, "internal-text", "for me");
    exchange();

    for (pmix_rank_t rank = 0; rank < job_size; rank++) {
        check_types_of(rank);
        check_arrays_of(rank);
        check_numbers_of(rank);
        check_long_text_of(rank);
        if (is_near(rank)) {
            expect_text(rank, "local-text", NULL, "for this node");
        } else {
            expect_text(rank, "remote-text", NULL, "for other nodes");
            expect_no_value(rank, "local-text", NULL, PMIX_ERR_NOT_FOUND);
        }
    }
    CHECK(types >= 37 * (int)job_size, "only %d types were compared", types / (int)job_size);
    expect_text(me.rank, "internal-text", NULL, "for me");

    /* No rank may still be reading the old values when they change. */
    barrier();
    /* Later values replace earlier ones. */
    put_text(PMIX_GLOBAL, "long-text", "short now");
    put_text(PMIX_GLOBAL, keyed("second-round", me.rank), "new");
    exchange();
    for (pmix_rank_t rank = 0; rank < job_size; rank++)
        expect_text(rank, keyed("second-round", rank), NULL, "new");
    expect_text(me.rank, "long-text", NULL, "short now");
    finish("all values came back");
    return 0;
}
