/* PMIx_Init in forked children of a rank, made by the C library or by the kernel alone: before the rank has initialized, while it
 * is initialized, and after it has finalized. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pmix.h>

#include "check.h"

/* A client of its own, with its parent's name. */
static int becomes_the_rank(void)
{
    const char *rank = getenv("PMIX_RANK"), *nspace = getenv("PMIX_NAMESPACE");
    pmix_value_t *value;
    pmix_proc_t me, job;

    CHECK(PMIx_Initialized() == 0);
    CHECK(PMIx_Init(&me, NULL, 0) == PMIX_SUCCESS);
    CHECK(me.rank == strtoul(rank, NULL, 10) && strcmp(me.nspace, nspace) == 0);
    PMIX_LOAD_PROCID(&job, me.nspace, PMIX_RANK_WILDCARD);
    CHECK(PMIx_Get(&job, PMIX_JOB_SIZE, NULL, 0, &value) == PMIX_SUCCESS && value->data.uint32 == 2);
    PMIX_VALUE_RELEASE(value);
    CHECK(PMIx_Fence(NULL, 0, NULL, 0) == PMIX_SUCCESS);
    CHECK(PMIx_Finalize(NULL, 0) == PMIX_SUCCESS && PMIx_Initialized() == 0);
    return 0;
}

/* There is one client per rank: while that is the parent, nobody else is let in. */
static int is_not_let_in(void)
{
    pmix_value_t *value;
    pmix_proc_t me;

    for (int again = 0; again < 2; again++) {
        pmix_status_t status = PMIx_Init(&me, NULL, 0);
        if (status != PMIX_ERR_UNREACH) {
            fprintf(stderr, "init in a child: %s\n", PMIx_Error_string(status));
            return 1;
        }
        CHECK(PMIx_Initialized() == 0);
        CHECK(PMIx_Get(NULL, PMIX_JOB_SIZE, NULL, 0, &value) == PMIX_ERR_INIT);
    }
    return 0;
}

/* The C library runs handlers of its own around its fork; of the second way it hears nothing. */
static int in_children(int (*child)(void))
{
    for (int way = 0; way < 2; way++) {
        pid_t pid = way == 0 ? fork() : syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
        int status;

        if (pid == 0) {
            int result = child();
            fflush(NULL);
            _exit(result);
        }
        CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
    }
    return 0;
}

int main(void)
{
    pmix_proc_t me;

    alarm(120);
    CHECK(in_children(becomes_the_rank) == 0);
    CHECK(PMIx_Init(&me, NULL, 0) == PMIX_SUCCESS);
    CHECK(PMIx_Fence(NULL, 0, NULL, 0) == PMIX_SUCCESS);
    CHECK(in_children(is_not_let_in) == 0);
    /* The parent is as it was. */
    CHECK(PMIx_Fence(NULL, 0, NULL, 0) == PMIX_SUCCESS);
    CHECK(PMIx_Finalize(NULL, 0) == PMIX_SUCCESS);
    CHECK(in_children(becomes_the_rank) == 0);
    puts("children are right");
    return 0;
}
