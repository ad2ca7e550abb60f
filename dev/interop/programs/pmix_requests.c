/* Requests that a host may refuse: allocation, credentials, monitors, fabrics; and meaningless calls; each blocking and non-blocking. */
#include <pmix_tool.h>

#include "check.h"

/* The status with which a callback was called, once it was. */
struct answer {
    volatile int here;
    pmix_status_t status;
};

static void answered(struct answer *answer, pmix_status_t status)
{
    answer->status = status;
    __atomic_store_n(&answer->here, 1, __ATOMIC_RELEASE);
}

static pmix_status_t awaited(struct answer *answer)
{
    while (!__atomic_load_n(&answer->here, __ATOMIC_ACQUIRE))
        usleep(200);
    return answer->status;
}

static void with_infos(pmix_status_t status, pmix_info_t *info, size_t count, void *cbdata, pmix_release_cbfunc_t release,
                       void *release_cbdata)
{
    (void)info, (void)count;
    if (release != NULL)
        release(release_cbdata);
    answered(cbdata, status);
}

static void with_credential(pmix_status_t status, pmix_byte_object_t *credential, pmix_info_t info[], size_t count, void *cbdata)
{
    (void)credential, (void)info, (void)count;
    answered(cbdata, status);
}

static void validated(pmix_status_t status, pmix_info_t info[], size_t count, void *cbdata)
{
    (void)info, (void)count;
    answered(cbdata, status);
}

static void done(pmix_status_t status, void *cbdata)
{
    answered(cbdata, status);
}

static void output(size_t handler, pmix_iof_channel_t channel, pmix_proc_t *source, pmix_byte_object_t *payload,
                   pmix_info_t info[], size_t count)
{
    (void)handler, (void)channel, (void)source, (void)payload, (void)info, (void)count;
}

static void allocation(void)
{
    struct answer answer = {0};
    pmix_info_t info, *results = NULL;
    size_t count = 0;
    uint64_t nodes = 2;

    PMIX_INFO_LOAD(&info, PMIX_ALLOC_NUM_NODES, &nodes, PMIX_UINT64);
    EXPECT(PMIX_ERR_NOT_SUPPORTED, PMIx_Allocation_request(PMIX_ALLOC_EXTEND, &info, 1, &results, &count));
    OK(PMIx_Allocation_request_nb(PMIX_ALLOC_EXTEND, &info, 1, with_infos, &answer));
    EXPECT(PMIX_ERR_NOT_SUPPORTED, awaited(&answer));
}

static void credentials(void)
{
    struct answer answer = {0}, validation = {0};
    pmix_byte_object_t credential = {NULL, 0}, shown = {(char *)"token", 5};
    pmix_info_t *results = NULL;
    size_t count = 0;

    EXPECT(PMIX_ERR_NOT_SUPPORTED, PMIx_Get_credential(NULL, 0, &credential));
    OK(PMIx_Get_credential_nb(NULL, 0, with_credential, &answer));
    EXPECT(PMIX_ERR_NOT_SUPPORTED, awaited(&answer));
    EXPECT(PMIX_ERR_NOT_SUPPORTED, PMIx_Validate_credential(&shown, NULL, 0, &results, &count));
    OK(PMIx_Validate_credential_nb(&shown, NULL, 0, validated, &validation));
    EXPECT(PMIX_ERR_NOT_SUPPORTED, awaited(&validation));
}

static pmix_status_t monitor(const char *key, const char *id)
{
    uint32_t window = 600;
    pmix_info_t what, directives[2], *results = NULL;
    size_t count = 0;

    PMIX_INFO_LOAD(&what, key, id, PMIX_STRING);
    PMIX_INFO_LOAD(&directives[0], PMIX_MONITOR_ID, id, PMIX_STRING);
    PMIX_INFO_LOAD(&directives[1], PMIX_MONITOR_HEARTBEAT_TIME, &window, PMIX_UINT32);
    bool cancels = strcmp(key, PMIX_MONITOR_CANCEL) == 0;
    return PMIx_Process_monitor(&what, PMIX_SUCCESS, directives, cancels ? 0 : 2, &results, &count);
}

/* A monitor can be cancelled by its name, once. */
static void monitors(void)
{
    OK(monitor(PMIX_MONITOR_HEARTBEAT, "heart"));
    EXPECT(PMIX_ERR_NOT_FOUND, monitor(PMIX_MONITOR_CANCEL, "lungs"));
    OK(monitor(PMIX_MONITOR_CANCEL, "heart"));
    EXPECT(PMIX_ERR_NOT_FOUND, monitor(PMIX_MONITOR_CANCEL, "heart"));
}

/* OpenPMIx reports success without checking the answer; its description is empty, too. */
static void fabrics(void)
{
    bool looks = strncmp(PMIx_Get_version(), "OpenPMIx", 8) != 0;
    pmix_status_t refused = looks ? PMIX_ERR_NOT_SUPPORTED : PMIX_SUCCESS;
    struct answer answer = {0};
    pmix_fabric_t fabric;

    PMIX_FABRIC_CONSTRUCT(&fabric);
    CHECK(PMIx_Fabric_register(&fabric, NULL, 0) == refused, "of %s", PMIx_Get_version());
    OK(PMIx_Fabric_register_nb(&fabric, NULL, 0, done, &answer));
    CHECK(awaited(&answer) == refused, "of %s", PMIx_Get_version());
    CHECK(fabric.info == NULL && fabric.ninfo == 0, "%zu infos", fabric.ninfo);
}

/* OpenPMIx sends some of it to the server. */
static void nonsense(void)
{
    pmix_proc_t all = process(PMIX_RANK_WILDCARD);
    pmix_info_t *results = NULL;
    size_t count = 0;

    EXPECT(PMIX_ERR_BAD_PARAM, PMIx_Group_construct(NULL, &all, 1, NULL, 0, &results, &count));
    EXPECT(PMIX_ERR_BAD_PARAM, PMIx_Group_destruct(NULL, NULL, 0));
    EXPECT(PMIX_ERR_BAD_PARAM, PMIx_Group_leave(NULL, NULL, 0));
    CHECK(PMIx_IOF_pull(&all, 1, NULL, 0, PMIX_FWD_STDIN_CHANNEL, output, NULL, NULL) < 0, "standard input was pulled");
}

int main(void)
{
    start();
    allocation();
    credentials();
    monitors();
    fabrics();
    if (strncmp(PMIx_Get_version(), "OpenPMIx", 8) != 0)
        nonsense();
    barrier();
    finish("requests are right");
    return 0;
}
