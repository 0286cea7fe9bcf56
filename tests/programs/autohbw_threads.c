// Threads allocate in the window, hand blocks to each other, end and fork meanwhile; children allocate and free what they inherited.
#include "check.h"
#include <stdatomic.h>
#define THREADS 8
static void *_Atomic handed[THREADS * 16];

static void *work(void *arg) {
    uint64_t random = (uintptr_t)arg + 1;
    for (int round = 0; round < 3000; round++) {
        size_t n = next_random(&random) % (next_random(&random) % 8 ? 20000 : 3 * MIB);
        unsigned char *block = round % 3 ? malloc(n + 16) : calloc(1, n + 16);
        must(block != NULL);
        *(size_t *)block = n;
        block[n + 15] = (unsigned char)n;
        unsigned char *other = atomic_exchange(&handed[next_random(&random) % (THREADS * 16)], block);
        if (other != NULL) {
            size_t m = *(size_t *)other;
            must(other[m + 15] == (unsigned char)m);
            if (round % 5 == 0) other = realloc(other, m + 16 + 5000);
            must(other != NULL && other[m + 15] == (unsigned char)m);
            free(other);
        }
    }
    return NULL;
}

int main(void) {
    pthread_t crew[THREADS];
    for (int turn = 0; turn < 4; turn++) {
        for (uintptr_t i = 0; i < THREADS; i++) must(pthread_create(&crew[i], NULL, work, (void *)(i + 100 * turn)) == 0);
        pid_t child = fork();
        must(child >= 0);
        if (child == 0) {
            for (int i = 0; i < 200; i++) {
                void *block = malloc(MIB + i);
                must(block != NULL);
                memset(block, 1, MIB);
                free(block);
            }
            _exit(0);
        }
        int status;
        must(waitpid(child, &status, 0) == child && status == 0);
        for (int i = 0; i < THREADS; i++) must(pthread_join(crew[i], NULL) == 0);
    }
    for (int i = 0; i < THREADS * 16; i++) free(handed[i]);
    puts("OK");
}
