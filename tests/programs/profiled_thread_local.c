// flags: -ldl -pthread -g
// Thread-local arrays of the program and of a library that is opened while it runs (static and dynamic TLS), static arrays of that
// library, which is closed, opened again, and opened as a second copy. Arguments: what to do, the library, its copy.
#define _GNU_SOURCE
#include "check.h"
#include <dlfcn.h>
#include <pthread.h>
#include <time.h>

enum { OWN = 3000000 / 8, PASSES = 8 };
static __thread uint64_t own_buffer[OWN];
static __thread uint64_t second_buffer[OWN / 4];

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec * 1e-9;
}

static void (*sweep_library)(int);

static void *work(void *unused) {
    (void)unused;
    for (double end = seconds() + 1.2; seconds() < end;) {
        for (int at = 0; at < OWN; at++) own_buffer[at] += at;
        for (int at = 0; at < OWN / 4; at++) second_buffer[at] += at;
        if (sweep_library) sweep_library(1);
    }
    return NULL;
}

static void threads(int count) {
    pthread_t crew[8];
    for (int at = 0; at < count; at++) must(pthread_create(&crew[at], NULL, work, NULL) == 0);
    work(NULL);
    for (int at = 0; at < count; at++) pthread_join(crew[at], NULL);
}

static void *open_library(const char *path) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) { printf("dlopen: %s\n", dlerror()); exit(1); }
    sweep_library = (void (*)(int))dlsym(library, "sweep_library");
    must(sweep_library != NULL);
    return library;
}

int main(int argc, char **argv) {
    must(argc > 1);
    if (!strcmp(argv[1], "own")) {
        threads(2);
    } else if (!strcmp(argv[1], "opened")) {
        open_library(argv[2]);
        threads(2);
    } else if (!strcmp(argv[1], "closed")) {
        // Twice: after the first everything of the library is gone for a while.
        for (int round = 0; round < 2; round++) {
            void *library = open_library(argv[2]);
            threads(1);
            sweep_library = NULL;
            must(dlclose(library) == 0);
            double end = seconds() + 1.3;
            while (seconds() < end) own_buffer[1]++;
        }
    } else {
        // The same file opened twice is one; its copy, and it in another name space, are others.
        void *one = open_library(argv[2]), *again = open_library(argv[2]);
        must(one == again);
        void (*first)(int) = sweep_library;
        open_library(argv[3]);
        void (*copy)(int) = sweep_library;
        void *apart = dlmopen(LM_ID_NEWLM, argv[2], RTLD_NOW | RTLD_LOCAL);
        must(apart != NULL);
        void (*other)(int) = (void (*)(int))dlsym(apart, "sweep_library");
        must(other && other != first && copy != first);
        for (double end = seconds() + 2.2; seconds() < end;) {
            first(1);
            copy(1);
            other(1);
        }
    }
    printf("OK\n");
    return 0;
}
