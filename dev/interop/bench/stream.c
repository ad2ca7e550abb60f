/* Writes and reads streams as fast as a program can; every byte of them can be checked.
 *
 *   stream blocks BYTES [WRITE]          numbered blocks of 4096 bytes
 *   stream lines COUNT LENGTH [WRITE [FILE]]
 *                                        lines "RRRRR NNNNNNNNNN aaa..."; WRITE 0: each line by a write of its own. Stops before COUNT
 *                                        as soon as FILE exists: prints on standard error how many
 *   stream clock COUNT MICROSECONDS      lines with the monotonic clock when they are written, at this pace
 *   stream sink [PAUSE]                  reads blocks until end of file; prints "sink RANK BYTES WRONG FIRST LAST", where FIRST and
 *                                        LAST are the clock at the first and after the last byte. PAUSE: milliseconds between reads
 *
 * WRITE: bytes per write, 65536 by default. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK = 4096, BUFFER = 1 << 20 };

static unsigned char pattern[BLOCK];

static unsigned rank(void)
{
    static const char *names[] = { "PMIX_RANK", "PMI_RANK", "RANK" };

    for (size_t n = 0; n < sizeof names / sizeof *names; n++)
        if (getenv(names[n]))
            return atoi(getenv(names[n]));
    return 0;
}

static unsigned long long number(int argc, char **argv, int at, unsigned long long unless)
{
    return argc > at ? strtoull(argv[at], NULL, 10) : unless;
}

static unsigned long long now(void)
{
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec * 1000000000ull + at.tv_nsec;
}

static void nap(unsigned long long nanoseconds)
{
    nanosleep(&(struct timespec) { nanoseconds / 1000000000, nanoseconds % 1000000000 }, NULL);
}

static void put(const void *bytes, size_t count)
{
    for (size_t at = 0; at < count; ) {
        ssize_t done = write(1, (const char *) bytes + at, count - at);
        if (done < 0 && errno != EINTR) {
            perror("stream: write");
            exit(3);
        }
        at += done > 0 ? done : 0;
    }
}

/* The same pattern as in the checking reader. */
static void make_pattern(void)
{
    uint64_t state = 88172645463325252u;

    for (size_t n = 0; n < BLOCK; n++) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        pattern[n] = state;
    }
}

static void blocks(unsigned long long bytes, size_t piece)
{
    unsigned char *buffer = malloc(BUFFER + BLOCK);
    size_t filled = 0;

    for (uint64_t n = 0; n * BLOCK < bytes; n++) {
        size_t size = bytes - n * BLOCK < BLOCK ? bytes - n * BLOCK : BLOCK, at = 0;
        memcpy(buffer + filled, pattern, BLOCK);
        memcpy(buffer + filled, &n, sizeof n);
        filled += size;
        for (; filled - at >= piece; at += piece)
            put(buffer + at, piece);
        memmove(buffer, buffer + at, filled -= at);
    }
    put(buffer, filled);
}

static void lines(unsigned long long count, size_t length, size_t piece, const char *file)
{
    char *buffer = malloc(BUFFER + length), *line = malloc(length + 1);
    unsigned me = rank();
    unsigned long long n;
    size_t filled = 0;
    int over = 0;

    memset(line, 'a' + me % 26, length);
    memcpy(line, "00000 0000000000 ", 17);
    line[length - 1] = '\n';
    for (int at = 4; at >= 0; at--, me /= 10)
        line[at] = '0' + me % 10;
    for (n = 0; n < count && !over; n++) {
        size_t at = 0;
        memcpy(buffer + filled, line, length);
        filled += length;
        for (size_t write = piece ? piece : length; filled - at >= write; at += write)
            put(buffer + at, write);
        over = at > 0 && file && access(file, F_OK) == 0;
        memmove(buffer, buffer + at, filled -= at);
        for (int digit = 15; ++line[digit] > '9'; digit--)
            line[digit] = '0';
    }
    put(buffer, filled);
    if (file)
        fprintf(stderr, "rank %u wrote %llu lines\n", rank(), n);
}

static void sink(unsigned long long pause)
{
    static unsigned char buffer[BUFFER];
    unsigned long long bytes = 0, wrong = 0, first = 0;
    ssize_t count;

    while ((count = read(0, buffer, sizeof buffer)) != 0) {
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0) {
            perror("stream: read");
            exit(3);
        }
        first = first ? first : now();
        for (size_t at = 0; at < (size_t) count; ) {
            uint64_t block = bytes / BLOCK;
            size_t offset = bytes % BLOCK, size = BLOCK - offset;
            size = size < count - at ? size : count - at;
            for (; offset < sizeof block && size > 0; offset++, at++, bytes++, size--)
                wrong += buffer[at] != ((unsigned char *) &block)[offset];
            wrong += size && memcmp(buffer + at, pattern + offset, size) != 0;
            bytes += size;
            at += size;
        }
        if (pause)
            nap(pause * 1000000);
    }
    printf("sink %u %llu %llu %llu %llu\n", rank(), bytes, wrong, first, now());
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    unsigned long long piece;

    make_pattern();
    if (strcmp(what, "blocks") == 0 && argc > 2) {
        piece = number(argc, argv, 3, 65536);
        blocks(number(argc, argv, 2, 0), piece && piece <= BUFFER ? piece : 65536);
    } else if (strcmp(what, "lines") == 0 && argc > 3 && atoi(argv[3]) > 17) {
        piece = number(argc, argv, 4, 65536);
        lines(number(argc, argv, 2, 0), number(argc, argv, 3, 0), piece <= BUFFER ? piece : 65536, argc > 5 ? argv[5] : NULL);
    } else if (strcmp(what, "clock") == 0 && argc > 3) {
        for (unsigned long long n = number(argc, argv, 2, 0); n > 0; n--) {
            char line[64];
            nap(number(argc, argv, 3, 0) * 1000);
            put(line, snprintf(line, sizeof line, "at %llu\n", now()));
        }
    } else if (strcmp(what, "sink") == 0) {
        sink(number(argc, argv, 2, 0));
    } else {
        return 2;
    }
    return 0;
}
