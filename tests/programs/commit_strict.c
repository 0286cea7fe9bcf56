// With --commit=strict everything is promised at allocation: what cannot be held is refused at once, and what was had can
// all be touched. arguments: bytes that fit, bytes that do not, and what must be: fork or nofork
#include "check.h"

int main(int argc, char **argv) {
    size_t fits = size_arg(argc, argv, 1, 64 * MIB), toomuch = size_arg(argc, argv, 2, 1024 * MIB);
    int can_fork = argc > 3 && !strcmp(argv[3], "fork");
    errno = 0;
    must(malloc(toomuch) == NULL && errno == ENOMEM);
    must(mmap(NULL, toomuch, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) == MAP_FAILED && errno == ENOMEM);
    // Without access nothing is promised.
    char *bare = mmap(NULL, toomuch, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(bare != MAP_FAILED);
    must(mprotect(bare, toomuch, PROT_READ | PROT_WRITE) == -1 && errno == ENOMEM);
    char *at = malloc(fits);
    must(at != NULL);
    fill(at, fits, 3);
    verify(at, fits, 3, "strict");
    // Read-only memory still holds data, and counts.
    char *more = mmap(NULL, 4 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(more != MAP_FAILED);
    fill(more, 4 * MIB, 4);
    must(mprotect(more, 4 * MIB, PROT_READ) == 0);
    errno = 0;
    pid_t child = fork();
    if (!can_fork) must(child == -1 && errno == ENOMEM);
    else {
        must(child >= 0);
        if (child == 0) {
            verify(at, fits, 3, "child");
            fill(at, fits, 5);
            verify(at, fits, 5, "child rewrote");
            _exit(0);
        }
        fill(at, fits, 6);
        int status;
        must(waitpid(child, &status, 0) == child && status == 0);
        verify(at, fits, 6, "parent rewrote");
    }
    verify(more, 4 * MIB, 4, "read-only");
    free(at);
    must((at = malloc(fits)) != NULL);
    fill(at, fits, 8);
    verify(at, fits, 8, "again");
    printf("OK\n");
    return 0;
}
