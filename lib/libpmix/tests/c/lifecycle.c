/* Init and finalize: counted, repeatable without growth, not inherited by a forked child, harmless to the process's signals. */
#define _GNU_SOURCE
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pmix.h>

#define CHECK(condition)                                                                  \
    do {                                                                                  \
        if (!(condition)) {                                                               \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);       \
            return 1;                                                                     \
        }                                                                                 \
    } while (0)

static int entries(const char *path)
{
    DIR *dir = opendir(path);
    int count = 0;

    while (dir != NULL && readdir(dir) != NULL)
        count++;
    if (dir != NULL)
        closedir(dir);
    return count;
}

/* What is not backed by files: those count as private, and dirty, when they were written just now and nobody else maps them. */
static long private_kib(void)
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

static int in_a_child(void)
{
    pmix_value_t *value;

    CHECK(PMIx_Initialized() == 0);
    CHECK(PMIx_Get(NULL, PMIX_JOB_SIZE, NULL, 0, &value) == PMIX_ERR_INIT);
    CHECK(PMIx_Commit() == PMIX_ERR_INIT);
    CHECK(PMIx_Finalize(NULL, 0) == PMIX_ERR_INIT);
    return 0;
}

int main(void)
{
    pmix_proc_t me, again;
    sigset_t before, after;
    struct sigaction old, now;
    int files = 0, threads = 0, status;
    long memory = 0;

    pthread_sigmask(SIG_SETMASK, NULL, &before);
    sigaction(SIGPIPE, NULL, &old);
    for (int round = 0; round < 200; round++) {
        CHECK(PMIx_Init(&me, NULL, 0) == PMIX_SUCCESS);
        CHECK(PMIx_Initialized() == 1);
        CHECK(PMIx_Init(&again, NULL, 0) == PMIX_SUCCESS && PMIX_CHECK_PROCID(&me, &again));
        CHECK(PMIx_Finalize(NULL, 0) == PMIX_SUCCESS && PMIx_Initialized() == 1);
        if (round == 100) {
            pid_t child = fork();
            if (child == 0)
                _exit(in_a_child());
            CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
        }
        CHECK(PMIx_Finalize(NULL, 0) == PMIX_SUCCESS && PMIx_Initialized() == 0);
        CHECK(PMIx_Finalize(NULL, 0) == PMIX_ERR_INIT);
        if (round == 20) {
            files = entries("/proc/self/fd");
            threads = entries("/proc/self/task");
            memory = private_kib();
        }
    }
    CHECK(entries("/proc/self/fd") == files && entries("/proc/self/task") == threads);
    CHECK(private_kib() < memory + 512);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    sigaction(SIGPIPE, NULL, &now);
    for (int signal = 1; signal < NSIG; signal++)
        CHECK(sigismember(&before, signal) == sigismember(&after, signal));
    CHECK(old.sa_handler == now.sa_handler);
    printf("200 lives\n");
    return 0;
}
