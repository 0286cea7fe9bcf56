// Processes that share our memory (clone with CLONE_VM) and end at once, thousands of them.
#include "check.h"
#include <sched.h>

static int ends_at_once(void *unused) {
    (void)unused;
    return 0;
}

int main(void) {
    size_t bytes = 96 * MIB;
    char *at = map(bytes);
    fill(at, bytes, 1);
    char *stack = map(MIB);
    double end = seconds_now() + test_seconds();
    int status;
    while (seconds_now() < end) {
        pid_t child = clone(ends_at_once, stack + MIB, CLONE_VM | SIGCHLD, NULL);
        must(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    }
    verify(at, bytes, 1, "after children that shared it");
    puts("OK");
    return 0;
}
