// What every test program shares: known content, its check, and pressure that pushes everything else out of near memory.
#ifndef CHECK_H
#define CHECK_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MIB (1ul << 20)
#define PAGE 4096ul

// Ends the program at once, also in a forked child or a handler: exit code 1, the reason on standard output.
#define must(condition) do { if (!(condition)) { \
    printf("FAILED %s:%d: %s (errno %d: %s)\n", __FILE__, __LINE__, #condition, errno, strerror(errno)); \
    fflush(stdout); _exit(1); } } while (0)

static inline uint64_t mix(uint64_t x) {
    x ^= x >> 31; x *= 0x7fb5d329728ea185ull; x ^= x >> 27; x *= 0x81dadef4bc2dd44dull; x ^= x >> 33;
    return x;
}

// Word i of known content `salt`.
static inline uint64_t word(uint64_t salt, size_t i) { return mix(salt * 0x9e3779b97f4a7c15ull + i + 1); }

static inline void fill_from(void *at, size_t bytes, uint64_t salt, size_t first) {
    uint64_t *w = at;
    for (size_t i = 0; i < bytes / 8; i++) w[i] = word(salt, first + i);
    __asm__ volatile("" ::"r"(at) : "memory"); // or the compiler drops what is never read
}
static inline void fill(void *at, size_t bytes, uint64_t salt) { fill_from(at, bytes, salt, 0); }

static inline void wrong(const void *base, size_t i, uint64_t found, uint64_t expected, const char *what) {
    printf("WRONG %s: %p (buffer + 0x%zx, page %zu) holds %016lx, not %016lx%s; read again %016lx\n", what, (const void *)((const uint64_t *)base + i), i * 8,
           i / 512, found, expected, found == 0 ? " (zero: lost)" : "", ((const volatile uint64_t *)base)[i]);
    fflush(stdout);
    _exit(1);
}
static inline void verify_from(const void *at, size_t bytes, uint64_t salt, size_t first, const char *what) {
    const uint64_t *w = at;
    for (size_t i = 0; i < bytes / 8; i++) {
        uint64_t found = w[i];
        if (found != word(salt, first + i)) wrong(at, i, found, word(salt, first + i), what);
    }
}
static inline void verify(const void *at, size_t bytes, uint64_t salt, const char *what) { verify_from(at, bytes, salt, 0, what); }

static inline void verify_zero(const void *at, size_t bytes, const char *what) {
    const uint64_t *w = at;
    for (size_t i = 0; i < bytes / 8; i++) {
        uint64_t found = w[i];
        if (found != 0) wrong(at, i, found, 0, what);
    }
}

static inline size_t parse_size(const char *text) {
    char *end;
    double number = strtod(text, &end);
    switch (*end) { case 'K': number *= 1 << 10; break; case 'M': number *= 1 << 20; break; case 'G': number *= 1 << 30; break; }
    return (size_t)number;
}
static inline size_t size_arg(int argc, char **argv, int index, size_t fallback) {
    return index < argc ? parse_size(argv[index]) : fallback;
}

// Touches much other memory, so that all that was touched before is likely to be in far memory now.
static inline void push_out_with(size_t bytes) {
    uint64_t *other = malloc(bytes);
    must(other != NULL);
    // Others each time, so that what an earlier call left at these addresses is not taken for right.
    static uint64_t calls;
    uint64_t salt = __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
    for (size_t i = 0; i < bytes / 8; i += 64) other[i] = mix(i + salt);
    for (size_t i = 0; i < bytes / 8; i += 64) must(other[i] == mix(i + salt));
    free(other);
}
static inline void push_out(void) { push_out_with(160 * MIB); }

static inline void *map(size_t bytes) {
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(at != MAP_FAILED);
    return at;
}

// A small private generator, so that programs are repeatable.
static inline uint64_t next_random(uint64_t *state) {
    *state = *state * 6364136223846793005ull + 1442695040888963407ull;
    return mix(*state);
}

static inline double seconds_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}
// How long the timed programs run: NEARFAR_TEST_SECONDS, 10 unless told.
static inline double test_seconds(void) {
    const char *text = getenv("NEARFAR_TEST_SECONDS");
    return text ? atof(text) : 10;
}

// A thread that keeps pushing other memory out while the test does its work.
static volatile int pressure_stop;
static void *pressure_body(void *arg) {
    size_t bytes = (size_t)arg;
    uint64_t *other = malloc(bytes), round = 0;
    must(other != NULL);
    while (!pressure_stop) {
        round++;
        for (size_t i = 0; i < bytes / 8 && !pressure_stop; i += 512) other[i] = mix(i + round);
    }
    free(other);
    return NULL;
}
static inline pthread_t start_pressure(size_t bytes) {
    pthread_t handle;
    pressure_stop = 0;
    must(pthread_create(&handle, NULL, pressure_body, (void *)bytes) == 0);
    return handle;
}
static inline void end_pressure(pthread_t handle) {
    pressure_stop = 1;
    pthread_join(handle, NULL);
}
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wreturn-type"
#endif
