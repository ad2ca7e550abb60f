/* Requests monitoring of a file, argv[1], which it writes for a while and then no more: all ranks of the job print "rank R of N: the
 * file is silent" when the alert has come. Rank 0 is the one that is monitored. */
#include "check.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t news = PTHREAD_COND_INITIALIZER;
static bool alerted;

static void on_alert(size_t id, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[], size_t ninfo,
                     pmix_info_t *results, size_t nresults, pmix_event_notification_cbfunc_fn_t done, void *cbdata)
{
    bool named = false;

    (void)id, (void)results, (void)nresults;
    CHECK(status == PMIX_MONITOR_FILE_ALERT, "event %d", status);
    CHECK(source->rank == 0, "from rank %u", source->rank);
    for (size_t n = 0; n < ninfo; n++)
        named |= PMIX_CHECK_KEY(&info[n], PMIX_MONITOR_ID) && strcmp(info[n].value.data.string, "growth") == 0;
    CHECK(named, "it does not say which monitor");
    done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, cbdata);
    pthread_mutex_lock(&lock);
    alerted = true;
    pthread_cond_signal(&news);
    pthread_mutex_unlock(&lock);
}

static void on_registered(pmix_status_t status, size_t id, void *cbdata)
{
    (void)id;
    CHECK(status == PMIX_SUCCESS, "registration: %s", PMIx_Error_string(status));
    pthread_mutex_lock(&lock);
    *(bool *)cbdata = true;
    pthread_cond_signal(&news);
    pthread_mutex_unlock(&lock);
}

static void wait_for(const bool *what)
{
    pthread_mutex_lock(&lock);
    while (!*what)
        pthread_cond_wait(&news, &lock);
    pthread_mutex_unlock(&lock);
}

int main(int argc, char **argv)
{
    pmix_status_t code = PMIX_MONITOR_FILE_ALERT;
    bool registered = false, yes = true;
    uint32_t seconds = 1, drops = 1;
    pmix_info_t monitor, directives[4], *results = NULL;
    size_t count = 0;

    start();
    CHECK(argc > 1, "which file?");
    PMIx_Register_event_handler(&code, 1, NULL, 0, on_alert, on_registered, &registered);
    wait_for(&registered);
    barrier();
    if (me.rank == 0) {
        FILE *file = fopen(argv[1], "w");
        CHECK(file != NULL, "cannot write %s", argv[1]);
        PMIX_INFO_LOAD(&monitor, PMIX_MONITOR_FILE, argv[1], PMIX_STRING);
        PMIX_INFO_LOAD(&directives[0], PMIX_MONITOR_ID, "growth", PMIX_STRING);
        PMIX_INFO_LOAD(&directives[1], PMIX_MONITOR_FILE_SIZE, &yes, PMIX_BOOL);
        PMIX_INFO_LOAD(&directives[2], PMIX_MONITOR_FILE_CHECK_TIME, &seconds, PMIX_UINT32);
        PMIX_INFO_LOAD(&directives[3], PMIX_MONITOR_FILE_DROPS, &drops, PMIX_UINT32);
        OK(PMIx_Process_monitor(&monitor, PMIX_SUCCESS, directives, 4, &results, &count));
        for (int n = 0; n < 20; n++) {
            fputs("alive\n", file);
            fflush(file);
            usleep(100000);
        }
        fclose(file);
    }
    wait_for(&alerted);
    finish("the file is silent");
    return 0;
}
