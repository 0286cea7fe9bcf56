// flags: -pthread
// fork in a program whose other threads page, allocate and free all the time; children allocate, read and start threads of their own.
#include "check.h"

static char *data;
static size_t bytes = 96 * MIB;
static volatile int done;

static void *busy(void *arg) {
    uint64_t state = (uintptr_t)arg;
    while (!done) {
        size_t size = 4096 + (next_random(&state) % (6 * MIB) & ~7ul);
        uint64_t salt = next_random(&state);
        char *at = malloc(size);
        must(at != NULL);
        fill(at, size, salt);
        verify(data + next_random(&state) % 90 * MIB, 0, 1, "");
        verify(at, size, salt, "block of a busy thread");
        free(at);
    }
    return NULL;
}

static void *child_thread(void *arg) {
    char *at = malloc(4 * MIB);
    fill(at, 4 * MIB, (uintptr_t)arg);
    verify(data, bytes, 1, "data in a thread of a child");
    verify(at, 4 * MIB, (uintptr_t)arg, "block in a thread of a child");
    free(at);
    return NULL;
}

int main(void) {
    data = malloc(bytes);
    fill(data, bytes, 1);
    pthread_t threads[3];
    for (long i = 0; i < 3; i++) must(pthread_create(&threads[i], NULL, busy, (void *)(i + 5)) == 0);
    for (int round = 0; round < 8; round++) {
        pid_t child = fork();
        must(child >= 0);
        if (child == 0) {
            char *more = malloc(8 * MIB);
            must(more != NULL);
            fill(more, 8 * MIB, round);
            verify(data, bytes, 1, "data in a child");
            verify(more, 8 * MIB, round, "block of a child");
            if (round % 2) {
                pthread_t pair[2];
                for (long i = 0; i < 2; i++) must(pthread_create(&pair[i], NULL, child_thread, (void *)(i + 50)) == 0);
                for (int i = 0; i < 2; i++) pthread_join(pair[i], NULL);
            }
            free(more);
            if (round % 3 == 0) exit(0); // with exit handlers
            _exit(0);
        }
        int status;
        must(waitpid(child, &status, 0) == child);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) { printf("child %d ended with status %x\n", round, status); fflush(stdout); _exit(1); }
    }
    done = 1;
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    verify(data, bytes, 1, "data of the parent");
    printf("OK\n");
    return 0;
}
