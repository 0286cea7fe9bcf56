// A server that snapshots by fork: the child reads everything while the parent writes everything, and the other way round.
#include "check.h"

static char *data;
static size_t bytes = 160 * MIB;

static void must_end_well(pid_t child) {
    int status;
    must(waitpid(child, &status, 0) == child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) { printf("child ended with status %x\n", status); fflush(stdout); _exit(1); }
}

int main(int argc, char **argv) {
    bytes = size_arg(argc, argv, 1, bytes);
    data = malloc(bytes);
    fill(data, bytes, 1);
    char *untouched = map(8 * MIB), *small = malloc(3000);
    fill(small, 3000 / 8 * 8, 7);
    fflush(stdout);
    // 1. The child reads all while the parent overwrites all.
    pid_t child = fork();
    must(child >= 0);
    if (child == 0) {
        verify(data, bytes, 1, "snapshot in the child");
        verify(data, bytes, 1, "snapshot in the child, again");
        verify_zero(untouched, 8 * MIB, "untouched memory in the child");
        verify(small, 3000 / 8 * 8, 7, "small block in the child");
        _exit(0);
    }
    fill(data, bytes, 2);
    fill(untouched, 8 * MIB, 3);
    verify(data, bytes, 2, "parent while the child reads");
    must_end_well(child);
    verify(data, bytes, 2, "parent after the child");
    // 2. The child overwrites all while the parent reads all; the child frees and allocates.
    child = fork();
    must(child >= 0);
    if (child == 0) {
        fill(data, bytes, 4);
        fill(small, 3000 / 8 * 8, 8);
        char *more = malloc(64 * MIB);
        fill(more, 64 * MIB, 5);
        verify(data, bytes, 4, "child after writing");
        verify(more, 64 * MIB, 5, "new memory of the child");
        free(more);
        verify(untouched, 8 * MIB, 3, "other memory in the child");
        free(data);
        _exit(0);
    }
    for (int i = 0; i < 2; i++) verify(data, bytes, 2, "parent while the child writes");
    must_end_well(child);
    verify(data, bytes, 2, "parent after the child wrote");
    verify(small, 3000 / 8 * 8, 7, "small block of the parent");
    // 3. Both write parts; the parent discards and unmaps while the child reads.
    child = fork();
    must(child >= 0);
    if (child == 0) {
        for (size_t p = 0; p < bytes; p += 5 * PAGE) *(uint64_t *)(data + p) = 99;
        for (size_t p = 0; p < bytes; p += 5 * PAGE) {
            must(*(uint64_t *)(data + p) == 99);
            verify_from(data + p + 8, PAGE - 8, 2, p / 8 + 1, "rest of a page written by the child");
        }
        verify(untouched, 8 * MIB, 3, "memory that the parent unmaps");
        _exit(0);
    }
    must(munmap(untouched, 8 * MIB) == 0);
    char *aligned = (char *)(((uintptr_t)data + PAGE - 1) / PAGE * PAGE);
    must(madvise(aligned + 32 * MIB, 32 * MIB, MADV_DONTNEED) == 0);
    verify_zero(aligned + 32 * MIB, 32 * MIB, "discarded by the parent");
    must_end_well(child);
    verify(data, 32 * MIB, 2, "first part of the parent");
    free(data);
    printf("OK\n");
    return 0;
}
