/* The server's role: counted, repeatable without growth, not inherited by a forked child, harmless to the process's signals and
 * environment; too early, too late, NULL and invalid calls; and modules with the layouts of each release, at the end of memory. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pmix_server.h>

#include "check.h"

extern char **environ;

static pmix_status_t told = PMIX_SUCCESS;
static int answers;

static void hear(pmix_status_t status, void *cbdata)
{
    *(int *) cbdata += 1;
    told = status;
}

static void hear_modex(pmix_status_t status, char *data, size_t size, void *cbdata)
{
    (void) data;
    (void) size;
    hear(status, cbdata);
}

/* Before init, after finalize, in a forked child. */
static void not_a_server(void)
{
    pmix_nspace_t job = "job";
    pmix_proc_t proc;

    PMIX_PROC_LOAD(&proc, job, 0);
    CHECK(PMIx_server_finalize() == PMIX_ERR_INIT);
    CHECK(PMIx_server_register_nspace(job, 1, NULL, 0, NULL, NULL) == PMIX_ERR_INIT);
    CHECK(PMIx_server_register_client(&proc, 0, 0, NULL, NULL, NULL) == PMIX_ERR_INIT);
    CHECK(PMIx_server_dmodex_request(&proc, hear_modex, &answers) == PMIX_ERR_INIT);
    CHECK(PMIx_server_setup_application(job, NULL, 0, NULL, NULL) == PMIX_ERR_INIT);
    CHECK(PMIx_server_setup_local_support(job, NULL, 0, NULL, NULL) == PMIX_ERR_INIT);
    CHECK(PMIx_server_IOF_deliver(&proc, PMIX_FWD_STDOUT_CHANNEL, NULL, NULL, 0, NULL, NULL) == PMIX_ERR_INIT);
    CHECK(PMIx_server_define_process_set(&proc, 1, "set") == PMIX_ERR_INIT);
    answers = 0;
    PMIx_server_deregister_client(&proc, hear, &answers);
    CHECK(answers == 1 && told == PMIX_ERR_INIT);
    PMIx_server_deregister_nspace(job, hear, &answers);
    CHECK(answers == 2 && told == PMIX_ERR_INIT);
    PMIx_server_deregister_client(&proc, NULL, NULL);
    PMIx_server_deregister_nspace(job, NULL, NULL);
}

/* A child that was forked to become a client may be set up by itself; without a server no other process may. */
static pmix_status_t set_up(void)
{
    pmix_nspace_t job = "job";
    char **env = NULL;
    pmix_proc_t proc;
    pmix_status_t status;

    PMIX_PROC_LOAD(&proc, job, 1);
    status = PMIx_server_setup_fork(&proc, &env);
    CHECK((status == PMIX_SUCCESS) == (env != NULL));
    PMIX_ARGV_FREE(env);
    return status;
}

static void nonsense(void)
{
    pmix_nspace_t none = "", unknown = "unknown", bad;
    char **env = NULL, *set = (char *) "set";
    pmix_proc_t proc, nobody;
    pmix_info_t info;

    memset(bad, 0xff, sizeof bad);
    PMIX_PROC_LOAD(&proc, unknown, 0);
    PMIX_PROC_LOAD(&nobody, unknown, PMIX_RANK_WILDCARD);
    CHECK(PMIx_server_register_nspace(NULL, 0, NULL, 0, NULL, NULL) == PMIX_ERR_BAD_PARAM);
    CHECK(PMIx_server_register_nspace(none, 0, NULL, 0, NULL, NULL) == PMIX_ERR_BAD_PARAM);
    CHECK(PMIx_server_register_nspace(bad, 0, NULL, 0, NULL, NULL) == PMIX_ERR_BAD_PARAM);
    PMIX_INFO_LOAD(&info, PMIX_NODE_MAP, "this is no map", PMIX_STRING);
    CHECK(PMIx_server_register_nspace(unknown, 1, &info, 1, NULL, NULL) == PMIX_ERR_BAD_PARAM);
    PMIX_INFO_DESTRUCT(&info);
    CHECK(PMIx_server_register_client(NULL, 0, 0, NULL, NULL, NULL) == PMIX_ERR_BAD_PARAM);
    CHECK(PMIx_server_register_client(&nobody, 0, 0, NULL, NULL, NULL) == PMIX_ERR_BAD_PARAM);
    /* A client may be registered before its job. */
    CHECK(PMIx_server_register_client(&proc, 0, 0, NULL, NULL, NULL) == PMIX_OPERATION_SUCCEEDED);
    CHECK(PMIx_server_setup_fork(NULL, &env) == PMIX_ERR_BAD_PARAM);
    CHECK(PMIx_server_setup_fork(&proc, NULL) == PMIX_ERR_BAD_PARAM);
    CHECK(PMIx_server_dmodex_request(NULL, hear_modex, &answers) == PMIX_ERR_BAD_PARAM);
    CHECK(PMIx_server_dmodex_request(&proc, NULL, NULL) == PMIX_ERR_BAD_PARAM);
    CHECK(PMIx_server_setup_application(none, NULL, 0, NULL, NULL) == PMIX_ERR_BAD_PARAM);
    CHECK(PMIx_server_setup_application(unknown, NULL, 0, NULL, NULL) == PMIX_ERR_BAD_PARAM);
    CHECK(PMIx_server_setup_local_support(NULL, NULL, 0, NULL, NULL) == PMIX_ERR_BAD_PARAM);
    CHECK(PMIx_server_setup_local_support(unknown, NULL, 0, NULL, NULL) == PMIX_OPERATION_SUCCEEDED);
    CHECK(PMIx_server_IOF_deliver(NULL, PMIX_FWD_STDOUT_CHANNEL, NULL, NULL, 0, NULL, NULL) == PMIX_ERR_BAD_PARAM);
    CHECK(PMIx_server_IOF_deliver(&proc, 0, NULL, NULL, 0, NULL, NULL) == PMIX_ERR_BAD_PARAM);
    CHECK(PMIx_server_define_process_set(NULL, 0, set) == PMIX_ERR_BAD_PARAM);
    CHECK(PMIx_server_define_process_set(&proc, 1, NULL) == PMIX_ERR_BAD_PARAM);
    CHECK(PMIx_server_delete_process_set(NULL) == PMIX_ERR_BAD_PARAM);
    CHECK(PMIx_server_delete_process_set(set) == PMIX_ERR_NOT_FOUND);
    PMIx_server_deregister_client(NULL, NULL, NULL);
    PMIx_server_deregister_nspace(NULL, NULL, NULL);
    answers = 0;
    PMIx_server_deregister_client(NULL, hear, &answers);
    CHECK(answers == 1 && told == PMIX_ERR_BAD_PARAM);
    /* An unknown object counts as deregistered. */
    PMIx_server_deregister_nspace(unknown, NULL, NULL);
}

/* Only the array is edited; entries that it has already are replaced. */
static void environment(void)
{
    pmix_nspace_t job = "job";
    char **env = NULL, **before = environ;
    int variables = 0, ranks = 0;
    pmix_proc_t proc;

    CHECK(PMIx_server_register_nspace(job, 2, NULL, 0, NULL, NULL) == PMIX_OPERATION_SUCCEEDED);
    for (char **one = environ; *one != NULL; one++)
        variables++;
    CHECK(PMIx_Argv_append_nosize(&env, "HOME=/nowhere") == PMIX_SUCCESS);
    CHECK(PMIx_Argv_append_nosize(&env, "PMIX_RANK=17") == PMIX_SUCCESS);
    for (uint32_t rank = 0; rank < 2; rank++) {
        PMIX_PROC_LOAD(&proc, job, rank);
        CHECK(PMIx_server_register_client(&proc, getuid(), getgid(), NULL, NULL, NULL) == PMIX_OPERATION_SUCCEEDED);
        CHECK(PMIx_server_setup_fork(&proc, &env) == PMIX_SUCCESS);
    }
    CHECK(strcmp(env[0], "HOME=/nowhere") == 0 && strcmp(env[1], "PMIX_RANK=1") == 0);
    for (char **one = env; *one != NULL; one++)
        ranks += strncmp(*one, "PMIX_RANK=", 10) == 0;
    CHECK(ranks == 1);
    PMIX_ARGV_FREE(env);
    for (char **one = environ; *one != NULL; one++)
        variables--;
    CHECK(environ == before && variables == 0);
    PMIx_server_deregister_nspace(job, NULL, NULL);
}

static int called[32];

static void log_old(const pmix_proc_t *client, const pmix_info_t data[], size_t ndata, const pmix_info_t directives[],
                    size_t ndirs, pmix_op_cbfunc_t callback, void *cbdata)
{
    (void) client, (void) data, (void) ndata, (void) directives, (void) ndirs;
    called[17]++;
    /* Only the first of two answers counts. */
    callback(PMIX_SUCCESS, cbdata);
    callback(PMIX_ERR_NOT_FOUND, cbdata);
}

static pmix_status_t log_new(const pmix_proc_t *client, const pmix_info_t data[], size_t ndata,
                             const pmix_info_t directives[], size_t ndirs, pmix_op_cbfunc_t callback, void *cbdata)
{
    (void) client, (void) data, (void) ndata, (void) directives, (void) ndirs, (void) callback, (void) cbdata;
    called[29]++;
    return PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t session(const pmix_proc_t *requestor, uint32_t id, const pmix_info_t directives[], size_t ndirs,
                             pmix_info_cbfunc_t callback, void *cbdata)
{
    (void) requestor, (void) directives, (void) ndirs, (void) callback, (void) cbdata;
    CHECK(id == 5);
    called[30]++;
    return PMIX_OPERATION_SUCCEEDED;
}

/* Stands beyond the entries: it must never be called. */
static pmix_status_t trap(void)
{
    CHECK(!"an entry that is none has been called");
    return PMIX_ERROR;
}

typedef void (*entry)(void);

/* A server with a module of this many entries, followed by the end of memory or by other data of the host. */
static void module_of(size_t count, bool says, bool ends)
{
    long page = sysconf(_SC_PAGESIZE);
    char *memory = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    entry *entries = (entry *) (memory + page) - count;
    size_t size = count * sizeof(entry);
    pmix_info_t info;
    bool late_log = says && count == 32, has_session = says && count >= 29 && count <= 32 && count != 31;
    pmix_status_t status;

    CHECK(memory != MAP_FAILED);
    entries[17] = (entry) log_old;
    if (count == 29 || count == 30)
        entries[28] = (entry) session;
    if (count == 32) {
        entries[29] = (entry) log_new;
        entries[30] = (entry) session;
    }
    if (ends)
        CHECK(mprotect(memory + page, page, PROT_NONE) == 0);
    else
        for (int i = 0; i < 8; i++)
            entries[count + i] = (entry) trap;
    memset(called, 0, sizeof called);
    PMIX_INFO_LOAD(&info, "phalanx.module.size", &size, PMIX_SIZE);
    /* Not the macro: it would pass another size. */
    CHECK((PMIx_server_init)((pmix_server_module_t *) entries, &info, says) == PMIX_SUCCESS);
    PMIX_INFO_DESTRUCT(&info);
    munmap(memory, 2 * page);

    PMIX_INFO_LOAD(&info, PMIX_LOG_STDERR, "text", PMIX_STRING);
    CHECK(PMIx_Log(&info, 1, NULL, 0) == PMIX_SUCCESS);
    CHECK(called[29] == late_log && called[17] == !late_log);
    PMIX_INFO_DESTRUCT(&info);
    status = PMIx_Session_control(5, NULL, 0, NULL, NULL);
    CHECK(status == (has_session ? PMIX_SUCCESS : PMIX_ERR_NOT_SUPPORTED) && called[30] == has_session);
    CHECK(PMIx_server_finalize() == PMIX_SUCCESS);
}

static void modules(void)
{
    for (size_t count = 28; count <= 34; count++)
        for (int ends = 0; ends < 2; ends++) {
            module_of(count, false, ends);
            module_of(count, true, ends);
        }
}

/* Our header passes the size of the module. */
static void header(void)
{
    pmix_server_module_t module = {0};

    memset(called, 0, sizeof called);
    module.session_control = session;
    CHECK(PMIx_server_init(&module, NULL, 0) == PMIX_SUCCESS);
    CHECK(PMIx_Session_control(5, NULL, 0, NULL, NULL) == PMIX_SUCCESS && called[30] == 1);
    CHECK(PMIx_server_finalize() == PMIX_SUCCESS);
}

/* Without a thread: all work is done in PMIx_Progress, or in calls that wait. */
static void own_progress(int threads)
{
    pmix_nspace_t job = "job";
    pmix_info_t info;
    bool yes = true;

    comes_to("/proc/self/task", threads);
    PMIX_INFO_LOAD(&info, PMIX_EXTERNAL_PROGRESS, &yes, PMIX_BOOL);
    CHECK(PMIx_server_init(NULL, &info, 1) == PMIX_SUCCESS);
    CHECK(entries("/proc/self/task") == threads);
    answers = 0;
    CHECK(PMIx_server_register_nspace(job, 2, NULL, 0, hear, &answers) == PMIX_SUCCESS);
    while (answers == 0)
        PMIx_Progress();
    CHECK(told == PMIX_SUCCESS);
    environment();
    CHECK(PMIx_server_finalize() == PMIX_SUCCESS);
}

/* Inside callbacks no call waits; calls that need not wait work. */
static bool inside;

static void in_callback(pmix_status_t status, void *cbdata)
{
    pmix_nspace_t other = "other";
    pmix_value_t *value = NULL;
    char **env = NULL;
    pmix_proc_t proc;

    PMIX_PROC_LOAD(&proc, other, 0);
    inside = status == PMIX_SUCCESS && PMIx_server_setup_fork(&proc, &env) == PMIX_SUCCESS
             && PMIx_server_register_nspace(other, 0, NULL, 0, NULL, NULL) == PMIX_ERR_WOULD_BLOCK
             && PMIx_Get(&proc, "key", NULL, 0, &value) == PMIX_ERR_WOULD_BLOCK
             && PMIx_server_finalize() == PMIX_ERR_WOULD_BLOCK;
    PMIX_ARGV_FREE(env);
    PMIx_server_deregister_nspace(other, NULL, NULL);
    if (PMIx_server_register_nspace(other, 0, NULL, 0, hear, cbdata) != PMIX_SUCCESS)
        inside = false;
}

static void callbacks(void)
{
    pmix_nspace_t job = "job";
    volatile int *heard = &answers;

    answers = 0;
    CHECK(PMIx_server_init(NULL, NULL, 0) == PMIX_SUCCESS);
    CHECK(PMIx_server_register_nspace(job, 1, NULL, 0, in_callback, &answers) == PMIX_SUCCESS);
    while (*heard == 0)
        usleep(1000);
    CHECK(inside && told == PMIX_SUCCESS);
    CHECK(PMIx_server_finalize() == PMIX_SUCCESS);
}

int main(void)
{
    pmix_proc_t me;
    sigset_t before, after;
    struct sigaction old, now;
    int files = 0, threads = entries("/proc/self/task"), status;
    long memory = 0;

    alarm(600);
    not_a_server();
    CHECK(set_up() == PMIX_ERR_INIT);
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    sigaction(SIGPIPE, NULL, &old);
    for (int round = 0; round < 200; round++) {
        CHECK(PMIx_server_init(NULL, NULL, 0) == PMIX_SUCCESS && PMIx_Initialized() == 1);
        CHECK(PMIx_server_init(NULL, NULL, 0) == PMIX_SUCCESS);
        CHECK(PMIx_Init(&me, NULL, 0) == PMIX_SUCCESS && me.nspace[0] != '\0');
        CHECK(PMIx_server_finalize() == PMIX_SUCCESS);
        CHECK(PMIx_Finalize(NULL, 0) == PMIX_SUCCESS && PMIx_Initialized() == 1);
        environment();
        if (round == 0)
            nonsense();
        if (round == 100) {
            pid_t child = fork();
            if (child == 0) {
                not_a_server();
                CHECK(set_up() == PMIX_SUCCESS);
                CHECK(PMIx_server_init(NULL, NULL, 0) == PMIX_SUCCESS && PMIx_server_finalize() == PMIX_SUCCESS);
                _exit(0);
            }
            CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
        }
        CHECK(PMIx_server_finalize() == PMIX_SUCCESS && PMIx_Initialized() == 0);
        CHECK(PMIx_server_finalize() == PMIX_ERR_INIT);
        if (round == 20) {
            files = entries("/proc/self/fd");
            memory = private_kib();
        }
    }
    CHECK(entries("/proc/self/fd") == files);
    comes_to("/proc/self/task", threads);
    CHECK(private_kib() < memory + 512);
    not_a_server();
    CHECK(set_up() == PMIX_ERR_INIT);
    modules();
    header();
    own_progress(threads);
    callbacks();
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    sigaction(SIGPIPE, NULL, &now);
    for (int signal = 1; signal < NSIG; signal++)
        CHECK(sigismember(&before, signal) == sigismember(&after, signal));
    CHECK(old.sa_handler == now.sa_handler);
    printf("200 servers\n");
    return 0;
}
