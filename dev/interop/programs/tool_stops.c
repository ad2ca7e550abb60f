/* A debugger that does what it reads, line by line, and says what it hears.
 *
 *   tool_stops PID                              of the server PID
 *
 *   spawn STOP COUNT PROGRAM [LIBRARIES]        STOP in init: true, false, or ranks; LIBRARIES: the job's LD_LIBRARY_PATH
 *   release RANK                                of the job; all for all
 *   everywhere RANGE                            a release for global or session
 */
#include <pmix.h>
#include <pmix_tool.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach.h"

static pmix_proc_t me;
static char child[PMIX_MAX_NSLEN + 1];

static void on_event(size_t handler, pmix_status_t code, const pmix_proc_t *source, pmix_info_t info[], size_t count,
                     pmix_info_t results[], size_t nresults, pmix_event_notification_cbfunc_fn_t done, void *data)
{
    (void) handler, (void) source, (void) results, (void) nresults;
    const char *what = code == PMIX_READY_FOR_DEBUG ? "ready" : "over", *whose = "";

    for (size_t n = 0; n < count; n++) {
        if (PMIX_CHECK_KEY(&info[n], PMIX_NSPACE))
            whose = info[n].value.data.string;
    }
    printf("%s %s\n", what, whose);
    if (done)
        done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, data);
}

/* Ranks as an array, even a single one. */
static void load_stop(pmix_info_t *info, char *stop)
{
    pmix_data_array_t array = {.type = PMIX_PROC_RANK};
    pmix_rank_t ranks[16];
    char *rest = NULL;
    bool all = strcmp(stop, "true") == 0;

    if (all || strcmp(stop, "false") == 0) {
        PMIX_INFO_LOAD(info, PMIX_DEBUG_STOP_IN_INIT, &all, PMIX_BOOL);
        return;
    }
    for (char *one = strtok_r(stop, ",", &rest); one && array.size < 16; one = strtok_r(NULL, ",", &rest))
        ranks[array.size++] = atoi(one);
    array.array = ranks;
    if (array.size == 1)
        PMIX_INFO_LOAD(info, PMIX_DEBUG_STOP_IN_INIT, &ranks[0], PMIX_PROC_RANK);
    else
        PMIX_INFO_LOAD(info, PMIX_DEBUG_STOP_IN_INIT, &array, PMIX_DATA_ARRAY);
}

static void spawn(char *stop, int count, const char *program, const char *libraries)
{
    char variable[4096];
    pmix_info_t info[3];
    pmix_status_t status;
    pmix_app_t app;

    PMIX_APP_CONSTRUCT(&app);
    app.cmd = strdup(program);
    PMIX_ARGV_APPEND(status, app.argv, program);
    app.maxprocs = count;
    snprintf(variable, sizeof variable, "LD_LIBRARY_PATH=%s", libraries);
    PMIX_ARGV_APPEND(status, app.env, variable);
    load_stop(&info[0], stop);
    PMIX_INFO_LOAD(&info[1], PMIX_MAPBY, "node", PMIX_STRING);
    PMIX_INFO_LOAD(&info[2], PMIX_JOB_CONTINUOUS, NULL, PMIX_BOOL);
    status = PMIx_Spawn(info, 3, &app, 1, child);
    printf("spawned %s\n", PMIx_Error_string(status));
}

static void release(pmix_data_range_t range, pmix_rank_t rank)
{
    pmix_status_t status;
    pmix_info_t info[2];
    pmix_proc_t whom;

    PMIX_LOAD_PROCID(&whom, child, rank);
    PMIX_INFO_LOAD(&info[0], PMIX_EVENT_NON_DEFAULT, NULL, PMIX_BOOL);
    PMIX_INFO_LOAD(&info[1], PMIX_EVENT_CUSTOM_RANGE, &whom, PMIX_PROC);
    status = PMIx_Notify_event(PMIX_DEBUGGER_RELEASE, &me, range, info, range == PMIX_RANGE_CUSTOM ? 2 : 1, NULL, NULL);
    printf("released %s\n", PMIx_Error_string(status == PMIX_OPERATION_SUCCEEDED ? PMIX_SUCCESS : status));
}

int main(int argc, char **argv)
{
    pmix_status_t codes[] = {PMIX_READY_FOR_DEBUG, PMIX_EVENT_JOB_END};
    char line[8192], stop[256], program[2048], libraries[2048];
    int count;

    setvbuf(stdout, NULL, _IONBF, 0);
    alarm(600);
    if (argc != 2)
        return 2;
    me = attach_to(argv[1]);
    if (PMIx_Register_event_handler(codes, 2, NULL, 0, on_event, NULL, NULL) < 0)
        return 4;
    while (fgets(line, sizeof line, stdin)) {
        libraries[0] = 0;
        if (sscanf(line, "spawn %255s %d %2047s %2047s", stop, &count, program, libraries) >= 3)
            spawn(stop, count, program, libraries);
        else if (sscanf(line, "release %255s", stop) == 1)
            release(PMIX_RANGE_CUSTOM, strcmp(stop, "all") == 0 ? PMIX_RANK_WILDCARD : (pmix_rank_t) atoi(stop));
        else if (sscanf(line, "everywhere %255s", stop) == 1)
            release(strcmp(stop, "global") == 0 ? PMIX_RANGE_GLOBAL : PMIX_RANGE_SESSION, PMIX_RANK_WILDCARD);
        else
            return 2;
    }
    PMIx_tool_finalize();
    return 0;
}
