// flags: -pthread
// A vfork child runs in its parent's memory until exec: it allocates, maps and frees there, beside other threads of the
// parent, and the parent goes on with all of it.
#include "check.h"

static volatile int stop;
static void *busy(void *arg) {
    uint64_t state = (uintptr_t)arg, n = 0;
    while (!stop) {
        size_t bytes = 8 + (next_random(&state) % (next_random(&state) % 50 ? 4096 : 2 * MIB) & ~7ul);
        uint64_t *p = malloc(bytes);
        must(p != NULL);
        fill(p, bytes, n);
        verify(p, bytes, n++, "block of a busy thread");
        free(p);
    }
    return NULL;
}

int main(void) {
    pthread_t crew[2];
    for (long i = 0; i < 2; i++) must(pthread_create(&crew[i], NULL, busy, (void *)(i + 1)) == 0);
    static char *volatile small, *volatile large, *volatile mapped, *volatile given;
    for (int round = 0; round < 60; round++) {
        given = malloc(2 * MIB + round);
        fill(given, 2 * MIB, 5);
        pid_t child = vfork();
        must(child >= 0);
        if (child == 0) {
            small = malloc(100);
            large = malloc(3 * MIB);
            mapped = mmap(NULL, 4 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            memset(small, 1, 100);
            memset(large, 2, 3 * MIB);
            memset(mapped, 3, 4 * MIB);
            madvise(mapped, MIB, MADV_DONTNEED);
            verify(given, 2 * MIB, 5, "the parent's block in a vfork child");
            free(given);
            if (round % 3 == 0) _exit(5);
            if (round % 3 == 1) execl("/nonexistent", "nonexistent", NULL);
            execl("/bin/sh", "sh", "-c", "exit 5", NULL);
            _exit(5);
        }
        int status;
        must(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 5);
        must(small[99] == 1 && large[3 * MIB - 1] == 2 && mapped[0] == 0 && mapped[MIB] == 3);
        free(small), free(large);
        must(munmap(mapped, 4 * MIB) == 0);
    }
    stop = 1;
    for (int i = 0; i < 2; i++) pthread_join(crew[i], NULL);
    printf("OK\n");
    return 0;
}
