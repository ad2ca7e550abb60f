/* A process without a parent spawns this program, twice; parent and children connect and disconnect.
 *
 * Children have an argument, so one that does not learn of its parent fails instead of spawning without end. */
#include "check.h"

/* Parent and children connect and disconnect. */
static void connect_with(const pmix_proc_t *parent, const char *children)
{
    pmix_proc_t both[2] = { *parent, process(PMIX_RANK_WILDCARD) };

    memset(both[1].nspace, 0, sizeof both[1].nspace);
    strncpy(both[1].nspace, children, sizeof both[1].nspace - 1);
    OK(PMIx_Connect(both, 2, NULL, 0));
    OK(PMIx_Disconnect(both, 2, NULL, 0));
}

static void spawn(char *program)
{
    char *arguments[] = { program, "child", NULL };
    pmix_nspace_t children = "";
    pmix_app_t app;

    PMIX_APP_CONSTRUCT(&app);
    app.cmd = program;
    app.argv = arguments;
    app.maxprocs = 2;
    OK(PMIx_Spawn(NULL, 0, &app, 1, children));
    connect_with(&me, children);
}

int main(int argc, char **argv)
{
    pmix_value_t *value = NULL;

    start();
    pmix_status_t status = PMIx_Get(&me, PMIX_PARENT_ID, NULL, 0, &value);
    if (argc > 1) {
        CHECK(status == PMIX_SUCCESS, "the parent of a child: %s", PMIx_Error_string(status));
        CHECK(value->type == PMIX_PROC && value->data.proc->rank == 0, "a parent of type %s", PMIx_Data_type_string(value->type));
        connect_with(value->data.proc, me.nspace);
        PMIX_VALUE_RELEASE(value);
        finish("has a parent");
        return 0;
    }
    CHECK(status == PMIX_ERR_NOT_FOUND, "the parent of none: %s", PMIx_Error_string(status));
    if (me.rank == 0)
        spawn(argv[0]);
    finish("has none");
    return 0;
}
