/* Two hosts on one machine, each the server of half of a job's processes: they carry each other's fences and requests.
 *
 *     pmix_two_hosts COUNT PROGRAM [ARGUMENT ...]
 *
 * The first host is the parent of the second; LIBRARY_OF_SECOND, if set, is the directory of the second one's libpmix. Each prints
 * "host N: all right" when its clients have ended with 0. */
#define _GNU_SOURCE
#include <pmix.h>
#include <pmix_server.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST 64
static const pmix_nspace_t JOB = "shared-job";

enum { FENCE, REQUEST, ANSWER };

struct message {
    int kind, status;
    pmix_rank_t rank;
    uint64_t number;
    size_t size;
};

struct waiting {
    pmix_modex_cbfunc_t callback;
    void *cbdata;
    char *data;
    size_t size;
    bool used;
};

static int self, wire, count, wrong;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, writing = PTHREAD_MUTEX_INITIALIZER;
static struct waiting requests[4096];
/* Contributions to fences that only one side has made so far. */
static struct waiting fences[2][64];
static unsigned made[2];

static void put(struct message message, const char *data)
{
    pthread_mutex_lock(&writing);
    if (write(wire, &message, sizeof message) != sizeof message
        || (message.size > 0 && write(wire, data, message.size) != (ssize_t) message.size))
        wrong++;
    pthread_mutex_unlock(&writing);
}

static bool get(void *to, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t part = read(wire, (char *) to + done, size - done);
        if (part <= 0)
            return false;
        done += (size_t) part;
    }
    return true;
}

/* One side's next contribution; when the other's has come as well, both form the result. */
static void contribute(int side, struct waiting mine)
{
    struct waiting *pair[2];
    unsigned turn;
    char *all;

    pthread_mutex_lock(&lock);
    turn = made[side]++ % 64;
    fences[side][turn] = mine;
    fences[side][turn].used = true;
    pair[0] = &fences[0][turn];
    pair[1] = &fences[1][turn];
    if (!pair[0]->used || !pair[1]->used) {
        pthread_mutex_unlock(&lock);
        return;
    }
    struct waiting own = *pair[self], other = *pair[!self];
    pair[0]->used = pair[1]->used = false;
    pthread_mutex_unlock(&lock);
    all = malloc(own.size + other.size + 1);
    if (own.size > 0)
        memcpy(all, own.data, own.size);
    if (other.size > 0)
        memcpy(all + own.size, other.data, other.size);
    free(own.data);
    free(other.data);
    own.callback(PMIX_SUCCESS, all, own.size + other.size, own.cbdata, free, all);
}

static pmix_status_t fence(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[], size_t ninfo, char *data,
                           size_t ndata, pmix_modex_cbfunc_t callback, void *cbdata)
{
    /* The library has given it away. */
    struct waiting mine = {.callback = callback, .cbdata = cbdata, .data = data, .size = ndata};

    (void) procs, (void) nprocs, (void) info, (void) ninfo;
    put((struct message) {.kind = FENCE, .size = ndata}, data);
    contribute(self, mine);
    return PMIX_SUCCESS;
}

static pmix_status_t direct_modex(const pmix_proc_t *proc, const pmix_info_t info[], size_t ninfo,
                                  pmix_modex_cbfunc_t callback, void *cbdata)
{
    uint64_t number = 0;

    (void) info, (void) ninfo;
    pthread_mutex_lock(&lock);
    while (requests[number].used)
        number++;
    requests[number] = (struct waiting) {.callback = callback, .cbdata = cbdata, .used = true};
    pthread_mutex_unlock(&lock);
    put((struct message) {.kind = REQUEST, .rank = proc->rank, .number = number}, NULL);
    return PMIX_SUCCESS;
}

static void committed(pmix_status_t status, char *data, size_t size, void *cbdata)
{
    put((struct message) {.kind = ANSWER, .status = status, .number = (uint64_t) (uintptr_t) cbdata, .size = size}, data);
}

static void *carry(void *unused)
{
    struct message message;
    struct waiting waiting;
    pmix_proc_t proc;
    char *data;

    while (get(&message, sizeof message)) {
        data = malloc(message.size + 1);
        if (!get(data, message.size))
            break;
        switch (message.kind) {
        case FENCE:
            contribute(!self, (struct waiting) {.data = data, .size = message.size});
            break;
        case REQUEST:
            PMIX_LOAD_PROCID(&proc, JOB, message.rank);
            pmix_status_t begun = PMIx_server_dmodex_request(&proc, committed, (void *) (uintptr_t) message.number);
            if (begun != PMIX_SUCCESS)
                committed(begun, NULL, 0, (void *) (uintptr_t) message.number);
            free(data);
            break;
        default:
            pthread_mutex_lock(&lock);
            waiting = requests[message.number];
            requests[message.number].used = false;
            pthread_mutex_unlock(&lock);
            waiting.callback(message.status, data, message.size, waiting.cbdata, free, data);
        }
    }
    return unused;
}

static pmix_status_t connected(const pmix_proc_t *proc, void *object, pmix_op_cbfunc_t callback, void *cbdata)
{
    (void) proc, (void) object, (void) callback, (void) cbdata;
    /* Like the plugin of Slurm 22.05. */
    return PMIX_SUCCESS;
}

static pmix_server_module_t module = {.client_connected = connected, .fence_nb = fence, .direct_modex = direct_modex};

static void check(const char *what, pmix_status_t status)
{
    if (status != PMIX_SUCCESS && status != PMIX_OPERATION_SUCCEEDED) {
        fprintf(stderr, "host %d: %s: %d\n", self, what, status);
        exit(1);
    }
}

static void register_job(void)
{
    pmix_info_t infos[5];
    char *regex, map[1024] = "";
    uint32_t size = (uint32_t) count, half = (size + 1) / 2;

    for (uint32_t rank = 0; rank < size; rank++)
        sprintf(map + strlen(map), "%s%u", rank == 0 ? "" : rank == half ? ";" : ",", rank);
    PMIx_generate_regex("first,second", &regex);
    PMIX_INFO_LOAD(&infos[0], PMIX_NODE_MAP, regex, PMIX_REGEX);
    free(regex);
    PMIx_generate_ppn(map, &regex);
    PMIX_INFO_LOAD(&infos[1], PMIX_PROC_MAP, regex, PMIX_REGEX);
    free(regex);
    PMIX_INFO_LOAD(&infos[2], PMIX_JOB_SIZE, &size, PMIX_UINT32);
    PMIX_INFO_LOAD(&infos[3], PMIX_UNIV_SIZE, &size, PMIX_UINT32);
    map[0] = '\0';
    for (uint32_t rank = self ? half : 0; rank < (self ? size : half); rank++)
        sprintf(map + strlen(map), "%s%u", map[0] ? "," : "", rank);
    PMIX_INFO_LOAD(&infos[4], PMIX_LOCAL_PEERS, map, PMIX_STRING);
    check("register_nspace", PMIx_server_register_nspace(JOB, (int) (self ? size - half : half), infos, 5, NULL, NULL));
    for (int i = 0; i < 5; i++)
        PMIX_INFO_DESTRUCT(&infos[i]);
}

static pid_t begin(pmix_rank_t rank, char **argv)
{
    char **env = NULL;
    pmix_proc_t proc;
    pmix_status_t status;
    pid_t pid;

    PMIX_LOAD_PROCID(&proc, JOB, rank);
    check("register_client", PMIx_server_register_client(&proc, geteuid(), getegid(), NULL, NULL, NULL));
    for (char **one = environ; *one != NULL; one++)
        if (strncmp(*one, "PMIX_", 5) != 0)
            PMIX_ARGV_APPEND(status, env, *one);
    check("setup_fork", PMIx_server_setup_fork(&proc, &env));
    pid = fork();
    if (pid == 0) {
        const char *library = getenv("CLIENT_LIBRARY_PATH");
        if (library != NULL)
            PMIX_SETENV(status, "LD_LIBRARY_PATH", library, &env);
        (void) status;
        execve(argv[0], argv, env);
        _exit(127);
    }
    PMIX_ARGV_FREE(env);
    return pid;
}

static int serve(char **argv)
{
    pid_t pids[MOST];
    pmix_info_t infos[2];
    pthread_t carrier;
    int ended, half = (count + 1) / 2, from = self ? half : 0, to = self ? count : half;

    PMIX_INFO_LOAD(&infos[0], PMIX_SERVER_NSPACE, self ? "host-two" : "host-one", PMIX_STRING);
    PMIX_INFO_LOAD(&infos[1], PMIX_HOSTNAME, self ? "second" : "first", PMIX_STRING);
    check("server_init", PMIx_server_init(&module, infos, 2));
    fprintf(stderr, "host %d on %s\n", self, PMIx_Get_version());
    register_job();
    pthread_create(&carrier, NULL, carry, NULL);
    for (int rank = from; rank < to; rank++)
        pids[rank] = begin((pmix_rank_t) rank, argv);
    for (int rank = from; rank < to; rank++)
        if (waitpid(pids[rank], &ended, 0) != pids[rank] || ended != 0) {
            fprintf(stderr, "host %d: rank %d: status %x\n", self, rank, ended);
            wrong++;
        }
    /* The other host may still request values committed here. */
    shutdown(wire, SHUT_WR);
    pthread_join(carrier, NULL);
    PMIx_server_deregister_nspace(JOB, NULL, NULL);
    check("server_finalize", PMIx_server_finalize());
    if (wrong == 0)
        printf("host %d: all right\n", self);
    fflush(stdout);
    return wrong != 0;
}

int main(int argc, char **argv)
{
    const char *second = getenv("SECOND_HOST");
    int ends[2], ended = 0;
    char number[16];
    pid_t other;

    alarm(600);
    if (argc < 3 || (count = atoi(argv[1])) < 2 || count > MOST)
        return 2;
    if (second != NULL) {
        self = 1;
        wire = atoi(second);
        return serve(argv + 2);
    }
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
        return 1;
    other = fork();
    if (other == 0) {
        const char *library = getenv("LIBRARY_OF_SECOND");
        close(ends[0]);
        snprintf(number, sizeof number, "%d", ends[1]);
        setenv("SECOND_HOST", number, 1);
        if (library != NULL)
            setenv("LD_LIBRARY_PATH", library, 1);
        execv("/proc/self/exe", argv);
        _exit(127);
    }
    close(ends[1]);
    wire = ends[0];
    wrong += serve(argv + 2);
    if (waitpid(other, &ended, 0) != other || ended != 0)
        wrong++;
    return wrong != 0;
}
