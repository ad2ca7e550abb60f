/* Imitates PRRTE's prun: attaches to the server with pid N, spawns a program, pushes its own standard input to rank 0
 * whether or not that reads it, then registers for the end of the job by its name, and waits for it.
 *
 *   tool_prun N SCRIPT [TARGET]           TARGET: PMIX_STDIN_TGT of the spawn, or `-`: a personality and no target, like prun
 *                                         without --stdin; prints the text in the event of the job's end, and exits with its status */
#include "attach.h"
#include <pmix.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile int over, term;

static void on_end(size_t handler, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[], size_t ninfo,
                   pmix_info_t *results, size_t nresults, pmix_event_notification_cbfunc_fn_t done, void *data)
{
    (void) handler, (void) status, (void) source, (void) results, (void) nresults;
    for (size_t n = 0; n < ninfo; n++)
        if (strcmp(info[n].key, PMIX_JOB_TERM_STATUS) == 0)
            term = info[n].value.data.status;
        else if (strcmp(info[n].key, PMIX_EVENT_TEXT_MESSAGE) == 0)
            fprintf(stderr, "%s\n", info[n].value.data.string);
    over = 1;
    if (done)
        done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, data);
}

int main(int argc, char **argv)
{
    pmix_status_t job_end = PMIX_EVENT_JOB_END, status;
    pmix_info_t info[2], about, end;
    pmix_proc_t target;
    pmix_app_t app;

    alarm(600);
    if (argc < 3)
        return 2;
    attach_to(argv[1]);
    PMIX_APP_CONSTRUCT(&app);
    app.cmd = strdup("sh");
    app.maxprocs = 1;
    PMIX_ARGV_APPEND(status, app.argv, "sh");
    PMIX_ARGV_APPEND(status, app.argv, "-c");
    PMIX_ARGV_APPEND(status, app.argv, argv[2]);
    PMIX_INFO_LOAD(&info[0], PMIX_NOTIFY_COMPLETION, NULL, PMIX_BOOL);
    if (argc > 3 && strcmp(argv[3], "-") == 0)
        PMIX_INFO_LOAD(&info[1], PMIX_PERSONALITY, "prte", PMIX_STRING);
    else if (argc > 3)
        PMIX_INFO_LOAD(&info[1], PMIX_STDIN_TGT, argv[3], PMIX_STRING);
    PMIX_LOAD_PROCID(&target, "", 0);
    status = PMIx_Spawn(info, argc > 3 ? 2 : 1, &app, 1, target.nspace);
    if (status != PMIX_SUCCESS) {
        fprintf(stderr, "spawn %s\n", PMIx_Error_string(status));
        return 5;
    }
    PMIX_INFO_LOAD(&about, PMIX_IOF_PUSH_STDIN, NULL, PMIX_BOOL);
    status = PMIx_IOF_push(&target, 1, NULL, &about, 1, NULL, NULL);
    if (status != PMIX_SUCCESS && status != PMIX_OPERATION_SUCCEEDED)
        fprintf(stderr, "push %s\n", PMIx_Error_string(status));
    target.rank = PMIX_RANK_WILDCARD;
    PMIX_INFO_LOAD(&end, PMIX_EVENT_AFFECTED_PROC, &target, PMIX_PROC);
    PMIx_Register_event_handler(&job_end, 1, &end, 1, on_end, NULL, NULL);
    while (!over)
        nanosleep(&(struct timespec) { .tv_nsec = 1000000 }, NULL);
    PMIx_tool_finalize();
    return term != PMIX_SUCCESS;
}
