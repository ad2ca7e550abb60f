/* Sends directives of job control to ranks of a job, each without waiting for the previous answer.
 *
 *   tool_control PID NSPACE DIRECTIVE:RANK...      PID: the server; RANK: a number or "all"
 *
 * Prints "DIRECTIVE:RANK STATUS" for each, in the order in which they were sent. */
#include "attach.h"
#include <pmix.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 64 };

static const char *const directives[][2] = {
    { "restart", PMIX_JOB_CTRL_RESTART }, { "kill", PMIX_JOB_CTRL_KILL },     { "terminate", PMIX_JOB_CTRL_TERMINATE },
    { "pause", PMIX_JOB_CTRL_PAUSE },     { "resume", PMIX_JOB_CTRL_RESUME },
};

static pmix_status_t answers[MOST];
static atomic_int answered;

static void take(pmix_status_t status, pmix_info_t *info, size_t count, void *which, pmix_release_cbfunc_t release,
                 void *data)
{
    (void) info, (void) count;
    *(pmix_status_t *) which = status;
    answered++;
    if (release)
        release(data);
}

int main(int argc, char **argv)
{
    static pmix_proc_t targets[MOST];
    static pmix_info_t infos[MOST];
    int sent = 0;

    alarm(600);
    if (argc < 4 || argc - 3 > MOST)
        return 2;
    attach_to(argv[1]);
    for (int at = 3; at < argc; at++, sent++) {
        const char *rank = strchr(argv[at], ':') + 1;
        const char *key = NULL;
        pmix_status_t status;

        for (size_t n = 0; n < sizeof directives / sizeof *directives; n++)
            if (strncmp(argv[at], directives[n][0], rank - 1 - argv[at]) == 0)
                key = directives[n][1];
        if (key == NULL)
            return 2;
        PMIX_LOAD_PROCID(&targets[sent], argv[2], strcmp(rank, "all") == 0 ? PMIX_RANK_WILDCARD : (pmix_rank_t) atoi(rank));
        if (strcmp(key, PMIX_JOB_CTRL_RESTART) == 0)
            PMIX_INFO_LOAD(&infos[sent], key, "", PMIX_STRING);
        else
            PMIX_INFO_LOAD(&infos[sent], key, NULL, PMIX_BOOL);
        status = PMIx_Job_control_nb(&targets[sent], 1, &infos[sent], 1, take, &answers[sent]);
        if (status != PMIX_SUCCESS) {
            answers[sent] = status;
            answered++;
        }
    }
    while (answered < sent)
        nanosleep(&(struct timespec) { .tv_nsec = 1000000 }, NULL);
    for (int n = 0; n < sent; n++)
        printf("%s %s\n", argv[3 + n], PMIx_Error_string(answers[n]));
    fflush(stdout);
    PMIx_tool_finalize();
    return 0;
}
