// Grandchildren: each generation forks the next and exits at once; the last, orphaned, still sees right data. Then deep and side by side.
#include "check.h"
#include <sys/prctl.h>

static char *data;
static size_t bytes = 128 * MIB;

int main(void) {
    data = malloc(bytes);
    fill(data, bytes, 1);
    int ends[2];
    must(pipe(ends) == 0);
    fflush(stdout);
    pid_t child = fork();
    must(child >= 0);
    if (child == 0) {
        fill(data, bytes / 2, 2); // the middle one changes half, then forks and exits
        if (fork() == 0) {
            usleep(300000); // the middle one is gone by now
            verify(data, bytes / 2, 2, "half written by the middle process, in the grandchild");
            verify_from(data + bytes / 2, bytes - bytes / 2, 1, bytes / 16, "half of the first process, in the grandchild");
            fill(data, bytes, 3);
            verify(data, bytes, 3, "grandchild's own content");
            must(write(ends[1], "k", 1) == 1);
        }
        _exit(0);
    }
    int status;
    must(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    fill(data, bytes / 4, 9); // writes while the grandchild reads
    close(ends[1]);
    char answer = 0;
    must(read(ends[0], &answer, 1) == 1 && answer == 'k');
    verify(data, bytes / 4, 9, "first process, what it wrote");
    verify_from(data + bytes / 4, bytes - bytes / 4, 1, bytes / 32, "first process, the rest");
    // Six generations, each changes a slice and waits for the next.
    int depth = 0;
    child = 1;
    while (depth < 6) {
        child = fork();
        must(child >= 0);
        if (child != 0) break;
        depth++;
        fill_from(data + depth * 8 * MIB, 8 * MIB, 20 + depth, 0);
    }
    for (int i = 1; i <= 6; i++) {
        if (i <= depth) verify(data + i * 8 * MIB, 8 * MIB, 20 + i, "slice of an older generation");
        else verify_from(data + i * 8 * MIB, 8 * MIB, i * 8 * MIB < bytes / 4 ? 9 : 1, i * MIB, "slice of a younger generation");
    }
    verify(data, 8 * MIB, 9, "slice of all");
    if (child != 0) must(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    if (depth > 0) _exit(0);
    printf("OK\n");
    return 0;
}
