/* The minimum for any launcher: starts N copies of a program with posix_spawn, and waits for all of them. Each
 * finds its number in RANK. */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

extern char **environ;

int main(int argc, char **argv)
{
    int worst = 0, count = argc > 2 ? atoi(argv[1]) : 0;

    for (int i = 0; i < count; i++) {
        char rank[16];
        pid_t pid;
        snprintf(rank, sizeof rank, "%d", i);
        setenv("RANK", rank, 1);
        if (posix_spawnp(&pid, argv[2], NULL, NULL, argv + 2, environ) != 0) {
            perror(argv[2]);
            return 127;
        }
    }
    for (int i = 0; i < count; i++) {
        int status;
        if (wait(&status) > 0 && status != 0)
            worst = 1;
    }
    return worst;
}
