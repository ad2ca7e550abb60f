/* A host registers its machine and prepares a job, and a process of that job finds the result: resources, inventories, attributes,
 * setup, blocks of resources. This program is the host, and with an argument the process. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pmix_server.h>

#include "check.h"

#define HERE "here.example"

static const pmix_nspace_t JOB = "machine-job";
extern char **environ;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

/* One awaited answer. */
struct answer {
    bool there;
    pmix_status_t status;
    pmix_info_t *infos;
    size_t ninfo;
};

static void give(struct answer *answer, pmix_status_t status, pmix_info_t *infos, size_t ninfo)
{
    pthread_mutex_lock(&lock);
    answer->infos = ninfo > 0 ? PMIx_Info_create(ninfo) : NULL;
    for (size_t i = 0; i < ninfo; i++)
        CHECK(PMIx_Info_xfer(&answer->infos[i], &infos[i]) == PMIX_SUCCESS);
    answer->ninfo = ninfo;
    answer->status = status;
    answer->there = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static struct answer *take(struct answer *answer)
{
    pthread_mutex_lock(&lock);
    while (!answer->there)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    return answer;
}

static void op_done(pmix_status_t status, void *cbdata)
{
    give(cbdata, status, NULL, 0);
}

static void infos_given(pmix_status_t status, pmix_info_t *infos, size_t ninfo, void *cbdata, pmix_release_cbfunc_t release,
                        void *release_data)
{
    give(cbdata, status, infos, ninfo);
    if (release != NULL)
        release(release_data);
}

static void setup_given(pmix_status_t status, pmix_info_t infos[], size_t ninfo, void *mine, pmix_op_cbfunc_t release,
                        void *release_data)
{
    give(mine, status, infos, ninfo);
    if (release != NULL)
        release(PMIX_SUCCESS, release_data);
}

static const pmix_info_t *find(const pmix_info_t *infos, size_t ninfo, const char *key)
{
    for (size_t i = 0; i < ninfo; i++)
        if (PMIx_Check_key(infos[i].key, key))
            return &infos[i];
    return NULL;
}

static const pmix_info_t *member(const pmix_value_t *array, const char *key)
{
    CHECK(array->type == PMIX_DATA_ARRAY && array->data.darray->type == PMIX_INFO);
    return find(array->data.darray->array, array->data.darray->size, key);
}

static void node(pmix_info_t *to, const char *name, uint64_t memory)
{
    pmix_data_array_t *array = PMIx_Data_array_create(2, PMIX_INFO);
    pmix_info_t *members = array->array;

    PMIX_INFO_LOAD(&members[0], PMIX_HOSTNAME, name, PMIX_STRING);
    PMIX_INFO_LOAD(&members[1], PMIX_AVAIL_PHYS_MEMORY, &memory, PMIX_UINT64);
    PMIX_LOAD_KEY(to->key, PMIX_NODE_INFO_ARRAY);
    to->value.type = PMIX_DATA_ARRAY;
    to->value.data.darray = array;
}

static size_t times(const pmix_info_t *infos, size_t ninfo, const char *key)
{
    size_t found = 0;

    for (size_t i = 0; i < ninfo; i++)
        found += PMIx_Check_key(infos[i].key, key);
    return found;
}

/* A resource registered twice is there once, with its last value; a deregistered one is not there. */
static void resources_are_there_once(const pmix_proc_t *job)
{
    pmix_value_t *value;
    pmix_info_t *all;
    pmix_info_t where[2];
    bool yes = true;
    size_t n;

    CHECK(PMIx_Get(job, NULL, NULL, 0, &value) == PMIX_SUCCESS && value->type == PMIX_DATA_ARRAY);
    all = value->data.darray->array;
    n = value->data.darray->size;
    CHECK(times(all, n, PMIX_CLUSTER_ID) == 1 && times(all, n, PMIX_RM_NAME) == 1);
    CHECK(times(all, n, PMIX_RM_VERSION) == 0);
    PMIX_VALUE_RELEASE(value);
    PMIX_INFO_LOAD(&where[0], PMIX_NODE_INFO, &yes, PMIX_BOOL);
    PMIX_INFO_LOAD(&where[1], PMIX_HOSTNAME, HERE, PMIX_STRING);
    CHECK(PMIx_Get(job, NULL, where, 2, &value) == PMIX_SUCCESS && value->type == PMIX_DATA_ARRAY);
    all = value->data.darray->array;
    n = value->data.darray->size;
    for (size_t i = 0; i < n; i++)
        CHECK(times(all, n, all[i].key) == 1);
    CHECK(find(all, n, PMIX_AVAIL_PHYS_MEMORY)->value.data.uint64 == 5);
    PMIX_VALUE_RELEASE(value);
    PMIX_INFO_DESTRUCT(&where[1]);
}

/* The process of the job. */
static int process(void)
{
    pmix_info_t where[2];
    pmix_value_t *value;
    pmix_proc_t me, job;
    pmix_query_t query;
    pmix_info_t *answers;
    pmix_resource_unit_t unit = {.type = PMIX_DEVTYPE_GPU, .count = 2};
    size_t n;
    bool yes = true;

    CHECK(getenv("UCX_MACHINE_TEST") != NULL && strcmp(getenv("UCX_MACHINE_TEST"), "harvested") == 0);
    CHECK(getenv("MACHINE_PATH") != NULL && strcmp(getenv("MACHINE_PATH"), "/first:/second") == 0);
    CHECK(getenv("MACHINE_GONE") == NULL);
    CHECK(PMIx_Init(&me, NULL, 0) == PMIX_SUCCESS);
    PMIX_LOAD_PROCID(&job, me.nspace, PMIX_RANK_WILDCARD);
    CHECK(PMIx_Get(&job, PMIX_CLUSTER_ID, NULL, 0, &value) == PMIX_SUCCESS);
    CHECK(value->type == PMIX_STRING && strcmp(value->data.string, "testbed") == 0);
    PMIX_VALUE_RELEASE(value);
    CHECK(PMIx_Get(&job, PMIX_RM_NAME, NULL, 0, &value) == PMIX_SUCCESS);
    CHECK(strcmp(value->data.string, "of the job") == 0);
    PMIX_VALUE_RELEASE(value);
    resources_are_there_once(&job);
    /* A secret of this job's processes. */
    CHECK(PMIx_Get(&job, PMIX_ALLOC_FABRIC, NULL, 0, &value) == PMIX_SUCCESS);
    CHECK(member(value, PMIX_ALLOC_FABRIC_SEC_KEY)->value.data.bo.size == 16);
    CHECK(strcmp(member(value, PMIX_ALLOC_FABRIC_ID)->value.data.string, "net0") == 0);
    PMIX_VALUE_RELEASE(value);
    /* Another node, without processes of this job. */
    PMIX_INFO_LOAD(&where[0], PMIX_NODE_INFO, &yes, PMIX_BOOL);
    PMIX_INFO_LOAD(&where[1], PMIX_HOSTNAME, "far.example", PMIX_STRING);
    CHECK(PMIx_Get(&job, PMIX_AVAIL_PHYS_MEMORY, where, 2, &value) == PMIX_SUCCESS);
    CHECK(value->type == PMIX_UINT64 && value->data.uint64 == 77);
    PMIX_VALUE_RELEASE(value);
    PMIX_QUERY_CONSTRUCT(&query);
    query.keys = PMIx_Argv_split(PMIX_QUERY_ATTRIBUTE_SUPPORT, ',');
    query.qualifiers = PMIx_Info_create(1);
    query.nqual = 1;
    PMIX_INFO_LOAD(&query.qualifiers[0], PMIX_HOST_ATTRIBUTES, "PMIx_Allocation_request", PMIX_STRING);
    CHECK(PMIx_Query_info(&query, 1, &answers, &n) == PMIX_SUCCESS && n == 1);
    const pmix_info_t *allocation = member(&member(&answers[0].value, PMIX_HOST_ATTRIBUTES)->value, "PMIx_Allocation_request");
    CHECK(allocation->value.data.darray->type == PMIX_REGATTR && allocation->value.data.darray->size == 2);
    pmix_regattr_t *first = allocation->value.data.darray->array;
    CHECK(strcmp(first->name, "PMIX_ALLOC_NUM_NODES") == 0 && strcmp(first->string, PMIX_ALLOC_NUM_NODES) == 0);
    PMIX_INFO_FREE(answers, n);
    PMIX_QUERY_DESTRUCT(&query);
    CHECK(PMIx_Resource_block(PMIX_RESOURCE_BLOCK_DEFINE, (char *) "mine", &unit, 1, NULL, 0) == PMIX_SUCCESS);
    CHECK(PMIx_Resource_block(PMIX_RESOURCE_BLOCK_DELETE, (char *) "theirs", NULL, 0, NULL, 0) == PMIX_ERR_NOT_FOUND);
    CHECK(PMIx_Finalize(NULL, 0) == PMIX_SUCCESS);
    return 0;
}

static pmix_status_t resource_block(const pmix_proc_t *requestor, pmix_resource_block_directive_t directive, const char *block,
                                    const pmix_resource_unit_t *units, size_t nunits, const pmix_info_t *info, size_t ninfo,
                                    pmix_op_cbfunc_t callback, void *cbdata)
{
    CHECK(requestor->rank == 0 && find(info, ninfo, PMIX_USERID) != NULL);
    if (strcmp(block, "mine") != 0)
        return PMIX_ERR_NOT_FOUND;
    CHECK(directive == PMIX_RESOURCE_BLOCK_DEFINE && nunits == 1 && units[0].type == PMIX_DEVTYPE_GPU && units[0].count == 2);
    callback(PMIX_SUCCESS, cbdata);
    return PMIX_SUCCESS;
}

static void tell_of_the_machine(void)
{
    struct answer told = {0};
    pmix_info_t infos[4];
    char *attributes[] = {(char *) "PMIX_ALLOC_NUM_NODES", (char *) "site.flavor", NULL};

    PMIX_INFO_LOAD(&infos[0], PMIX_CLUSTER_ID, "an older name", PMIX_STRING);
    node(&infos[1], HERE, 4);
    CHECK(PMIx_server_register_resources(infos, 2, NULL, NULL) == PMIX_OPERATION_SUCCEEDED);
    PMIX_INFO_DESTRUCT(&infos[0]);
    PMIX_INFO_DESTRUCT(&infos[1]);
    PMIX_INFO_LOAD(&infos[0], PMIX_CLUSTER_ID, "testbed", PMIX_STRING);
    PMIX_INFO_LOAD(&infos[1], PMIX_RM_NAME, "of the machine", PMIX_STRING);
    PMIX_INFO_LOAD(&infos[2], PMIX_RM_VERSION, "taken back", PMIX_STRING);
    node(&infos[3], HERE, 5);
    CHECK(PMIx_server_register_resources(infos, 4, op_done, &told) == PMIX_SUCCESS);
    CHECK(take(&told)->status == PMIX_SUCCESS);
    CHECK(PMIx_server_deregister_resources(&infos[2], 1, NULL, NULL) == PMIX_OPERATION_SUCCEEDED);
    for (int i = 0; i < 4; i++)
        PMIX_INFO_DESTRUCT(&infos[i]);
    CHECK(PMIx_Register_attributes((char *) "allocate", attributes) == PMIX_SUCCESS);
    CHECK(PMIx_Register_attributes((char *) "allocate", attributes) == PMIX_ERR_REPEAT_ATTR_REGISTRATION);
    CHECK(PMIx_Register_attributes(NULL, attributes) == PMIX_ERR_BAD_PARAM);
}

static void take_stock(void)
{
    struct answer mine = {0}, told = {0};
    pmix_info_t far;
    const pmix_value_t *array;

    CHECK(PMIx_server_collect_inventory(NULL, 0, NULL, NULL) == PMIX_ERR_BAD_PARAM);
    CHECK(PMIx_server_collect_inventory(NULL, 0, infos_given, &mine) == PMIX_SUCCESS);
    CHECK(take(&mine)->status == PMIX_SUCCESS && mine.ninfo == 1);
    array = &find(mine.infos, 1, PMIX_NODE_INFO_ARRAY)->value;
    CHECK(strcmp(member(array, PMIX_HOSTNAME)->value.data.string, HERE) == 0);
    CHECK(strstr(member(array, PMIX_TOPOLOGY_XML)->value.data.string, "<topology") != NULL);
    /* The host's values override the kernel's. */
    CHECK(member(array, PMIX_AVAIL_PHYS_MEMORY)->value.data.uint64 == 5);
    CHECK(PMIx_server_deliver_inventory(mine.infos, 1, NULL, 0, op_done, &told) == PMIX_SUCCESS);
    CHECK(take(&told)->status == PMIX_SUCCESS);
    PMIX_INFO_FREE(mine.infos, 1);
    memset(&far, 0, sizeof far);
    node(&far, "far.example", 77);
    CHECK(PMIx_server_deliver_inventory(&far, 1, NULL, 0, NULL, NULL) == PMIX_OPERATION_SUCCEEDED);
    PMIX_INFO_DESTRUCT(&far);
}

static void prepare(void)
{
    struct answer setup = {0}, told = {0};
    pmix_info_t infos[4], more[2];
    pmix_data_array_t *fabric = PMIx_Data_array_create(2, PMIX_INFO);
    pmix_info_t *asked = fabric->array;
    pmix_envar_t path = {.envar = (char *) "MACHINE_PATH", .value = (char *) "/first", .separator = ':'};
    uint32_t one = 1;
    bool yes = true;
    char *map;

    PMIX_INFO_LOAD(&asked[0], PMIX_ALLOC_FABRIC_ID, "net0", PMIX_STRING);
    PMIX_INFO_LOAD(&asked[1], PMIX_ALLOC_FABRIC_SEC_KEY, &yes, PMIX_BOOL);
    memset(infos, 0, sizeof infos);
    PMIX_INFO_LOAD(&infos[0], PMIX_SETUP_APP_ALL, &yes, PMIX_BOOL);
    PMIx_generate_regex(HERE ",other.example", &map);
    PMIX_INFO_LOAD(&infos[1], PMIX_NODE_MAP, map, PMIX_REGEX);
    free(map);
    PMIx_generate_ppn("0;1", &map);
    PMIX_INFO_LOAD(&infos[2], PMIX_PROC_MAP, map, PMIX_REGEX);
    free(map);
    PMIX_LOAD_KEY(infos[3].key, PMIX_ALLOC_FABRIC);
    infos[3].value.type = PMIX_DATA_ARRAY;
    infos[3].value.data.darray = fabric;
    CHECK(PMIx_server_setup_application(JOB, infos, 4, setup_given, &setup) == PMIX_SUCCESS);
    CHECK(take(&setup)->status == PMIX_SUCCESS);
    CHECK(find(setup.infos, setup.ninfo, PMIX_ADD_ENVAR) != NULL);
    CHECK(find(setup.infos, setup.ninfo, PMIX_ALLOC_FABRIC) != NULL);
    CHECK(member(&find(setup.infos, setup.ninfo, PMIX_NODE_INFO_ARRAY)->value, PMIX_TOPOLOGY_XML) == NULL);
    /* Before the job is registered, as some hosts do. */
    CHECK(PMIx_server_setup_local_support(JOB, setup.infos, setup.ninfo, op_done, &told) == PMIX_SUCCESS);
    CHECK(take(&told)->status == PMIX_SUCCESS);
    PMIX_INFO_FREE(setup.infos, setup.ninfo);
    for (int i = 3; i < 4; i++)
        PMIX_INFO_DESTRUCT(&infos[i]);
    PMIX_INFO_DESTRUCT(&infos[0]);
    PMIX_INFO_LOAD(&infos[0], PMIX_RM_NAME, "of the job", PMIX_STRING);
    PMIX_INFO_LOAD(&infos[3], PMIX_JOB_SIZE, &one, PMIX_UINT32);
    CHECK(PMIx_server_register_nspace(JOB, 1, &infos[0], 1, NULL, NULL) == PMIX_OPERATION_SUCCEEDED);
    CHECK(PMIx_server_register_nspace(JOB, 1, &infos[3], 1, NULL, NULL) == PMIX_OPERATION_SUCCEEDED);
    for (int i = 0; i < 4; i++)
        PMIX_INFO_DESTRUCT(&infos[i]);
    PMIX_INFO_LOAD(&more[0], PMIX_PREPEND_ENVAR, &path, PMIX_ENVAR);
    PMIX_INFO_LOAD(&more[1], PMIX_UNSET_ENVAR, "MACHINE_GONE", PMIX_STRING);
    CHECK(PMIx_server_setup_local_support(JOB, more, 2, NULL, NULL) == PMIX_OPERATION_SUCCEEDED);
    PMIX_INFO_DESTRUCT(&more[0]);
    PMIX_INFO_DESTRUCT(&more[1]);
}

/* The attributes of a function, as the server reports them. */
static pmix_data_array_t *honoured(const char *function, pmix_info_t **results, size_t *count)
{
    pmix_query_t *query = PMIx_Query_create(1);
    const pmix_value_t *of_server;
    const pmix_info_t *found;
    pmix_data_array_t *keys;

    PMIx_Argv_append_nosize(&query->keys, PMIX_QUERY_ATTRIBUTE_SUPPORT);
    PMIX_QUERY_QUALIFIERS_CREATE(query, 1);
    PMIX_INFO_LOAD(&query->qualifiers[0], PMIX_SERVER_ATTRIBUTES, function, PMIX_STRING);
    CHECK(PMIx_Query_info(query, 1, results, count) == PMIX_SUCCESS && *count == 1);
    PMIx_Query_free(query, 1);
    of_server = &((pmix_info_t *) (*results)->value.data.darray->array)->value;
    CHECK(of_server->data.darray->size == 1);
    found = of_server->data.darray->array;
    CHECK(strcmp(found->key, function) == 0);
    keys = found->value.data.darray;
    CHECK(keys->type == PMIX_REGATTR && keys->size > 0);
    return keys;
}

static pmix_status_t prepare_with(const char *key)
{
    struct answer setup = {0};
    pmix_status_t status;
    pmix_info_t info;
    bool yes = true;

    PMIX_INFO_LOAD(&info, key, &yes, PMIX_BOOL);
    PMIx_Info_required(&info);
    status = PMIx_server_setup_application(JOB, &info, 1, setup_given, &setup);
    if (status == PMIX_SUCCESS) {
        status = take(&setup)->status;
        PMIX_INFO_FREE(setup.infos, setup.ninfo);
    }
    return status;
}

/* Reported attributes are honoured, and others are refused. */
static void keep_ones_word(void)
{
    static const char *const functions[] = {"PMIx_server_init", "PMIx_server_collect_inventory", "PMIx_server_setup_local_support"};
    pmix_info_t *results;
    pmix_regattr_t *attributes;
    pmix_data_array_t *keys;
    size_t count;

    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        honoured(functions[i], &results, &count);
        PMIX_INFO_FREE(results, count);
    }
    keys = honoured("PMIx_server_setup_application", &results, &count);
    attributes = keys->array;
    for (size_t i = 0; i < keys->size; i++)
        CHECK(prepare_with(attributes[i].string) != PMIX_ERR_NOT_SUPPORTED);
    PMIX_INFO_FREE(results, count);
    CHECK(prepare_with(PMIX_ALLOC_FABRIC_ENDPTS) == PMIX_ERR_NOT_SUPPORTED);
    CHECK(prepare_with("no.such.attribute") == PMIX_ERR_NOT_SUPPORTED);
}

static void pack_the_job(void)
{
    pmix_data_buffer_t *buffer = PMIx_Data_buffer_create(), inner;
    pmix_byte_object_t blob;
    pmix_proc_t procs[2], nobody;
    int32_t n = 1;
    char *name = NULL;

    PMIX_LOAD_PROCID(&procs[0], JOB, 0);
    PMIX_LOAD_PROCID(&procs[1], JOB, 1);
    PMIX_LOAD_PROCID(&nobody, "nobody", 0);
    CHECK(PMIx_server_collect_job_info(&nobody, 1, buffer) == PMIX_ERR_NOT_FOUND);
    CHECK(PMIx_server_collect_job_info(procs, 2, buffer) == PMIX_SUCCESS);
    CHECK(PMIx_Data_unpack(NULL, buffer, &blob, &n, PMIX_BYTE_OBJECT) == PMIX_SUCCESS && n == 1);
    PMIx_Data_buffer_construct(&inner);
    CHECK(PMIx_Data_load(&inner, &blob) == PMIX_SUCCESS);
    CHECK(PMIx_Data_unpack(NULL, &inner, &name, &n, PMIX_STRING) == PMIX_SUCCESS && strcmp(name, JOB) == 0);
    free(name);
    PMIx_Data_buffer_destruct(&inner);
    CHECK(PMIx_Data_unpack(NULL, buffer, &blob, &n, PMIX_BYTE_OBJECT) != PMIX_SUCCESS);
    PMIx_Data_buffer_release(buffer);
}

int main(int argc, char **argv)
{
    static pmix_server_module_t module = {.resource_block = resource_block};
    char **env = NULL;
    pmix_info_t info;
    pmix_proc_t proc;
    int status;
    pid_t pid;

    alarm(600);
    if (argc > 1)
        return process();
    setenv("UCX_MACHINE_TEST", "harvested", 1);
    PMIX_INFO_LOAD(&info, PMIX_HOSTNAME, HERE, PMIX_STRING);
    CHECK(PMIx_server_register_resources(&info, 1, NULL, NULL) == PMIX_ERR_INIT);
    CHECK(PMIx_server_init(&module, &info, 1) == PMIX_SUCCESS);
    PMIX_INFO_DESTRUCT(&info);
    tell_of_the_machine();
    take_stock();
    prepare();
    keep_ones_word();
    pack_the_job();
    unsetenv("UCX_MACHINE_TEST");
    setenv("MACHINE_PATH", "/second", 1);
    setenv("MACHINE_GONE", "1", 1);
    env = PMIx_Argv_copy(environ);
    PMIX_LOAD_PROCID(&proc, JOB, 0);
    CHECK(PMIx_server_register_client(&proc, geteuid(), getegid(), NULL, NULL, NULL) == PMIX_OPERATION_SUCCEEDED);
    CHECK(PMIx_server_setup_fork(&proc, &env) == PMIX_SUCCESS);
    pid = fork();
    if (pid == 0) {
        char *arguments[] = {argv[0], (char *) "process", NULL};
        execve("/proc/self/exe", arguments, env);
        _exit(127);
    }
    PMIX_ARGV_FREE(env);
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    CHECK(PMIx_server_finalize() == PMIX_SUCCESS);
    puts("the machine is right");
    return 0;
}
