#define _GNU_SOURCE
// Mappings of a few pages, and others that leave their place mapped, are moved while their pages are looked at: mremap must work, and
// every word must be where it was.
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define PAGE 4096
#define SMALL 24

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}
static int failed(const char *what) { return printf("%s: %s\n", what, strerror(errno)), 1; }
static void fill(uint64_t *words, size_t bytes, uint64_t salt) {
    for (size_t i = 0; i < bytes / 8; i++) words[i] = i * 3 + salt;
}
static int check(uint64_t *words, size_t bytes, uint64_t salt) {
    for (size_t i = 0; i < bytes / 8; i++)
        if (words[i] != i * 3 + salt) return printf("WRONG at %p\n", (void *)&words[i]), 1;
    return 0;
}
static void *fresh(size_t bytes) { return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }

int main(void) {
    const size_t small = 8 * PAGE, large = 64 * PAGE;
    void *maps[SMALL];
    for (int i = 0; i < SMALL; i++) fill(maps[i] = fresh(small), small, i);
    double begin = now();
    void *left = fresh(large);
    while (now() - begin < 2.5) {
        for (int i = 0; i < SMALL; i++) {
            // A place where nothing else is.
            char *place = fresh(small + 2 * PAGE);
            void *moved = mremap(maps[i], small, small, MREMAP_MAYMOVE | MREMAP_FIXED, place + PAGE);
            if (moved == MAP_FAILED) return failed("small");
            munmap(place, PAGE);
            munmap(place + PAGE + small, PAGE);
            maps[i] = moved;
            if (check(maps[i], small, i)) return 1;
        }
        fill(left, large, 77);
        for (double until = now() + 0.001; now() < until;) {}
        void *moved = mremap(left, large, large, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
        if (moved == MAP_FAILED) return failed("left mapped");
        if (check(moved, large, 77)) return 1;
        for (size_t i = 0; i < large / 8; i += PAGE / 8)
            if (((uint64_t *)left)[i]) return printf("not empty\n"), 1;
        munmap(moved, large);
    }
    puts("OK");
    return 0;
}
