/* A plain pointer chase, what `nearfar probe` is held against: one cycle, nanoseconds per load, median of 15 runs over fresh lines.
 * local: one line in each 256 bytes, at random within 64 pages, then the next 64 of a random order; random: all lines at random.
 *   cc -O2 chase.c -o chase;  taskset -c 0 ./chase BYTES HOPS_PER_RUN local|random small|huge
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { RUNS = 15, LINE = 64, SPARSE = 256, GROUP = 64 * 4096 };

static unsigned long seed = 88172645463325252ul;

static unsigned long random_below(unsigned long limit)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (unsigned __int128)seed * limit >> 64;
}

static void shuffle(unsigned *order, unsigned long count)
{
    for (unsigned long i = 0; i < count; i++)
        order[i] = i;
    for (unsigned long i = count; i > 1; i--) {
        unsigned long j = random_below(i);
        unsigned saved = order[i - 1];
        order[i - 1] = order[j];
        order[j] = saved;
    }
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static int ascending(const void *left, const void *right)
{
    double l = *(const double *)left, r = *(const double *)right;
    return (l > r) - (l < r);
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        fprintf(stderr, "usage: chase BYTES HOPS_PER_RUN local|random small|huge\n");
        return 2;
    }
    unsigned long bytes = strtoul(argv[1], 0, 10) / (2 << 20) * (2 << 20), hops = strtoul(argv[2], 0, 10);
    int is_local = strcmp(argv[3], "local") == 0, is_huge = strcmp(argv[4], "huge") == 0;
    unsigned long per_group = is_local ? GROUP / SPARSE : bytes / LINE, groups = is_local ? bytes / GROUP : 1;
    unsigned long step = is_local ? SPARSE : LINE;
    char *base = aligned_alloc(2 << 20, bytes);
    unsigned *outer = malloc(groups * sizeof *outer), *inner = malloc(per_group * sizeof *inner);
    if (!base || !outer || !inner || madvise(base, bytes, is_huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE)) {
        perror("memory");
        return 1;
    }
    memset(base, 0, bytes);
    shuffle(outer, groups);
    void **first = 0, **last = 0;
    for (unsigned long g = 0; g < groups; g++) {
        if (g == 0 || is_local)
            shuffle(inner, per_group);
        for (unsigned long i = 0; i < per_group; i++) {
            void **slot = (void **)(base + (outer[g] * per_group + inner[i]) * step + (is_local ? random_below(4) * LINE : 0));
            if (last)
                *last = slot;
            else
                first = slot;
            last = slot;
        }
    }
    *last = first;
    free(inner);
    /* The end of the cycle was written last: what the walk begins with has left the caches by now, or leaves them here. */
    void **at = first;
    double times[RUNS];
    for (int run = -1; run < RUNS; run++) {
        double start = now();
        for (unsigned long i = 0; i < hops / 16; i++) {
#define HOP at = (void **)*(void *volatile *)at;
            HOP HOP HOP HOP HOP HOP HOP HOP HOP HOP HOP HOP HOP HOP HOP HOP
        }
        if (run >= 0)
            times[run] = (now() - start) * 1e9 / (hops / 16 * 16);
    }
    qsort(times, RUNS, sizeof times[0], ascending);
    printf("%.4f\n", times[RUNS / 2]);
    return at == 0;
}
