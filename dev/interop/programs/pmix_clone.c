/* One of two programs that are the same rank at the same time.
 *
 * usage: pmix_clone NAME PARTNER END
 *
 * Files in the directory INTEROP_MEETING show its progress to the partner and the test: `RANK.NAME` when it is
 * connected and has put a value, `RANK.NAME.met` when it has fenced and got the value of the same program of the next rank. A
 * fence of a rank comes after the values of both its programs, whichever of them fences first. A single rank puts nothing, since
 * servers of OpenPMIx 4.2 sometimes loop forever in the values of two programs of one rank. END is one of
 *   finalize  the orderly way
 *   leave     without finalize, when the partner has met others as well
 *   die       the same, by a signal
 *   fence     orderly, after one more fence, when the partner has met others; the file `RANK.NAME.fence` announces it
 * and with the prefix `go-` it waits for the file `RANK.go`. No rank ends before all have met, since the values of a rank that has
 * ended may not be available. */
#include "check.h"

#include <signal.h>
#include <sys/stat.h>

static const char *file_of(pmix_rank_t rank, const char *name, const char *step)
{
    static char path[4096];
    const char *meeting = getenv("INTEROP_MEETING");

    CHECK(meeting != NULL, "INTEROP_MEETING is not set");
    snprintf(path, sizeof path, "%s/%u.%s%s", meeting, rank, name, step);
    return path;
}

static const char *file(const char *name, const char *step)
{
    return file_of(me.rank, name, step);
}

static void say(const char *name, const char *step)
{
    FILE *mine = fopen(file(name, step), "w");

    CHECK(mine != NULL, "making %s", file(name, step));
    fclose(mine);
}

static void await_of(pmix_rank_t rank, const char *name, const char *step)
{
    struct stat status;

    while (stat(file_of(rank, name, step), &status) != 0)
        usleep(2000);
}

static void await(const char *name, const char *step)
{
    await_of(me.rank, name, step);
}

int main(int argc, char **argv)
{
    const char *name, *partner, *end;
    pmix_rank_t next;
    char verdict[64];

    if (argc != 4)
        return 2;
    name = argv[1], partner = argv[2], end = argv[3];
    start();
    if (job_size > 1) {
        put_text(PMIX_GLOBAL, keyed(name, me.rank), keyed("of", me.rank));
        OK(PMIx_Commit());
    }
    say(name, "");
    await(partner, "");
    barrier();
    next = (me.rank + 1) % job_size;
    if (job_size > 1)
        expect_text(next, keyed(name, next), NULL, keyed("of", next));
    say(name, ".met");
    for (pmix_rank_t rank = 0; rank < job_size && job_size > 1; rank++) {
        await_of(rank, name, ".met");
        await_of(rank, partner, ".met");
    }
    if (strncmp(end, "go-", 3) == 0) {
        end += 3;
        await("go", "");
    }
    if (strcmp(end, "finalize") != 0)
        await(partner, ".met");
    if (strcmp(end, "leave") == 0 || strcmp(end, "die") == 0) {
        if (strcmp(end, "die") == 0)
            raise(SIGKILL);
        _exit(0);
    }
    if (strcmp(end, "fence") == 0) {
        say(name, ".fence");
        barrier();
    }
    snprintf(verdict, sizeof verdict, "%s was this rank", name);
    finish(verdict);
    return 0;
}
