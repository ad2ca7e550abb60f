/* Topology, cpuset and locality of this process; what the library returns must be hwloc's own objects. Without hwloc the library
 * reports that. OpenPMIx 4.2 crashes in the second half. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>

#include <pmix_server.h>

#include "check.h"

/* A function of hwloc's, without its headers. */
static void *hwloc(const char *name)
{
    void *library = dlopen("libhwloc.so.15", RTLD_NOW);

    CHECK(library != NULL, "%s", dlerror());
    CHECK(dlsym(library, name) != NULL, "%s", dlerror());
    return dlsym(library, name);
}

static void topology(void)
{
    int (*depth)(void *) = hwloc("hwloc_topology_get_depth");
    pmix_topology_t topology;

    PMIX_TOPOLOGY_CONSTRUCT(&topology);
    OK(PMIx_Load_topology(&topology));
    CHECK(strncmp(topology.source, "hwloc", 5) == 0, "the source is %s", topology.source);
    CHECK(depth(topology.topology) >= 2, "depth %d", depth(topology.topology));
    PMIx_Topology_destruct(&topology);
}

/* The topology as a value of this process, usable for binding. */
static void value(void)
{
    int (*is_thissystem)(void *) = hwloc("hwloc_topology_is_thissystem");
    pmix_proc_t all = process(PMIX_RANK_WILDCARD);
    pmix_value_t *value = NULL;
    char *text = NULL;

    OK(PMIx_Get(&me, PMIX_TOPOLOGY2, NULL, 0, &value));
    CHECK(value->type == PMIX_TOPO, "%s", PMIx_Data_type_string(value->type));
    CHECK(is_thissystem(value->data.topo->topology) == 1, "a topology of %s", value->data.topo->source);
    OK(PMIx_Data_print(&text, NULL, value->data.topo, PMIX_TOPO));
    CHECK(strstr(text, "1 Machine") != NULL && strstr(text, " PU") != NULL, "%s", text);
    free(text);
    OK(PMIx_Data_print(&text, NULL, value, PMIX_VALUE));
    CHECK(strstr(text, "Machine") != NULL && strstr(text, " PU") != NULL, "%s", text);
    free(text);
    PMIX_VALUE_RELEASE(value);
    EXPECT(PMIX_ERR_NOT_FOUND, PMIx_Get(&all, PMIX_TOPOLOGY2, NULL, 0, &value));
}

static void cpuset(void)
{
    int (*weight)(void *) = hwloc("hwloc_bitmap_weight");
    pmix_cpuset_t cpuset, parsed;
    cpu_set_t mine;

    PMIX_CPUSET_CONSTRUCT(&cpuset);
    PMIX_CPUSET_CONSTRUCT(&parsed);
    CHECK(sched_getaffinity(0, sizeof mine, &mine) == 0, "no affinity");
    OK(PMIx_Get_cpuset(&cpuset, PMIX_CPUBIND_PROCESS));
    CHECK(strncmp(cpuset.source, "hwloc", 5) == 0, "the source is %s", cpuset.source);
    CHECK(weight(cpuset.bitmap) == CPU_COUNT(&mine), "%d CPUs, I have %d", weight(cpuset.bitmap), CPU_COUNT(&mine));
    PMIx_Cpuset_destruct(&cpuset);
    OK(PMIx_Parse_cpuset_string("hwloc:0-3,8", &parsed));
    CHECK(weight(parsed.bitmap) == 5, "%d CPUs", weight(parsed.bitmap));
    PMIx_Cpuset_destruct(&parsed);
    EXPECT(PMIX_ERR_BAD_PARAM, PMIx_Parse_cpuset_string("0-3", &parsed));
    CHECK(PMIx_Parse_cpuset_string("unheard:0-3", &parsed) != PMIX_SUCCESS, "a source that nobody knows");
}

static void locality(void)
{
    pmix_locality_t shared = 0;
    char *text = NULL;
    pmix_cpuset_t cpuset;

    OK(PMIx_Get_relative_locality("hwloc:SK0:L30:CR0:HT0:NM0", "hwloc:SK0:L30:CR1:HT2:NM0", &shared));
    CHECK(shared & PMIX_LOCALITY_SHARE_PACKAGE, "0x%x", shared);
    CHECK(!(shared & PMIX_LOCALITY_SHARE_CORE), "0x%x", shared);
    PMIX_CPUSET_CONSTRUCT(&cpuset);
    OK(PMIx_Parse_cpuset_string("hwloc:0", &cpuset));
    OK(PMIx_server_generate_locality_string(&cpuset, &text));
    OK(PMIx_Get_relative_locality(text, text, &shared));
    CHECK(shared & PMIX_LOCALITY_SHARE_HWTHREAD, "%s shares 0x%x", text, shared);
    free(text);
    OK(PMIx_server_generate_cpuset_string(&cpuset, &text));
    CHECK(strcmp(text, "hwloc:0") == 0, "%s", text);
    free(text);
    PMIx_Cpuset_destruct(&cpuset);
}

/* Machines without such devices report NOT_FOUND. */
static void distances(void)
{
    pmix_device_distance_t *distances = NULL;
    pmix_topology_t topology;
    pmix_cpuset_t cpuset;
    size_t count = 0;

    PMIX_TOPOLOGY_CONSTRUCT(&topology);
    PMIX_CPUSET_CONSTRUCT(&cpuset);
    OK(PMIx_Load_topology(&topology));
    OK(PMIx_Get_cpuset(&cpuset, PMIX_CPUBIND_PROCESS));
    pmix_status_t status = PMIx_Compute_distances(&topology, &cpuset, NULL, 0, &distances, &count);
    CHECK(status == PMIX_SUCCESS || status == PMIX_ERR_NOT_FOUND, "%s", PMIx_Error_string(status));
    CHECK((status == PMIX_SUCCESS) == (count > 0), "%zu distances", count);
    for (size_t i = 0; i < count; i++)
        CHECK(distances[i].mindist <= distances[i].maxdist, "%s: %u to %u", distances[i].osname, distances[i].mindist,
              distances[i].maxdist);
    if (count > 0)
        PMIX_DEVICE_DIST_FREE(distances, count);
    PMIx_Cpuset_destruct(&cpuset);
    PMIx_Topology_destruct(&topology);
}

static void without_hwloc(void)
{
    pmix_topology_t topology;
    pmix_cpuset_t cpuset;
    pmix_value_t *value = NULL;

    PMIX_TOPOLOGY_CONSTRUCT(&topology);
    PMIX_CPUSET_CONSTRUCT(&cpuset);
    EXPECT(PMIX_ERR_NOT_SUPPORTED, PMIx_Load_topology(&topology));
    /* Then the CPUs are in the library's own form, which must not be labelled as hwloc's. */
    OK(PMIx_Get_cpuset(&cpuset, PMIX_CPUBIND_PROCESS));
    CHECK(cpuset.source == NULL || strncmp(cpuset.source, "hwloc", 5) != 0, "the source is %s", cpuset.source);
    PMIx_Cpuset_destruct(&cpuset);
    EXPECT(PMIX_ERR_NOT_FOUND, PMIx_Get(&me, PMIX_TOPOLOGY2, NULL, 0, &value));
}

int main(void)
{
    start();
    if (dlopen("libhwloc.so.15", RTLD_NOW) == NULL) {
        without_hwloc();
        barrier();
        finish("there is no hwloc, and the library says so");
        return 0;
    }
    topology();
    value();
    cpuset();
    locality();
    distances();
    barrier();
    finish("the hardware is right");
    return 0;
}
