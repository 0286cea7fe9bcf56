#define _GNU_SOURCE
// Objects of every kind, at known sizes, which are used again and again. Prints a sum, the same each time.
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

double profiled_table[200000];
static char *volatile kept;

__attribute__((noinline)) static double *make_matrix(size_t n) {
    double *p = calloc(n, sizeof(double));
    kept = (char *)p; // No jump in the place of the call.
    return p;
}
__attribute__((noinline)) static char *make_grown(void) {
    char *p = malloc(300000);
    memset(p, 1, 300000);
    kept = p = realloc(p, 3000000);
    return p;
}
__attribute__((noinline)) static double *make_aligned(size_t n) {
    void *p = NULL;
    if (posix_memalign(&p, 4096, n * sizeof(double))) abort();
    memset(p, 0, n * sizeof(double));
    return p;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

// A checked sweep: each word holds what it should, whoever looks at the pages.
static int sweep(double *a, size_t n, double seconds) {
    double begin = now(), round = 0;
    for (size_t i = 0; i < n; i++) a[i] = (double)i;
    while (now() - begin < seconds) {
        round++;
        for (size_t i = 0; i < n; i++) {
            if (a[i] != (double)i + (round - 1)) return printf("WRONG at %p\n", (void *)&a[i]), 1;
            a[i] += 1;
        }
    }
    return 0;
}

static void *in_thread(void *arg) {
    double *mine = malloc(1 << 20);
    intptr_t wrong = sweep(mine, (1 << 20) / sizeof(double), *(double *)arg);
    free(mine);
    return (void *)wrong;
}

static int all(double seconds) {
    int wrong = 0;
    double *matrix = make_matrix(1000000), *aligned = make_aligned(70000);
    char *grown = make_grown();
    char *map = mmap(NULL, 8 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(map, 3, 8 << 20);
    munmap(map + (2 << 20), 1 << 20);
    map = mremap(map, 2 << 20, 4 << 20, MREMAP_MAYMOVE);
    for (size_t i = 0; i < (2 << 20); i++) wrong |= map[i] != 3;
    for (size_t i = 0; i < 300000; i++) wrong |= grown[i] != 1;
    pthread_t threads[3];
    for (int t = 0; t < 3; t++) pthread_create(&threads[t], NULL, in_thread, &seconds);
    wrong |= sweep(matrix, 1000000, seconds / 2);
    wrong |= sweep(profiled_table, 200000, seconds / 4);
    wrong |= sweep(aligned, 70000, seconds / 4);
    for (int t = 0; t < 3; t++) {
        void *result;
        pthread_join(threads[t], &result);
        wrong |= result != NULL;
    }
    for (size_t i = 0; i < 300000; i++) wrong |= grown[i] != 1;
    free(aligned);
    return wrong;
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "plain";
    int wrong = 0;
    if (!strcmp(what, "plain")) {
        wrong = all(1.0);
    } else if (!strcmp(what, "fork")) {
        double *shared = make_matrix(500000);
        wrong |= sweep(shared, 500000, 0.3);
        for (int child = 0; child < 4; child++) {
            pid_t pid = fork();
            if (pid == 0) {
                wrong = sweep(shared, 500000, 0.4);
                kept = malloc(5000000);
                memset(kept, 1, 5000000);
                if (child % 2) exit(wrong);
                _exit(wrong);
            }
            wrong |= sweep(shared, 500000, 0.1);
            int status = 0;
            waitpid(pid, &status, 0);
            wrong |= status != 0;
        }
        // A child that is another program at once, and one of vfork.
        if (fork() == 0) execl("/bin/sh", "sh", "-c", "exec true", (char *)NULL);
        if (vfork() == 0) execl("/bin/true", "true", (char *)NULL);
        while (wait(NULL) > 0) {}
    } else if (!strcmp(what, "exec")) {
        double *before = make_matrix(600000);
        wrong |= sweep(before, 600000, 0.3);
        if (!wrong) execl(argv[0], argv[0], "plain", (char *)NULL);
        wrong = 1;
    } else if (!strcmp(what, "kill")) {
        double *before = make_matrix(700000);
        wrong |= sweep(before, 700000, 1.2);
        fflush(stdout);
        kill(getpid(), SIGKILL);
    } else if (!strcmp(what, "closed")) {
        double *before = make_matrix(700000);
        wrong |= sweep(before, 700000, 0.4);
        for (int fd = 3; fd < 70000; fd++) close(fd);
        wrong |= sweep(before, 700000, 0.4);
        wrong |= close_range(3, ~0U, 0) != 0;
        wrong |= sweep(before, 700000, 0.4);
    } else if (!strcmp(what, "churn")) {
        double *base = make_matrix(700000);
        wrong |= sweep(base, 700000, 0.1);
        for (int i = 0; i < 2000000; i++) {
            char *p = malloc(4096 + i % 60000);
            p[17] = 1;
            kept = p;
            free(p);
        }
        for (int i = 0; i < 20000; i++) {
            char *p = malloc(2 << 20);
            p[17] = 1;
            kept = p;
            free(p);
        }
    } else if (!strcmp(what, "many")) {
        // More blocks than the file has room for.
        for (int i = 0; i < 300000; i++) {
            char **p = malloc(4096);
            *p = kept;
            kept = (char *)p;
        }
        usleep(600000);
    }
    puts(wrong ? "BAD" : "OK");
    return wrong;
}
