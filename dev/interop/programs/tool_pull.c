/* Pulls output of a job and writes it to its own standard output as it comes.
 *
 *   tool_pull pid N NSPACE RANK CHANNELS [copy | redirect | oldest | newest | cache BYTES | until BYTES | tag | fullname | detailed |
 *             rank | timestamp | xml | merge | raw | size BYTES | time SECONDS | slow FILE | file NAME | pattern | only | show]...
 *
 * slow: takes nothing more after its first piece until FILE exists
 * show: without a callback, so that the library writes the output
 *   tool_pull client NSPACE RANK CHANNELS ...       as a rank of some job
 *
 * RANK: a number or "all". CHANNELS: the bits of pmix_iof_channel_t. It ends after `until` bytes, lost ones included, or when its server does, with a
 * line on standard error: "pulled BYTES bytes in PIECES pieces, lost BYTES". The line "pulling" there says that the pull was accepted. */
#include "attach.h"
#include "pull.h"
#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long long pulled, lost, pieces;
static const char *slow;
static volatile int show;
/* Files are complete once the library has finalized. */
static volatile int files;
static volatile int answered, gone;
static volatile pmix_status_t answer;
static volatile size_t number;

static void on_output(size_t handler, pmix_iof_channel_t channel, pmix_proc_t *source, pmix_byte_object_t *payload,
                      pmix_info_t info[], size_t count)
{
    size_t at = 0;

    (void) handler, (void) channel, (void) source;
    for (size_t n = 0; n < count; n++)
        if (strcmp(info[n].key, "phalanx.iof.dropped") == 0)
            lost += info[n].value.data.uint64;
    while (payload && at < payload->size) {
        ssize_t done = write(1, payload->bytes + at, payload->size - at);
        if (done <= 0)
            _exit(4);
        at += done;
    }
    pulled += at;
    pieces += at > 0;
    while (slow && pieces == 1 && access(slow, F_OK) != 0)
        nanosleep(&(struct timespec) { .tv_nsec = 1000000 }, NULL);
}

static void on_registered(pmix_status_t status, size_t handler, void *data)
{
    (void) data;
    number = handler;
    answer = status;
    answered = 1;
}

static void nap(void)
{
    nanosleep(&(struct timespec) { .tv_nsec = 1000000 }, NULL);
}

static void on_lost(size_t handler, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[], size_t ninfo,
                    pmix_info_t *results, size_t nresults, pmix_event_notification_cbfunc_fn_t done, void *data)
{
    (void) handler, (void) status, (void) source, (void) info, (void) ninfo, (void) results, (void) nresults;
    gone = 1;
    if (done)
        done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, data);
}

static const char *form(const char *word)
{
    static const char *const forms[][2] = {
        { "tag", PMIX_IOF_TAG_OUTPUT },
        { "fullname", PMIX_IOF_TAG_FULLNAME_OUTPUT },
        { "detailed", PMIX_IOF_TAG_DETAILED_OUTPUT },
        { "rank", PMIX_IOF_RANK_OUTPUT },
        { "timestamp", PMIX_IOF_TIMESTAMP_OUTPUT },
        { "xml", PMIX_IOF_XML_OUTPUT },
        { "merge", PMIX_IOF_MERGE_STDERR_STDOUT },
        { "raw", PMIX_IOF_OUTPUT_RAW },
        { "pattern", PMIX_IOF_FILE_PATTERN },
        { "only", PMIX_IOF_FILE_ONLY },
    };

    for (size_t n = 0; n < sizeof forms / sizeof *forms; n++)
        if (strcmp(word, forms[n][0]) == 0)
            return forms[n][1];
    return NULL;
}

int main(int argc, char **argv)
{
    const char *key;
    pmix_status_t code = PMIX_ERR_LOST_CONNECTION, status;
    unsigned long long until = 0;
    pmix_info_t *directives;
    pmix_iof_channel_t channels;
    pmix_proc_t me, source;
    bool tool;
    size_t count = 0;
    int at = 1;

    alarm(600);
    if (argc < 5)
        return 2;
    tool = strcmp(argv[at++], "pid") == 0;
    if (tool) {
        me = attach_to(argv[at++]);
    } else if ((status = PMIx_Init(&me, NULL, 0)) != PMIX_SUCCESS) {
        fprintf(stderr, "init %s\n", PMIx_Error_string(status));
        return 3;
    }
    PMIx_Register_event_handler(&code, 1, NULL, 0, on_lost, NULL, NULL);
    PMIX_LOAD_PROCID(&source, argv[at], strcmp(argv[at + 1], "all") == 0 ? PMIX_RANK_WILDCARD : (pmix_rank_t) atoi(argv[at + 1]));
    channels = atoi(argv[at + 2]);
    directives = calloc(argc, sizeof *directives);
    for (at += 3; at < argc; at++) {
        if (strcmp(argv[at], "copy") == 0) {
            PMIX_INFO_LOAD(&directives[count++], PMIX_IOF_COPY, NULL, PMIX_BOOL);
        } else if (strcmp(argv[at], "redirect") == 0) {
            PMIX_INFO_LOAD(&directives[count++], PMIX_IOF_REDIRECT, NULL, PMIX_BOOL);
        } else if (strcmp(argv[at], "oldest") == 0) {
            PMIX_INFO_LOAD(&directives[count++], PMIX_IOF_DROP_OLDEST, NULL, PMIX_BOOL);
        } else if (strcmp(argv[at], "newest") == 0) {
            PMIX_INFO_LOAD(&directives[count++], PMIX_IOF_DROP_NEWEST, NULL, PMIX_BOOL);
        } else if (strcmp(argv[at], "cache") == 0) {
            uint32_t size = strtoul(argv[++at], NULL, 10);
            PMIX_INFO_LOAD(&directives[count++], PMIX_IOF_CACHE_SIZE, &size, PMIX_UINT32);
        } else if (strcmp(argv[at], "size") == 0) {
            uint32_t size = strtoul(argv[++at], NULL, 10);
            PMIX_INFO_LOAD(&directives[count++], PMIX_IOF_BUFFERING_SIZE, &size, PMIX_UINT32);
        } else if (strcmp(argv[at], "time") == 0) {
            uint32_t seconds = strtoul(argv[++at], NULL, 10);
            PMIX_INFO_LOAD(&directives[count++], PMIX_IOF_BUFFERING_TIME, &seconds, PMIX_UINT32);
        } else if (strcmp(argv[at], "file") == 0) {
            PMIX_INFO_LOAD(&directives[count++], PMIX_IOF_OUTPUT_TO_FILE, argv[++at], PMIX_STRING);
            files = 1;
        } else if (strcmp(argv[at], "show") == 0) {
            show = 1;
        } else if (strcmp(argv[at], "slow") == 0) {
            slow = argv[++at];
        } else if ((key = form(argv[at])) != NULL) {
            PMIX_INFO_LOAD(&directives[count++], key, NULL, PMIX_BOOL);
        } else if (strcmp(argv[at], "until") == 0) {
            until = strtoull(argv[++at], NULL, 10);
        }
    }
    status = PMIx_IOF_pull(&source, 1, directives, count, channels, show ? NULL : on_output, on_registered, NULL);
    if (status == PMIX_SUCCESS) {
        while (!answered)
            nap();
        status = answer;
    }
    if (status != PMIX_SUCCESS) {
        fprintf(stderr, "pull %s\n", PMIx_Error_string(status));
        return 5;
    }
    fprintf(stderr, "pulling\n");
    while (!gone && !(until && pulled + lost >= until))
        nap();
    if (!gone)
        end_pull(number, &gone);
    fprintf(stderr, "pulled %llu bytes in %llu pieces, lost %llu\n", pulled, pieces, lost);
    if (!gone || show || files)
        tool ? PMIx_tool_finalize() : PMIx_Finalize(NULL, 0);
    return 0;
}
