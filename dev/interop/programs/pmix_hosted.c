/* The requests of a client of pmix_host, which checks the resulting upcalls.
 *
 *     pmix_hosted [streams]
 *
 * Servers of 4.2.2 crash when they get output, and make no upcalls for fabrics. */
#include "check.h"
#include "pull.h"
#include <pmix_tool.h>

static int events, foreign, printed, pushed, formats;
static char formatted[256];

static void on_event(size_t reference, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[], size_t ninfo,
                     pmix_info_t results[], size_t nresults, pmix_event_notification_cbfunc_fn_t done, void *cbdata)
{
    (void) reference;
    if (status == PMIX_EXTERNAL_ERR_BASE - 8) {
        CHECK(strcmp(source->nspace, "elsewhere") == 0 && source->rank == 4, "from %s.%u", source->nspace, source->rank);
        __atomic_add_fetch(&foreign, 1, __ATOMIC_SEQ_CST);
    }
    (void) info;
    (void) ninfo;
    (void) results;
    (void) nresults;
    if (status != PMIX_EXTERNAL_ERR_BASE - 8)
        __atomic_add_fetch(&events, 1, __ATOMIC_SEQ_CST);
    done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, cbdata);
}

/* The output of the host as it looks here: the host may have been started with a format. */
static const char *line(void)
{
    return getenv("HOST_OUTPUT") ? "0: written elsewhere\n" : "written elsewhere\n";
}

static void on_output(size_t handle, pmix_iof_channel_t channel, pmix_proc_t *source, pmix_byte_object_t *bytes,
                      pmix_info_t info[], size_t ninfo)
{
    (void) handle;
    (void) info;
    (void) ninfo;
    if (channel == PMIX_FWD_STDOUT_CHANNEL && source->rank == 0 && bytes != NULL && bytes->size == strlen(line())
        && memcmp(bytes->bytes, line(), bytes->size) == 0)
        __atomic_add_fetch(&printed, 1, __ATOMIC_SEQ_CST);
}

static void on_formatted(size_t handle, pmix_iof_channel_t channel, pmix_proc_t *source, pmix_byte_object_t *bytes,
                         pmix_info_t info[], size_t ninfo)
{
    (void) handle;
    (void) channel;
    (void) source;
    (void) info;
    (void) ninfo;
    if (bytes == NULL || bytes->size == 0 || bytes->size >= sizeof formatted)
        return;
    memcpy(formatted, bytes->bytes, bytes->size);
    formatted[bytes->size] = '\0';
    __atomic_add_fetch(&formats, 1, __ATOMIC_SEQ_CST);
}

static void on_pushed(pmix_status_t status, void *cbdata)
{
    (void) cbdata;
    CHECK(status == PMIX_SUCCESS, "%s", PMIx_Error_string(status));
    __atomic_add_fetch(&pushed, 1, __ATOMIC_SEQ_CST);
}

static void await(const int *number)
{
    while (__atomic_load_n(number, __ATOMIC_SEQ_CST) == 0)
        usleep(1000);
}

static void job_data(void)
{
    for (pmix_rank_t rank = 0; rank < job_size; rank++)
        expect_text(rank, "host.place", NULL, rank % 2 ? "odd" : "even");
}

static void modex(void)
{
    put_text(PMIX_GLOBAL, keyed("card", me.rank), keyed("address of", me.rank));
    exchange();
    for (pmix_rank_t rank = 0; rank < job_size; rank++)
        expect_text(rank, keyed("card", rank), NULL, keyed("address of", rank));
}

static void names(void)
{
    pmix_info_t info;
    pmix_pdata_t data;
    char *keys[] = {(char *) keyed("name", me.rank), NULL};

    PMIX_INFO_LOAD(&info, keys[0], "found", PMIX_STRING);
    OK(PMIx_Publish(&info, 1));
    PMIX_INFO_DESTRUCT(&info);
    barrier();
    PMIX_PDATA_CONSTRUCT(&data);
    strcpy(data.key, keyed("name", (me.rank + 1) % job_size));
    OK(PMIx_Lookup(&data, 1, NULL, 0));
    CHECK(data.value.type == PMIX_STRING && strcmp(data.value.data.string, "found") == 0, "another value");
    CHECK(data.proc.rank == (me.rank + 1) % job_size, "of rank %u", data.proc.rank);
    PMIX_PDATA_DESTRUCT(&data);
    barrier();
    OK(PMIx_Unpublish(keys, NULL, 0));
    PMIX_PDATA_CONSTRUCT(&data);
    strcpy(data.key, "nobody published this");
    EXPECT(PMIX_ERR_NOT_FOUND, PMIx_Lookup(&data, 1, NULL, 0));
    PMIX_PDATA_DESTRUCT(&data);
}

static void inquiry(void)
{
    pmix_query_t query;
    pmix_info_t *results = NULL, data, what;
    size_t count = 0;
    pmix_status_t status;
    uint64_t nodes = 3;
    bool yes = true;
    pmix_proc_t target = process(0);
    pmix_status_t code = PMIX_EXTERNAL_ERR_BASE - 8;

    CHECK(PMIx_Register_event_handler(&code, 1, NULL, 0, on_event, NULL, NULL) >= 0, "registration");
    PMIX_QUERY_CONSTRUCT(&query);
    PMIX_ARGV_APPEND(status, query.keys, "host.greeting");
    OK(status);
    OK(PMIx_Query_info(&query, 1, &results, &count));
    CHECK(count == 1 && strcmp(results[0].value.data.string, "welcome") == 0, "%zu results", count);
    PMIX_INFO_FREE(results, count);
    PMIX_QUERY_DESTRUCT(&query);
    await(&foreign);

    PMIX_INFO_LOAD(&data, PMIX_LOG_STDERR, "to be logged", PMIX_STRING);
    OK(PMIx_Log(&data, 1, NULL, 0));
    PMIX_INFO_DESTRUCT(&data);

    PMIX_INFO_LOAD(&data, PMIX_JOB_CTRL_PAUSE, &yes, PMIX_BOOL);
    OK(PMIx_Job_control(&target, 1, &data, 1, &results, &count));
    PMIX_INFO_DESTRUCT(&data);

    PMIX_INFO_LOAD(&data, PMIX_ALLOC_NUM_NODES, &nodes, PMIX_UINT64);
    OK(PMIx_Allocation_request(PMIX_ALLOC_EXTEND, &data, 1, &results, &count));

    PMIX_INFO_LOAD(&what, PMIX_MONITOR_FILE, "/tmp/nothing", PMIX_STRING);
    status = PMIx_Process_monitor(&what, PMIX_MONITOR_FILE_ALERT, NULL, 0, &results, &count);
    /* 4.2.2 monitors files itself, and requires parameters. */
    CHECK(status == PMIX_SUCCESS || status == PMIX_ERR_BAD_PARAM, "%s", PMIx_Error_string(status));
    PMIX_INFO_DESTRUCT(&what);
}

static void credentials(void)
{
    pmix_byte_object_t credential = {0};
    pmix_info_t *results = NULL;
    size_t count = 0;

    OK(PMIx_Get_credential(NULL, 0, &credential));
    CHECK(credential.size == 6 && memcmp(credential.bytes, "sesame", 6) == 0, "%zu bytes", credential.size);
    OK(PMIx_Validate_credential(&credential, NULL, 0, &results, &count));
    credential.bytes[0] = 'x';
    EXPECT(PMIX_ERR_INVALID_CRED, PMIx_Validate_credential(&credential, NULL, 0, &results, &count));
    free(credential.bytes);
}

static void notify(void)
{
    pmix_status_t code = PMIX_EXTERNAL_ERR_BASE - 5;

    CHECK(PMIx_Register_event_handler(&code, 1, NULL, 0, on_event, NULL, NULL) >= 0, "registration");
    barrier();
    if (me.rank == 0)
        OK(PMIx_Notify_event(code, &me, PMIX_RANGE_NAMESPACE, NULL, 0, NULL, NULL));
    if (me.rank != 0)
        await(&events);
    barrier();
}

static void jobs(void)
{
    pmix_app_t app;
    pmix_nspace_t name;
    pmix_status_t status;
    pmix_proc_t all = process(PMIX_RANK_WILDCARD);

    PMIX_APP_CONSTRUCT(&app);
    app.cmd = strdup("/no/such/program");
    PMIX_ARGV_APPEND(status, app.argv, "program");
    PMIX_ARGV_APPEND(status, app.argv, "argument");
    PMIX_ARGV_APPEND(status, app.env, "HOSTED=yes");
    OK(status);
    app.maxprocs = 2;
    OK(PMIx_Spawn(NULL, 0, &app, 1, name));
    CHECK(strcmp(name, "spawned-job") == 0, "%s", name);
    PMIX_APP_DESTRUCT(&app);
    OK(PMIx_Connect(&all, 1, NULL, 0));
    OK(PMIx_Disconnect(&all, 1, NULL, 0));
}

static void group(void)
{
    pmix_proc_t all = process(PMIX_RANK_WILDCARD);
    pmix_info_t want, *results = NULL;
    size_t count = 0, seen = 0;
    bool yes = true;

    PMIX_INFO_LOAD(&want, PMIX_GROUP_ASSIGN_CONTEXT_ID, &yes, PMIX_BOOL);
    OK(PMIx_Group_construct("everybody", &all, 1, &want, 1, &results, &count));
    for (size_t i = 0; i < count; i++)
        if (strcmp(results[i].key, PMIX_GROUP_CONTEXT_ID) == 0 && results[i].value.data.size == 42)
            seen++;
    CHECK(seen == 1, "the context id is not there");
    PMIX_INFO_FREE(results, count);
    OK(PMIx_Group_destruct("everybody", NULL, 0));
}

/* Without a callback it goes to our own output, which is a pipe for this test. */
static void pull_to_own_output(const pmix_proc_t *source)
{
    char text[32] = "";
    ssize_t size = (ssize_t) strlen(line());
    int ends[2], own = dup(1);
    pmix_status_t handle;

    CHECK(pipe(ends) == 0 && dup2(ends[1], 1) == 1, "pipe");
    handle = PMIx_IOF_pull(source, 1, NULL, 0, PMIX_FWD_STDOUT_CHANNEL, NULL, NULL, NULL);
    CHECK(handle >= 0, "%s", PMIx_Error_string(handle));
    CHECK(read(ends[0], text, (size_t) size) == size && strcmp(text, line()) == 0, "%s", text);
    OK(end_pull((size_t) handle, NULL));
    CHECK(dup2(own, 1) == 1, "stdout");
}

/* Output in another format, and in a file, which the library writes. */
static void pull_formatted(const pmix_proc_t *source, const char *key, const char *start, int files)
{
    char path[512], name[1024], text[32] = "";
    size_t size = strlen(start);
    uint32_t none = 0;
    pmix_info_t infos[3];
    pmix_status_t handle;
    FILE *file;

    /* Makes the library ask the host, whatever else is pulled. */
    PMIX_INFO_LOAD(&infos[0], PMIX_IOF_CACHE_SIZE, &none, PMIX_UINT32);
    PMIX_INFO_LOAD(&infos[1], key, NULL, PMIX_BOOL);
    snprintf(path, sizeof path, "%s/%s", getenv("HOST_TMPDIR"), key);
    PMIX_INFO_LOAD(&infos[2], PMIX_IOF_OUTPUT_TO_FILE, path, PMIX_STRING);
    __atomic_store_n(&formats, 0, __ATOMIC_SEQ_CST);
    handle = PMIx_IOF_pull(source, 1, infos, files ? 3 : 2, PMIX_FWD_STDOUT_CHANNEL, on_formatted, NULL, NULL);
    CHECK(handle >= 0, "%s", PMIx_Error_string(handle));
    await(&formats);
    CHECK(strncmp(formatted, start, size) == 0 && strstr(formatted, "written elsewhere\n") != NULL, "%s", formatted);
    if (!files)
        return;
    OK(end_pull((size_t) handle, NULL));
    snprintf(name, sizeof name, "%s.%s.0.stdout", path, source->nspace);
    file = fopen(name, "r");
    CHECK(file != NULL && fread(text, 1, 18, file) == 18 && strcmp(text, "written elsewhere\n") == 0, "%s: %s", name, text);
    fclose(file);
}

static void streams(void)
{
    pmix_proc_t source = process(0);
    pmix_byte_object_t bytes = {.bytes = (char *) "input", .size = 5};
    pmix_status_t handle;

    if (me.rank == 0) {
        handle = PMIx_IOF_pull(&source, 1, NULL, 0, PMIX_FWD_STDOUT_CHANNEL, on_output, NULL, NULL);
        CHECK(handle >= 0, "%s", PMIx_Error_string(handle));
        await(&printed);
        /* 4.2.2 never returns from this. */
        if (strncmp(PMIx_Get_version(), "Phalanx", 7) == 0) {
            OK(end_pull((size_t) handle, NULL));
            pull_to_own_output(&source);
            pull_formatted(&source, PMIX_IOF_TAG_OUTPUT, "[", 1);
            pull_formatted(&source, PMIX_IOF_TIMESTAMP_OUTPUT, "2", 1);
        } else {
            pull_formatted(&source, PMIX_IOF_TAG_OUTPUT, "[", 0);
        }
        /* Without a callback 4.2.2 waits on freed memory. */
        OK(PMIx_IOF_push(&source, 1, &bytes, NULL, 0, on_pushed, NULL));
        await(&pushed);
    }
    barrier();
}

static void fabric(void)
{
    pmix_fabric_t fabric;

    PMIX_FABRIC_CONSTRUCT(&fabric);
    OK(PMIx_Fabric_register(&fabric, NULL, 0));
    CHECK(fabric.ninfo == 1 && strcmp(fabric.info[0].value.data.string, "weavers") == 0, "%zu infos", fabric.ninfo);
    OK(PMIx_Fabric_update(&fabric));
    CHECK(fabric.ninfo == 1 && strcmp(fabric.info[0].value.data.string, "new weavers") == 0, "%zu infos", fabric.ninfo);
    OK(PMIx_Fabric_deregister(&fabric));
}

int main(int argc, char **argv)
{
    start();
    job_data();
    modex();
    names();
    inquiry();
    credentials();
    notify();
    jobs();
    group();
    if (argc > 1 && strcmp(argv[1], "streams") == 0) {
        streams();
        fabric();
    }
    EXPECT(PMIX_SUCCESS, PMIx_Abort(7, "enough", &me, 1));
    barrier();
    finish("the host does what I ask");
    return 0;
}
