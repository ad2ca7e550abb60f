/* Asks for every key that the standard requires of a host at PMIx_server_register_nspace, in its realm.
 *
 * Rank 0 prints one line per key: realm, name, type, value. For a key that is missing or whose type differs from
 * the standard's, the line begins with "wrong". */
#include "check.h"

enum realm { SESSION, JOB, APP, NODE, PROC };

static const char *const realm_names[] = {"session", "job", "app", "node", "proc"};

struct row {
    enum realm realm;
    const char *name, *key;
    pmix_data_type_t type;
};

#define ROW(realm, name, type) {realm, #name, name, type}

static const struct row rows[] = {
    ROW(SESSION, PMIX_SESSION_ID, PMIX_UINT32),
    ROW(SESSION, PMIX_UNIV_SIZE, PMIX_UINT32),
    ROW(SESSION, PMIX_MAX_PROCS, PMIX_UINT32),
    ROW(SESSION, PMIX_TDIR_RMCLEAN, PMIX_BOOL),
    ROW(JOB, PMIX_SERVER_NSPACE, PMIX_STRING),
    ROW(JOB, PMIX_SERVER_RANK, PMIX_PROC_RANK),
    ROW(JOB, PMIX_NSPACE, PMIX_STRING),
    ROW(JOB, PMIX_JOBID, PMIX_STRING),
    ROW(JOB, PMIX_JOB_SIZE, PMIX_UINT32),
    ROW(JOB, PMIX_MAX_PROCS, PMIX_UINT32),
    ROW(JOB, PMIX_NUM_NODES, PMIX_UINT32),
    ROW(JOB, PMIX_JOB_NUM_APPS, PMIX_UINT32),
    ROW(JOB, PMIX_NODE_MAP, PMIX_STRING),
    ROW(JOB, PMIX_PROC_MAP, PMIX_STRING),
    ROW(JOB, PMIX_NODE_LIST, PMIX_STRING),
    ROW(APP, PMIX_APPNUM, PMIX_UINT32),
    ROW(APP, PMIX_APP_SIZE, PMIX_UINT32),
    ROW(APP, PMIX_MAX_PROCS, PMIX_UINT32),
    ROW(APP, PMIX_APPLDR, PMIX_PROC_RANK),
    ROW(APP, PMIX_WDIR, PMIX_STRING),
    ROW(APP, PMIX_APP_ARGV, PMIX_STRING),
    ROW(NODE, PMIX_NODEID, PMIX_UINT32),
    ROW(NODE, PMIX_HOSTNAME, PMIX_STRING),
    ROW(NODE, PMIX_HOSTNAME_ALIASES, PMIX_STRING),
    ROW(NODE, PMIX_LOCAL_SIZE, PMIX_UINT32),
    ROW(NODE, PMIX_NODE_SIZE, PMIX_UINT32),
    ROW(NODE, PMIX_LOCALLDR, PMIX_PROC_RANK),
    ROW(NODE, PMIX_LOCAL_PEERS, PMIX_STRING),
    ROW(NODE, PMIX_LOCAL_PROCS, PMIX_DATA_ARRAY),
    ROW(NODE, PMIX_TMPDIR, PMIX_STRING),
    ROW(NODE, PMIX_NSDIR, PMIX_STRING),
    ROW(PROC, PMIX_RANK, PMIX_PROC_RANK),
    ROW(PROC, PMIX_APPNUM, PMIX_UINT32),
    ROW(PROC, PMIX_APP_RANK, PMIX_PROC_RANK),
    ROW(PROC, PMIX_GLOBAL_RANK, PMIX_PROC_RANK),
    ROW(PROC, PMIX_LOCAL_RANK, PMIX_UINT16),
    ROW(PROC, PMIX_NODE_RANK, PMIX_UINT16),
    ROW(PROC, PMIX_NODEID, PMIX_UINT32),
    ROW(PROC, PMIX_HOSTNAME, PMIX_STRING),
    ROW(PROC, PMIX_REINCARNATION, PMIX_UINT32),
    ROW(PROC, PMIX_SPAWNED, PMIX_BOOL),
    ROW(PROC, PMIX_PROCDIR, PMIX_STRING),
    ROW(PROC, PMIX_PACKAGE_RANK, PMIX_UINT16),
};

static void print_value(const pmix_value_t *value)
{
    switch (value->type) {
    case PMIX_STRING: printf("%s", value->data.string); break;
    case PMIX_UINT16: printf("%u", value->data.uint16); break;
    case PMIX_UINT32: case PMIX_PROC_RANK: printf("%u", value->data.uint32); break;
    case PMIX_BOOL: printf("%s", value->data.flag ? "true" : "false"); break;
    case PMIX_DATA_ARRAY: printf("%zu elements of type %u", value->data.darray->size, value->data.darray->type); break;
    default: printf("of another type"); break;
    }
}

static void ask(const struct row *row, pmix_rank_t rank)
{
    pmix_proc_t proc = process(row->realm == PROC ? rank : PMIX_RANK_WILDCARD);
    pmix_value_t *value = NULL;
    pmix_info_t infos[2];
    size_t count = 0;
    bool yes = true;
    uint32_t zero = 0;

    if (row->realm == SESSION)
        PMIX_INFO_LOAD(&infos[count++], PMIX_SESSION_INFO, &yes, PMIX_BOOL);
    if (row->realm == APP) {
        PMIX_INFO_LOAD(&infos[count++], PMIX_APP_INFO, &yes, PMIX_BOOL);
        PMIX_INFO_LOAD(&infos[count++], PMIX_APPNUM, &zero, PMIX_UINT32);
    }
    if (row->realm == NODE) {
        PMIX_INFO_LOAD(&infos[count++], PMIX_NODE_INFO, &yes, PMIX_BOOL);
        PMIX_INFO_LOAD(&infos[count++], PMIX_NODEID, &zero, PMIX_UINT32);
    }
    pmix_status_t status = PMIx_Get(&proc, row->key, infos, count, &value);
    const char *realm = realm_names[row->realm];
    if (status != PMIX_SUCCESS) {
        printf("wrong: %s %s: %s\n", realm, row->name, PMIx_Error_string(status));
    } else if (value->type != row->type) {
        printf("wrong: %s %s: %s instead of %s\n", realm, row->name, PMIx_Data_type_string(value->type),
               PMIx_Data_type_string(row->type));
    } else {
        if (row->realm == PROC)
            printf("%s %u %s = ", realm, rank, row->name);
        else
            printf("%s %s = ", realm, row->name);
        print_value(value);
        putchar('\n');
    }
    if (value != NULL)
        PMIX_VALUE_RELEASE(value);
}

int main(void)
{
    start();
    if (me.rank == 0) {
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            if (rows[i].realm != PROC)
                ask(&rows[i], 0);
            else
                for (pmix_rank_t rank = 0; rank < job_size; rank++)
                    ask(&rows[i], rank);
        }
    }
    barrier();
    OK(PMIx_Finalize(NULL, 0));
    return 0;
}
