// Threads that are cancelled while a system call of theirs is made, caught or left: each is joined, and as cancelled.
#include "check.h"
#include <sys/select.h>

static int ends[2];
static volatile int over;
static long cancelled[4];

static void *waits(void *unused) {
    (void)unused;
    for (;;) {
        fd_set readable;
        FD_ZERO(&readable);
        FD_SET(ends[0], &readable);
        select(ends[0] + 1, &readable, NULL, NULL, NULL);
    }
    return NULL;
}

static void *cancels(void *count) {
    uint64_t random = (uintptr_t)count;
    while (!over) {
        pthread_t thread;
        must(pthread_create(&thread, NULL, waits, NULL) == 0);
        for (volatile uint64_t wait = next_random(&random) % 3000; wait > 0; wait--) {}
        must(pthread_cancel(thread) == 0);
        void *result = NULL;
        must(pthread_join(thread, &result) == 0);
        must(result == PTHREAD_CANCELED);
        ++*(long *)count;
    }
    return NULL;
}

int main(void) {
    size_t bytes = 96 * MIB;
    char *at = map(bytes);
    fill(at, bytes, 1);
    must(pipe(ends) == 0);
    pthread_t crew[4];
    for (int i = 0; i < 4; i++) must(pthread_create(&crew[i], NULL, cancels, &cancelled[i]) == 0);
    usleep(test_seconds() * 1e6);
    over = 1;
    for (int i = 0; i < 4; i++) must(pthread_join(crew[i], NULL) == 0 && cancelled[i] > 0);
    verify(at, bytes, 1, "after cancelled threads");
    puts("OK");
    return 0;
}
