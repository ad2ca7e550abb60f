/* How long the calls of a PMIx client take. Each rank prints "METRIC MICROSECONDS", one line per metric: the median of
 * its samples. Metrics that only make sense in one place come from rank 0 alone. What ends in "-cpu" is the processor
 * time of the rank itself, without its server's; "init-left" is the moment of the clock at which it left PMIx_Init. */
#include "check.h"

#include <semaphore.h>
#include <sys/resource.h>
#include <time.h>

enum { FENCES = 50, COLLECTS = 20, GETS = 200, EVENTS = 20, PING = PMIX_EXTERNAL_ERR_BASE - 1, PONG = PING - 1 };

static sem_t arrived, registered;

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
        PMIx_Notify_event(PONG, &me, PMIX_RANGE_LOCAL, NULL, 0, NULL, NULL);
    else
        sem_post(&arrived);
    done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, cbdata);
}

static void on_registered(pmix_status_t status, size_t id, void *cbdata)
{
    (void)status, (void)id, (void)cbdata;
    sem_post(&registered);
}

/* Rank 0 sends, rank 1 answers from inside its handler: half of the time there and back. */
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
            OK(PMIx_Notify_event(PING, &me, PMIX_RANGE_LOCAL, NULL, 0, NULL, NULL));
            sem_wait(&arrived);
            samples[i] = (now() - begun) / 2;
        }
    barrier();
}

int main(void)
{
    static char kilobyte[1024];
    static double fence[FENCES], collect[COLLECTS], job[GETS], peer[GETS], cold[1], event[EVENTS];
    double init, left, init_cpu, fence_cpu, finalize_cpu, begun = now();
    char key[64];

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

    barrier();
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
    }
    barrier();
    if (me.rank == 0 && job_size > 1) {
        begun = now();
        OK(PMIx_Get(&next, "kilobyte-0", NULL, 0, &value));
        cold[0] = now() - begun;
        PMIX_VALUE_RELEASE(value);
        for (int i = 0; i < GETS; i++) {
            begun = now();
            OK(PMIx_Get(&next, "kilobyte-1", NULL, 0, &value));
            peer[i] = now() - begun;
            PMIX_VALUE_RELEASE(value);
        }
        for (int i = 0; i < GETS; i++) {
            begun = now();
            OK(PMIx_Get(&all, PMIX_JOB_SIZE, NULL, 0, &value));
            job[i] = now() - begun;
            PMIX_VALUE_RELEASE(value);
        }
    }
    events(event);
    barrier();
    begun = now();
    finalize_cpu = cpu();
    OK(PMIx_Finalize(NULL, 0));
    printf("finalize %.1f\nfinalize-cpu %.1f\n", now() - begun, cpu() - finalize_cpu);
    printf("init %.1f\ninit-cpu %.1f\ninit-left %.1f\nfence-cpu %.1f\n", init, init_cpu, left, fence_cpu);
    if (me.rank == 0) {
        printf("fence %.1f\nfence-1KiB %.1f\n", median(fence, FENCES), median(collect, COLLECTS));
        if (job_size > 1)
            printf("get-job %.1f\nget-peer-first %.1f\nget-peer-again %.1f\nevent %.1f\n", median(job, GETS), cold[0],
                   median(peer, GETS), median(event, EVENTS));
    }
    return 0;
}
