/* Common parts of the PMIx programs in this directory: init and finalize, checks that print what failed, and a barrier.
 *
 * A failed check prints rank, place, expression and message, and ends the process with 1. A program that is
 * still running after ten minutes is killed by SIGALRM: no test waits forever. */
#ifndef CHECK_H
#define CHECK_H

#include <pmix.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pmix_proc_t me;
static uint32_t job_size;

__attribute__((format(printf, 4, 5), noreturn, unused))
static void failed(const char *file, int line, const char *what, const char *format, ...)
{
    va_list arguments;
    char text[1024];

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "rank %u: %s:%d: %s: %s\n", me.rank, file, line, what, text);
    fflush(NULL);
    _exit(1);
}

#define CHECK(condition, ...) \
    do { if (!(condition)) failed(__FILE__, __LINE__, #condition, __VA_ARGS__); } while (0)

/* Checks that a call returns a certain status. */
#define EXPECT(status, call) \
    do { \
        pmix_status_t got_ = (call); \
        if (got_ != (status)) \
            failed(__FILE__, __LINE__, #call, "%s (%d), expected %s", PMIx_Error_string(got_), got_, #status); \
    } while (0)

#define OK(call) EXPECT(PMIX_SUCCESS, call)

__attribute__((unused)) static pmix_proc_t process(pmix_rank_t rank)
{
    pmix_proc_t proc;

    PMIX_PROC_CONSTRUCT(&proc);
    memcpy(proc.nspace, me.nspace, sizeof proc.nspace);
    proc.rank = rank;
    return proc;
}

__attribute__((unused)) static void start(void)
{
    pmix_value_t *value = NULL;
    pmix_proc_t job;

    alarm(600);
    OK(PMIx_Init(&me, NULL, 0));
    job = process(PMIX_RANK_WILDCARD);
    OK(PMIx_Get(&job, PMIX_JOB_SIZE, NULL, 0, &value));
    CHECK(value->type == PMIX_UINT32, "PMIX_JOB_SIZE has type %d", value->type);
    job_size = value->data.uint32;
    PMIX_VALUE_RELEASE(value);
}

/* Reports success in the form that the tests expect. */
__attribute__((unused)) static void finish(const char *what)
{
    OK(PMIx_Finalize(NULL, 0));
    printf("rank %u of %u: %s\n", me.rank, job_size, what);
    fflush(stdout);
}

__attribute__((unused)) static void barrier(void)
{
    OK(PMIx_Fence(NULL, 0, NULL, 0));
}

/* A fence after which every rank has all committed values. */
__attribute__((unused)) static void exchange(void)
{
    pmix_info_t info;
    bool yes = true;

    PMIX_INFO_LOAD(&info, PMIX_COLLECT_DATA, &yes, PMIX_BOOL);
    OK(PMIx_Commit());
    OK(PMIx_Fence(NULL, 0, &info, 1));
    PMIX_INFO_DESTRUCT(&info);
}

/* A name with a rank. Valid until sixteen more have been made. */
__attribute__((unused)) static const char *keyed(const char *name, pmix_rank_t rank)
{
    static char keys[16][PMIX_MAX_KEYLEN + 1];
    static unsigned next;
    char *key = keys[next++ % 16];

    snprintf(key, sizeof keys[0], "%s-%u", name, rank);
    return key;
}

__attribute__((unused)) static void put_text(pmix_scope_t scope, const char *key, const char *text)
{
    pmix_value_t value;

    PMIX_VALUE_LOAD(&value, text, PMIX_STRING);
    OK(PMIx_Put(scope, key, &value));
    PMIX_VALUE_DESTRUCT(&value);
}

/* Gets a key with at most one directive and checks that its value is this text. */
__attribute__((unused))
static void expect_text(pmix_rank_t rank, const char *key, pmix_info_t *info, const char *text)
{
    pmix_value_t *value = NULL;
    pmix_proc_t proc = process(rank);
    pmix_status_t status = PMIx_Get(&proc, key, info, info != NULL, &value);

    CHECK(status == PMIX_SUCCESS, "%s of rank %u: %s", key, rank, PMIx_Error_string(status));
    CHECK(value->type == PMIX_STRING, "%s has type %d", key, value->type);
    CHECK(strcmp(value->data.string, text) == 0, "%s is \"%.60s\", expected \"%.60s\"", key,
          value->data.string, text);
    PMIX_VALUE_RELEASE(value);
}

/* Whether a rank is on this node. */
__attribute__((unused)) static bool is_near(pmix_rank_t rank)
{
    pmix_value_t *value = NULL;
    pmix_proc_t job = process(PMIX_RANK_WILDCARD);
    bool found = false;

    OK(PMIx_Get(&job, PMIX_LOCAL_PEERS, NULL, 0, &value));
    for (char *rest = value->data.string; *rest != '\0'; rest += *rest == ',')
        found |= strtoul(rest, &rest, 10) == rank;
    PMIX_VALUE_RELEASE(value);
    return found;
}

/* Gets a key with at most one directive and checks that it fails with this status. */
__attribute__((unused))
static void expect_no_value(pmix_rank_t rank, const char *key, pmix_info_t *info, pmix_status_t expected)
{
    pmix_value_t *value = NULL;
    pmix_proc_t proc = process(rank);
    pmix_status_t status = PMIx_Get(&proc, key, info, info != NULL, &value);

    CHECK(status == expected, "%s of rank %u: %s (%d), expected %s", key, rank, PMIx_Error_string(status), status,
          PMIx_Error_string(expected));
}

#endif
