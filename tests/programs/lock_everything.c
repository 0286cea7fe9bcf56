// flags: -pthread
// mlockall of the present and the future, then more memory than near: nothing hangs, the content is right, and it can be undone.
#include "check.h"

static void *work(void *arg) {
    char *at = malloc(24 * MIB);
    must(at != NULL);
    fill(at, 24 * MIB, (uintptr_t)arg);
    verify(at, 24 * MIB, (uintptr_t)arg, "block of a thread, locked");
    free(at);
    return NULL;
}

int main(void) {
    char *before = malloc(48 * MIB);
    fill(before, 48 * MIB, 1);
    int result = mlockall(MCL_CURRENT | MCL_FUTURE);
    must(result == 0 || errno == ENOMEM || errno == EPERM || errno == EAGAIN);
    char *after = malloc(64 * MIB), *mapped = map(32 * MIB);
    must(after != NULL);
    fill(after, 64 * MIB, 2);
    fill(mapped, 32 * MIB, 3);
    pthread_t threads[2];
    for (long i = 0; i < 2; i++) must(pthread_create(&threads[i], NULL, work, (void *)(i + 4)) == 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    verify(before, 48 * MIB, 1, "locked, from before");
    verify(after, 64 * MIB, 2, "locked, from after");
    verify(mapped, 32 * MIB, 3, "locked mapping");
    must(munlockall() == 0);
    push_out();
    verify(before, 48 * MIB, 1, "unlocked, from before");
    verify(after, 64 * MIB, 2, "unlocked, from after");
    verify(mapped, 32 * MIB, 3, "unlocked mapping");
    must(mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) == 0 || errno == ENOMEM || errno == EPERM);
    char *third = malloc(32 * MIB);
    fill(third, 32 * MIB, 6);
    verify(third, 32 * MIB, 6, "locked on fault");
    munlockall();
    printf("OK\n");
    return 0;
}
