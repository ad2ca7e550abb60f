/* A job on the two nodes of pmix_two_hosts: values that a fence carries, values that are requested, and the place of every rank. */
#include "check.h"

/* Ranks of the first half are on the first node. */
static const char *node_of(pmix_rank_t rank)
{
    return rank < (job_size + 1) / 2 ? "first" : "second";
}

static void carried(void)
{
    put_text(PMIX_GLOBAL, keyed("carried", me.rank), keyed("carried from", me.rank));
    exchange();
    for (pmix_rank_t rank = 0; rank < job_size; rank++)
        expect_text(rank, keyed("carried", rank), NULL, keyed("carried from", rank));
}

static void asked(void)
{
    put_text(PMIX_GLOBAL, keyed("asked", me.rank), keyed("asked of", me.rank));
    OK(PMIx_Commit());
    barrier();
    for (pmix_rank_t rank = 0; rank < job_size; rank++)
        expect_text(rank, keyed("asked", rank), NULL, keyed("asked of", rank));
}

/* Values for one node only do not leave it. */
static void scopes(void)
{
    put_text(PMIX_LOCAL, keyed("near", me.rank), "near");
    put_text(PMIX_REMOTE, keyed("far", me.rank), "far");
    exchange();
    for (pmix_rank_t rank = 0; rank < job_size; rank++) {
        if (rank == me.rank)
            continue;
        if (strcmp(node_of(rank), node_of(me.rank)) == 0)
            expect_text(rank, keyed("near", rank), NULL, "near");
        else
            expect_text(rank, keyed("far", rank), NULL, "far");
    }
}

static void places(void)
{
    pmix_proc_t *procs = NULL;
    size_t count = 0, half = (job_size + 1) / 2;
    char *nodes = NULL;

    for (pmix_rank_t rank = 0; rank < job_size; rank++)
        expect_text(rank, PMIX_HOSTNAME, NULL, node_of(rank));
    OK(PMIx_Resolve_peers("first", me.nspace, &procs, &count));
    CHECK(count == half, "%zu processes on the first node", count);
    PMIX_PROC_FREE(procs, count);
    OK(PMIx_Resolve_nodes(me.nspace, &nodes));
    /* 4.2.2 starts with its own node. */
    CHECK(strcmp(nodes, "first,second") == 0 || strcmp(nodes, "second,first") == 0, "nodes %s", nodes);
    free(nodes);
}

int main(void)
{
    start();
    places();
    carried();
    asked();
    scopes();
    for (int i = 0; i < 20; i++)
        barrier();
    finish("spread over two nodes");
    return 0;
}
