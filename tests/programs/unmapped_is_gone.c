// What mincore, msync, mprotect, madvise and mlock say of memory that was unmapped or never mapped: ENOMEM; and of what is mapped: 0.
#include "check.h"

static void must_be_gone(char *at) {
    unsigned char state;
    must(mincore(at, PAGE, &state) == -1 && errno == ENOMEM);
    must(msync(at, PAGE, MS_ASYNC) == -1 && errno == ENOMEM);
    must(mprotect(at, PAGE, PROT_READ) == -1 && errno == ENOMEM);
    must(madvise(at, PAGE, MADV_DONTNEED) == -1 && errno == ENOMEM);
    must(mlock(at, PAGE) == -1 && errno == ENOMEM);
    must(mremap(at, PAGE, 2 * PAGE, MREMAP_MAYMOVE) == MAP_FAILED && errno == EFAULT);
}

int main(void) {
    char *at = map(96 * MIB);
    fill(at, 96 * MIB, 1);
    must(munmap(at + 32 * MIB, 16 * MIB) == 0);
    must_be_gone(at + 40 * MIB);
    char *moved = mremap(at, 8 * MIB, 16 * MIB, MREMAP_MAYMOVE);
    must(moved != MAP_FAILED && moved != at);
    must_be_gone(at);
    unsigned char state[16];
    must(mincore(moved, 16 * PAGE, state) == 0 && msync(moved, 16 * PAGE, MS_ASYNC) == 0);
    must(munmap(at + 90 * MIB, MIB) == 0 && munmap(at + 90 * MIB, MIB) == 0); // twice: allowed
    must(munmap(at + 1, PAGE) == -1 && errno == EINVAL);
    must(mincore(at + 60 * MIB + 1, PAGE, state) == -1 && errno == EINVAL);
    must(mprotect(at + 50 * MIB, 50 * MIB, PROT_READ) == -1 && errno == ENOMEM); // a hole inside
    verify_from(at + 48 * MIB, 42 * MIB, 1, 48 * MIB / 8, "the rest");
    must(munmap(moved, 16 * MIB) == 0);
    must_be_gone(moved);
    printf("OK\n");
    return 0;
}
