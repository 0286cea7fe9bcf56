// clone(2) through the C library: without shared memory it is a fork and the child has right data; with it, a thread or a vfork.
#include "check.h"
#include <sched.h>

static char *data, *marks;
static size_t bytes = 96 * MIB;

static int reads_and_writes(void *arg) {
    verify(data, bytes, 1, "data in a cloned child");
    fill(data, bytes, 2);
    verify(data, bytes, 2, "data written by a cloned child");
    free(malloc(3 * MIB));
    return *(int *)arg;
}
static int shares(void *arg) {
    verify(data, MIB, 1, "data in a child that shares memory");
    marks[0]++;
    return *(int *)arg;
}

int main(void) {
    data = malloc(bytes), marks = calloc(1, 2 * MIB);
    fill(data, bytes, 1);
    size_t stack_bytes = MIB;
    char *stack = map(stack_bytes); // paged, for the children too
    int status, code = 9;
    for (int round = 0; round < 3; round++) {
        push_out_with(96 * MIB);
        pid_t child = clone(reads_and_writes, stack + stack_bytes, SIGCHLD, &code);
        must(child > 0 && waitpid(child, &status, 0) == child);
        must(WIFEXITED(status) && WEXITSTATUS(status) == 9);
        verify(data, bytes, 1, "data of the parent");
        child = clone(shares, stack + stack_bytes, CLONE_VM | CLONE_VFORK | SIGCHLD, &code);
        must(child > 0 && waitpid(child, &status, 0) == child);
        must(WIFEXITED(status) && WEXITSTATUS(status) == 9 && marks[0] == round + 1);
        child = _Fork();
        must(child >= 0);
        if (child == 0) _exit(reads_and_writes(&code));
        must(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 9);
    }
    must(clone(shares, NULL, SIGCHLD, &code) == -1 && errno == EINVAL);
    must(clone(shares, stack + stack_bytes, CLONE_THREAD | SIGCHLD, &code) == -1 && errno == EINVAL);
    verify(data, bytes, 1, "data of the parent at the end");
    printf("OK\n");
    return 0;
}
