/* Spawns jobs one after another and reads the output of each, from its first byte.
 *
 *   tool_spawn COUNT callback|own HOW VALUE GATE     HOW: pid, uri
 *
 * callback: PMIx_IOF_pull after PMIx_Spawn has returned, so that earlier output must have been kept. Job N waits for the file
 * GATE.N before it prints its last line, which is created when the pull is accepted.
 * own: only PMIX_FWD_STDOUT at the spawn, so that the library writes to our standard output.
 * Job N prints "job N first" and "job N last". With `callback` each is checked here, and "N jobs" is printed at the end. */
#include <pmix.h>
#include <pmix_tool.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t news = PTHREAD_COND_INITIALIZER;
static char seen[4096];
static size_t have;

static void on_output(size_t handler, pmix_iof_channel_t channel, pmix_proc_t *source, pmix_byte_object_t *payload,
                      pmix_info_t info[], size_t count)
{
    (void) handler, (void) channel, (void) source, (void) info, (void) count;
    pthread_mutex_lock(&lock);
    if (payload && payload->bytes && have + payload->size < sizeof seen) {
        memcpy(seen + have, payload->bytes, payload->size);
        have += payload->size;
    }
    pthread_cond_broadcast(&news);
    pthread_mutex_unlock(&lock);
}

static int job(int number, int pulls, const char *gate)
{
    char text[1024], path[512], expected[128], child_space[PMIX_MAX_NSLEN + 1] = "";
    pmix_status_t status;
    pmix_proc_t child;
    pmix_info_t info;
    pmix_app_t app;
    bool yes = true;
    struct timespec until;
    int wrong;

    snprintf(path, sizeof path, "%s.%d", gate, number);
    snprintf(text, sizeof text, "echo job %d first; %s%s%s echo job %d last", number, pulls ? "until [ -e '" : "",
             pulls ? path : "", pulls ? "' ]; do sleep 0.01; done;" : "", number);
    snprintf(expected, sizeof expected, "job %d first\njob %d last\n", number, number);
    PMIX_APP_CONSTRUCT(&app);
    app.cmd = strdup("/bin/sh");
    PMIX_ARGV_APPEND(status, app.argv, "sh");
    PMIX_ARGV_APPEND(status, app.argv, "-c");
    PMIX_ARGV_APPEND(status, app.argv, text);
    app.maxprocs = 1;
    PMIX_INFO_LOAD(&info, PMIX_FWD_STDOUT, &yes, PMIX_BOOL);
    pthread_mutex_lock(&lock);
    have = 0;
    pthread_mutex_unlock(&lock);
    status = PMIx_Spawn(&info, 1, &app, 1, child_space);
    if (status != PMIX_SUCCESS) {
        printf("spawn %d: %s\n", number, PMIx_Error_string(status));
        return 1;
    }
    if (!pulls)
        return 0;
    PMIX_LOAD_PROCID(&child, child_space, PMIX_RANK_WILDCARD);
    status = PMIx_IOF_pull(&child, 1, NULL, 0, PMIX_FWD_STDOUT_CHANNEL, on_output, NULL, NULL);
    if (status < 0) {
        printf("pull %d: %s\n", number, PMIx_Error_string(status));
        return 1;
    }
    fclose(fopen(path, "w"));
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 300;
    pthread_mutex_lock(&lock);
    while (have < strlen(expected) && pthread_cond_timedwait(&news, &lock, &until) == 0)
        ;
    wrong = have != strlen(expected) || memcmp(seen, expected, have) != 0;
    if (wrong)
        printf("job %d: %zu bytes: %.*s\n", number, have, (int) have, seen);
    pthread_mutex_unlock(&lock);
    return wrong;
}

int main(int argc, char **argv)
{
    int wrong = 0, count = argc > 2 ? atoi(argv[1]) : 0;
    pmix_info_t how;
    pmix_proc_t me;
    pid_t pid;

    setvbuf(stdout, NULL, _IONBF, 0);
    alarm(600);
    if (argc < 6)
        return 2;
    if (strcmp(argv[3], "pid") == 0) {
        pid = atoi(argv[4]);
        PMIX_INFO_LOAD(&how, PMIX_SERVER_PIDINFO, &pid, PMIX_PID);
    } else {
        PMIX_INFO_LOAD(&how, PMIX_SERVER_URI, argv[4], PMIX_STRING);
    }
    if (PMIx_tool_init(&me, &how, 1) != PMIX_SUCCESS)
        return 3;
    for (int n = 0; n < count && !wrong; n++)
        wrong = job(n, strcmp(argv[2], "callback") == 0, argv[5]);
    if (!wrong)
        fprintf(stderr, "%d jobs\n", count);
    /* Output that the library writes itself needs the connection: the end of standard input means that all has come. */
    while (getchar() != EOF)
        ;
    PMIx_tool_finalize();
    return wrong;
}
