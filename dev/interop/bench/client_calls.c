/* The time of a PMIx client's calls. Each rank prints "METRIC MICROSECONDS", one line per metric: the median of
 * its samples. Metrics that only make sense in one place come from rank 0 alone. Names that end in "-cpu" are the processor
 * time of the rank itself, without its server's; "init-left" is the clock time at which it left PMIx_Init.
 *
 * Calls that are too short for the clock are measured in batches: "-first" is one call, the rest are averages of many.
 * "private-" is memory in KiB that belongs to the rank alone, measured while all ranks are alive, so that the pages of the
 * libraries are shared with the others, if there are any. "anonymous-" is memory without a file: it does not
 * depend on others, nor on when the libraries were written.
 *
 * With any argument, events go to all ranks of the job and not only to those of the node: the two ranks that exchange them
 * may be on two nodes. */
#include "check.h"

#include <semaphore.h>
#include <sys/resource.h>
#include <time.h>

enum { FENCES = 50, COLLECTS = 20, BATCHES = 40, BATCH = 50, PUTS = 20, NAMES = 20, EVENTS = 20, PING = PMIX_EXTERNAL_ERR_BASE - 1, PONG = PING - 1 };

static sem_t arrived, registered;
static pmix_data_range_t range = PMIX_RANGE_LOCAL;

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e6 + time.tv_nsec / 1e3;
}

static double cpu(void)
{
    struct rusage use;

    getrusage(RUSAGE_SELF, &use);
    return (use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1e6 + use.ru_utime.tv_usec + use.ru_stime.tv_usec;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *samples, int count)
{
    qsort(samples, count, sizeof *samples, ascending);
    return samples[count / 2];
}

static void on_event(size_t id, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[], size_t ninfo,
                     pmix_info_t *results, size_t nresults, pmix_event_notification_cbfunc_fn_t done, void *cbdata)
{
    (void)id, (void)source, (void)info, (void)ninfo, (void)results, (void)nresults;
    if (status == PING)
        PMIx_Notify_event(PONG, &me, range, NULL, 0, NULL, NULL);
    else
        sem_post(&arrived);
    done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, cbdata);
}

static void on_registered(pmix_status_t status, size_t id, void *cbdata)
{
    (void)status, (void)id, (void)cbdata;
    sem_post(&registered);
}

struct memory { double private, anonymous; };

/* The memory of this rank while all others hold theirs. */
static struct memory memory_among_all(void)
{
    struct memory kib = { 0, 0 };
    char line[256];
    double part;
    FILE *file;

    barrier();
    file = fopen("/proc/self/smaps_rollup", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "Private_Clean: %lf", &part) == 1 || sscanf(line, "Private_Dirty: %lf", &part) == 1)
            kib.private += part;
        else if (sscanf(line, "Anonymous: %lf", &part) == 1)
            kib.anonymous += part;
    if (file != NULL)
        fclose(file);
    barrier();
    return kib;
}

static double one_get(const pmix_proc_t *proc, const char *key)
{
    pmix_value_t *value;
    double begun = now(), took;

    OK(PMIx_Get(proc, key, NULL, 0, &value));
    took = now() - begun;
    PMIX_VALUE_RELEASE(value);
    return took;
}

/* Repeated gets of the same value, with its release. */
static double warm_get(const pmix_proc_t *proc, const char *key)
{
    double samples[BATCHES];
    pmix_value_t *value;

    for (int batch = 0; batch < BATCHES; batch++) {
        double begun = now();
        for (int i = 0; i < BATCH; i++) {
            OK(PMIx_Get(proc, key, NULL, 0, &value));
            PMIX_VALUE_RELEASE(value);
        }
        samples[batch] = (now() - begun) / BATCH;
    }
    return median(samples, BATCHES);
}

static void gets(const pmix_proc_t *all, const pmix_proc_t *next)
{
    printf("get-own-first %.2f\n", one_get(&me, "kilobyte-0"));
    printf("get-own %.3f\n", warm_get(&me, "kilobyte-0"));
    printf("get-job-first %.2f\n", one_get(all, PMIX_UNIV_SIZE));
    printf("get-job %.3f\n", warm_get(all, PMIX_JOB_SIZE));
    if (job_size > 1) {
        printf("get-peer-first %.2f\n", one_get(next, "kilobyte-0"));
        printf("get-peer %.3f\n", warm_get(next, "kilobyte-1"));
    }
}

static void puts_and_commits(char *text)
{
    double samples[PUTS];
    char key[64];

    for (int i = 0; i < PUTS; i++) {
        double begun = now();
        snprintf(key, sizeof key, "committed-%d", i);
        put_text(PMIX_GLOBAL, key, text);
        OK(PMIx_Commit());
        samples[i] = now() - begun;
    }
    printf("put-commit %.1f\n", median(samples, PUTS));
}

/* Round trip: publishes a name, then looks it up. */
static void names(void)
{
    double samples[NAMES];

    for (int i = 0; i < NAMES; i++) {
        double begun = now();
        pmix_info_t info;
        pmix_pdata_t found;
        char key[64];

        snprintf(key, sizeof key, "name-%d", i);
        PMIX_INFO_LOAD(&info, key, "here", PMIX_STRING);
        PMIX_PDATA_CONSTRUCT(&found);
        PMIX_LOAD_KEY(found.key, key);
        OK(PMIx_Publish(&info, 1));
        OK(PMIx_Lookup(&found, 1, NULL, 0));
        samples[i] = now() - begun;
        PMIX_PDATA_DESTRUCT(&found);
        PMIX_INFO_DESTRUCT(&info);
    }
    printf("publish-lookup %.1f\n", median(samples, NAMES));
}

/* Rank 0 sends, rank 1 answers from its handler: half of the round-trip time. */
static void events(double *samples)
{
    pmix_status_t code = me.rank == 0 ? PONG : PING;

    if (job_size < 2)
        return;
    sem_init(&arrived, 0, 0);
    sem_init(&registered, 0, 0);
    if (me.rank < 2) {
        PMIx_Register_event_handler(&code, 1, NULL, 0, on_event, on_registered, NULL);
        sem_wait(&registered);
    }
    barrier();
    if (me.rank == 0)
        for (int i = 0; i < EVENTS; i++) {
            double begun = now();
            OK(PMIx_Notify_event(PING, &me, range, NULL, 0, NULL, NULL));
            sem_wait(&arrived);
            samples[i] = (now() - begun) / 2;
        }
    barrier();
}

int main(int argc, char **argv)
{
    static char kilobyte[1024];
    static double fence[FENCES], collect[COLLECTS], event[EVENTS];
    double init, left, init_cpu, fence_cpu, finalize_cpu, begun = now();
    struct memory after_init, after_fence = { 0, 0 };
    char key[64];

    (void)argv;
    range = argc > 1 ? PMIX_RANGE_NAMESPACE : PMIX_RANGE_LOCAL;
    init_cpu = cpu();
    OK(PMIx_Init(&me, NULL, 0));
    left = now();
    init = left - begun;
    init_cpu = cpu() - init_cpu;
    alarm(120);
    pmix_proc_t all = process(PMIX_RANK_WILDCARD), next;
    pmix_value_t *value;
    OK(PMIx_Get(&all, PMIX_JOB_SIZE, NULL, 0, &value));
    job_size = value->data.uint32;
    PMIX_VALUE_RELEASE(value);
    next = process((me.rank + 1) % job_size);

    after_init = memory_among_all();
    fence_cpu = cpu();
    for (int i = 0; i < FENCES; i++) {
        begun = now();
        barrier();
        fence[i] = now() - begun;
    }
    fence_cpu = (cpu() - fence_cpu) / FENCES;
    memset(kilobyte, 'k', sizeof kilobyte - 1);
    for (int i = 0; i < COLLECTS; i++) {
        snprintf(key, sizeof key, "kilobyte-%d", i);
        put_text(PMIX_GLOBAL, key, kilobyte);
        barrier();
        begun = now();
        exchange();
        collect[i] = now() - begun;
        if (i == 0)
            after_fence = memory_among_all();
    }
    barrier();
    if (me.rank == 0) {
        gets(&all, &next);
        puts_and_commits(kilobyte);
        names();
    }
    events(event);
    barrier();
    begun = now();
    finalize_cpu = cpu();
    OK(PMIx_Finalize(NULL, 0));
    printf("finalize %.1f\nfinalize-cpu %.1f\n", now() - begun, cpu() - finalize_cpu);
    printf("init %.1f\ninit-cpu %.1f\ninit-left %.1f\nfence-cpu %.1f\n", init, init_cpu, left, fence_cpu);
    printf("private-init %.0f\nprivate-fence %.0f\n", after_init.private, after_fence.private);
    printf("anonymous-init %.0f\nanonymous-fence %.0f\n", after_init.anonymous, after_fence.anonymous);
    if (me.rank == 0) {
        printf("fence %.1f\nfence-1KiB %.1f\n", median(fence, FENCES), median(collect, COLLECTS));
        if (job_size > 1)
            printf("event %.1f\n", median(event, EVENTS));
    }
    return 0;
}
