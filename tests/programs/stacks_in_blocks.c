// Threads whose stacks, and so their control blocks, lie in blocks of malloc, while they allocate and touch much memory.
#include "check.h"
#define THREADS 12

static double end;
static char *big;
#define BIG (96 * MIB)

static void *body(void *arg) {
    uint64_t random = (uintptr_t)arg;
    while (seconds_now() < end) {
        char *block = malloc(1200000 + (uintptr_t)arg * PAGE);
        must(block != NULL);
        block[0] = 1, block[1000000] = 2;
        for (int k = 0; k < 30; k++) __atomic_fetch_add(&big[next_random(&random) % BIG], 1, __ATOMIC_RELAXED);
        if ((uintptr_t)arg & 1) usleep(200);
        free(block);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    end = seconds_now() + test_seconds();
    must((big = malloc(BIG)) != NULL);
    memset(big, 1, BIG);
    for (uintptr_t i = 0; i < THREADS; i++) {
        pthread_attr_t attr;
        char *stack = aligned_alloc(65536, 2 * MIB);
        must(stack != NULL && memset(stack, 0, 2 * MIB) == stack);
        must(pthread_attr_init(&attr) == 0 && pthread_attr_setstack(&attr, stack, 2 * MIB) == 0);
        must(pthread_create(&threads[i], &attr, body, (void *)i) == 0);
    }
    for (int i = 0; i < THREADS; i++) must(pthread_join(threads[i], NULL) == 0);
    puts("OK");
    return 0;
}
