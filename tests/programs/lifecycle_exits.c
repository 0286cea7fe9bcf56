// flags: -pthread
// A process ends while its threads are in the middle of paged memory: by exit, quick_exit, _exit, abort, a fatal signal, the
// last thread's end; the status is the right one every time.
#include "check.h"

static char *shared;
static size_t bytes = 48 * MIB;
static void *work(void *arg) {
    for (uint64_t i = (uintptr_t)arg;; i++) {
        ((volatile uint64_t *)shared)[mix(i) % (bytes / 8)]++;
        free(malloc(mix(i) % (4 * MIB)));
    }
    return NULL;
}
static void *leave(void *arg) {
    usleep(20000);
    if (arg) exit(21);
    return NULL;
}
static void at_quick_exit_(void) { free(malloc(2 * MIB)); }
__attribute__((destructor)) static void destruct(void) {
    for (size_t i = 0; shared && i < bytes; i += PAGE) ((volatile char *)shared)[i]++;
}

static void run(int way) {
    shared = malloc(bytes);
    fill(shared, bytes, way);
    pthread_t handle;
    if (way != 6) for (long i = 0; i < 3; i++) must(pthread_create(&handle, NULL, work, (void *)i) == 0);
    push_out_with(48 * MIB);
    at_quick_exit(at_quick_exit_);
    switch (way) {
    case 0: exit(20);
    case 1: must(pthread_create(&handle, NULL, leave, "") == 0); pause();
    case 2: quick_exit(22);
    case 3: _exit(23);
    case 4: abort();
    case 5: raise(SIGTERM);
    case 6: must(pthread_create(&handle, NULL, leave, NULL) == 0); pthread_exit(NULL); // the last thread ends: exit(0)
    case 7: kill(getpid(), SIGKILL); pause();
    case 8: *(volatile int *)8 = 1;
    }
}

int main(void) {
    static const char *const names[] = {"exit", "exit in a thread", "quick_exit", "_exit", "abort", "SIGTERM", "last thread", "SIGKILL", "SIGSEGV"};
    signal(SIGTERM, SIG_DFL);
    for (int way = 0; way < 9; way++) {
        fflush(stdout);
        pid_t child = fork();
        must(child >= 0);
        if (child == 0) { run(way); _exit(99); }
        int status;
        must(waitpid(child, &status, 0) == child);
        if (WIFEXITED(status)) printf("%s: exit code %d\n", names[way], WEXITSTATUS(status));
        else printf("%s: signal %d\n", names[way], WTERMSIG(status));
    }
    printf("OK\n");
    return 0;
}
