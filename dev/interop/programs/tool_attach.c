/* A tool: attaches to a server as its arguments state, makes the requests that they name, and prints the results.
 *
 *   tool_attach [pid N | nspace NAME | uri URI | tcp URI | file PATH | system | system-first | self NAME RANK | alone |
 *                optional | launcher | timeout N | retries N | delay N]... -- [VERB]...
 *
 * Verbs: me, servers, available, query, table NSPACE, spawn PROGRAM, nohup PROGRAM, publish KEY VALUE, lookup KEY, pending KEY (a lookup
 * that waits), log TEXT (to standard error, and "TEXT too" to standard output), kill NSPACE, signal NSPACE NUMBER, attach KIND VALUE,
 * detach NSPACE, primary NSPACE, primary-when NSPACE SECONDS (at most), primary-coming NSPACE KIND VALUE (waits while it is attached to),
 * again (a second init and its finalize), lost, wait, until FILE (exists). Each prints one line that begins with its name. */
#include <pmix.h>
#include <pmix_tool.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

extern char **environ;
static pmix_proc_t me;
static volatile pmix_status_t event;

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

static const char *word(pmix_status_t status)
{
    return PMIx_Error_string(status);
}

/* Reads one directive from the arguments; returns how many words it took. */
static int directive(char **args, pmix_info_t *info)
{
    bool yes = true;
    const char *name = args[0], *value = args[1];
    pid_t pid;
    uint32_t number;

    if (strcmp(name, "pid") == 0) {
        pid = atoi(value);
        PMIX_INFO_LOAD(info, PMIX_SERVER_PIDINFO, &pid, PMIX_PID);
    } else if (strcmp(name, "nspace") == 0) {
        PMIX_INFO_LOAD(info, PMIX_SERVER_NSPACE, value, PMIX_STRING);
    } else if (strcmp(name, "uri") == 0) {
        PMIX_INFO_LOAD(info, PMIX_SERVER_URI, value, PMIX_STRING);
    } else if (strcmp(name, "tcp") == 0) {
        PMIX_INFO_LOAD(info, PMIX_TCP_URI, value, PMIX_STRING);
    } else if (strcmp(name, "file") == 0) {
        PMIX_INFO_LOAD(info, PMIX_TOOL_ATTACHMENT_FILE, value, PMIX_STRING);
    } else if (strcmp(name, "self") == 0) {
        PMIX_INFO_LOAD(info, PMIX_TOOL_NSPACE, value, PMIX_STRING);
    } else if (strcmp(name, "rank") == 0) {
        number = atoi(value);
        PMIX_INFO_LOAD(info, PMIX_TOOL_RANK, &number, PMIX_PROC_RANK);
    } else if (strcmp(name, "timeout") == 0) {
        number = atoi(value);
        PMIX_INFO_LOAD(info, PMIX_TIMEOUT, &number, PMIX_UINT32);
    } else if (strcmp(name, "retries") == 0) {
        number = atoi(value);
        PMIX_INFO_LOAD(info, PMIX_CONNECT_MAX_RETRIES, &number, PMIX_UINT32);
    } else if (strcmp(name, "delay") == 0) {
        number = atoi(value);
        PMIX_INFO_LOAD(info, PMIX_CONNECT_RETRY_DELAY, &number, PMIX_UINT32);
    } else {
        const char *key = strcmp(name, "system") == 0 ? PMIX_CONNECT_TO_SYSTEM
            : strcmp(name, "system-first") == 0       ? PMIX_CONNECT_SYSTEM_FIRST
            : strcmp(name, "alone") == 0              ? PMIX_TOOL_DO_NOT_CONNECT
            : strcmp(name, "optional") == 0           ? PMIX_TOOL_CONNECT_OPTIONAL
            : strcmp(name, "launcher") == 0           ? PMIX_LAUNCHER
                                                      : NULL;
        if (key == NULL) {
            fprintf(stderr, "what is %s?\n", name);
            exit(2);
        }
        PMIX_INFO_LOAD(info, key, &yes, PMIX_BOOL);
        return 1;
    }
    return 2;
}

static void query(const char *key, const char *nspace)
{
    pmix_query_t query;
    pmix_info_t *results = NULL;
    size_t count = 0;
    pmix_status_t status;

    PMIX_QUERY_CONSTRUCT(&query);
    PMIX_ARGV_APPEND(status, query.keys, key);
    if (nspace != NULL) {
        PMIX_QUERY_QUALIFIERS_CREATE(&query, 1);
        PMIX_INFO_LOAD(&query.qualifiers[0], PMIX_NSPACE, nspace, PMIX_STRING);
    }
    status = PMIx_Query_info(&query, 1, &results, &count);
    printf("%s %s", nspace == NULL ? "query" : "table", word(status));
    for (size_t n = 0; n < count; n++) {
        if (results[n].value.type == PMIX_STRING) {
            printf(" %s", results[n].value.data.string);
        } else if (results[n].value.type == PMIX_DATA_ARRAY && results[n].value.data.darray->type == PMIX_PROC_INFO) {
            pmix_proc_info_t *procs = results[n].value.data.darray->array;
            for (size_t p = 0; p < results[n].value.data.darray->size; p++) {
                printf(" %u:%d", procs[p].proc.rank, procs[p].pid);
            }
        }
    }
    printf("\n");
}

static void available(void)
{
    pmix_query_t query;
    pmix_info_t *results = NULL;
    size_t count = 0;
    pmix_status_t status;

    PMIX_QUERY_CONSTRUCT(&query);
    PMIX_ARGV_APPEND(status, query.keys, PMIX_QUERY_AVAIL_SERVERS);
    status = PMIx_Query_info(&query, 1, &results, &count);
    printf("available %s", word(status));
    for (size_t n = 0; n < count; n++) {
        pmix_data_array_t *servers = results[n].value.data.darray;
        for (size_t s = 0; s < servers->size; s++) {
            pmix_data_array_t *server = ((pmix_info_t *)servers->array)[s].value.data.darray;
            printf(" %s", ((pmix_info_t *)server->array)[0].value.data.string);
        }
    }
    printf("\n");
}

static void spawn(char *program, bool stays)
{
    pmix_app_t app;
    pmix_nspace_t child = "";
    pmix_status_t status;

    PMIX_APP_CONSTRUCT(&app);
    app.cmd = strdup("/bin/sh");
    PMIX_ARGV_APPEND(status, app.argv, "sh");
    PMIX_ARGV_APPEND(status, app.argv, "-c");
    PMIX_ARGV_APPEND(status, app.argv, program);
    app.maxprocs = 1;
    if (getenv("HANDS_ON_ALL") != NULL) {
        for (char **variable = environ; *variable != NULL; variable++) {
            PMIX_ARGV_APPEND(status, app.env, *variable);
        }
    }
    pmix_info_t info[2];
    const char *file = getenv("OUTPUT_FILE");
    PMIX_INFO_LOAD(&info[0], PMIX_NOHUP, &stays, PMIX_BOOL);
    if (file != NULL) {
        PMIX_INFO_LOAD(&info[1], PMIX_IOF_OUTPUT_TO_FILE, file, PMIX_STRING);
    }
    status = PMIx_Spawn(info, file == NULL ? 1 : 2, &app, 1, child);
    printf("spawn %s %s\n", word(status), child);
}

static void lookup(const char *key)
{
    pmix_pdata_t data;

    PMIX_PDATA_CONSTRUCT(&data);
    strncpy(data.key, key, PMIX_MAX_KEYLEN);
    pmix_status_t status = PMIx_Lookup(&data, 1, NULL, 0);
    const char *text = data.value.type == PMIX_STRING ? data.value.data.string : "";
    printf("lookup %s %s %s\n", word(status), status == PMIX_SUCCESS ? data.proc.nspace : "", text);
}

static void pending(const char *key)
{
    pmix_pdata_t data;
    pmix_info_t info;
    int all = 0;

    PMIX_PDATA_CONSTRUCT(&data);
    strncpy(data.key, key, PMIX_MAX_KEYLEN);
    PMIX_INFO_LOAD(&info, PMIX_WAIT, &all, PMIX_INT);
    printf("pending\n");
    fflush(stdout);
    printf("pending ended with %s\n", word(PMIx_Lookup(&data, 1, &info, 1)));
}

static void publish(const char *key, const char *value)
{
    pmix_info_t info;

    PMIX_INFO_LOAD(&info, key, value, PMIX_STRING);
    printf("publish %s\n", word(PMIx_Publish(&info, 1)));
}

static void log_text(const char *text)
{
    pmix_info_t data[2];
    char too[256];

    snprintf(too, sizeof(too), "%s too", text);
    PMIX_INFO_LOAD(&data[0], PMIX_LOG_STDERR, text, PMIX_STRING);
    PMIX_INFO_LOAD(&data[1], PMIX_LOG_STDOUT, too, PMIX_STRING);
    printf("log %s\n", word(PMIx_Log(data, 2, NULL, 0)));
}

static void kill_job(const char *nspace)
{
    pmix_proc_t job;
    pmix_info_t info;
    bool yes = true;

    PMIX_PROC_LOAD(&job, nspace, PMIX_RANK_WILDCARD);
    PMIX_INFO_LOAD(&info, PMIX_JOB_CTRL_KILL, &yes, PMIX_BOOL);
    printf("kill %s\n", word(PMIx_Job_control(&job, 1, &info, 1, NULL, NULL)));
}

static void send_signal(const char *nspace, int number)
{
    pmix_proc_t job;
    pmix_info_t info;

    PMIX_PROC_LOAD(&job, nspace, PMIX_RANK_WILDCARD);
    PMIX_INFO_LOAD(&info, PMIX_JOB_CTRL_SIGNAL, &number, PMIX_INT);
    printf("signal %s\n", word(PMIx_Job_control(&job, 1, &info, 1, NULL, NULL)));
}

static void servers(void)
{
    pmix_proc_t *all = NULL;
    size_t count = 0;
    pmix_status_t status = PMIx_tool_get_servers(&all, &count);

    printf("servers %s", word(status));
    for (size_t n = 0; n < count; n++) {
        printf(" %s", all[n].nspace);
    }
    printf("\n");
}

static int attach(char **args)
{
    pmix_info_t info;
    pmix_proc_t self, server;
    int words = directive(args, &info);
    double began = now();
    pmix_status_t status = PMIx_tool_attach_to_server(&self, &server, &info, 1);

    printf("attach %s %s %s\n", word(status), status == PMIX_SUCCESS ? server.nspace : "",
           status == PMIX_SUCCESS && !PMIX_CHECK_NSPACE(self.nspace, me.nspace) ? self.nspace : "");
    fprintf(stderr, "attach took %.2f ms\n", now() - began);
    return words;
}

static pmix_status_t primary_within(const char *nspace, uint32_t seconds)
{
    pmix_proc_t server;
    pmix_info_t info[2];
    bool yes = true;

    PMIX_PROC_LOAD(&server, nspace, 0);
    PMIX_INFO_LOAD(&info[0], PMIX_WAIT_FOR_CONNECTION, &yes, PMIX_BOOL);
    PMIX_INFO_LOAD(&info[1], PMIX_TIMEOUT, &seconds, PMIX_UINT32);
    return PMIx_tool_set_server(&server, info, 2);
}

static void *primary_at_last(void *nspace)
{
    printf("primary-coming %s\n", word(primary_within(nspace, 300)));
    return NULL;
}

static void on_event(size_t id, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[], size_t ninfo,
                     pmix_info_t *results, size_t nresults, pmix_event_notification_cbfunc_fn_t done, void *cbdata)
{
    (void)id, (void)source, (void)info, (void)ninfo, (void)results, (void)nresults;
    event = status;
    if (done != NULL) {
        done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, cbdata);
    }
}

static void lost(void)
{
    pmix_status_t codes[] = {PMIX_ERR_LOST_CONNECTION};

    PMIx_Register_event_handler(codes, 1, NULL, 0, on_event, NULL, NULL);
    printf("ready\n");
    fflush(stdout);
    while (event == 0) {
        usleep(10000);
    }
    printf("lost %s\n", word(event));
}

static void again(void)
{
    pmix_proc_t same;
    pmix_status_t status = PMIx_tool_init(&same, NULL, 0);

    printf("again %s %s %s\n", word(status), word(PMIx_tool_finalize()),
           PMIX_CHECK_PROCID(&same, &me) ? "same" : "another");
}

static int verb(char **args)
{
    pmix_proc_t server;

    if (strcmp(args[0], "me") == 0) {
        printf("me %s %u\n", me.nspace, me.rank);
    } else if (strcmp(args[0], "servers") == 0) {
        servers();
    } else if (strcmp(args[0], "query") == 0) {
        query(PMIX_QUERY_NAMESPACES, NULL);
    } else if (strcmp(args[0], "table") == 0) {
        query(PMIX_QUERY_PROC_TABLE, args[1]);
        return 2;
    } else if (strcmp(args[0], "spawn") == 0) {
        spawn(args[1], false);
        return 2;
    } else if (strcmp(args[0], "nohup") == 0) {
        spawn(args[1], true);
        return 2;
    } else if (strcmp(args[0], "publish") == 0) {
        publish(args[1], args[2]);
        return 3;
    } else if (strcmp(args[0], "lookup") == 0) {
        lookup(args[1]);
        return 2;
    } else if (strcmp(args[0], "log") == 0) {
        log_text(args[1]);
        return 2;
    } else if (strcmp(args[0], "kill") == 0) {
        kill_job(args[1]);
        return 2;
    } else if (strcmp(args[0], "signal") == 0) {
        send_signal(args[1], atoi(args[2]));
        return 3;
    } else if (strcmp(args[0], "attach") == 0) {
        return 1 + attach(args + 1);
    } else if (strcmp(args[0], "detach") == 0) {
        PMIX_PROC_LOAD(&server, args[1], 0);
        printf("detach %s\n", word(PMIx_tool_disconnect(&server)));
        return 2;
    } else if (strcmp(args[0], "primary") == 0) {
        PMIX_PROC_LOAD(&server, args[1], 0);
        printf("primary %s\n", word(PMIx_tool_set_server(&server, NULL, 0)));
        return 2;
    } else if (strcmp(args[0], "primary-when") == 0) {
        printf("primary-when %s\n", word(primary_within(args[1], atoi(args[2]))));
        return 3;
    } else if (strcmp(args[0], "primary-coming") == 0) {
        pthread_t waiting;
        pthread_create(&waiting, NULL, primary_at_last, args[1]);
        int words = attach(args + 2);
        pthread_join(waiting, NULL);
        return 2 + words;
    } else if (strcmp(args[0], "available") == 0) {
        available();
    } else if (strcmp(args[0], "pending") == 0) {
        pending(args[1]);
        return 2;
    } else if (strcmp(args[0], "again") == 0) {
        again();
    } else if (strcmp(args[0], "lost") == 0) {
        lost();
    } else if (strcmp(args[0], "until") == 0) {
        while (access(args[1], F_OK) != 0)
            nanosleep(&(struct timespec) { .tv_nsec = 1000000 }, NULL);
        return 2;
    } else if (strcmp(args[0], "wait") == 0) {
        printf("waiting\n");
        fflush(stdout);
        for (char c; read(0, &c, 1) > 0 && c != '\n';) {
        }
    } else {
        fprintf(stderr, "what is %s?\n", args[0]);
        exit(2);
    }
    return 1;
}

int main(int argc, char **argv)
{
    pmix_info_t *info;
    size_t count = 0;
    int at = 1;

    alarm(600);
    PMIX_INFO_CREATE(info, 16);
    while (at < argc && strcmp(argv[at], "--") != 0 && count < 16) {
        at += directive(argv + at, &info[count++]);
    }
    double began = now();
    pmix_status_t status = PMIx_tool_init(&me, info, count);
    fprintf(stderr, "init took %.2f ms\n", now() - began);
    printf("init %s\n", word(status));
    fflush(stdout);
    if (status != PMIX_SUCCESS) {
        return 1;
    }
    for (at++; at < argc;) {
        at += verb(argv + at);
        fflush(stdout);
    }
    status = PMIx_tool_finalize();
    printf("finalize %s\n", word(status));
    return 0;
}
