// A child made by a raw system call passes every hook: it sees right data or dies by a signal, but never sees wrong bytes or zeros.
#include "check.h"
#include <sched.h>

static char *data;
static size_t bytes = 128 * MIB;

static void child_reads(void) {
    // No library calls that could hide a fault: plain loads, and the exit code says what was seen.
    const uint64_t *w = (const uint64_t *)data;
    for (size_t i = 0; i < bytes / 8; i += 512) {
        uint64_t found = ((const volatile uint64_t *)w)[i];
        if (found != word(1, i)) syscall(SYS_exit_group, found == 0 ? 17 : 18);
    }
    for (size_t i = 0; i < bytes / 8; i += 512) ((volatile uint64_t *)w)[i] = i;
    for (size_t i = 0; i < bytes / 8; i += 512)
        if (((volatile uint64_t *)w)[i] != i) syscall(SYS_exit_group, 19);
    syscall(SYS_exit_group, 0);
}

int main(void) {
    data = malloc(bytes);
    fill(data, bytes, 1);
    for (int kind = 0; kind < 3; kind++) {
        push_out_with(96 * MIB);
        fflush(stdout);
        long child = kind == 0 ? syscall(SYS_fork) : kind == 1 ? syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : (long)_Fork();
        must(child >= 0);
        if (child == 0) child_reads();
        verify(data, bytes, 1, "parent beside a raw child");
        int status;
        must(waitpid(child, &status, 0) == child);
        if (WIFEXITED(status) && WEXITSTATUS(status) != 0) {
            printf("FAILED: a child of kind %d saw %s\n", kind, WEXITSTATUS(status) == 17 ? "zeros" : WEXITSTATUS(status) == 18 ? "wrong bytes" : "its own writes lost");
            return 1;
        }
        fprintf(stderr, "child of kind %d: %s %d\n", kind, WIFEXITED(status) ? "exit" : "signal", WIFEXITED(status) ? 0 : WTERMSIG(status));
    }
    verify(data, bytes, 1, "parent at the end");
    printf("OK\n");
    return 0;
}
