// Clones that share the descriptors and not the memory, and the memory and not the descriptors.
#include "check.h"
#include <sched.h>

static char *data, stack[2][1 << 20];

static int child(void *salt) {
    verify(data, 96 * MIB, (uintptr_t)salt, "in a clone");
    char *more = malloc(48 * MIB);
    fill(more, 48 * MIB, 9);
    verify(more, 48 * MIB, 9, "memory of a clone");
    _exit(0);
}

static int filled(void *unused) {
    (void)unused;
    fill(data, 96 * MIB, 2);
    _exit(0);
}

static void ends_well(pid_t pid) {
    int status;
    must(pid > 0 && waitpid(pid, &status, 0) == pid);
    if (status != 0) printf("clone: status %x\n", status);
    must(status == 0);
}

int main(int argc, char **argv) {
    (void)argv;
    data = malloc(96 * MIB);
    // With an argument paging begins in the clone, if it is let.
    size_t first = argc > 1 ? PAGE : 96 * MIB;
    fill(data, first, 1);
    if (argc == 1) {
        ends_well(clone(child, stack[0] + sizeof stack[0], CLONE_FILES | SIGCHLD, (void *)1));
        verify(data, 96 * MIB, 1, "after a clone that shares descriptors");
        ends_well(clone(child, stack[1] + sizeof stack[1], CLONE_VM | SIGCHLD, (void *)1));
    } else {
        fill(data, 24 * MIB, 1);
        ends_well(clone(filled, stack[1] + sizeof stack[1], CLONE_VM | SIGCHLD, NULL));
        verify(data, 96 * MIB, 2, "filled by a clone");
    }
    fill(data, 96 * MIB, 3);
    verify(data, 96 * MIB, 3, "after the clones");
    puts("OK");
    return 0;
}
