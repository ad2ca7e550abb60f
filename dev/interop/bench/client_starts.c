/* The time of a PMIx client's init and finalize when all ranks call them at once and do nothing else: no process starts
 * while others are in init, and none ends before all have left finalize. The argument is the number of ranks; each of them
 * prints "METRIC MICROSECONDS". */
#include "check.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Lets ranks synchronize without PMIx. */
struct meeting { atomic_int before, after; };

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e6 + time.tv_nsec / 1e3;
}

static void meet(atomic_int *arrived, int count)
{
    int seen = atomic_fetch_add(arrived, 1) + 1;

    if (seen == count)
        syscall(SYS_futex, arrived, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    for (; seen < count; seen = atomic_load(arrived))
        syscall(SYS_futex, arrived, FUTEX_WAIT, seen, NULL, NULL, 0);
}

int main(int argc, char **argv)
{
    const char *nspace = getenv("PMIX_NAMESPACE");
    int count = argc > 1 ? atoi(argv[1]) : 0, file;
    struct meeting *meeting;
    double begun, init, finalize;
    char name[NAME_MAX];

    alarm(120);
    CHECK(nspace != NULL && count > 0, "started by hand?");
    snprintf(name, sizeof name, "/client_starts-%s", nspace);
    file = shm_open(name, O_RDWR | O_CREAT, 0600);
    CHECK(file >= 0 && ftruncate(file, sizeof *meeting) == 0, "%s: %m", name);
    meeting = mmap(NULL, sizeof *meeting, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    CHECK(meeting != MAP_FAILED, "%m");

    meet(&meeting->before, count);
    shm_unlink(name);
    begun = now();
    OK(PMIx_Init(&me, NULL, 0));
    init = now() - begun;
    barrier();
    begun = now();
    OK(PMIx_Finalize(NULL, 0));
    finalize = now() - begun;
    meet(&meeting->after, count);
    printf("init-together %.1f\nfinalize-together %.1f\n", init, finalize);
    return 0;
}
