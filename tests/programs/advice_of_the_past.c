// MADV_DONTFORK and MADV_WIPEONFORK end with the memory that they were about.
#include "check.h"

int main(void) {
    char *at = map(96 * MIB);
    fill(at, 96 * MIB, 1);
    for (int advice = 0; advice < 2; advice++) {
        char *some = map(8 * MIB);
        must(madvise(some, 8 * MIB, advice ? MADV_WIPEONFORK : MADV_DONTFORK) == 0);
        must(munmap(some, 8 * MIB) == 0);
        char *again = mmap(some, 8 * MIB, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        must(again == some);
        fill(again, 8 * MIB, 2);
        pid_t child = fork();
        must(child >= 0);
        if (child == 0) {
            verify(again, 8 * MIB, 2, "in the child");
            verify(at, 96 * MIB, 1, "in the child, the rest");
            _exit(0);
        }
        int status;
        must(waitpid(child, &status, 0) == child && status == 0);
        must(munmap(again, 8 * MIB) == 0);
    }
    puts("OK");
    return 0;
}
