// mprotect over a hole fails, and has been done up to it: what was protected stays right.
#include "check.h"

int main(void) {
    char *at = map(96 * MIB);
    fill(at, 96 * MIB, 1);
    for (int round = 0; round < 8; round++) {
        char *some = mmap(NULL, 4 * MIB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        must(munmap(some + 2 * MIB, MIB) == 0);
        must(mprotect(some, 4 * MIB, PROT_READ | PROT_WRITE) == -1 && errno == ENOMEM);
        fill(some, 2 * MIB, 10 + round);
        verify(at, 96 * MIB, 1, "the rest");
        verify(some, 2 * MIB, 10 + round, "up to the hole");
        must(mprotect(some, 2 * MIB, PROT_READ) == 0);
        verify(some, 2 * MIB, 10 + round, "read only");
    }
    puts("OK");
    return 0;
}
