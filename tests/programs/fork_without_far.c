// A process that may write no file larger than a page forks (a shell with "ulimit -f"): the child has all data, and so has its own child.
#include "check.h"
#include <sys/resource.h>
static char *data;
static size_t bytes = 96 * MIB;
static void child_of(int depth) {
    pid_t child = fork();
    must(child >= 0);
    if (child == 0) {
        verify(data, bytes, 1, "data in a child");
        fill(data, bytes, 2);
        char *more = mmap(NULL, 24 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        must(more != MAP_FAILED);
        verify_zero(more, 24 * MIB, "fresh memory in a child");
        fill(more, 24 * MIB, 3);
        must(madvise(more, 24 * MIB, MADV_DONTNEED) == 0);
        verify_zero(more, 24 * MIB, "discarded memory in a child");
        must(munmap(more, 24 * MIB) == 0);
        fill(data, bytes, 1);
        if (depth) child_of(depth - 1);
        verify(data, bytes, 1, "data of a child");
        _exit(0);
    }
    int status;
    must(waitpid(child, &status, 0) == child && status == 0);
}
int main(void) {
    data = malloc(bytes);
    fill(data, bytes, 1);
    struct rlimit small = {PAGE, PAGE};
    must(setrlimit(RLIMIT_FSIZE, &small) == 0);
    child_of(1);
    verify(data, bytes, 1, "data of the parent");
    printf("OK\n");
    return 0;
}
