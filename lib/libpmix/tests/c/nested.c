/* Values that are nested more deeply than servers accept are refused wherever they are read; freeing them has no limit. */
#include <stdbool.h>
#include <string.h>

#include <pmix.h>

#include "check.h"

enum {
    TAKEN = 15,
    REFUSED = 16,
    DEEP = 200,
    DEEPEST = 100000
};

/* A number in so many arrays of infos. */
static pmix_value_t nested(int arrays)
{
    pmix_value_t inner, outer;

    inner.type = PMIX_INT;
    inner.data.integer = 7;
    while (arrays-- > 0) {
        pmix_info_t *info;

        outer.type = PMIX_DATA_ARRAY;
        PMIX_DATA_ARRAY_CREATE(outer.data.darray, 1, PMIX_INFO);
        info = outer.data.darray->array;
        PMIX_LOAD_KEY(info->key, "deeper");
        info->value = inner;
        inner = outer;
    }
    return inner;
}

static void alone(int arrays, pmix_status_t expected)
{
    pmix_value_t value = nested(arrays), copy, *other = NULL;
    pmix_data_buffer_t buffer;
    char *text = NULL;
    int32_t one = 1;
    size_t size;

    CHECK(PMIx_Value_xfer(&copy, &value) == expected);
    CHECK(PMIx_Value_get_size(&value, &size) == expected);
    CHECK(PMIx_Data_copy((void **)&other, &value, PMIX_VALUE) == expected);
    CHECK(PMIx_Data_print(&text, NULL, &value, PMIX_VALUE) == expected);
    free(text);
    text = PMIx_Value_string(&value);
    CHECK((text != NULL) == (expected == PMIX_SUCCESS));
    free(text);
    PMIX_DATA_BUFFER_CONSTRUCT(&buffer);
    CHECK(PMIx_Data_pack(NULL, &buffer, &value, 1, PMIX_VALUE) == expected);
    if (expected == PMIX_SUCCESS) {
        CHECK(PMIx_Value_compare(&value, &copy) == PMIX_EQUAL);
        PMIX_VALUE_DESTRUCT(&copy);
        CHECK(PMIx_Value_compare(&value, other) == PMIX_EQUAL);
        PMIX_VALUE_RELEASE(other);
        CHECK(PMIx_Data_unpack(NULL, &buffer, &copy, &one, PMIX_VALUE) == PMIX_SUCCESS);
        CHECK(PMIx_Value_compare(&value, &copy) == PMIX_EQUAL);
        PMIX_VALUE_DESTRUCT(&copy);
    }
    PMIX_DATA_BUFFER_DESTRUCT(&buffer);
    PMIX_VALUE_DESTRUCT(&value);
    CHECK(value.type == PMIX_UNDEF);
}

static void connected(int arrays, pmix_status_t expected)
{
    pmix_proc_t me;
    pmix_info_t info;
    pmix_value_t *got = NULL;

    CHECK(PMIx_Init(&me, NULL, 0) == PMIX_SUCCESS);
    PMIX_INFO_CONSTRUCT(&info);
    PMIX_LOAD_KEY(info.key, "deep");
    info.value = nested(arrays);
    CHECK(PMIx_Put(PMIX_GLOBAL, "deep", &info.value) == expected);
    CHECK(PMIx_Store_internal(&me, "own", &info.value) == expected);
    CHECK(PMIx_Commit() == PMIX_SUCCESS);
    CHECK(PMIx_Fence(NULL, 0, NULL, 0) == PMIX_SUCCESS);
    if (expected == PMIX_SUCCESS) {
        CHECK(PMIx_Get(&me, "deep", NULL, 0, &got) == PMIX_SUCCESS);
        CHECK(PMIx_Value_compare(&info.value, got) == PMIX_EQUAL);
        PMIX_VALUE_RELEASE(got);
    }
    CHECK(PMIx_Publish(&info, 1) == expected);
    CHECK(PMIx_Notify_event(PMIX_EXTERNAL_ERR_BASE - 1, &me, PMIX_RANGE_NAMESPACE, &info, 1, NULL, NULL) == expected);
    if (expected != PMIX_SUCCESS) {
        CHECK(PMIx_Log(&info, 1, NULL, 0) == expected);
        CHECK(PMIx_Get(&me, "deep", &info, 1, &got) == expected);
    }
    PMIX_INFO_DESTRUCT(&info);
    CHECK(PMIx_Finalize(NULL, 0) == PMIX_SUCCESS);
}

int main(void)
{
    pmix_value_t deepest;

    alone(TAKEN, PMIX_SUCCESS);
    alone(REFUSED, PMIX_ERR_BAD_PARAM);
    alone(DEEP, PMIX_ERR_BAD_PARAM);
    connected(TAKEN, PMIX_SUCCESS);
    connected(REFUSED, PMIX_ERR_BAD_PARAM);
    connected(DEEP, PMIX_ERR_BAD_PARAM);
    deepest = nested(DEEPEST);
    PMIX_VALUE_DESTRUCT(&deepest);
    printf("nesting is bounded\n");
    return 0;
}
