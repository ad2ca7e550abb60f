/* Attaches to the server with pid N, spawns jobs, and follows their life: which events come, in which order, and whether they contain
 * what the standard requires (Tools and Debuggers, Tracking the job lifecycle).
 *
 *   tool_lifecycle N live     registers first; one line per event: its code, and its content
 *   tool_lifecycle N late     registers when the job has long ended */
#include "attach.h"
#include <pmix.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile int ends, strangers;
static time_t began;

/* Libraries use different texts. */
static const char *name(pmix_status_t code)
{
    switch (code) {
    case PMIX_EVENT_JOB_START: return "job start";
    case PMIX_LAUNCH_COMPLETE: return "launch complete";
    case PMIX_EVENT_JOB_END: return "job end";
    case PMIX_EVENT_PROC_TERMINATED: return "process terminated";
    case PMIX_ERR_PROC_TERM_WO_SYNC: return "without sync";
    case PMIX_SUCCESS: return "success";
    case PMIX_ERR_JOB_NON_ZERO_TERM: return "non-zero";
    case PMIX_ERR_JOB_ABORTED_BY_SIG: return "signal";
    default: return "something else";
    }
}

static void on_event(size_t handler, pmix_status_t code, const pmix_proc_t *source, pmix_info_t info[], size_t ninfo,
                     pmix_info_t *results, size_t nresults, pmix_event_notification_cbfunc_fn_t done, void *data)
{
    const char *nspace = NULL, *status = "-";
    char first[32] = "-", exit_code[32] = "-", affected[32] = "-";
    bool has_time = false;

    (void) handler, (void) results, (void) nresults;
    for (size_t n = 0; n < ninfo; n++) {
        pmix_value_t *value = &info[n].value;

        if (PMIX_CHECK_KEY(&info[n], PMIX_NSPACE) && value->type == PMIX_STRING)
            nspace = value->data.string;
        else if (PMIX_CHECK_KEY(&info[n], PMIX_EVENT_TIMESTAMP) && value->type == PMIX_TIME)
            has_time = value->data.time >= began - 1 && value->data.time <= time(NULL) + 1;
        else if (PMIX_CHECK_KEY(&info[n], PMIX_JOB_TERM_STATUS) && value->type == PMIX_STATUS)
            status = name(value->data.status);
        else if (PMIX_CHECK_KEY(&info[n], PMIX_PROCID) && value->type == PMIX_PROC)
            snprintf(first, sizeof first, "%u", value->data.proc->rank);
        else if (PMIX_CHECK_KEY(&info[n], PMIX_EVENT_AFFECTED_PROC) && value->type == PMIX_PROC)
            snprintf(affected, sizeof affected, "%d", (int) value->data.proc->rank);
        else if (PMIX_CHECK_KEY(&info[n], PMIX_EXIT_CODE) && value->type == PMIX_INT)
            snprintf(exit_code, sizeof exit_code, "%d", value->data.integer);
    }
    printf("%s of %s: status %s, first %s, exit %s%s%s\n", name(code), affected, status, first, exit_code,
           nspace != NULL && strcmp(nspace, source->nspace) == 0 ? "" : ", nspace is missing",
           has_time ? "" : ", time is missing");
    fflush(stdout);
    ends += code == PMIX_EVENT_JOB_END;
    if (done)
        done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, data);
}

/* A default handler, which must not get the lifecycle events of jobs. */
static void on_any(size_t handler, pmix_status_t code, const pmix_proc_t *source, pmix_info_t info[], size_t ninfo,
                   pmix_info_t *results, size_t nresults, pmix_event_notification_cbfunc_fn_t done, void *data)
{
    (void) handler, (void) source, (void) info, (void) ninfo, (void) results, (void) nresults;
    fprintf(stderr, "a default handler heard %s\n", PMIx_Error_string(code));
    strangers++;
    if (done)
        done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, data);
}

static void hear(const char *nspace)
{
    pmix_status_t codes[] = { PMIX_EVENT_JOB_START, PMIX_LAUNCH_COMPLETE, PMIX_EVENT_JOB_END,
                              PMIX_EVENT_PROC_TERMINATED, PMIX_ERR_PROC_TERM_WO_SYNC };
    pmix_proc_t job;
    pmix_info_t of_job;

    PMIX_LOAD_PROCID(&job, nspace, PMIX_RANK_WILDCARD);
    PMIX_INFO_LOAD(&of_job, PMIX_EVENT_AFFECTED_PROC, &job, PMIX_PROC);
    PMIx_Register_event_handler(codes, 5, &of_job, nspace != NULL, on_event, NULL, NULL);
}

/* Spawns a job of this many ranks; `asked` is the attribute that requests its events. */
static void spawn(const char *program, int ranks, const char *asked, char *child)
{
    pmix_status_t status;
    pmix_info_t info;
    pmix_app_t app;

    PMIX_APP_CONSTRUCT(&app);
    app.cmd = strdup("sh");
    app.maxprocs = ranks;
    PMIX_ARGV_APPEND(status, app.argv, "sh");
    PMIX_ARGV_APPEND(status, app.argv, "-c");
    PMIX_ARGV_APPEND(status, app.argv, program);
    PMIX_INFO_LOAD(&info, asked, NULL, PMIX_BOOL);
    status = PMIx_Spawn(&info, 1, &app, 1, child);
    if (status != PMIX_SUCCESS) {
        fprintf(stderr, "spawn %s\n", PMIx_Error_string(status));
        exit(5);
    }
}

static void wait_for_ends(int count)
{
    while (ends < count)
        nanosleep(&(struct timespec) { .tv_nsec = 1000000 }, NULL);
}

/* Waits until the server reports the end of the job. */
static void wait_until_over(const char *child)
{
    for (;;) {
        pmix_status_t status;
        pmix_query_t query;
        pmix_info_t *found = NULL;
        size_t count = 0;
        bool lives = false;

        PMIX_QUERY_CONSTRUCT(&query);
        PMIX_ARGV_APPEND(status, query.keys, PMIX_QUERY_NAMESPACES);
        if (status == PMIX_SUCCESS && PMIx_Query_info(&query, 1, &found, &count) == PMIX_SUCCESS && count > 0)
            lives = strstr(found[0].value.data.string, child) != NULL;
        PMIX_INFO_FREE(found, count);
        if (!lives)
            return;
        nanosleep(&(struct timespec) { .tv_nsec = 1000000 }, NULL);
    }
}

int main(int argc, char **argv)
{
    char child[PMIX_MAX_NSLEN + 1];

    alarm(600);
    if (argc != 3)
        return 2;
    began = time(NULL);
    attach_to(argv[1]);
    PMIx_Register_event_handler(NULL, 0, NULL, 0, on_any, NULL, NULL);
    if (strcmp(argv[2], "live") == 0) {
        hear(NULL);
        spawn("exit 0", 2, PMIX_NOTIFY_JOB_EVENTS, child);
        wait_for_ends(1);
        spawn("[ $PMIX_RANK = 1 ] && exit 3; sleep 1000", 2, PMIX_NOTIFY_COMPLETION, child);
        wait_for_ends(2);
        spawn("exit 0", 1, PMIX_NOTIFY_PROC_TERMINATION, child);
        wait_for_ends(3);
        spawn("kill -SEGV $$", 1, PMIX_NOTIFY_JOB_EVENTS, child);
        wait_for_ends(4);
    } else {
        spawn("exit 4", 1, PMIX_NOTIFY_COMPLETION, child);
        wait_until_over(child);
        hear(child);
        wait_for_ends(1);
    }
    PMIx_tool_finalize();
    return strangers == 0 ? 0 : 1;
}
