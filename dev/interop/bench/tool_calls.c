/* The cost of a tool's calls: attaches to the server of the process PID, queries, spawns, leaves.
 *
 *   tool_calls PID
 *
 * Prints one line per figure: its name and microseconds. */
#include <pmix.h>
#include <pmix_tool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { QUERIES = 50, SPAWNS = 3 };

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static void check(const char *what, pmix_status_t status)
{
    if (status != PMIX_SUCCESS) {
        fprintf(stderr, "%s: %s\n", what, PMIx_Error_string(status));
        exit(1);
    }
}

static void query(void)
{
    pmix_query_t query;
    pmix_info_t *results = NULL;
    size_t count = 0;
    pmix_status_t status;

    PMIX_QUERY_CONSTRUCT(&query);
    PMIX_ARGV_APPEND(status, query.keys, PMIX_QUERY_NAMESPACES);
    double began = now();
    status = PMIx_Query_info(&query, 1, &results, &count);
    printf("query %.1f\n", now() - began);
    check("query", status);
    PMIX_INFO_FREE(results, count);
    PMIX_QUERY_DESTRUCT(&query);
}

static void spawn(void)
{
    pmix_app_t app;
    pmix_info_t info;
    pmix_nspace_t child;
    pmix_status_t status;

    PMIX_APP_CONSTRUCT(&app);
    app.cmd = strdup("/bin/true");
    PMIX_ARGV_APPEND(status, app.argv, "/bin/true");
    app.maxprocs = 1;
    PMIX_INFO_LOAD(&info, PMIX_MAPBY, ":OVERSUBSCRIBE", PMIX_STRING);
    double began = now();
    status = PMIx_Spawn(&info, 1, &app, 1, child);
    printf("spawn %.1f\n", now() - began);
    check("spawn", status);
    PMIX_APP_DESTRUCT(&app);
}

int main(int argc, char **argv)
{
    pmix_proc_t me;
    pmix_info_t info;
    pid_t server = argc > 1 ? atoi(argv[1]) : 0;

    alarm(60);
    PMIX_INFO_LOAD(&info, PMIX_SERVER_PIDINFO, &server, PMIX_PID);
    double began = now();
    pmix_status_t status = PMIx_tool_init(&me, &info, 1);
    printf("attach %.1f\n", now() - began);
    check("attach", status);
    for (int n = 0; n < QUERIES; n++) {
        query();
    }
    for (int n = 0; n < SPAWNS; n++) {
        spawn();
    }
    began = now();
    status = PMIx_tool_finalize();
    printf("leave %.1f\n", now() - began);
    check("leave", status);
    return 0;
}
