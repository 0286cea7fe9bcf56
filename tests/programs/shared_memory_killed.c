// Processes that share our memory (clone with CLONE_VM), killed while they map and unmap: what is ours stays right, or we are told.
#include "check.h"
#include <sched.h>
#include <signal.h>

static int maps_and_unmaps(void *unused) {
    (void)unused;
    for (;;) {
        char *block = mmap(NULL, 8 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (block == MAP_FAILED) return 1;
        for (size_t page = 0; page < 8 * MIB; page += PAGE) block[page] = 1;
        munmap(block, 8 * MIB);
    }
}

int main(void) {
    size_t bytes = 96 * MIB;
    char *at = map(bytes);
    fill(at, bytes, 1);
    char *stack = map(MIB);
    double end = seconds_now() + test_seconds();
    for (unsigned kill_after_us = 1; seconds_now() < end; kill_after_us = kill_after_us * 7 % 20011) {
        pid_t child = clone(maps_and_unmaps, stack + MIB, CLONE_VM | SIGCHLD, NULL);
        must(child > 0);
        usleep(20000 + kill_after_us);
        must(kill(child, SIGKILL) == 0);
        must(waitpid(child, NULL, 0) == child);
        verify(at, bytes, 1, "after a kill");
    }
    puts("OK");
    return 0;
}
