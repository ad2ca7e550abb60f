/* Everything that needs no server: values, infos, lists, buffers, strings, and calls before init. */
#include <stdio.h>

#include <pmix_tool.h>

static int wrong;

#define CHECK(condition)                                                        \
    do {                                                                        \
        if (!(condition)) {                                                     \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            wrong++;                                                            \
        }                                                                       \
    } while (0)

static void too_early(void)
{
    pmix_value_t *value = NULL;
    pmix_proc_t proc;
    pmix_info_t info;
    size_t n = 0;

    PMIX_PROC_LOAD(&proc, "somewhere", 0);
    PMIX_INFO_LOAD(&info, "key", "value", PMIX_STRING);
    CHECK(PMIx_Initialized() == 0);
    CHECK(PMIx_Get(&proc, "key", NULL, 0, &value) == PMIX_ERR_INIT);
    CHECK(PMIx_Put(PMIX_GLOBAL, "key", &info.value) == PMIX_ERR_INIT);
    CHECK(PMIx_Commit() == PMIX_ERR_INIT);
    CHECK(PMIx_Fence(NULL, 0, NULL, 0) == PMIX_ERR_INIT);
    CHECK(PMIx_Publish(&info, 1) == PMIX_ERR_INIT);
    CHECK(PMIx_Spawn(NULL, 0, NULL, 0, NULL) == PMIX_ERR_INIT);
    CHECK(PMIx_Query_info(NULL, 0, NULL, &n) == PMIX_ERR_INIT);
    CHECK(PMIx_Abort(1, NULL, NULL, 0) == PMIX_ERR_INIT);
    CHECK(PMIx_Finalize(NULL, 0) == PMIX_ERR_INIT);
    CHECK(PMIx_server_finalize() == PMIX_ERR_INIT);
    PMIX_INFO_DESTRUCT(&info);
}

static void maps(void)
{
    char *nodes = NULL;
    pmix_value_t value, copy;

    CHECK(PMIx_generate_regex("n1,n2,n3", &nodes) == PMIX_SUCCESS);
    CHECK(PMIx_Value_load(&value, nodes, PMIX_REGEX) == PMIX_SUCCESS && value.type == PMIX_REGEX);
    CHECK(value.data.bo.size == strlen(nodes) + 1 && strcmp(value.data.bo.bytes, nodes) == 0);
    CHECK(PMIx_Value_xfer(&copy, &value) == PMIX_SUCCESS && strcmp(copy.data.bo.bytes, nodes) == 0);
    PMIX_VALUE_DESTRUCT(&value);
    PMIX_VALUE_DESTRUCT(&copy);
    CHECK(PMIx_Value_load(&value, "blob:\0component=zlib:\0size=3:\0abc", PMIX_REGEX) == PMIX_SUCCESS);
    CHECK(value.data.bo.size == 33 && memcmp(value.data.bo.bytes + 30, "abc", 3) == 0);
    PMIX_VALUE_DESTRUCT(&value);
    free(nodes);
}

static void values(void)
{
    uint32_t number = 7, seen = 0;
    uint32_t *place = &seen;
    char *text = NULL;
    size_t size = 0;
    double as_double = 0;
    int8_t narrow = 0;
    pmix_value_t one, two;
    pmix_proc_t proc, *copy = NULL;
    pmix_status_t status;

    CHECK(PMIx_Value_load(NULL, &number, PMIX_UINT32) == PMIX_ERR_BAD_PARAM);
    CHECK(PMIx_Value_load(&one, &number, PMIX_UINT32) == PMIX_SUCCESS);
    CHECK(one.type == PMIX_UINT32 && one.data.uint32 == 7);
    PMIX_VALUE_UNLOAD(status, &one, (void **) &place, &size);
    CHECK(status == PMIX_SUCCESS && seen == 7 && size == sizeof seen);
    place = NULL;
    PMIX_VALUE_UNLOAD(status, &one, (void **) &place, &size);
    CHECK(status == PMIX_ERR_BAD_PARAM && place == NULL);
    CHECK(PMIx_Value_get_number(&one, &as_double, PMIX_DOUBLE) == PMIX_SUCCESS && as_double == 7);
    number = 300;
    PMIX_VALUE_LOAD(&two, &number, PMIX_UINT32);
    CHECK(PMIx_Value_get_number(&two, &narrow, PMIX_INT8) == PMIX_ERR_LOST_PRECISION);
    CHECK(PMIx_Value_compare(&one, &two) == PMIX_VALUE2_GREATER);
    CHECK(PMIx_Value_compare(&one, &one) == PMIX_EQUAL);

    PMIX_VALUE_LOAD(&one, "a text", PMIX_STRING);
    PMIX_VALUE_XFER(status, &two, &one);
    CHECK(status == PMIX_SUCCESS && two.data.string != one.data.string && strcmp(two.data.string, "a text") == 0);
    PMIX_VALUE_DESTRUCT(&one);
    CHECK(one.type == PMIX_UNDEF);
    PMIX_VALUE_UNLOAD(status, &two, (void **) &text, &size);
    CHECK(status == PMIX_SUCCESS && size == 6 && strcmp(text, "a text") == 0);
    free(text);
    PMIX_VALUE_DESTRUCT(&two);

    PMIX_LOAD_PROCID(&proc, "job", 3);
    PMIX_VALUE_LOAD(&one, &proc, PMIX_PROC);
    CHECK(PMIX_CHECK_PROCID(one.data.proc, &proc) && one.data.proc != &proc);
    PMIX_VALUE_DESTRUCT(&one);
    CHECK(PMIx_Data_copy((void **) &copy, &proc, PMIX_PROC) == PMIX_SUCCESS && copy->rank == 3);
    PMIX_PROC_FREE(copy, 1);
    CHECK(copy == NULL);

    PMIX_VALUE_LOAD(&one, NULL, PMIX_BOOL);
    CHECK(PMIX_CHECK_TRUE(&one));
    PMIX_VALUE_LOAD(&one, &wrong, PMIX_POINTER);
    PMIX_VALUE_XFER(status, &two, &one);
    CHECK(two.data.ptr == &wrong);
    CHECK(PMIx_Value_load(&one, &number, 999) == PMIX_ERR_UNKNOWN_DATA_TYPE);
}

static void infos(void)
{
    pmix_info_t *info, one;
    pmix_data_array_t array, nested;
    void *list, *next;
    pmix_status_t status;
    uint16_t port = 80;

    PMIX_INFO_CREATE(info, 3);
    CHECK(!PMIX_INFO_IS_END(&info[0]) && PMIX_INFO_IS_END(&info[2]));
    PMIX_INFO_LOAD(&info[0], PMIX_TIMEOUT, &wrong, PMIX_INT);
    PMIX_INFO_REQUIRED(&info[0]);
    CHECK(PMIX_CHECK_KEY(&info[0], PMIX_TIMEOUT) && PMIX_INFO_IS_REQUIRED(&info[0]));
    PMIX_INFO_OPTIONAL(&info[0]);
    CHECK(PMIX_INFO_IS_OPTIONAL(&info[0]));
    PMIX_INFO_FREE(info, 3);
    CHECK(info == NULL);

    list = PMIx_Info_list_start();
    CHECK(PMIx_Info_list_add(list, "first", "1", PMIX_STRING) == PMIX_SUCCESS);
    CHECK(PMIx_Info_list_add(list, "second", &port, PMIX_UINT16) == PMIX_SUCCESS);
    CHECK(PMIx_Info_list_add(list, NULL, &port, PMIX_UINT16) == PMIX_ERR_BAD_PARAM);
    CHECK(PMIx_Info_list_add_unique(list, "first", "2", PMIX_STRING, true) == PMIX_SUCCESS);
    CHECK(PMIx_Info_list_add_unique(list, "first", "3", PMIX_STRING, false) == PMIX_SUCCESS);
    CHECK(PMIx_Info_list_get_size(list) == 2);
    info = PMIx_Info_list_get_info(list, NULL, &next);
    CHECK(strcmp(info->value.data.string, "2") == 0 && next != NULL);
    info = PMIx_Info_list_get_info(list, next, &next);
    CHECK(info->value.data.uint16 == 80 && next == NULL);
    PMIX_INFO_LIST_CONVERT(status, list, &array);
    CHECK(status == PMIX_SUCCESS && array.size == 2 && array.type == PMIX_INFO);
    PMIX_INFO_LIST_RELEASE(list);
    PMIX_INFO_LOAD(&one, "all", &array, PMIX_DATA_ARRAY);
    PMIX_DATA_ARRAY_DESTRUCT(&array);
    nested = *one.value.data.darray;
    CHECK(nested.size == 2 && PMIX_CHECK_KEY((pmix_info_t *) nested.array, "first"));
    PMIX_INFO_DESTRUCT(&one);
    PMIX_DATA_ARRAY_CONSTRUCT(&array, 4, PMIX_PROC);
    CHECK(((pmix_proc_t *) array.array)[3].rank == PMIX_RANK_UNDEF);
    PMIX_DATA_ARRAY_DESTRUCT(&array);
}

static void buffers(void)
{
    pmix_data_buffer_t buffer, other;
    pmix_byte_object_t bytes;
    int32_t numbers[3] = {1, -2, 3}, back[3] = {0, 0, 0}, room = 2;
    char *texts[2] = {"one", "two"}, *read[2] = {NULL, NULL};
    uint8_t *packed = NULL, *plain = NULL, zeroes[5000];
    size_t length = 0, unpacked = 0;
    char *line = NULL;

    PMIX_DATA_BUFFER_CONSTRUCT(&buffer);
    CHECK(PMIx_Data_pack(NULL, &buffer, numbers, 3, PMIX_INT32) == PMIX_SUCCESS);
    CHECK(PMIx_Data_pack(NULL, &buffer, texts, 2, PMIX_STRING) == PMIX_SUCCESS);
    CHECK(PMIx_Data_pack(NULL, NULL, texts, 2, PMIX_STRING) == PMIX_ERR_BAD_PARAM);
    CHECK(PMIx_Data_unpack(NULL, &buffer, back, &room, PMIX_INT32) == PMIX_ERR_UNPACK_INADEQUATE_SPACE);
    room = 3;
    CHECK(PMIx_Data_unpack(NULL, &buffer, back, &room, PMIX_INT32) == PMIX_SUCCESS);
    CHECK(room == 3 && memcmp(numbers, back, sizeof back) == 0);
    PMIX_DATA_BUFFER_CONSTRUCT(&other);
    CHECK(PMIx_Data_copy_payload(&other, &buffer) == PMIX_SUCCESS);
    CHECK(PMIx_Data_unload(&other, &bytes) == PMIX_SUCCESS && other.base_ptr == NULL);
    CHECK(PMIx_Data_load(&other, &bytes) == PMIX_SUCCESS && bytes.bytes == NULL);
    room = 2;
    CHECK(PMIx_Data_unpack(NULL, &other, read, &room, PMIX_STRING) == PMIX_SUCCESS);
    CHECK(room == 2 && strcmp(read[0], "one") == 0 && strcmp(read[1], "two") == 0);
    CHECK(PMIx_Data_unpack(NULL, &other, read, &room, PMIX_STRING) == PMIX_ERR_UNPACK_READ_PAST_END_OF_BUFFER);
    free(read[0]);
    free(read[1]);
    PMIX_DATA_BUFFER_DESTRUCT(&buffer);
    PMIX_DATA_BUFFER_DESTRUCT(&other);

    memset(zeroes, 0, sizeof zeroes);
    CHECK(PMIx_Data_compress(zeroes, sizeof zeroes, &packed, &length) && length < sizeof zeroes);
    CHECK(PMIx_Data_decompress(packed, length, &plain, &unpacked) && unpacked == sizeof zeroes);
    CHECK(memcmp(plain, zeroes, sizeof zeroes) == 0);
    CHECK(!PMIx_Data_decompress(zeroes, 10, &packed, &length));
    free(plain);
    CHECK(PMIx_Data_print(&line, "> ", &numbers[1], PMIX_INT32) == PMIX_SUCCESS && strstr(line, "-2") != NULL);
    free(line);
}

static void texts(void)
{
    char **argv = NULL, **copy, *joined, *map = NULL;
    pmix_status_t status;
    pmix_nspace_t both, cluster, nspace;

    CHECK(strcmp(PMIx_Error_string(PMIX_ERR_NOT_FOUND), "PMIX_ERR_NOT_FOUND") == 0);
    CHECK(strcmp(PMIx_Error_string(-123456), "") != 0);
    CHECK(PMIx_Error_code("PMIX_ERR_TIMEOUT") == PMIX_ERR_TIMEOUT);
    CHECK(strcmp(PMIx_Data_type_string(PMIX_PROC), "PMIX_PROC") == 0);
    CHECK(strcmp(PMIx_Get_attribute_string("PMIX_JOB_SIZE"), PMIX_JOB_SIZE) == 0);
    CHECK(strcmp(PMIx_Get_attribute_name(PMIX_JOB_SIZE), "PMIX_JOB_SIZE") == 0);
    CHECK(strncmp(PMIx_Get_version(), "Phalanx ", 8) == 0);
    CHECK(PMIx_generate_regex("n1,n2,n3", &map) == PMIX_SUCCESS && strncmp(map, "pmix[", 5) == 0);
    free(map);
    CHECK(PMIx_generate_ppn("0-3;4,5", &map) == PMIX_SUCCESS && strcmp(map, "pmix[0-3;4-5]") == 0);
    free(map);
    CHECK(PMIx_generate_regex(NULL, &map) == PMIX_ERR_BAD_PARAM);

    PMIX_ARGV_APPEND(status, argv, "b");
    CHECK(status == PMIX_SUCCESS);
    CHECK(PMIx_Argv_prepend_nosize(&argv, "a") == PMIX_SUCCESS);
    CHECK(PMIx_Argv_append_unique_nosize(&argv, "a") == PMIX_SUCCESS && PMIx_Argv_count(argv) == 2);
    CHECK(PMIx_Setenv("X", "1", true, &argv) == PMIX_SUCCESS && PMIx_Argv_count(argv) == 3);
    CHECK(PMIx_Setenv("X", "2", false, &argv) == PMIX_ERR_EXISTS);
    copy = PMIx_Argv_copy(argv);
    joined = PMIx_Argv_join(copy, ',');
    CHECK(strcmp(joined, "a,b,X=1") == 0);
    PMIX_ARGV_FREE(argv);
    PMIX_ARGV_FREE(copy);
    argv = PMIx_Argv_split_with_empty("a,,b", ',');
    CHECK(PMIx_Argv_count(argv) == 3);
    PMIX_ARGV_FREE(argv);
    free(joined);
    PMIX_LOAD_NSPACE(cluster, "east");
    PMIX_LOAD_NSPACE(nspace, "job7");
    PMIx_Multicluster_nspace_construct(both, cluster, nspace);
    CHECK(strcmp(both, "east:job7") == 0);
    PMIx_Multicluster_nspace_parse(both, cluster, nspace);
    CHECK(PMIX_CHECK_NSPACE(nspace, "job7") && !PMIX_CHECK_NSPACE(cluster, "west"));
}

int main(void)
{
    too_early();
    values();
    maps();
    infos();
    buffers();
    texts();
    too_early();
    printf("%d wrong\n", wrong);
    return wrong != 0;
}
