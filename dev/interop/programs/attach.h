/* Common start of the tools in this directory: attaches to the server with a given pid. */
#ifndef ATTACH_H
#define ATTACH_H

#include <pmix_tool.h>
#include <stdio.h>
#include <stdlib.h>

/* Becomes a tool of the server with this pid; if there is none, the program ends with 3. */
static pmix_proc_t attach_to(const char *pid)
{
    pid_t server = atoi(pid);
    pmix_status_t status;
    pmix_info_t how;
    pmix_proc_t me;

    PMIX_INFO_LOAD(&how, PMIX_SERVER_PIDINFO, &server, PMIX_PID);
    status = PMIx_tool_init(&me, &how, 1);
    if (status != PMIX_SUCCESS) {
        fprintf(stderr, "init %s\n", PMIx_Error_string(status));
        exit(3);
    }
    return me;
}

#endif
