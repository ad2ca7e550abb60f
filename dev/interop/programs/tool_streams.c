/* Attaches to the server with pid N, spawns a program, and uses its streams as the words state, one after another.
 *
 *   tool_streams N WORD...
 *
 * Before `spawn`: file NAME | directory NAME | pattern | only | rank | tag
 *   spawn SCRIPT RANKS   sh -c SCRIPT, the first rank of which reads pushed input; prints "spawned NAMESPACE"
 *   pull                 the output of the job, with a callback
 *   show                 the same without one
 *   over                 waits for the end of the job
 *   events               registers for events of streams
 *   push COUNT           COUNT pushes of 1 MiB, without waiting for any
 *   wait COUNT           the same, waiting for each
 *   eof                  ends the job's input
 *   touch FILE
 *   ended COUNT          waits for the end of COUNT pulled streams
 *   complete COUNT       waits for COUNT events of the job's streams and prints each: "event complete|failure RANK CHANNELS"
 *
 * Everything is printed on standard error; at the end "pulled BYTES:" and what the callback got, and for pushes
 * "pushed A, refused B, followed C": those that succeeded, the one that found no room, and those behind it. */
#include "attach.h"
#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PIECE (1 << 20)

#define MOST_EVENTS 64

static volatile int over, finished, ends, events;
/* Streams of other jobs end, too: the launcher's own has standard input. */
static struct {
    char job[PMIX_MAX_NSLEN + 1], said[80];
} heard[MOST_EVENTS];
static volatile int pushed, refused, followed, others;
static pmix_proc_t me;
static char child[PMIX_MAX_NSLEN + 1], ended[PMIX_MAX_NSLEN + 1];
static char got[1 << 16];
static volatile size_t have;

static void nap(void)
{
    nanosleep(&(struct timespec) { .tv_nsec = 1000000 }, NULL);
}

static void on_end(size_t handler, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[], size_t ninfo,
                   pmix_info_t *results, size_t nresults, pmix_event_notification_cbfunc_fn_t done, void *data)
{
    (void) handler, (void) status, (void) source, (void) results, (void) nresults;
    for (size_t n = 0; n < ninfo; n++)
        if (strcmp(info[n].key, PMIX_EVENT_AFFECTED_PROC) == 0)
            memcpy(ended, info[n].value.data.proc->nspace, sizeof ended);
    over++;
    if (done)
        done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, data);
}

/* Counts events of the job's streams. */
static int count_events(int say)
{
    int count = 0;
    for (int at = 0; at < events; at++)
        if (strcmp(heard[at].job, child) == 0) {
            count++;
            if (say)
                fputs(heard[at].said, stderr);
        }
    return count;
}

static void on_stream(size_t handler, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[], size_t ninfo,
                      pmix_info_t *results, size_t nresults, pmix_event_notification_cbfunc_fn_t done, void *data)
{
    unsigned channels = 0;
    pmix_rank_t rank = PMIX_RANK_UNDEF;
    int at = events;

    if (at == MOST_EVENTS)
        exit(9);
    (void) handler, (void) source, (void) results, (void) nresults;
    for (size_t n = 0; n < ninfo; n++)
        if (strcmp(info[n].key, PMIX_EVENT_AFFECTED_PROC) == 0) {
            rank = info[n].value.data.proc->rank;
            memcpy(heard[at].job, info[n].value.data.proc->nspace, sizeof heard[at].job);
        } else if (strcmp(info[n].key, "phalanx.iof.channel") == 0) {
            channels = info[n].value.data.uint16;
        }
    snprintf(heard[at].said, sizeof heard[at].said, "event %s %u %u\n",
             status == PMIX_ERR_IOF_COMPLETE ? "complete" : "failure", rank, channels);
    events = at + 1;
    if (done)
        done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, data);
}

static void on_output(size_t handler, pmix_iof_channel_t channel, pmix_proc_t *source, pmix_byte_object_t *payload,
                      pmix_info_t info[], size_t count)
{
    (void) handler, (void) channel, (void) source, (void) info, (void) count;
    if (!payload || payload->size == 0) {
        ends++;
        return;
    }
    if (have + payload->size > sizeof got)
        _exit(4);
    memcpy(got + have, payload->bytes, payload->size);
    have += payload->size;
}

static void on_pushed(pmix_status_t status, void *data)
{
    free(data);
    if (status == PMIX_SUCCESS)
        pushed++;
    else if (status == PMIX_ERR_OUT_OF_RESOURCE)
        refused++;
    else if (status == PMIX_ERR_IOF_FAILURE)
        followed++;
    else
        others++;
}

static void on_done(pmix_status_t status, void *data)
{
    (void) status, (void) data;
    finished++;
}

static int push(char *bytes, size_t size, pmix_op_cbfunc_t callback)
{
    pmix_byte_object_t data = { .bytes = bytes, .size = size };
    pmix_proc_t target;
    pmix_info_t last;

    PMIX_LOAD_PROCID(&target, child, 0);
    PMIX_INFO_LOAD(&last, PMIX_IOF_COMPLETE, NULL, PMIX_BOOL);
    return PMIx_IOF_push(&target, 1, &data, &last, bytes ? 0 : 1, callback, bytes);
}

/* Bytes that depend on their position. */
static char *piece(int number)
{
    char *bytes = malloc(PIECE), line[32];

    for (int at = 0; at < PIECE; at += 16) {
        snprintf(line, sizeof line, "%06d %08d", number, at);
        memcpy(bytes + at, line, 15);
        bytes[at + 15] = '\n';
    }
    return bytes;
}

static int spawn(const char *script, const char *ranks, pmix_info_t *info, size_t count)
{
    pmix_status_t status;
    pmix_rank_t first = 0;
    pmix_app_t app;

    PMIX_APP_CONSTRUCT(&app);
    app.cmd = strdup("sh");
    app.maxprocs = atoi(ranks);
    PMIX_ARGV_APPEND(status, app.argv, "sh");
    PMIX_ARGV_APPEND(status, app.argv, "-c");
    PMIX_ARGV_APPEND(status, app.argv, script);
    PMIX_INFO_LOAD(&info[count], PMIX_FWD_STDOUT, NULL, PMIX_BOOL);
    PMIX_INFO_LOAD(&info[count + 1], PMIX_FWD_STDERR, NULL, PMIX_BOOL);
    PMIX_INFO_LOAD(&info[count + 2], PMIX_FWD_STDIN, &first, PMIX_PROC_RANK);
    status = PMIx_Spawn(info, count + 3, &app, 1, child);
    fprintf(stderr, status == PMIX_SUCCESS ? "spawned %s\n" : "spawn %s\n",
            status == PMIX_SUCCESS ? child : PMIx_Error_string(status));
    return status == PMIX_SUCCESS;
}

int main(int argc, char **argv)
{
    pmix_status_t codes[] = { PMIX_ERR_IOF_COMPLETE, PMIX_ERR_IOF_FAILURE }, job_end = PMIX_EVENT_JOB_END, status;
    pmix_info_t *info;
    pmix_proc_t all;
    size_t count = 0;

    alarm(600);
    if (argc < 2)
        return 2;
    me = attach_to(argv[1]);
    PMIx_Register_event_handler(&job_end, 1, NULL, 0, on_end, NULL, NULL);
    info = calloc(argc + 3, sizeof *info);
    for (int at = 2; at < argc; at++) {
        const char *word = argv[at];
        if (strcmp(word, "file") == 0) {
            PMIX_INFO_LOAD(&info[count++], PMIX_IOF_OUTPUT_TO_FILE, argv[++at], PMIX_STRING);
        } else if (strcmp(word, "directory") == 0) {
            PMIX_INFO_LOAD(&info[count++], PMIX_IOF_OUTPUT_TO_DIRECTORY, argv[++at], PMIX_STRING);
        } else if (strcmp(word, "pattern") == 0) {
            PMIX_INFO_LOAD(&info[count++], PMIX_IOF_FILE_PATTERN, NULL, PMIX_BOOL);
        } else if (strcmp(word, "only") == 0) {
            PMIX_INFO_LOAD(&info[count++], PMIX_IOF_FILE_ONLY, NULL, PMIX_BOOL);
        } else if (strcmp(word, "rank") == 0) {
            PMIX_INFO_LOAD(&info[count++], PMIX_IOF_RANK_OUTPUT, NULL, PMIX_BOOL);
        } else if (strcmp(word, "tag") == 0) {
            PMIX_INFO_LOAD(&info[count++], PMIX_IOF_TAG_OUTPUT, NULL, PMIX_BOOL);
        } else if (strcmp(word, "spawn") == 0) {
            if (!spawn(argv[at + 1], argv[at + 2], info, count))
                return 5;
            at += 2;
            PMIX_LOAD_PROCID(&all, child, PMIX_RANK_WILDCARD);
        } else if (strcmp(word, "pull") == 0 || strcmp(word, "show") == 0) {
            status = PMIx_IOF_pull(&all, 1, NULL, 0, PMIX_FWD_STDOUT_CHANNEL | PMIX_FWD_STDERR_CHANNEL,
                                   word[0] == 'p' ? on_output : NULL, NULL, NULL);
            if (status < 0) {
                fprintf(stderr, "pull %s\n", PMIx_Error_string(status));
                return 6;
            }
        } else if (strcmp(word, "over") == 0) {
            while (strcmp(ended, child) != 0)
                nap();
        } else if (strcmp(word, "events") == 0) {
            PMIx_Register_event_handler(codes, 2, NULL, 0, on_stream, NULL, NULL);
        } else if (strcmp(word, "push") == 0) {
            int pieces = atoi(argv[++at]);
            for (int n = 0; n < pieces; n++)
                if ((status = push(piece(n), PIECE, on_pushed)) != PMIX_SUCCESS) {
                    fprintf(stderr, "push %s\n", PMIx_Error_string(status));
                    return 7;
                }
        } else if (strcmp(word, "wait") == 0) {
            int pieces = atoi(argv[++at]);
            for (int n = 0; n < pieces; n++) {
                char *bytes = piece(n);
                on_pushed(push(bytes, PIECE, NULL), bytes);
            }
        } else if (strcmp(word, "eof") == 0) {
            push(NULL, 0, on_done);
            while (!finished)
                nap();
        } else if (strcmp(word, "touch") == 0) {
            fclose(fopen(argv[++at], "w"));
        } else if (strcmp(word, "ended") == 0) {
            int wanted = atoi(argv[++at]);
            while (ends < wanted)
                nap();
        } else if (strcmp(word, "complete") == 0) {
            int wanted = atoi(argv[++at]);
            while (count_events(0) < wanted)
                nap();
            count_events(1);
        } else {
            return 2;
        }
    }
    if (pushed + refused + followed + others > 0)
        fprintf(stderr, "pushed %d, refused %d, followed %d, others %d\n", pushed, refused, followed, others);
    PMIx_tool_finalize();
    fprintf(stderr, "pulled %zu:\n%.*s", have, (int) have, got);
    return 0;
}
