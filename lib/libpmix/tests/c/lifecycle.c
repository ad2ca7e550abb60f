/* Init and finalize: counted, repeatable without growth, not inherited by a forked child, harmless to the process's signals. */
#define _GNU_SOURCE
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pmix.h>

#include "check.h"

static int in_a_child(const pmix_proc_t *parent)
{
    pmix_value_t *value;

    CHECK(PMIx_Initialized() == 0);
    CHECK(PMIx_Get(NULL, PMIX_JOB_SIZE, NULL, 0, &value) == PMIX_ERR_INIT);
    CHECK(PMIx_Get(parent, PMIX_RANK, NULL, 0, &value) == PMIX_ERR_INIT);
    CHECK(PMIx_Commit() == PMIX_ERR_INIT);
    CHECK(PMIx_Finalize(NULL, 0) == PMIX_ERR_INIT);
    return 0;
}

/* A child made by the C library, one that the C library does not notice, and the child of a child. */
static int forked(const pmix_proc_t *me)
{
    for (int way = 0; way < 3; way++) {
        int status;
        pid_t child = way == 1 ? syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : fork();
        if (child == 0 && way == 2) {
            child = fork();
            if (child != 0)
                _exit(child > 0 && waitpid(child, &status, 0) == child && status == 0 ? 0 : 1);
        }
        if (child == 0)
            _exit(in_a_child(me));
        CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    }
    return 0;
}

static void on_event(size_t id, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[], size_t ninfo,
                     pmix_info_t *results, size_t nresults, pmix_event_notification_cbfunc_fn_t done, void *cbdata)
{
    (void)id, (void)status, (void)source, (void)info, (void)ninfo, (void)results, (void)nresults;
    done(PMIX_EVENT_NO_ACTION_TAKEN, NULL, 0, NULL, NULL, cbdata);
}

/* The library's thread, which exists once there is a handler, takes no signal of the program's: all but KILL, STOP and the C
 * library's own are blocked. */
static int threads_are_deaf(void)
{
    int others = 0;
    DIR *dir = opendir("/proc/self/task");
    unsigned long long cannot = 1ULL << 8 | 1ULL << 18 | 1ULL << 31 | 1ULL << 32, mask;
    struct dirent *entry;

    CHECK(dir != NULL);
    while ((entry = readdir(dir)) != NULL) {
        char path[300], line[256];
        FILE *file;

        if (entry->d_name[0] == '.' || atoi(entry->d_name) == getpid())
            continue;
        others++;
        snprintf(path, sizeof path, "/proc/self/task/%s/status", entry->d_name);
        file = fopen(path, "r");
        CHECK(file != NULL);
        while (fgets(line, sizeof line, file) != NULL)
            if (sscanf(line, "SigBlk: %llx", &mask) == 1)
                CHECK((mask | cannot) == ~0ULL);
        fclose(file);
    }
    closedir(dir);
    CHECK(others == 1);
    return 0;
}

/* Unknown required attributes are refused; other unknown ones are ignored. */
static int directives_are_read(void)
{
    const char *unknown[] = {PMIX_SERVER_GATEWAY, "my.own.key"};
    pmix_proc_t me;
    pmix_info_t infos[2];

    for (int i = 0; i < 2; i++) {
        PMIX_INFO_LOAD(&infos[0], PMIX_EXTERNAL_PROGRESS, NULL, PMIX_BOOL);
        PMIX_INFO_LOAD(&infos[1], unknown[i], NULL, PMIX_BOOL);
        PMIX_INFO_REQUIRED(&infos[0]);
        CHECK(PMIx_Init(&me, infos, 2) == PMIX_SUCCESS);
        PMIX_INFO_REQUIRED(&infos[1]);
        CHECK(PMIx_Init(&me, infos, 2) == PMIX_ERR_NOT_SUPPORTED);
        CHECK(PMIx_Finalize(NULL, 0) == PMIX_SUCCESS && PMIx_Initialized() == 0);
        CHECK(PMIx_Init(&me, infos, 2) == PMIX_ERR_NOT_SUPPORTED && PMIx_Initialized() == 0);
        PMIx_Progress_thread_stop(NULL, 0);
    }
    return 0;
}

int main(void)
{
    pmix_proc_t me, again;
    sigset_t before, after;
    struct sigaction old[NSIG], now;
    int files = 0, before_any = entries("/proc/self/task");
    long memory = 0;

    memset(old, 0, sizeof old);
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    for (int signal = 1; signal < NSIG; signal++)
        sigaction(signal, NULL, &old[signal]);
    for (int round = 0; round < 200; round++) {
        CHECK(PMIx_Init(&me, NULL, 0) == PMIX_SUCCESS);
        CHECK(PMIx_Initialized() == 1);
        CHECK(PMIx_Init(&again, NULL, 0) == PMIX_SUCCESS && PMIX_CHECK_PROCID(&me, &again));
        CHECK(PMIx_Finalize(NULL, 0) == PMIX_SUCCESS && PMIx_Initialized() == 1);
        if (round % 100 == 0) {
            pmix_value_t *value;
            CHECK(PMIx_Get(&me, PMIX_RANK, NULL, 0, &value) == PMIX_SUCCESS);
            PMIX_VALUE_RELEASE(value);
            comes_to("/proc/self/task", before_any);
            CHECK(PMIx_Register_event_handler(NULL, 0, NULL, 0, on_event, NULL, NULL) >= 0);
            CHECK(forked(&me) == 0 && threads_are_deaf() == 0);
            CHECK(PMIx_Get(&me, PMIX_RANK, NULL, 0, &value) == PMIX_SUCCESS);
            PMIX_VALUE_RELEASE(value);
        }
        CHECK(PMIx_Finalize(NULL, 0) == PMIX_SUCCESS && PMIx_Initialized() == 0);
        CHECK(PMIx_Finalize(NULL, 0) == PMIX_ERR_INIT);
        if (round == 20) {
            files = entries("/proc/self/fd");
            memory = private_kib();
        }
    }
    CHECK(entries("/proc/self/fd") == files);
    comes_to("/proc/self/task", before_any);
    CHECK(private_kib() < memory + 512);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    for (int signal = 1; signal < NSIG; signal++) {
        /* The C library keeps two for its threads. */
        if (signal == 32 || signal == 33)
            continue;
        CHECK(sigismember(&before, signal) == sigismember(&after, signal));
        CHECK(sigaction(signal, NULL, &now) == 0 && old[signal].sa_handler == now.sa_handler);
    }
    CHECK(directives_are_read() == 0);
    printf("200 lives\n");
    return 0;
}
