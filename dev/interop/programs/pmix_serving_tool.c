/* A tool without a server that becomes a server for tools, until OVER exists.
 *
 *     pmix_serving_tool OVER [FILE]        FILE: for its address, given as an attribute of its init */
#include <pmix.h>
#include <pmix_server.h>
#include <pmix_tool.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static void tool_connected(pmix_info_t *info, size_t ninfo, pmix_tool_connection_cbfunc_t callback, void *cbdata)
{
    pmix_proc_t name;

    (void) info, (void) ninfo;
    PMIX_LOAD_PROCID(&name, "guest", 0);
    callback(PMIX_SUCCESS, &name, cbdata);
}

int main(int argc, char **argv)
{
    static pmix_server_module_t module = {.tool_connected = tool_connected};
    pmix_info_t info[3];
    size_t count = 2;
    pmix_proc_t me;
    bool yes = true;

    alarm(600);
    if (argc < 2)
        return 2;
    PMIX_INFO_LOAD(&info[0], PMIX_TOOL_DO_NOT_CONNECT, &yes, PMIX_BOOL);
    PMIX_INFO_LOAD(&info[1], PMIX_LAUNCHER, &yes, PMIX_BOOL);
    if (argc > 2)
        PMIX_INFO_LOAD(&info[count++], PMIX_LAUNCHER_RENDEZVOUS_FILE, argv[2], PMIX_STRING);
    printf("init %s\n", PMIx_Error_string(PMIx_tool_init(&me, info, count)));
    printf("serve %s\n", PMIx_Error_string(PMIx_tool_set_server_module(&module)));
    fflush(stdout);
    while (access(argv[1], F_OK) != 0)
        nanosleep(&(struct timespec) { .tv_nsec = 1000000 }, NULL);
    printf("finalize %s\n", PMIx_Error_string(PMIx_tool_finalize()));
    return 0;
}
