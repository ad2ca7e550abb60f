/* A process puts several values of one key with different qualifiers: a get with the same qualifiers finds each. */
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include <pmix.h>

#include "check.h"

static pmix_proc_t me;

static void qualify(pmix_info_t *info, uint32_t color)
{
    PMIX_INFO_LOAD(info, "color", &color, PMIX_UINT32);
    PMIX_INFO_SET_QUALIFIER(info);
}

static pmix_status_t put(const char *key, uint32_t color, size_t number)
{
    pmix_data_array_t array;
    pmix_value_t value;
    pmix_status_t status;

    PMIX_DATA_ARRAY_CONSTRUCT(&array, 2, PMIX_INFO);
    PMIX_INFO_LOAD((pmix_info_t *)array.array, key, &number, PMIX_SIZE);
    if (color != 0)
        qualify((pmix_info_t *)array.array + 1, color);
    PMIX_VALUE_LOAD(&value, &array, PMIX_DATA_ARRAY);
    PMIX_DATA_ARRAY_DESTRUCT(&array);
    status = PMIx_Put(PMIX_GLOBAL, PMIX_QUALIFIED_VALUE, &value);
    PMIX_VALUE_DESTRUCT(&value);
    return status;
}

static void put_plain(const char *key, size_t number)
{
    pmix_value_t value;

    PMIX_VALUE_LOAD(&value, &number, PMIX_SIZE);
    CHECK(PMIx_Put(PMIX_GLOBAL, key, &value) == PMIX_SUCCESS);
}

static void expect(uint32_t rank, const char *key, uint32_t color, size_t number)
{
    pmix_value_t *value = NULL;
    pmix_info_t qualifier;
    pmix_proc_t peer;

    PMIX_LOAD_PROCID(&peer, me.nspace, rank);
    qualify(&qualifier, color);
    CHECK(PMIx_Get(&peer, key, &qualifier, color != 0, &value) == PMIX_SUCCESS);
    CHECK(value->type == PMIX_SIZE && value->data.size == number);
    PMIX_VALUE_RELEASE(value);
}

static void expect_none(uint32_t rank, const char *key, uint32_t color)
{
    pmix_value_t *value = NULL;
    pmix_info_t infos[2];
    pmix_proc_t peer;

    PMIX_LOAD_PROCID(&peer, me.nspace, rank);
    qualify(&infos[0], color);
    PMIX_INFO_LOAD(&infos[1], PMIX_IMMEDIATE, NULL, PMIX_BOOL);
    CHECK(PMIx_Get(&peer, key, infos, 2, &value) == PMIX_ERR_NOT_FOUND);
}

/* Keys of the standard as well as others. Values are requested from the server, or come with the fence. */
static void exchange(bool collect, uint32_t size)
{
    const char *keys[] = {collect ? "mine" : "ours", collect ? PMIX_GROUP_LOCAL_CID : PMIX_GROUP_CONTEXT_ID};
    size_t base = collect ? 1000 : 2000;
    pmix_info_t info;

    PMIX_INFO_LOAD(&info, PMIX_COLLECT_DATA, &collect, PMIX_BOOL);
    for (size_t i = 0; i < 2; i++) {
        CHECK(put(keys[i], 1, base + 100 + me.rank) == PMIX_SUCCESS);
        CHECK(put(keys[i], 2, 7) == PMIX_SUCCESS);
        CHECK(put(keys[i], 2, base + 200 + me.rank) == PMIX_SUCCESS);
        put_plain(keys[i], base + 300 + me.rank);
        expect(me.rank, keys[i], 1, base + 100 + me.rank);
    }
    CHECK(PMIx_Commit() == PMIX_SUCCESS);
    CHECK(PMIx_Fence(NULL, 0, &info, 1) == PMIX_SUCCESS);
    for (uint32_t rank = 0; rank < size; rank++) {
        for (size_t i = 0; i < 2; i++) {
            expect(rank, keys[i], 1, base + 100 + rank);
            expect(rank, keys[i], 2, base + 200 + rank);
            expect(rank, keys[i], 0, base + 300 + rank);
            expect_none(rank, keys[i], 3);
        }
        expect_none(rank, "another", 1);
    }
    CHECK(PMIx_Fence(NULL, 0, NULL, 0) == PMIX_SUCCESS);
}

int main(void)
{
    uint32_t size;

    alarm(600);
    CHECK(PMIx_Init(&me, NULL, 0) == PMIX_SUCCESS);
    size = job_size(&me);
    CHECK(put("mine", 0, 1) == PMIX_ERR_BAD_PARAM);
    exchange(false, size);
    exchange(true, size);
    CHECK(PMIx_Finalize(NULL, 0) == PMIX_SUCCESS);
    printf("qualifiers are right\n");
    return 0;
}
