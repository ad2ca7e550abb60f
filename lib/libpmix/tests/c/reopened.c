/* A host that repeatedly loads the library, uses it, and unloads it. The library is named on the command line. */
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

#include <pmix.h>

#include "check.h"

int main(int argc, char **argv)
{
    int files = 0, threads = 0;

    alarm(600);
    CHECK(argc == 2);
    for (int round = 0; round < 30; round++) {
        void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        pmix_status_t (*init)(pmix_proc_t *, pmix_info_t *, size_t);
        pmix_status_t (*finalize)(const pmix_info_t *, size_t);
        pmix_proc_t me;

        CHECK(library != NULL);
        *(void **)&init = dlsym(library, "PMIx_Init");
        *(void **)&finalize = dlsym(library, "PMIx_Finalize");
        CHECK(init != NULL && finalize != NULL);
        CHECK(init(&me, NULL, 0) == PMIX_SUCCESS);
        CHECK(finalize(NULL, 0) == PMIX_SUCCESS);
        CHECK(dlclose(library) == 0);
        if (round == 5) {
            files = entries("/proc/self/fd");
            threads = entries("/proc/self/task");
        }
    }
    CHECK(entries("/proc/self/fd") == files && entries("/proc/self/task") == threads);
    printf("30 times opened\n");
    return 0;
}
