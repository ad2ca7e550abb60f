/* Attaches to the server with pid N, spawns a program, forwards its own standard input to it, and writes its output itself.
 *
 *   tool_run N PROGRAM RANKS [tag]        ends when the job has ended, with its exit code */
#include "attach.h"
#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile int code;
/* The job that has ended last; a server also reports jobs that ended before the registration. */
static char ended[PMIX_MAX_NSLEN + 1];

static void on_end(size_t handler, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[], size_t ninfo,
                   pmix_info_t *results, size_t nresults, pmix_event_notification_cbfunc_fn_t done, void *data)
{
    (void) handler, (void) status, (void) source, (void) results, (void) nresults;
    for (size_t n = 0; n < ninfo; n++)
        if (strcmp(info[n].key, PMIX_EXIT_CODE) == 0)
            code = info[n].value.data.integer;
        else if (strcmp(info[n].key, PMIX_EVENT_AFFECTED_PROC) == 0)
            memcpy(ended, info[n].value.data.proc->nspace, sizeof ended);
    if (done)
        done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, data);
}

int main(int argc, char **argv)
{
    pmix_status_t job_end = PMIX_EVENT_JOB_END, status;
    char child[PMIX_MAX_NSLEN + 1];
    pmix_info_t info[4];
    pmix_rank_t all = PMIX_RANK_WILDCARD;
    pmix_app_t app;
    size_t count = 0;

    alarm(600);
    if (argc < 4)
        return 2;
    attach_to(argv[1]);
    PMIx_Register_event_handler(&job_end, 1, NULL, 0, on_end, NULL, NULL);
    PMIX_APP_CONSTRUCT(&app);
    app.cmd = strdup("sh");
    app.maxprocs = atoi(argv[3]);
    PMIX_ARGV_APPEND(status, app.argv, "sh");
    PMIX_ARGV_APPEND(status, app.argv, "-c");
    PMIX_ARGV_APPEND(status, app.argv, argv[2]);
    PMIX_INFO_LOAD(&info[count++], PMIX_FWD_STDIN, &all, PMIX_PROC_RANK);
    PMIX_INFO_LOAD(&info[count++], PMIX_IOF_PUSH_STDIN, NULL, PMIX_BOOL);
    PMIX_INFO_LOAD(&info[count++], PMIX_IOF_LOCAL_OUTPUT, NULL, PMIX_BOOL);
    if (argc > 4)
        PMIX_INFO_LOAD(&info[count++], PMIX_IOF_TAG_OUTPUT, NULL, PMIX_BOOL);
    status = PMIx_Spawn(info, count, &app, 1, child);
    if (status != PMIX_SUCCESS) {
        fprintf(stderr, "spawn %s\n", PMIx_Error_string(status));
        return 5;
    }
    while (strcmp(ended, child) != 0)
        nanosleep(&(struct timespec) { .tv_nsec = 1000000 }, NULL);
    PMIx_tool_finalize();
    return code;
}
