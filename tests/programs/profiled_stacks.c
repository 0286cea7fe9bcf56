#define _GNU_SOURCE
// Arrays on stacks, which are gone through again and again, and threads that end in all ways. Each word holds what it should.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

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

__attribute__((noinline)) static int on_stack(double seconds) {
    double array[500000];
    return sweep(array, 500000, seconds);
}

static void *work(void *seconds) { return (void *)(intptr_t)on_stack(*(double *)seconds); }
static void *leave(void *seconds) { pthread_exit(work(seconds)); }
static void *wait_for_cancel(void *seconds) {
    intptr_t wrong = (intptr_t)work(seconds);
    if (wrong) return (void *)wrong;
    for (;;) pause();
}
static void *nothing(void *arg) {
    volatile char some[2000];
    some[17] = 1;
    if ((intptr_t)arg % 3 == 0) pthread_exit(arg);
    return arg;
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "plain";
    int wrong = 0;
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 8 << 20);
    pthread_t threads[3];
    void *result;
    if (!strcmp(what, "plain")) {
        double seconds = 1;
        pthread_create(&threads[0], &attr, work, &seconds);
        wrong |= on_stack(seconds);
        pthread_join(threads[0], &result);
        wrong |= result != NULL;
    } else if (!strcmp(what, "ends")) {
        // The same stacks again and again.
        double seconds = 0.15;
        for (int round = 0; round < 3; round++) {
            pthread_create(&threads[0], &attr, work, &seconds);
            pthread_create(&threads[1], &attr, leave, &seconds);
            pthread_create(&threads[2], &attr, wait_for_cancel, &seconds);
            usleep(350000);
            pthread_cancel(threads[2]);
            for (int t = 0; t < 3; t++) {
                pthread_join(threads[t], &result);
                wrong |= result != (t == 2 ? PTHREAD_CANCELED : NULL);
            }
        }
    } else if (!strcmp(what, "many")) {
        for (intptr_t i = 0; i < 10000; i++) {
            wrong |= pthread_create(&threads[0], i % 2 ? &attr : NULL, nothing, (void *)i) != 0;
            pthread_join(threads[0], &result);
            wrong |= result != (void *)i;
        }
    }
    puts(wrong ? "BAD" : "OK");
    return wrong;
}
