/* A program that makes mistakes, in itself and in a child: the library reports them only where requested. */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pmix.h>

#include "check.h"

int main(void)
{
    pmix_info_t info;
    pmix_proc_t me;
    int status;

    alarm(600);
    PMIX_INFO_LOAD(&info, "example.unheard.of", NULL, PMIX_BOOL);
    PMIX_INFO_REQUIRED(&info);
    CHECK(PMIx_Init(&me, &info, 1) == PMIX_ERR_NOT_SUPPORTED);
    CHECK(PMIx_Init(&me, NULL, 0) == PMIX_SUCCESS);
    pid_t child = fork();
    if (child == 0) {
        /* It has called no init of its own. */
        CHECK(PMIx_Put(PMIX_GLOBAL, "key", NULL) != PMIX_SUCCESS);
        CHECK(PMIx_Fence(NULL, 0, NULL, 0) == PMIX_ERR_INIT);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(PMIx_Finalize(NULL, 0) == PMIX_SUCCESS);
    printf("mistakes were made by %d\n", (int)getpid());
    return 0;
}
