/* Functions that releases after 4.2 have added, in a rank of a job with a host that refuses them; and lists in compact form. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pmix.h>
#include <pmix_server.h>
#include <pmix/src/include/pmix_globals.h>

#include "check.h"

static volatile int calls;
static pmix_status_t told;

static void done(pmix_status_t status, void *cbdata)
{
    *(pmix_status_t *)cbdata = status;
    __atomic_add_fetch(&calls, 1, __ATOMIC_RELEASE);
}

static void with_infos(pmix_status_t status, pmix_info_t *info, size_t count, void *cbdata, pmix_release_cbfunc_t release,
                       void *release_cbdata)
{
    (void)info, (void)count;
    if (release != NULL)
        release(release_cbdata);
    done(status, cbdata);
}

static pmix_status_t awaited(int call)
{
    while (__atomic_load_n(&calls, __ATOMIC_ACQUIRE) < call)
        usleep(200);
    return told;
}

/* Data symbols of releases up to 6.1. */
static int names(void)
{
    struct pmix_server_module_4_0_0_t module = {0};
    pmix_server_module_t *same = &module;
    const char *version = PMIX_PROXY_VERSION;

    CHECK(same->client_connected == NULL && PMIX_HAVE_VISIBILITY == 1);
    CHECK(PMIX_CAPABILITIES == (PMIX_CAP_LTO | PMIX_CAP_INMEMHELP) && PMIX_CAP_REGEX2 > PMIX_CAP_GET_NUMBER_FN);
    CHECK(version != NULL && strstr(PMIx_Get_version(), version) != NULL && strlen(PMIX_PROXY_BUGREPORT) > 0);
    PMIX_PROXY_VERSION = "a tool's own";
    CHECK(strcmp(PMIX_PROXY_VERSION, "a tool's own") == 0);
    return 0;
}

static int lists(void)
{
    pmix_regex2_t regex = PMIX_REGEX2_STATIC_INIT;
    char *list = NULL;

    PMIx_Regex2_construct(&regex);
    CHECK(PMIx_generate_regex2("node1,node2,other", NULL, 0, &regex) == PMIX_SUCCESS);
    CHECK(regex.type != NULL && regex.bytes != NULL && regex.len > 0);
    CHECK(PMIx_parse_regex2(&regex, NULL, 0, &list) == PMIX_SUCCESS);
    CHECK(strcmp(list, "node1,node2,other") == 0);
    free(list);
    free(regex.type);
    regex.type = strdup("unheard of");
    CHECK(PMIx_parse_regex2(&regex, NULL, 0, &list) == PMIX_ERR_NOT_SUPPORTED);
    PMIx_Regex2_destruct(&regex);
    CHECK(PMIx_parse_regex2(&regex, NULL, 0, &list) == PMIX_ERR_BAD_PARAM);
    CHECK(PMIx_generate_regex2(NULL, NULL, 0, &regex) == PMIX_ERR_BAD_PARAM);
    return 0;
}

int main(void)
{
    pmix_resource_unit_t unit = {PMIX_DEVTYPE_GPU, 2};
    pmix_proc_t me;

    alarm(600);
    CHECK(PMIx_Session_control(1, NULL, 0, NULL, NULL) == PMIX_ERR_INIT);
    CHECK(names() == 0);
    CHECK(lists() == 0);
    CHECK(PMIx_Init(&me, NULL, 0) == PMIX_SUCCESS);
    CHECK(PMIx_Session_control(1, NULL, 0, NULL, NULL) == PMIX_ERR_NOT_FOUND);
    CHECK(PMIx_Session_control(0, NULL, 0, NULL, NULL) == PMIX_ERR_NOT_SUPPORTED);
    CHECK(PMIx_Session_control(1, NULL, 0, with_infos, &told) == PMIX_SUCCESS);
    CHECK(awaited(1) == PMIX_ERR_NOT_FOUND);
    CHECK(PMIx_Resource_block(PMIX_RESOURCE_BLOCK_DEFINE, "block", &unit, 1, NULL, 0) == PMIX_ERR_NOT_SUPPORTED);
    CHECK(PMIx_Resource_block_nb(PMIX_RESOURCE_BLOCK_DEFINE, "block", &unit, 1, NULL, 0, done, &told) == PMIX_SUCCESS);
    CHECK(awaited(2) == PMIX_ERR_NOT_SUPPORTED);
    CHECK(PMIx_Resource_block(PMIX_RESOURCE_BLOCK_DEFINE, NULL, &unit, 1, NULL, 0) == PMIX_ERR_BAD_PARAM);
    CHECK(PMIx_Finalize(NULL, 0) == PMIX_SUCCESS);
    printf("extensions are right\n");
    return 0;
}
