/* A tool that spawns and shows nothing itself: what stands on its standard output and standard error its library has written.
 *
 *   tool_told PID WORD...        PID: of the server
 *
 *   KEY=true|false       for the init, or the spawn or pull, that comes next; !KEY: the same as true, required
 *   init
 *   spawn SCRIPT         sh -c SCRIPT, one process
 *   run PROGRAM          that program
 *   pull                 the output of the last job, with a callback that forgets it
 *   show                 the same without a callback
 *   over                 waits for the end of the last job
 *   leave                ends here, without finalize
 *   exits                from now on the handler of the end of a job ends the tool
 *
 * With descriptor 3, says there what it has spawned, "NAMESPACE", or the number of the failure. */
#include <pmix_tool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MOST 32

static char child[PMIX_MAX_NSLEN + 1], ended[MOST][PMIX_MAX_NSLEN + 1];
static volatile int ends, exits;

static void on_end(size_t handler, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[], size_t ninfo,
                   pmix_info_t *results, size_t nresults, pmix_event_notification_cbfunc_fn_t done, void *data)
{
    (void) handler, (void) status, (void) source, (void) results, (void) nresults;
    if (exits)
        exit(0);
    for (size_t n = 0; n < ninfo && ends < MOST; n++)
        if (strcmp(info[n].key, PMIX_EVENT_AFFECTED_PROC) == 0) {
            memcpy(ended[ends], info[n].value.data.proc->nspace, sizeof ended[0]);
            ends++;
        }
    if (done)
        done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, data);
}

static int is_over(void)
{
    for (int n = 0; n < ends; n++)
        if (strcmp(ended[n], child) == 0)
            return 1;
    return 0;
}

static void on_output(size_t handler, pmix_iof_channel_t channel, pmix_proc_t *source, pmix_byte_object_t *payload,
                      pmix_info_t info[], size_t count)
{
    (void) handler, (void) channel, (void) source, (void) payload, (void) info, (void) count;
}

static pmix_status_t spawn(const char *program, const char *script, const pmix_info_t *info, size_t count)
{
    pmix_status_t status;
    pmix_app_t app;

    PMIX_APP_CONSTRUCT(&app);
    app.cmd = strdup(program);
    app.maxprocs = 1;
    PMIX_ARGV_APPEND(status, app.argv, program);
    if (script) {
        PMIX_ARGV_APPEND(status, app.argv, "-c");
        PMIX_ARGV_APPEND(status, app.argv, script);
    }
    status = PMIx_Spawn(info, count, &app, 1, child);
    if (status == PMIX_SUCCESS)
        dprintf(3, "%s\n", child);
    else
        dprintf(3, "%d\n", status);
    return status;
}

int main(int argc, char **argv)
{
    pmix_status_t code = PMIX_EVENT_JOB_END, status = PMIX_SUCCESS;
    pid_t pid = argc > 1 ? atoi(argv[1]) : 0;
    pmix_info_t info[MOST];
    pmix_proc_t me, all;
    size_t count = 0;
    char *value;

    alarm(600);
    for (int at = 2; at < argc && status >= 0; at++) {
        char *word = argv[at];
        bool yes = true;

        if (count + 1 == MOST)
            return 2;
        if ((value = strchr(word, '=')) != NULL || word[0] == '!') {
            if (value != NULL) {
                *value = '\0';
                yes = strcmp(value + 1, "true") == 0;
            }
            PMIX_INFO_LOAD(&info[count], word[0] == '!' ? word + 1 : word, &yes, PMIX_BOOL);
            if (word[0] == '!')
                PMIX_INFO_REQUIRED(&info[count]);
            count++;
            continue;
        }
        if (strcmp(word, "init") == 0) {
            PMIX_INFO_LOAD(&info[count++], PMIX_SERVER_PIDINFO, &pid, PMIX_PID);
            if ((status = PMIx_tool_init(&me, info, count)) == PMIX_SUCCESS)
                PMIx_Register_event_handler(&code, 1, NULL, 0, on_end, NULL, NULL);
        } else if (strcmp(word, "spawn") == 0 && at + 1 < argc) {
            status = spawn("sh", argv[++at], info, count);
        } else if (strcmp(word, "run") == 0 && at + 1 < argc) {
            spawn(argv[++at], NULL, info, count);
        } else if (strcmp(word, "pull") == 0 || strcmp(word, "show") == 0) {
            PMIX_LOAD_PROCID(&all, child, PMIX_RANK_WILDCARD);
            status = PMIx_IOF_pull(&all, 1, info, count, PMIX_FWD_STDOUT_CHANNEL | PMIX_FWD_STDERR_CHANNEL,
                                   word[0] == 'p' ? on_output : NULL, NULL, NULL);
        } else if (strcmp(word, "over") == 0) {
            while (!is_over())
                nanosleep(&(struct timespec) { .tv_nsec = 1000000 }, NULL);
        } else if (strcmp(word, "exits") == 0) {
            exits = 1;
        } else if (strcmp(word, "leave") == 0) {
            _exit(0);
        } else {
            return 2;
        }
        count = 0;
    }
    PMIx_tool_finalize();
    return status < 0 ? 1 : 0;
}
