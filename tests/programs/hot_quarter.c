// flags: -O2 -static
// Part of a large array is read again and again, the rest is not; tells on which nodes both lie, and whether all data are as written.
// hot_quarter NODE MIB MODE SECONDS: MODE hot: the array is put on NODE first, a quarter is read; all: all of it is read, evenly;
// late: three quarters are touched first, wherever the policy puts them, then the quarter that is read, on NODE; huge: as hot, in huge
// pages. Ends early when nine tenths of what is read have left NODE (not in mode all).
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, NODES = 16 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static void fill(char *from, size_t bytes) {
    for (size_t at = 0; at < bytes; at += PAGE) {
        *(uint64_t *)(from + at) = (uintptr_t)(from + at) * 2654435761u;
    }
}

static size_t wrong(const char *from, size_t bytes) {
    size_t count = 0;
    for (size_t at = 0; at < bytes; at += PAGE) {
        count += *(const uint64_t *)(from + at) != (uintptr_t)(from + at) * 2654435761u;
    }
    return count;
}

static void place(const char *from, size_t bytes, size_t *counts) {
    static void *pages[512];
    static int status[512];
    memset(counts, 0, NODES * sizeof *counts);
    for (size_t at = 0; at < bytes; at += sizeof pages / sizeof *pages * PAGE) {
        size_t count = (bytes - at) / PAGE < 512 ? (bytes - at) / PAGE : 512;
        for (size_t i = 0; i < count; i++) {
            pages[i] = (char *)from + at + i * PAGE;
        }
        syscall(SYS_move_pages, 0, count, pages, NULL, status, 0);
        for (size_t i = 0; i < count; i++) {
            if (status[i] >= 0 && status[i] < NODES) {
                counts[status[i]]++;
            }
        }
    }
}

static void show(const char *what, const char *from, size_t bytes) {
    size_t counts[NODES];
    place(from, bytes, counts);
    printf("%s", what);
    for (int node = 0; node < NODES; node++) {
        if (counts[node]) {
            printf(" N%d=%zu", node, counts[node]);
        }
    }
    printf("\n");
}

int main(int argc, char **argv) {
    if (argc != 5) {
        return 2;
    }
    int node = atoi(argv[1]);
    size_t bytes = (size_t)atoi(argv[2]) << 20;
    const char *mode = argv[3];
    double seconds = atof(argv[4]);
    size_t quarter = bytes / 4;
    char *data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) {
        return 1;
    }
    madvise(data, bytes, strcmp(mode, "huge") ? MADV_NOHUGEPAGE : MADV_HUGEPAGE);
    // The quarter that is read: the second, or the last one.
    int is_late = !strcmp(mode, "late"), is_all = !strcmp(mode, "all");
    char *hot = data + (is_late ? 3 : 1) * quarter;
    size_t hot_bytes = quarter;
    if (is_late) {
        fill(data, 3 * quarter);
    }
    int old_mode = 0;
    unsigned long old[16] = {0}, mask = 1ul << node;
    syscall(SYS_get_mempolicy, &old_mode, old, 1024ul, NULL, 0ul);
    syscall(SYS_set_mempolicy, 2 /* MPOL_BIND */, &mask, 64ul);
    fill(is_late ? hot : data, is_late ? quarter : bytes);
    syscall(SYS_set_mempolicy, old_mode, old_mode ? old : NULL, old_mode ? 1024ul : 0ul);
    if (is_all) {
        hot = data;
        hot_bytes = bytes;
    }
    show("hot at first", hot, hot_bytes);
    fflush(stdout);
    double begin = now(), looked = begin;
    volatile uint64_t sum = 0;
    for (;;) {
        for (size_t at = 0; at < hot_bytes; at += PAGE) {
            sum += *(volatile uint64_t *)(hot + at);
        }
        if (now() - looked < 1) {
            continue;
        }
        looked = now();
        size_t counts[NODES];
        place(hot, hot_bytes, counts);
        if (looked - begin > seconds || (!is_all && counts[node] * 10 < hot_bytes / PAGE)) {
            break;
        }
    }
    printf("read for %.0f s\n", now() - begin);
    show("hot", hot, hot_bytes);
    if (!is_all) {
        show("cold", data, hot - data);
        if (hot + hot_bytes < data + bytes) {
            show("cold", hot + hot_bytes, data + bytes - hot - hot_bytes);
        }
    }
    size_t bad = wrong(data, bytes);
    printf(bad ? "%zu pages are wrong\n" : "OK\n", bad);
    return bad != 0;
}
