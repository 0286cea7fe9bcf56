// Children made by clone(CLONE_VM), on a static stack: one that its parent waits for, and one that its parent leaves behind, which must
// end: by itself, or stopped (86) since nobody serves its memory.
#include "check.h"
#include <sched.h>
#include <sys/prctl.h>

static char stack[4 * MIB];
static char *data;
static const size_t bytes = 96 * MIB;
static int ends[2];

static int check_all(void *pause_us) {
    usleep((long)pause_us);
    verify(data, bytes, 1, "in a child that shares memory");
    must(write(ends[1], "k", 1) == 1);
    return 7;
}

int main(void) {
    data = map(bytes);
    fill(data, bytes, 1);
    must(pipe(ends) == 0);
    int status, flags = CLONE_VM | CLONE_FILES | SIGCHLD;
    pid_t child = clone(check_all, stack + sizeof stack - 64, flags, (void *)0);
    must(child > 0 && waitpid(child, &status, 0) == child);
    must(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    char got;
    must(read(ends[0], &got, 1) == 1 && got == 'k');
    // Without CLONE_FILES: our end of the pipe is our own.
    must(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0);
    pid_t middle = fork();
    must(middle >= 0);
    if (middle == 0) {
        fill(data, bytes, 1);
        must(clone(check_all, stack + sizeof stack - 64, CLONE_VM | SIGCHLD, (void *)1000000) > 0);
        exit(0);
    }
    must(waitpid(middle, &status, 0) == middle && status == 0);
    pid_t left = waitpid(-1, &status, 0);
    must(left > 0 && WIFEXITED(status));
    must(WEXITSTATUS(status) == 7 || WEXITSTATUS(status) == 86);
    puts("OK");
    return 0;
}
