/* Counts, takes checkpoints in DIR (argv[1]) on request, and continues from one when it is restarted. For two ranks: the first is notified
 * by an event, the second by a signal, and only the second is restarted. Both end when DIR/end exists. */
#include "check.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool registered;
static volatile sig_atomic_t wanted, restarted;
static unsigned long count;

static void on_signal(int number)
{
    (void)number;
    wanted = 1;
}

static void on_event(size_t id, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[], size_t ninfo,
                     pmix_info_t *results, size_t nresults, pmix_event_notification_cbfunc_fn_t done, void *cbdata)
{
    (void)id, (void)source, (void)info, (void)ninfo, (void)results, (void)nresults;
    if (status == PMIX_JCTRL_CHECKPOINT)
        wanted = 1;
    if (status == PMIX_ERR_PROC_RESTART)
        restarted = 1;
    done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, cbdata);
}

static void on_registered(pmix_status_t status, size_t id, void *cbdata)
{
    (void)id, (void)cbdata;
    CHECK(status == PMIX_SUCCESS, "registration: %s", PMIx_Error_string(status));
    pthread_mutex_lock(&lock);
    registered = true;
    pthread_mutex_unlock(&lock);
}

static bool is_registered(void)
{
    pthread_mutex_lock(&lock);
    bool is = registered;
    pthread_mutex_unlock(&lock);
    return is;
}

/* As in the RFC's example. */
static void declare(void)
{
    pmix_info_t info[2], *methods, *results = NULL;
    pmix_data_array_t array;
    pmix_status_t code = PMIX_JCTRL_CHECKPOINT;
    bool yes = true;
    int signal_number = SIGUSR2;
    size_t found = 0;

    PMIX_INFO_CREATE(methods, 1);
    if (me.rank == 0)
        PMIX_INFO_LOAD(&methods[0], PMIX_JOB_CTRL_CHECKPOINT_EVENT, &code, PMIX_STATUS);
    else
        PMIX_INFO_LOAD(&methods[0], PMIX_JOB_CTRL_CHECKPOINT_SIGNAL, &signal_number, PMIX_INT);
    array.type = PMIX_INFO;
    array.size = 1;
    array.array = methods;
    PMIX_INFO_LOAD(&info[0], PMIX_JOB_CTRL_PREEMPTIBLE, &yes, PMIX_BOOL);
    PMIX_INFO_LOAD(&info[1], PMIX_JOB_CTRL_CHECKPOINT_METHOD, &array, PMIX_DATA_ARRAY);
    OK(PMIx_Job_control(NULL, 0, info, 2, &results, &found));
}

static const char *in(const char *directory, const char *name)
{
    static char path[4096];

    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

static void save(const char *directory)
{
    FILE *file = fopen(in(directory, keyed("count", me.rank)), "w");

    CHECK(file != NULL, "cannot write below %s", directory);
    fprintf(file, "%lu", count);
    fclose(file);
    /* After the event it may be killed. */
    printf("rank %u: saved\n", me.rank);
    fflush(stdout);
    OK(PMIx_Notify_event(PMIX_JCTRL_CHECKPOINT_COMPLETE, &me, PMIX_RANGE_RM, NULL, 0, NULL, NULL));
}

/* How many times this rank was restarted. */
static uint32_t reincarnation(void)
{
    pmix_value_t *value = NULL;
    uint32_t number;

    OK(PMIx_Get(&me, PMIX_REINCARNATION, NULL, 0, &value));
    CHECK(value->type == PMIX_UINT32, "type %d", value->type);
    number = value->data.uint32;
    PMIX_VALUE_RELEASE(value);
    return number;
}

static void go_on(const char *directory)
{
    FILE *file = fopen(in(directory, keyed("count", me.rank)), "r");

    CHECK(file != NULL && fscanf(file, "%lu", &count) == 1, "nothing saved below %s", directory);
    fclose(file);
    expect_text(me.rank, PMIX_JOB_CTRL_RESTART, NULL, "night");
    CHECK(strcmp(getenv("PHALANX_RESTART_FROM"), "night") == 0, "%s", getenv("PHALANX_RESTART_FROM"));
    printf("rank %u: goes on %s its checkpoint\n", me.rank, count > 0 ? "from" : "without");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    pmix_status_t codes[] = { PMIX_JCTRL_CHECKPOINT, PMIX_ERR_PROC_RESTART };

    CHECK(argc > 1, "which directory?");
    signal(SIGUSR2, on_signal);
    start();
    PMIx_Register_event_handler(codes, 2, NULL, 0, on_event, on_registered, NULL);
    while (!is_registered())
        usleep(1000);
    declare();
    if (reincarnation() > 0)
        go_on(argv[1]);
    barrier();
    printf("rank %u: counts\n", me.rank);
    fflush(stdout);
    while (access(in(argv[1], "end"), F_OK) != 0) {
        count++;
        usleep(1000);
        if (wanted) {
            wanted = 0;
            save(argv[1]);
        }
        if (restarted) {
            restarted = 0;
            printf("rank %u: hears of the restart\n", me.rank);
            fflush(stdout);
            barrier();
        }
    }
    barrier();
    finish("counted");
    return 0;
}
