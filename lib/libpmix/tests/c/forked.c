/* PMIx_Init in forked children of a rank, made by the C library or by the kernel alone: before the rank has initialized, while it
 * is initialized, and after it has finalized. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pmix.h>

#include "check.h"

static pmix_proc_t me;

/* A client of its own, with its parent's name. */
static int begins(void)
{
    const char *rank = getenv("PMIX_RANK"), *nspace = getenv("PMIX_NAMESPACE");
    pmix_value_t *value;

    CHECK(PMIx_Initialized() == 0);
    CHECK(PMIx_Get(NULL, PMIX_JOB_SIZE, NULL, 0, &value) == PMIX_ERR_INIT);
    CHECK(PMIx_Init(&me, NULL, 0) == PMIX_SUCCESS);
    CHECK(me.rank == strtoul(rank, NULL, 10) && strcmp(me.nspace, nspace) == 0);
    CHECK(job_size(&me) == 2);
    return 0;
}

static int becomes_the_rank(void)
{
    CHECK(begins() == 0);
    CHECK(PMIx_Fence(NULL, 0, NULL, 0) == PMIX_SUCCESS);
    CHECK(PMIx_Finalize(NULL, 0) == PMIX_SUCCESS && PMIx_Initialized() == 0);
    return 0;
}

static int puts_in(const char *key)
{
    pmix_value_t value;

    PMIX_VALUE_LOAD(&value, key, PMIX_STRING);
    CHECK(PMIx_Put(PMIX_GLOBAL, key, &value) == PMIX_SUCCESS && PMIx_Commit() == PMIX_SUCCESS);
    PMIX_VALUE_DESTRUCT(&value);
    return 0;
}

static int gets_of_the_other(const char *key)
{
    pmix_proc_t other = me;
    pmix_value_t *value;

    other.rank = 1 - me.rank;
    CHECK(PMIx_Get(&other, key, NULL, 0, &value) == PMIX_SUCCESS);
    CHECK(value->type == PMIX_STRING && strcmp(value->data.string, key) == 0);
    PMIX_VALUE_RELEASE(value);
    return 0;
}

/* The child's values are the rank's, and it gets the values of others, here and in other children. */
static int works_beside_its_parent(void)
{
    CHECK(begins() == 0);
    CHECK(puts_in("child") == 0 && gets_of_the_other("child") == 0 && gets_of_the_other("parent") == 0);
    CHECK(PMIx_Fence(NULL, 0, NULL, 0) == PMIX_SUCCESS);
    CHECK(PMIx_Finalize(NULL, 0) == PMIX_SUCCESS);
    return 0;
}

static int dies(void)
{
    CHECK(begins() == 0);
    kill(getpid(), SIGKILL);
    return 0;
}

static int leaves_without_finalize(void)
{
    return begins();
}

/* The C library runs handlers around its own fork; it does not notice the second way. */
static pid_t forks(int way, int (*child)(void))
{
    pid_t pid = way == 0 ? fork() : syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

    if (pid == 0) {
        int result = child();
        fflush(NULL);
        _exit(result);
    }
    return pid;
}

static int ended(pid_t pid)
{
    int status;

    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
    return status;
}

static int in_children(int (*child)(void), int expected)
{
    for (int way = 0; way < 2; way++)
        CHECK(ended(forks(way, child)) == expected);
    return 0;
}

/* Each rank fences twice, parent and child in any order. */
static int meets_with_children(void)
{
    for (int way = 0; way < 2; way++) {
        pid_t child = forks(way, becomes_the_rank);
        CHECK(PMIx_Fence(NULL, 0, NULL, 0) == PMIX_SUCCESS);
        CHECK(ended(child) == 0);
    }
    return 0;
}

/* Children that continue when their parent finalizes. */
static int finalizes_before_its_child(void)
{
    int started[2], finalized[2];
    char byte = 0;
    pid_t pid;

    CHECK(pipe(started) == 0 && pipe(finalized) == 0);
    pid = fork();
    if (pid == 0) {
        close(finalized[1]);
        CHECK(begins() == 0);
        CHECK(write(started[1], &byte, 1) == 1 && read(finalized[0], &byte, 1) == 1);
        CHECK(PMIx_Fence(NULL, 0, NULL, 0) == PMIX_SUCCESS && PMIx_Finalize(NULL, 0) == PMIX_SUCCESS);
        fflush(NULL);
        _exit(0);
    }
    close(started[1]);
    CHECK(read(started[0], &byte, 1) == 1);
    CHECK(PMIx_Finalize(NULL, 0) == PMIX_SUCCESS);
    CHECK(write(finalized[1], &byte, 1) == 1);
    CHECK(ended(pid) == 0);
    return 0;
}

static int fences_with_its_clones(void)
{
    pmix_info_t info;
    bool yes = true;

    PMIX_INFO_LOAD(&info, PMIX_ALL_CLONES_PARTICIPATE, &yes, PMIX_BOOL);
    PMIX_INFO_REQUIRED(&info);
    CHECK(PMIx_Fence(NULL, 0, &info, 1) == PMIX_SUCCESS);
    PMIX_INFO_DESTRUCT(&info);
    return 0;
}

/* Parent and child of rank 0 are in one fence with rank 1, which has no child. */
static int participates_with_its_child(void)
{
    int started[2];
    char byte = 0;
    pid_t pid;

    if (me.rank == 0) {
        CHECK(pipe(started) == 0);
        pid = fork();
        if (pid == 0) {
            int wrong = begins() != 0 || write(started[1], &byte, 1) != 1 || fences_with_its_clones() != 0;
            fflush(NULL);
            _exit(wrong || PMIx_Finalize(NULL, 0) != PMIX_SUCCESS);
        }
        close(started[1]);
        CHECK(read(started[0], &byte, 1) == 1);
        close(started[0]);
        CHECK(fences_with_its_clones() == 0 && ended(pid) == 0);
    } else {
        CHECK(PMIx_Fence(NULL, 0, NULL, 0) == PMIX_SUCCESS);
    }
    CHECK(PMIx_Fence(NULL, 0, NULL, 0) == PMIX_SUCCESS);
    return 0;
}

int main(void)
{
    alarm(600);
    CHECK(in_children(becomes_the_rank, 0) == 0);
    CHECK(PMIx_Init(&me, NULL, 0) == PMIX_SUCCESS);
    CHECK(PMIx_Fence(NULL, 0, NULL, 0) == PMIX_SUCCESS);
    CHECK(puts_in("parent") == 0);
    CHECK(in_children(works_beside_its_parent, 0) == 0);
    CHECK(gets_of_the_other("child") == 0);
    CHECK(meets_with_children() == 0);
    /* The parent is unchanged, whatever happens to its children. */
    CHECK(in_children(dies, SIGKILL) == 0 && in_children(leaves_without_finalize, 0) == 0);
    CHECK(PMIx_Fence(NULL, 0, NULL, 0) == PMIX_SUCCESS);
    CHECK(participates_with_its_child() == 0);
    CHECK(finalizes_before_its_child() == 0);
    CHECK(in_children(becomes_the_rank, 0) == 0);
    puts("children are right");
    return 0;
}
