/* Collected data is available while the server is stopped: rank 0 stops the launcher, its parent, and gets what the other ranks
 * have put. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <pmix.h>

#include "check.h"

static pmix_proc_t me;

static void lets_the_launcher_go_on(void)
{
    kill(getppid(), SIGCONT);
}

/* A rank that asks the server waits until it continues, and so until here. */
static void too_late(int signal)
{
    (void)signal;
    lets_the_launcher_go_on();
    _exit(1);
}

/* Whether the process is stopped: the third field, after the name in brackets. */
static int is_stopped(pid_t pid)
{
    char path[64], state = 0;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    file = fopen(path, "r");
    CHECK(file != NULL);
    CHECK(fscanf(file, "%*d (%*[^)]) %c", &state) == 1);
    fclose(file);
    return state == 'T';
}

static void put_and_fence(uint32_t number)
{
    pmix_value_t value;
    pmix_info_t collect;
    bool yes = true;

    PMIX_VALUE_LOAD(&value, &number, PMIX_UINT32);
    CHECK(PMIx_Put(PMIX_GLOBAL, "card", &value) == PMIX_SUCCESS);
    CHECK(PMIx_Commit() == PMIX_SUCCESS);
    PMIX_INFO_LOAD(&collect, PMIX_COLLECT_DATA, &yes, PMIX_BOOL);
    CHECK(PMIx_Fence(NULL, 0, &collect, 1) == PMIX_SUCCESS);
}

static void get_from_all(uint32_t size, uint32_t first)
{
    for (uint32_t rank = 0; rank < size; rank++) {
        pmix_proc_t peer;
        pmix_value_t *value;

        PMIX_LOAD_PROCID(&peer, me.nspace, rank);
        CHECK(PMIx_Get(&peer, "card", NULL, 0, &value) == PMIX_SUCCESS);
        CHECK(value->type == PMIX_UINT32 && value->data.uint32 == first + rank);
        PMIX_VALUE_RELEASE(value);
    }
}

int main(void)
{
    uint32_t size;

    atexit(lets_the_launcher_go_on);
    signal(SIGALRM, too_late);
    alarm(600);
    CHECK(PMIx_Init(&me, NULL, 0) == PMIX_SUCCESS);
    size = job_size(&me);
    for (uint32_t first = 100; first <= 300; first += 100) {
        put_and_fence(first + me.rank);
        CHECK(PMIx_Fence(NULL, 0, NULL, 0) == PMIX_SUCCESS);
        if (me.rank == 0) {
            CHECK(kill(getppid(), SIGSTOP) == 0);
            while (!is_stopped(getppid()))
                usleep(100);
            get_from_all(size, first);
            CHECK(kill(getppid(), SIGCONT) == 0);
        }
        get_from_all(size, first);
        CHECK(PMIx_Fence(NULL, 0, NULL, 0) == PMIX_SUCCESS);
    }
    CHECK(PMIx_Finalize(NULL, 0) == PMIX_SUCCESS);
    puts("nobody was asked");
    return 0;
}
