/* Query, log, resolve: what a rank can ask about its job, its node and its server. */
#include "check.h"
#include <sys/stat.h>

static char host[256];

/* One query with one key and at most one qualifier. */
static pmix_status_t query(const char *key, pmix_info_t *qualifier, pmix_info_t **results, size_t *count)
{
    pmix_query_t query;

    PMIX_QUERY_CONSTRUCT(&query);
    pmix_status_t appended;
    PMIX_ARGV_APPEND(appended, query.keys, key);
    OK(appended);
    if (qualifier != NULL) {
        PMIX_QUERY_QUALIFIERS_CREATE(&query, 1);
        PMIX_INFO_XFER(&query.qualifiers[0], qualifier);
    }
    *results = NULL;
    *count = 0;
    pmix_status_t status = PMIx_Query_info(&query, 1, results, count);
    PMIX_QUERY_DESTRUCT(&query);
    return status;
}

static void namespaces(void)
{
    pmix_info_t *results;
    size_t count;

    OK(query(PMIX_QUERY_NAMESPACES, NULL, &results, &count));
    CHECK(count == 1 && results[0].value.type == PMIX_STRING, "%zu results", count);
    CHECK(strstr(results[0].value.data.string, me.nspace) != NULL, "\"%s\" is without %s", results[0].value.data.string,
          me.nspace);
    PMIX_INFO_FREE(results, count);
}

static size_t near_ranks(void)
{
    size_t count = 0;

    for (pmix_rank_t rank = 0; rank < job_size; rank++)
        count += is_near(rank);
    return count;
}

static void proc_table(const char *key)
{
    pmix_info_t *results, qualifier;
    size_t count, expected = strcmp(key, PMIX_QUERY_LOCAL_PROC_TABLE) == 0 ? near_ranks() : job_size;
    bool seen = false;

    PMIX_INFO_LOAD(&qualifier, PMIX_NSPACE, me.nspace, PMIX_STRING);
    OK(query(key, &qualifier, &results, &count));
    CHECK(count == 1 && results[0].value.type == PMIX_DATA_ARRAY, "%zu results", count);
    pmix_data_array_t *array = results[0].value.data.darray;
    CHECK(array->type == PMIX_PROC_INFO && array->size == expected, "%zu elements of type %u", array->size, array->type);
    pmix_proc_info_t *procs = array->array;
    for (size_t i = 0; i < array->size; i++) {
        CHECK(strcmp(procs[i].proc.nspace, me.nspace) == 0, "a process of %s", procs[i].proc.nspace);
        CHECK(procs[i].hostname != NULL && (strcmp(procs[i].hostname, host) == 0) == is_near(procs[i].proc.rank), "on host %s", procs[i].hostname);
        CHECK(procs[i].state >= PMIX_PROC_STATE_RUNNING && procs[i].state <= PMIX_PROC_STATE_CONNECTED, "in state %u",
              procs[i].state);
        if (procs[i].proc.rank == me.rank) {
            CHECK(procs[i].pid == getpid(), "pid %d, mine is %d", procs[i].pid, getpid());
            struct stat named, mine;
            CHECK(procs[i].executable_name[0] == '/' && stat(procs[i].executable_name, &named) == 0
                      && stat("/proc/self/exe", &mine) == 0 && named.st_ino == mine.st_ino && named.st_dev == mine.st_dev,
                  "program %s", procs[i].executable_name);
            seen = true;
        }
    }
    CHECK(seen, "I am not in the table");
    PMIX_INFO_FREE(results, count);
}

/* Uses the key in this library's headers; there are two. */
static void qualifiers(void)
{
    pmix_info_t *results;
    size_t count;

    OK(query(PMIX_QUERY_SUPPORTED_QUALIFIERS, NULL, &results, &count));
    CHECK(count == 1 && PMIX_CHECK_KEY(&results[0], PMIX_QUERY_SUPPORTED_QUALIFIERS), "%zu results", count);
    CHECK(strstr(results[0].value.data.string, PMIX_NSPACE) != NULL, "\"%s\"", results[0].value.data.string);
    PMIX_INFO_FREE(results, count);
}

static void unknown_key(void)
{
    pmix_info_t *results;
    size_t count;
    pmix_status_t status = query("nobody.knows.this", NULL, &results, &count);

    CHECK(status == PMIX_ERR_NOT_FOUND || status == PMIX_ERR_NOT_SUPPORTED, "%s", PMIx_Error_string(status));
}

static void resolve(void)
{
    pmix_proc_t *procs = NULL;
    size_t count = 0;
    char *nodes = NULL;

    OK(PMIx_Resolve_peers(host, me.nspace, &procs, &count));
    CHECK(count == near_ranks(), "%zu peers on %s", count, host);
    for (size_t i = 0; i < count; i++)
        CHECK(procs[i].rank < job_size && strcmp(procs[i].nspace, me.nspace) == 0, "peer %s.%u", procs[i].nspace,
              procs[i].rank);
    PMIX_PROC_FREE(procs, count);
    OK(PMIx_Resolve_nodes(me.nspace, &nodes));
    CHECK(strstr(nodes, host) != NULL, "nodes \"%s\"", nodes);
    free(nodes);
}

/* The tests look for these texts in the output of the launcher. */
static void say(void)
{
    pmix_info_t data[2], directive;
    bool yes = true;

    PMIX_INFO_LOAD(&data[0], PMIX_LOG_STDERR, keyed("logged to stderr by", me.rank), PMIX_STRING);
    PMIX_INFO_LOAD(&data[1], PMIX_LOG_STDOUT, keyed("logged to stdout by", me.rank), PMIX_STRING);
    OK(PMIx_Log(data, 2, NULL, 0));
    PMIX_INFO_LOAD(&directive, PMIX_LOG_ONCE, &yes, PMIX_BOOL);
    OK(PMIx_Log(data, 1, &directive, 1));
}

int main(void)
{
    pmix_value_t *value;

    start();
    OK(PMIx_Get(&me, PMIX_HOSTNAME, NULL, 0, &value));
    snprintf(host, sizeof host, "%s", value->data.string);
    PMIX_VALUE_RELEASE(value);
    barrier();
    namespaces();
    proc_table(PMIX_QUERY_PROC_TABLE);
    proc_table(PMIX_QUERY_LOCAL_PROC_TABLE);
    qualifiers();
    unknown_key();
    resolve();
    say();
    barrier();
    finish("query, log and resolve are right");
    return 0;
}
