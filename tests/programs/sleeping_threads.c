// Five threads sleep until the first thread has slept its time; then the process ends with status 7.
#include "check.h"

static void *sleeper(void *ignored) {
    char on_stack[64 << 10];
    memset(on_stack, 1, sizeof on_stack);
    __asm__ volatile("" ::"r"(on_stack) : "memory");
    for (;;) pause();
    return ignored;
}

int main(int argc, char **argv) {
    for (int i = 0; i < 5; i++) {
        pthread_t thread;
        must(pthread_create(&thread, NULL, sleeper, NULL) == 0);
    }
    puts("OK");
    fflush(stdout);
    usleep((argc > 1 ? atof(argv[1]) : 0.5) * 1e6);
    _exit(7);
}
