// flags: -pthread
// Threads come and go during paging: short-lived threads with big stacks of their own, detached and joined, cancelled too.
#include "check.h"
#include <semaphore.h>

static char *data;
static size_t bytes = 128 * MIB;
static sem_t running;

static void *brief(void *arg) {
    volatile uint64_t local[20000]; // 160 KB of its stack
    uint64_t state = (uintptr_t)arg, salt = state;
    for (int i = 0; i < 20000; i += 64) local[i] = word(salt, i);
    for (int n = 0; n < 40; n++) {
        size_t page = next_random(&state) % (bytes / PAGE);
        verify_from(data + page * PAGE, PAGE, 1, page * 512, "page in a brief thread");
    }
    for (int i = 0; i < 20000; i += 64) must(local[i] == word(salt, i));
    sem_post(&running);
    return (void *)(uintptr_t)salt;
}

static void *cancelled(void *arg) {
    uint64_t state = (uintptr_t)arg;
    for (;;) { // until cancelled
        size_t page = next_random(&state) % (bytes / PAGE);
        verify_from(data + page * PAGE, PAGE, 1, page * 512, "page in a thread to be cancelled");
        pthread_testcancel();
    }
}

int main(void) {
    data = malloc(bytes);
    fill(data, bytes, 1);
    sem_init(&running, 0, 0);
    pthread_attr_t detached, big;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    pthread_attr_init(&big);
    pthread_attr_setstacksize(&big, 64 * MIB);
    for (int round = 0; round < 60; round++) {
        pthread_t joined[6], unjoined, stopped;
        for (long i = 0; i < 6; i++) must(pthread_create(&joined[i], i % 2 ? &big : NULL, brief, (void *)(round * 10 + i + 1)) == 0);
        must(pthread_create(&unjoined, &detached, brief, (void *)(round * 10 + 8l)) == 0);
        must(pthread_create(&stopped, NULL, cancelled, (void *)(round * 10 + 9l)) == 0);
        for (long i = 0; i < 6; i++) {
            void *result;
            must(pthread_join(joined[i], &result) == 0 && result == (void *)(round * 10 + i + 1));
        }
        void *result;
        must(pthread_cancel(stopped) == 0 && pthread_join(stopped, &result) == 0 && result == PTHREAD_CANCELED);
    }
    for (int i = 0; i < 60 * 7; i++) sem_wait(&running);
    // A thread left running at exit.
    pthread_t left;
    must(pthread_create(&left, &detached, cancelled, (void *)1l) == 0);
    verify(data, bytes, 1, "data at the end");
    printf("OK\n");
    return 0;
}
