/* Shared by these programs: a check that ends the program, the size of its job, callbacks, and the resources of a process. */
#ifndef CHECK_H
#define CHECK_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <pmix.h>

#define CHECK(condition)                                                                  \
    do {                                                                                  \
        if (!(condition)) {                                                               \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);       \
            exit(1);                                                                      \
        }                                                                                 \
    } while (0)

static inline uint32_t job_size(const pmix_proc_t *me)
{
    pmix_value_t *value = NULL;
    pmix_proc_t job;
    uint32_t size;

    PMIX_LOAD_PROCID(&job, me->nspace, PMIX_RANK_WILDCARD);
    CHECK(PMIx_Get(&job, PMIX_JOB_SIZE, NULL, 0, &value) == PMIX_SUCCESS && value->type == PMIX_UINT32);
    size = value->data.uint32;
    PMIX_VALUE_RELEASE(value);
    return size;
}

/* Number of entries of a directory: a process's open files in /proc/self/fd, its threads in /proc/self/task. */
static inline int entries(const char *path)
{
    DIR *dir = opendir(path);
    int count = 0;

    while (dir != NULL && readdir(dir) != NULL)
        count++;
    if (dir != NULL)
        closedir(dir);
    return count;
}

/* Waits for this number of entries. The kernel may not have removed a joined thread yet. */
static inline void comes_to(const char *path, int count)
{
    while (entries(path) != count)
        usleep(1000);
}

/* Result of the call with this callback: 0 not yet, 1 success, -1 failure. */
static volatile int called_back;

static inline void call_back(pmix_status_t status, void *cbdata)
{
    (void)cbdata;
    called_back = status == PMIX_SUCCESS ? 1 : -1;
}

static volatile int events;

static inline void count_event(size_t handler, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[],
                               size_t ninfo, pmix_info_t *results, size_t nresults,
                               pmix_event_notification_cbfunc_fn_t complete, void *cbdata)
{
    (void)handler, (void)status, (void)source, (void)info, (void)ninfo, (void)results, (void)nresults;
    events++;
    complete(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, cbdata);
}

/* Memory that is not backed by files: file pages count as private, and dirty, if just written and mapped by no other process. */
static inline long private_kib(void)
{
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    char line[256];
    long kib = 0, part;

    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "Anonymous: %ld", &part) == 1)
            kib += part;
    if (file != NULL)
        fclose(file);
    return kib;
}

#endif
