/* Spawns a job that waits in init for a debugger, and releases it.
 *
 *   tool_debug PID COUNT PROGRAM RELEASED [LIBRARIES]     of the server PID; LIBRARIES: the job's LD_LIBRARY_PATH
 *
 * The file RELEASED is created before the job is released: a rank that does not find it after init was not held. */
#include <pmix.h>
#include <pmix_tool.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "attach.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t news = PTHREAD_COND_INITIALIZER;
static int ready, over;
static char where[64], whose[PMIX_MAX_NSLEN + 1], child[PMIX_MAX_NSLEN + 1];

static void on_event(size_t handler, pmix_status_t code, const pmix_proc_t *source, pmix_info_t info[], size_t count,
                     pmix_info_t results[], size_t nresults, pmix_event_notification_cbfunc_fn_t done, void *data)
{
    (void) handler, (void) source, (void) results, (void) nresults;
    pthread_mutex_lock(&lock);
    ready += code == PMIX_READY_FOR_DEBUG;
    for (size_t n = 0; n < count; n++) {
        /* Servers also report jobs that have ended before. */
        if (code == PMIX_EVENT_JOB_END && PMIX_CHECK_KEY(&info[n], PMIX_EVENT_AFFECTED_PROC))
            over += strcmp(info[n].value.data.proc->nspace, child) == 0;
        if (PMIX_CHECK_KEY(&info[n], PMIX_BREAKPOINT))
            snprintf(where, sizeof where, "%s", info[n].value.data.string);
        if (PMIX_CHECK_KEY(&info[n], PMIX_NSPACE))
            snprintf(whose, sizeof whose, "%s", info[n].value.data.string);
    }
    pthread_cond_broadcast(&news);
    pthread_mutex_unlock(&lock);
    if (done)
        done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, data);
}

static void wait_for(int *count)
{
    pthread_mutex_lock(&lock);
    while (*count == 0)
        pthread_cond_wait(&news, &lock);
    pthread_mutex_unlock(&lock);
}

static void print_support(void)
{
    pmix_info_t *results;
    pmix_query_t query;
    pmix_status_t status;
    size_t count;

    PMIX_QUERY_CONSTRUCT(&query);
    PMIX_ARGV_APPEND(status, query.keys, PMIX_QUERY_DEBUG_SUPPORT);
    status = PMIx_Query_info(&query, 1, &results, &count);
    printf("support %s %s\n", PMIx_Error_string(status), status == PMIX_SUCCESS ? results[0].value.data.string : "");
}

int main(int argc, char **argv)
{
    pmix_status_t codes[] = {PMIX_READY_FOR_DEBUG, PMIX_EVENT_JOB_END}, status;
    char libraries[4096];
    pmix_proc_t all;
    pmix_info_t stop, release[2];
    pmix_app_t app;
    FILE *released;

    setvbuf(stdout, NULL, _IONBF, 0);
    alarm(600);
    if (argc < 5)
        return 2;
    attach_to(argv[1]);
    print_support();
    if (PMIx_Register_event_handler(codes, 2, NULL, 0, on_event, NULL, NULL) < 0)
        return 4;
    PMIX_APP_CONSTRUCT(&app);
    app.cmd = strdup(argv[3]);
    PMIX_ARGV_APPEND(status, app.argv, argv[3]);
    app.maxprocs = atoi(argv[2]);
    snprintf(libraries, sizeof libraries, "LD_LIBRARY_PATH=%s", argc > 5 ? argv[5] : "");
    PMIX_ARGV_APPEND(status, app.env, libraries);
    PMIX_INFO_LOAD(&stop, PMIX_DEBUG_STOP_ON_EXEC, NULL, PMIX_BOOL);
    printf("at exec %s\n", PMIx_Error_string(PMIx_Spawn(&stop, 1, &app, 1, child)));
    PMIX_INFO_LOAD(&stop, PMIX_DEBUG_STOP_IN_INIT, NULL, PMIX_BOOL);
    status = PMIx_Spawn(&stop, 1, &app, 1, child);
    printf("in init %s\n", PMIx_Error_string(status));
    if (status != PMIX_SUCCESS)
        return 5;
    wait_for(&ready);
    printf("ready %d at %s, %s job, %d over\n", ready, where, strcmp(whose, child) == 0 ? "its" : "another", over);
    released = fopen(argv[4], "w");
    if (released == NULL || fclose(released) != 0)
        return 6;
    PMIX_LOAD_PROCID(&all, child, PMIX_RANK_WILDCARD);
    PMIX_INFO_LOAD(&release[0], PMIX_EVENT_CUSTOM_RANGE, &all, PMIX_PROC);
    PMIX_INFO_LOAD(&release[1], PMIX_EVENT_NON_DEFAULT, NULL, PMIX_BOOL);
    status = PMIx_Notify_event(PMIX_DEBUGGER_RELEASE, &all, PMIX_RANGE_CUSTOM, release, 2, NULL, NULL);
    printf("release %s\n", PMIx_Error_string(status == PMIX_OPERATION_SUCCEEDED ? PMIX_SUCCESS : status));
    wait_for(&over);
    printf("over\n");
    PMIx_tool_finalize();
    return 0;
}
