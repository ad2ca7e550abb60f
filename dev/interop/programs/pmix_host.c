/* A small host: implements every upcall of 4.2, starts clients of its own, and checks what it receives.
 *
 *     pmix_host COUNT PROGRAM [ARGUMENT ...]
 *
 * HOST_SERVES in its environment: tools, remote (tools on other nodes as well), foreign (those of other users as well), unasked (tools, but no
 * upcall to admit them). HOST_FILE: the file for
 * its address. HOST_OUTPUT: output has the rank in front of each line.
 *
 * Answers come inside the upcall, from another thread, or as "done already", whichever the standard allows there. Each correct
 * upcall is printed once as "ok NAME"; at the end "host: all right", if all clients ended with 0. */
#define _GNU_SOURCE
#include <pmix.h>
#include <pmix_server.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST 64
static const pmix_nspace_t JOB = "hosted-job";

static uint32_t count;
static int objects[MOST];
static char hostname[256];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int wrong, releases, releases_due, notified;

static void problem(const char *what, const char *format, ...)
{
    va_list arguments;

    fprintf(stderr, "host: %s: ", what);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "\n");
    pthread_mutex_lock(&lock);
    wrong++;
    pthread_mutex_unlock(&lock);
}

#define CHECK(what, condition, ...) do { if (!(condition)) problem(what, #condition ": " __VA_ARGS__); } while (0)

static void ok(const char *what)
{
    static const char *seen[64];
    int i;

    pthread_mutex_lock(&lock);
    for (i = 0; seen[i] != NULL && strcmp(seen[i], what) != 0; i++)
        ;
    if (seen[i] == NULL) {
        seen[i] = what;
        printf("ok %s\n", what);
        fflush(stdout);
    }
    pthread_mutex_unlock(&lock);
}

static bool is_client(const pmix_proc_t *proc)
{
    return proc != NULL && strcmp(proc->nspace, JOB) == 0 && proc->rank < count;
}

static const pmix_info_t *find(const pmix_info_t infos[], size_t n, const char *key)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(infos[i].key, key) == 0)
            return &infos[i];
    return NULL;
}

/* Answers later, on a thread of its own. */
struct later {
    void (*answer)(struct later *);
    void *callback, *cbdata;
    pmix_info_t *infos;
    size_t ninfo;
    char *data;
    size_t size;
    pmix_status_t status;
};

static void *run_later(void *argument)
{
    struct later *later = argument;

    usleep(2000);
    later->answer(later);
    free(later);
    return NULL;
}

static void release(void *data)
{
    free(data);
    pthread_mutex_lock(&lock);
    releases++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void release_infos(void *data)
{
    struct later *infos = data;

    PMIX_INFO_FREE(infos->infos, infos->ninfo);
    release(infos);
}

static void answer_op(struct later *l)
{
    ((pmix_op_cbfunc_t) l->callback)(l->status, l->cbdata);
}

static void answer_modex(struct later *l)
{
    pthread_mutex_lock(&lock);
    releases_due++;
    pthread_mutex_unlock(&lock);
    ((pmix_modex_cbfunc_t) l->callback)(l->status, l->data, l->size, l->cbdata, release, l->data);
}

static void answer_infos(struct later *l)
{
    struct later *owned = malloc(sizeof *owned);

    *owned = *l;
    pthread_mutex_lock(&lock);
    releases_due++;
    pthread_mutex_unlock(&lock);
    ((pmix_info_cbfunc_t) l->callback)(l->status, l->infos, l->ninfo, l->cbdata, release_infos, owned);
}

static pmix_status_t later(struct later what)
{
    pthread_t thread;
    struct later *copy = malloc(sizeof *copy);

    *copy = what;
    if (pthread_create(&thread, NULL, run_later, copy) != 0)
        return PMIX_ERR_NOMEM;
    pthread_detach(thread);
    return PMIX_SUCCESS;
}

/* The host's store of published data. */
static struct { pmix_proc_t by; pmix_info_t info; bool used; } published[256];

static pmix_status_t connected(const pmix_proc_t *proc, void *object, pmix_op_cbfunc_t callback, void *cbdata)
{
    CHECK("client_connected", is_client(proc) && object == &objects[proc->rank], "rank %u", proc->rank);
    ok("client_connected");
    if (callback != NULL)
        callback(PMIX_SUCCESS, cbdata);
    return PMIX_SUCCESS;
}

static pmix_status_t finalized(const pmix_proc_t *proc, void *object, pmix_op_cbfunc_t callback, void *cbdata)
{
    if (PMIX_CHECK_NSPACE(proc->nspace, "tool")) {
        CHECK("tool_finalized", object == NULL, "it has never been registered");
        ok("tool_finalized");
    } else {
        CHECK("client_finalized", is_client(proc) && object == &objects[proc->rank], "rank %u", proc->rank);
        ok("client_finalized");
    }
    return later((struct later) {.answer = answer_op, .callback = callback, .cbdata = cbdata});
}

static pmix_status_t aborted(const pmix_proc_t *proc, void *object, int status, const char message[], pmix_proc_t procs[],
                             size_t nprocs, pmix_op_cbfunc_t callback, void *cbdata)
{
    CHECK("abort", is_client(proc) && object == &objects[proc->rank], "rank %u", proc->rank);
    CHECK("abort", status == 7 && strcmp(message, "enough") == 0, "status %d, \"%s\"", status, message);
    CHECK("abort", nprocs == 1 && procs[0].rank == proc->rank, "%zu processes", nprocs);
    ok("abort");
    return later((struct later) {.answer = answer_op, .callback = callback, .cbdata = cbdata});
}

/* The only node: its contribution is the whole result. */
static pmix_status_t fence(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[], size_t ninfo, char *data,
                           size_t ndata, pmix_modex_cbfunc_t callback, void *cbdata)
{
    (void) info;
    (void) ninfo;
    CHECK("fence", nprocs > 0 && strcmp(procs[0].nspace, JOB) == 0, "%zu processes", nprocs);
    /* The library has given it away. */
    return later((struct later) {.answer = answer_modex, .callback = callback, .cbdata = cbdata, .data = data, .size = ndata});
}

static pmix_status_t direct_modex(const pmix_proc_t *proc, const pmix_info_t info[], size_t ninfo,
                                  pmix_modex_cbfunc_t callback, void *cbdata)
{
    (void) info;
    (void) ninfo;
    (void) callback;
    (void) cbdata;
    CHECK("direct_modex", strcmp(proc->nspace, JOB) != 0, "of rank %u, who is here", proc->rank);
    ok("direct_modex");
    return PMIX_ERR_NOT_FOUND;
}

static pmix_status_t publish(const pmix_proc_t *proc, const pmix_info_t info[], size_t ninfo, pmix_op_cbfunc_t callback,
                             void *cbdata)
{
    const pmix_info_t *user = find(info, ninfo, PMIX_USERID);

    CHECK("publish", is_client(proc), "rank %u", proc->rank);
    CHECK("publish", user != NULL && user->value.data.uint32 == geteuid(), "user");
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < ninfo; i++) {
        int free = 0;
        if (strncmp(info[i].key, "pmix", 4) == 0)
            continue;
        while (published[free].used)
            free++;
        published[free].used = true;
        published[free].by = *proc;
        PMIX_INFO_XFER(&published[free].info, (pmix_info_t *) &info[i]);
    }
    pthread_mutex_unlock(&lock);
    ok("publish");
    return later((struct later) {.answer = answer_op, .callback = callback, .cbdata = cbdata});
}

static size_t find_published(char **keys, pmix_pdata_t *data)
{
    size_t found = 0;

    pthread_mutex_lock(&lock);
    for (size_t i = 0; keys[i] != NULL; i++)
        for (size_t j = 0; j < 256; j++)
            if (published[j].used && strcmp(published[j].info.key, keys[i]) == 0) {
                pmix_value_t *to = &data[found].value;
                pmix_status_t copied;
                data[found].proc = published[j].by;
                PMIX_LOAD_KEY(data[found].key, keys[i]);
                PMIX_VALUE_XFER(copied, to, &published[j].info.value);
                found += copied == PMIX_SUCCESS;
                break;
            }
    pthread_mutex_unlock(&lock);
    return found;
}

static void found(pmix_lookup_cbfunc_t callback, void *cbdata, pmix_pdata_t *data, size_t n)
{
    callback(n > 0 ? PMIX_SUCCESS : PMIX_ERR_NOT_FOUND, data, n, cbdata);
    for (size_t i = 0; i < n; i++)
        PMIX_PDATA_DESTRUCT(&data[i]);
    free(data);
}

/* The keys belong to the library until the answer. */
static void answer_lookup(struct later *l)
{
    char **keys = (char **) l->data;
    pmix_pdata_t *data;
    size_t n;

    PMIX_PDATA_CREATE(data, l->size);
    while ((n = find_published(keys, data)) < l->size) {
        for (size_t i = 0; i < n; i++)
            PMIX_PDATA_DESTRUCT(&data[i]);
        usleep(2000);
    }
    found((pmix_lookup_cbfunc_t) l->callback, l->cbdata, data, n);
}

static pmix_status_t lookup(const pmix_proc_t *proc, char **keys, const pmix_info_t info[], size_t ninfo,
                            pmix_lookup_cbfunc_t callback, void *cbdata)
{
    pmix_pdata_t *data;
    size_t n = 0;

    CHECK("lookup", is_client(proc) && keys != NULL, "rank %u", proc->rank);
    while (keys[n] != NULL)
        n++;
    ok("lookup");
    if (find(info, ninfo, PMIX_WAIT) != NULL)
        return later((struct later) {
            .answer = answer_lookup, .callback = (void *) callback, .cbdata = cbdata, .data = (char *) keys, .size = n});
    /* Inside the upcall. */
    PMIX_PDATA_CREATE(data, n);
    n = find_published(keys, data);
    found(callback, cbdata, data, n);
    return PMIX_SUCCESS;
}

static pmix_status_t unpublish(const pmix_proc_t *proc, char **keys, const pmix_info_t info[], size_t ninfo,
                               pmix_op_cbfunc_t callback, void *cbdata)
{
    (void) info;
    (void) ninfo;
    (void) callback;
    (void) cbdata;
    CHECK("unpublish", is_client(proc), "rank %u", proc->rank);
    pthread_mutex_lock(&lock);
    for (size_t j = 0; j < 256; j++)
        for (char **key = keys; published[j].used && key != NULL && *key != NULL; key++)
            if (published[j].by.rank == proc->rank && strcmp(published[j].info.key, *key) == 0) {
                PMIX_INFO_DESTRUCT(&published[j].info);
                published[j].used = false;
                break;
            }
    pthread_mutex_unlock(&lock);
    ok("unpublish");
    return PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t spawn(const pmix_proc_t *proc, const pmix_info_t job[], size_t ninfo, const pmix_app_t apps[],
                           size_t napps, pmix_spawn_cbfunc_t callback, void *cbdata)
{
    char name[] = "spawned-job";

    (void) job;
    (void) ninfo;
    CHECK("spawn", is_client(proc) && napps == 1, "%zu apps of rank %u", napps, proc->rank);
    CHECK("spawn", strcmp(apps[0].cmd, "/no/such/program") == 0 && apps[0].maxprocs == 2, "%s", apps[0].cmd);
    CHECK("spawn", apps[0].argv != NULL && strcmp(apps[0].argv[1], "argument") == 0, "argv");
    CHECK("spawn", apps[0].env != NULL && strcmp(apps[0].env[0], "HOSTED=yes") == 0, "env");
    ok("spawn");
    callback(PMIX_SUCCESS, name, cbdata);
    return PMIX_SUCCESS;
}

static pmix_status_t connect_procs(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[], size_t ninfo,
                                   pmix_op_cbfunc_t callback, void *cbdata)
{
    (void) info;
    (void) ninfo;
    CHECK("connect", nprocs > 0 && strcmp(procs[0].nspace, JOB) == 0, "%zu processes", nprocs);
    ok("connect");
    return later((struct later) {.answer = answer_op, .callback = callback, .cbdata = cbdata});
}

static pmix_status_t disconnect_procs(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[], size_t ninfo,
                                      pmix_op_cbfunc_t callback, void *cbdata)
{
    (void) info;
    (void) ninfo;
    CHECK("disconnect", nprocs > 0 && strcmp(procs[0].nspace, JOB) == 0, "%zu processes", nprocs);
    ok("disconnect");
    return later((struct later) {.answer = answer_op, .callback = callback, .cbdata = cbdata});
}

static pmix_status_t register_events(pmix_status_t *codes, size_t ncodes, const pmix_info_t info[], size_t ninfo,
                                     pmix_op_cbfunc_t callback, void *cbdata)
{
    (void) codes;
    (void) info;
    (void) ninfo;
    (void) ncodes;
    ok("register_events");
    callback(PMIX_SUCCESS, cbdata);
    return PMIX_SUCCESS;
}

static pmix_status_t deregister_events(pmix_status_t *codes, size_t ncodes, pmix_op_cbfunc_t callback, void *cbdata)
{
    (void) codes;
    (void) ncodes;
    (void) callback;
    (void) cbdata;
    ok("deregister_events");
    return PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t notify_event(pmix_status_t code, const pmix_proc_t *source, pmix_data_range_t range, pmix_info_t info[],
                                  size_t ninfo, pmix_op_cbfunc_t callback, void *cbdata)
{
    (void) info;
    (void) ninfo;
    CHECK("notify_event", strcmp(source->nspace, "elsewhere") != 0, "what came from there came back");
    if (is_client(source)) {
        CHECK("notify_event", code == PMIX_EXTERNAL_ERR_BASE - 5, "code %d", code);
        CHECK("notify_event", range == PMIX_RANGE_NAMESPACE, "range %u", range);
        ok("notify_event");
    }
    (void) callback;
    (void) cbdata;
    return PMIX_OPERATION_SUCCEEDED;
}

static struct later greeting(const char *key, const char *text, void *callback, void *cbdata)
{
    struct later l = {.answer = answer_infos, .callback = callback, .cbdata = cbdata, .ninfo = 1};

    PMIX_INFO_CREATE(l.infos, 1);
    PMIX_INFO_LOAD(&l.infos[0], key, text, PMIX_STRING);
    return l;
}

static void ignore(pmix_status_t status, void *cbdata)
{
    (void) cbdata;
    CHECK("Notify_event", status == PMIX_SUCCESS, "%d", status);
}

/* Raises an event on behalf of a remote process: local ones must get it, and it must not come back to the host. */
static void answer_after_event(struct later *l)
{
    pmix_status_t status;
    pmix_proc_t elsewhere;

    PMIX_LOAD_PROCID(&elsewhere, "elsewhere", 4);
    status = PMIx_Notify_event(PMIX_EXTERNAL_ERR_BASE - 8, &elsewhere, PMIX_RANGE_SESSION, NULL, 0, ignore, NULL);
    CHECK("Notify_event", status == PMIX_SUCCESS || status == PMIX_OPERATION_SUCCEEDED, "%d", status);
    answer_infos(l);
}

static pmix_status_t query(pmix_proc_t *proc, pmix_query_t *queries, size_t n, pmix_info_cbfunc_t callback, void *cbdata)
{
    /* 4.2 queries in the name of the server. */
    CHECK("query", (is_client(proc) || strcmp(proc->nspace, "small-host") == 0) && n == 1, "%zu queries of rank %u", n, proc->rank);
    if (strcmp(queries[0].keys[0], "host.greeting") != 0)
        return PMIX_ERR_NOT_FOUND;
    ok("query");
    struct later answer = greeting("host.greeting", "welcome", (void *) callback, cbdata);
    answer.answer = answer_after_event;
    return later(answer);
}

static void tool_connected(pmix_info_t *info, size_t ninfo, pmix_tool_connection_cbfunc_t callback, void *cbdata)
{
    pmix_proc_t name;

    CHECK("tool_connected", find(info, ninfo, PMIX_USERID) != NULL, "without a user");
    PMIX_LOAD_PROCID(&name, "tool", 0);
    ok("tool_connected");
    callback(PMIX_SUCCESS, &name, cbdata);
}

static void log_data(const pmix_proc_t *client, const pmix_info_t data[], size_t ndata, const pmix_info_t directives[],
                     size_t ndirs, pmix_op_cbfunc_t callback, void *cbdata)
{
    (void) directives;
    (void) ndirs;
    CHECK("log", is_client(client) && ndata >= 1 && strcmp(data[0].value.data.string, "to be logged") == 0, "%zu", ndata);
    ok("log");
    later((struct later) {.answer = answer_op, .callback = callback, .cbdata = cbdata});
}

static pmix_status_t allocate(const pmix_proc_t *client, pmix_alloc_directive_t directive, const pmix_info_t data[],
                              size_t ndata, pmix_info_cbfunc_t callback, void *cbdata)
{
    const pmix_info_t *nodes = find(data, ndata, PMIX_ALLOC_NUM_NODES);

    CHECK("allocate", is_client(client) && directive == PMIX_ALLOC_EXTEND, "directive %u", directive);
    CHECK("allocate", nodes != NULL && nodes->value.data.uint64 == 3, "nodes");
    ok("allocate");
    return later(greeting(PMIX_ALLOC_ID, "more", callback, cbdata));
}

static pmix_status_t job_control(const pmix_proc_t *requestor, const pmix_proc_t targets[], size_t ntargets,
                                 const pmix_info_t directives[], size_t ndirs, pmix_info_cbfunc_t callback, void *cbdata)
{
    CHECK("job_control", is_client(requestor) && ntargets == 1 && targets[0].rank == 0, "%zu targets", ntargets);
    CHECK("job_control", find(directives, ndirs, PMIX_JOB_CTRL_PAUSE) != NULL, "%zu directives", ndirs);
    ok("job_control");
    callback(PMIX_SUCCESS, NULL, 0, cbdata, NULL, NULL);
    return PMIX_SUCCESS;
}

static pmix_status_t monitor(const pmix_proc_t *requestor, const pmix_info_t *what, pmix_status_t error,
                             const pmix_info_t directives[], size_t ndirs, pmix_info_cbfunc_t callback, void *cbdata)
{
    (void) directives;
    (void) ndirs;
    CHECK("monitor", is_client(requestor) && strcmp(what->key, PMIX_MONITOR_FILE) == 0, "%s", what->key);
    CHECK("monitor", error == PMIX_MONITOR_FILE_ALERT, "error %d", error);
    ok("monitor");
    callback(PMIX_SUCCESS, NULL, 0, cbdata, NULL, NULL);
    return PMIX_SUCCESS;
}

static pmix_status_t get_credential(const pmix_proc_t *proc, const pmix_info_t directives[], size_t ndirs,
                                    pmix_credential_cbfunc_t callback, void *cbdata)
{
    pmix_byte_object_t credential = {.bytes = (char *) "sesame", .size = 6};

    (void) directives;
    (void) ndirs;
    CHECK("get_credential", is_client(proc), "rank %u", proc->rank);
    ok("get_credential");
    callback(PMIX_SUCCESS, &credential, NULL, 0, cbdata);
    return PMIX_SUCCESS;
}

static pmix_status_t validate_credential(const pmix_proc_t *proc, const pmix_byte_object_t *credential,
                                         const pmix_info_t directives[], size_t ndirs, pmix_validation_cbfunc_t callback,
                                         void *cbdata)
{
    bool right = credential != NULL && credential->size == 6 && memcmp(credential->bytes, "sesame", 6) == 0;

    (void) directives;
    (void) ndirs;
    CHECK("validate_credential", is_client(proc), "rank %u", proc->rank);
    ok("validate_credential");
    callback(right ? PMIX_SUCCESS : PMIX_ERR_INVALID_CRED, NULL, 0, cbdata);
    return PMIX_SUCCESS;
}

static void op_done(pmix_status_t status, void *data)
{
    pthread_mutex_lock(&lock);
    *(pmix_status_t *) data = status;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

#define PENDING 12345

static pmix_status_t awaited(pmix_status_t *status)
{
    pthread_mutex_lock(&lock);
    while (*status == PENDING)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    return *status;
}

/* Some time after the pull. */
static void deliver(struct later *l)
{
    pmix_byte_object_t bytes = {.bytes = (char *) "written elsewhere\n", .size = 18};
    pmix_status_t status = PENDING, begun;
    pmix_proc_t source;

    (void) l;
    usleep(20000);
    PMIX_LOAD_PROCID(&source, JOB, 0);
    begun = PMIx_server_IOF_deliver(&source, PMIX_FWD_STDOUT_CHANNEL, &bytes, NULL, 0, op_done, &status);
    CHECK("IOF_deliver", begun == PMIX_SUCCESS || begun == PMIX_OPERATION_SUCCEEDED, "%d", begun);
    if (begun == PMIX_SUCCESS)
        CHECK("IOF_deliver", awaited(&status) == PMIX_SUCCESS, "%d", status);
}

static pmix_status_t iof_pull(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t directives[], size_t ndirs,
                              pmix_iof_channel_t channels, pmix_op_cbfunc_t callback, void *cbdata)
{
    if (find(directives, ndirs, PMIX_IOF_STOP) != NULL) {
        ok("iof_stop");
        return PMIX_OPERATION_SUCCEEDED;
    }
    CHECK("iof_pull", nprocs == 1 && procs[0].rank == 0 && channels == PMIX_FWD_STDOUT_CHANNEL, "channels %x", channels);
    ok("iof_pull");
    later((struct later) {.answer = deliver});
    (void) callback;
    (void) cbdata;
    return PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t push_stdin(const pmix_proc_t *source, const pmix_proc_t targets[], size_t ntargets,
                                const pmix_info_t directives[], size_t ndirs, const pmix_byte_object_t *bytes,
                                pmix_op_cbfunc_t callback, void *cbdata)
{
    (void) targets;
    (void) ntargets;
    (void) directives;
    (void) ndirs;
    CHECK("push_stdin", is_client(source) && bytes != NULL, "rank %u", source->rank);
    ok("push_stdin");
    callback(PMIX_SUCCESS, cbdata);
    return PMIX_SUCCESS;
}

static pmix_status_t group(pmix_group_operation_t operation, char id[], const pmix_proc_t procs[], size_t nprocs,
                           const pmix_info_t directives[], size_t ndirs, pmix_info_cbfunc_t callback, void *cbdata)
{
    struct later l = {.answer = answer_infos, .callback = (void *) callback, .cbdata = cbdata};
    size_t context = 42;

    (void) directives;
    (void) ndirs;
    CHECK("group", strcmp(id, "everybody") == 0 && nprocs >= 1, "%s of %zu", id, nprocs);
    (void) procs;
    if (operation == PMIX_GROUP_CONSTRUCT) {
        l.ninfo = 1;
        PMIX_INFO_CREATE(l.infos, 1);
        PMIX_INFO_LOAD(&l.infos[0], PMIX_GROUP_CONTEXT_ID, &context, PMIX_SIZE);
        ok("group construct");
    } else {
        ok("group destruct");
    }
    return later(l);
}

static pmix_status_t fabric(const pmix_proc_t *requestor, pmix_fabric_operation_t operation, const pmix_info_t directives[],
                            size_t ndirs, pmix_info_cbfunc_t callback, void *cbdata)
{
    const pmix_info_t *index = find(directives, ndirs, PMIX_FABRIC_INDEX);

    CHECK("fabric", is_client(requestor), "rank %u", requestor->rank);
    if (operation == PMIX_FABRIC_REQUEST_INFO) {
        ok("fabric request");
        return later(greeting(PMIX_FABRIC_VENDOR, "weavers", (void *) callback, cbdata));
    }
    CHECK("fabric", operation == PMIX_FABRIC_UPDATE_INFO && index != NULL, "operation %u", operation);
    ok("fabric update");
    return later(greeting(PMIX_FABRIC_VENDOR, "new weavers", (void *) callback, cbdata));
}

static pmix_server_module_t module = {
    .client_connected = connected,
    .client_finalized = finalized,
    .abort = aborted,
    .fence_nb = fence,
    .direct_modex = direct_modex,
    .publish = publish,
    .lookup = lookup,
    .unpublish = unpublish,
    .spawn = spawn,
    .connect = connect_procs,
    .disconnect = disconnect_procs,
    .register_events = register_events,
    .deregister_events = deregister_events,
    .notify_event = notify_event,
    .query = query,
    .tool_connected = tool_connected,
    .log = log_data,
    .allocate = allocate,
    .job_control = job_control,
    .monitor = monitor,
    .get_credential = get_credential,
    .validate_credential = validate_credential,
    .iof_pull = iof_pull,
    .push_stdin = push_stdin,
    .group = group,
    .fabric = fabric,
};

static void on_event(size_t reference, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[], size_t ninfo,
                     pmix_info_t results[], size_t nresults, pmix_event_notification_cbfunc_fn_t done, void *cbdata)
{
    (void) reference;
    (void) source;
    (void) info;
    (void) ninfo;
    (void) results;
    (void) nresults;
    if (status == PMIX_EXTERNAL_ERR_BASE - 6) {
        pthread_mutex_lock(&lock);
        notified++;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
    }
    if (done != NULL)
        done(PMIX_EVENT_NO_ACTION_TAKEN, NULL, 0, NULL, NULL, cbdata);
}

static void registered(pmix_status_t status, size_t reference, void *data)
{
    (void) reference;
    op_done(status, data);
}

static void wait_for(const char *what, pmix_status_t begun, pmix_status_t *status)
{
    if (begun == PMIX_OPERATION_SUCCEEDED)
        return;
    if (begun == PMIX_SUCCESS)
        begun = awaited(status);
    if (begun != PMIX_SUCCESS) {
        fprintf(stderr, "host: %s: %s\n", what, PMIx_Error_string(begun));
        exit(1);
    }
}

static void register_job(void)
{
    pmix_info_t *infos, *about;
    pmix_status_t status = PENDING;
    char *regex, ranks[512] = "";
    uint32_t zero = 0;
    uint16_t local;
    size_t n = 5 + count;

    PMIX_INFO_CREATE(infos, n);
    PMIx_generate_regex(hostname, &regex);
    PMIX_INFO_LOAD(&infos[0], PMIX_NODE_MAP, regex, PMIX_REGEX);
    free(regex);
    for (uint32_t i = 0; i < count; i++)
        sprintf(ranks + strlen(ranks), "%s%u", i > 0 ? "," : "", i);
    PMIx_generate_ppn(ranks, &regex);
    PMIX_INFO_LOAD(&infos[1], PMIX_PROC_MAP, regex, PMIX_REGEX);
    free(regex);
    PMIX_INFO_LOAD(&infos[2], PMIX_JOB_SIZE, &count, PMIX_UINT32);
    PMIX_INFO_LOAD(&infos[3], PMIX_UNIV_SIZE, &count, PMIX_UINT32);
    PMIX_INFO_LOAD(&infos[4], PMIX_LOCAL_SIZE, &count, PMIX_UINT32);
    for (uint32_t i = 0; i < count; i++) {
        pmix_data_array_t *array = malloc(sizeof *array);
        local = (uint16_t) i;
        PMIX_INFO_CREATE(about, 4);
        PMIX_INFO_LOAD(&about[0], PMIX_RANK, &i, PMIX_PROC_RANK);
        PMIX_INFO_LOAD(&about[1], PMIX_APPNUM, &zero, PMIX_UINT32);
        PMIX_INFO_LOAD(&about[2], PMIX_LOCAL_RANK, &local, PMIX_UINT16);
        PMIX_INFO_LOAD(&about[3], "host.place", i % 2 ? "odd" : "even", PMIX_STRING);
        array->type = PMIX_INFO;
        array->size = 4;
        array->array = about;
        PMIX_LOAD_KEY(infos[5 + i].key, PMIX_PROC_DATA);
        infos[5 + i].value.type = PMIX_DATA_ARRAY;
        infos[5 + i].value.data.darray = array;
    }
    wait_for("register_nspace", PMIx_server_register_nspace(JOB, (int) count, infos, n, op_done, &status), &status);
    PMIX_INFO_FREE(infos, n);
}

static pid_t begin(uint32_t rank, char **argv)
{
    char **env = NULL;
    pmix_proc_t proc;
    pmix_status_t status = PENDING;
    pid_t pid;

    PMIX_LOAD_PROCID(&proc, JOB, rank);
    wait_for("register_client",
             PMIx_server_register_client(&proc, geteuid(), getegid(), &objects[rank], op_done, &status), &status);
    for (char **one = environ; *one != NULL; one++)
        if (strncmp(*one, "PMIX_", 5) != 0)
            PMIX_ARGV_APPEND(status, env, *one);
    status = PMIx_server_setup_fork(&proc, &env);
    if (status != PMIX_SUCCESS) {
        fprintf(stderr, "host: setup_fork: %s\n", PMIx_Error_string(status));
        exit(1);
    }
    pid = fork();
    if (pid == 0) {
        const char *library = getenv("CLIENT_LIBRARY_PATH");
        if (library != NULL)
            PMIX_SETENV(status, "LD_LIBRARY_PATH", library, &env);
        execve(argv[0], argv, env);
        perror(argv[0]);
        _exit(127);
    }
    PMIX_ARGV_FREE(env);
    return pid;
}

/* Calls of the serving process itself: an event, a get. */
static void raise_event(void)
{
    pmix_status_t status = PENDING;
    pmix_proc_t me;
    pmix_value_t *value = NULL;

    PMIX_LOAD_PROCID(&me, "small-host", 3);
    wait_for("Notify_event", PMIx_Notify_event(PMIX_EXTERNAL_ERR_BASE - 6, &me, PMIX_RANGE_LOCAL, NULL, 0, op_done, &status),
             &status);
    pthread_mutex_lock(&lock);
    while (notified == 0)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    ok("own event");
    PMIX_LOAD_PROCID(&me, JOB, PMIX_RANK_WILDCARD);
    if (PMIx_Get(&me, PMIX_JOB_SIZE, NULL, 0, &value) == PMIX_SUCCESS) {
        CHECK("Get", value->type == PMIX_UINT32 && value->data.uint32 == count, "job size");
        PMIX_VALUE_RELEASE(value);
        ok("own get");
    } else {
        problem("Get", "no job size");
    }
}

int main(int argc, char **argv)
{
    pmix_info_t infos[8];
    size_t ninfos = 4;
    const char *serves = getenv("HOST_SERVES");
    bool yes = true;
    pmix_rank_t rank = 3;
    pmix_status_t status;
    pid_t pids[MOST];
    int ended;

    alarm(600);
    if (argc < 3 || (count = (uint32_t) atoi(argv[1])) < 1 || count > MOST)
        return 2;
    gethostname(hostname, sizeof hostname);
    PMIX_INFO_LOAD(&infos[0], PMIX_SERVER_NSPACE, "small-host", PMIX_STRING);
    PMIX_INFO_LOAD(&infos[1], PMIX_SERVER_RANK, &rank, PMIX_PROC_RANK);
    PMIX_INFO_LOAD(&infos[2], PMIX_SERVER_TMPDIR, getenv("HOST_TMPDIR") ? getenv("HOST_TMPDIR") : "/tmp", PMIX_STRING);
    PMIX_INFO_LOAD(&infos[3], PMIX_HOSTNAME, hostname, PMIX_STRING);
    if (serves != NULL) {
        PMIX_INFO_LOAD(&infos[ninfos++], PMIX_SERVER_TOOL_SUPPORT, &yes, PMIX_BOOL);
        if (strcmp(serves, "remote") == 0)
            PMIX_INFO_LOAD(&infos[ninfos++], PMIX_SERVER_REMOTE_CONNECTIONS, &yes, PMIX_BOOL);
        if (strcmp(serves, "foreign") == 0)
            PMIX_INFO_LOAD(&infos[ninfos++], "pmix.srvr.ftools", &yes, PMIX_BOOL);
        if (strcmp(serves, "unasked") == 0)
            module.tool_connected = NULL;
    }
    if (getenv("HOST_OUTPUT") != NULL)
        PMIX_INFO_LOAD(&infos[ninfos++], PMIX_IOF_RANK_OUTPUT, &yes, PMIX_BOOL);
    if (getenv("HOST_FILE") != NULL)
        PMIX_INFO_LOAD(&infos[ninfos++], PMIX_LAUNCHER_RENDEZVOUS_FILE, getenv("HOST_FILE"), PMIX_STRING);
    status = PMIx_server_init(&module, infos, ninfos);
    for (size_t i = 0; i < ninfos; i++)
        PMIX_INFO_DESTRUCT(&infos[i]);
    if (status != PMIX_SUCCESS) {
        fprintf(stderr, "host: server_init: %s\n", PMIx_Error_string(status));
        return 1;
    }
    fprintf(stderr, "host on %s\n", PMIx_Get_version());
    status = PENDING;
    PMIx_Register_event_handler(NULL, 0, NULL, 0, on_event, registered, &status);
    wait_for("Register_event_handler", PMIX_SUCCESS, &status);
    register_job();
    raise_event();
    for (uint32_t i = 0; i < count; i++)
        pids[i] = begin(i, argv + 2);
    for (uint32_t i = 0; i < count; i++) {
        pmix_proc_t proc;
        PMIX_LOAD_PROCID(&proc, JOB, i);
        CHECK("client", waitpid(pids[i], &ended, 0) == pids[i] && ended == 0, "rank %u: status %x", i, ended);
        status = PENDING;
        PMIx_server_deregister_client(&proc, op_done, &status);
        wait_for("deregister_client", PMIX_SUCCESS, &status);
    }
    status = PENDING;
    PMIx_server_deregister_nspace(JOB, op_done, &status);
    wait_for("deregister_nspace", PMIX_SUCCESS, &status);
    pthread_mutex_lock(&lock);
    while (releases < releases_due)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    status = PMIx_server_finalize();
    CHECK("finalize", status == PMIX_SUCCESS, "%d", status);
    if (wrong == 0)
        printf("host: all right\n");
    return wrong != 0;
}
