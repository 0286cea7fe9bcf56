// Every advice of madvise(2) that is not a discard, and MAP_POPULATE: the content stays, nothing hangs, also where the kernel itself
// touches the pages on the way (MADV_POPULATE_*), on far more memory than near.
#include "check.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

int main(void) {
    size_t bytes = 96 * MIB;
    char *at = map(bytes);
    // Populated before it was touched: zeros, as before.
    must(madvise(at, bytes, MADV_POPULATE_READ) == 0 || errno == EINVAL);
    verify_zero(at, bytes, "populated for reading");
    must(madvise(at, bytes, MADV_POPULATE_WRITE) == 0 || errno == EINVAL);
    verify_zero(at, bytes, "populated for writing");
    fill(at, bytes, 1);
    push_out();
    // By libc and, for some, past it.
    static const int advices[] = {MADV_NORMAL, MADV_RANDOM, MADV_SEQUENTIAL, MADV_WILLNEED, MADV_HUGEPAGE, MADV_NOHUGEPAGE, MADV_COLLAPSE,
                                  MADV_DONTDUMP, MADV_DODUMP, MADV_MERGEABLE, MADV_UNMERGEABLE, MADV_COLD, MADV_PAGEOUT,
                                  MADV_POPULATE_READ, MADV_POPULATE_WRITE, MADV_DOFORK, MADV_KEEPONFORK};
    for (size_t i = 0; i < sizeof advices / sizeof *advices; i++) {
        int raw = i % 2;
        size_t from = i * PAGE * 3, part = bytes - from - i * PAGE;
        int result = raw ? (int)syscall(SYS_madvise, at + from, part, advices[i]) : madvise(at + from, part, advices[i]);
        // Some may be unknown to the kernel, or have nothing to work on; none may change anything.
        must(result == 0 || errno == EINVAL || errno == EBADF || errno == EAGAIN || errno == ENOMEM || errno == EBUSY);
        for (size_t p = i * 64 * PAGE; p < bytes; p += 8 * MIB) verify_from(at + p, PAGE, 1, p / 8, "after an advice");
    }
    verify(at, bytes, 1, "after all advice");
    must(madvise(at, bytes, 12345) == -1 && errno == EINVAL);
    must(madvise(at + 1, PAGE, MADV_DONTNEED) == -1 && errno == EINVAL);
    // What a child is to find: zeros in one part, another not at all.
    must(madvise(at + 16 * MIB, 8 * MIB, MADV_WIPEONFORK) == 0);
    must(madvise(at + 48 * MIB, 8 * MIB, MADV_DONTFORK) == 0);
    pid_t child = fork();
    must(child >= 0);
    if (child == 0) {
        verify(at, 16 * MIB, 1, "part of the child");
        verify_zero(at + 16 * MIB, 8 * MIB, "part wiped on fork");
        verify_from(at + 24 * MIB, 24 * MIB, 1, 24 * MIB / 8, "second part of the child");
        verify_from(at + 56 * MIB, bytes - 56 * MIB, 1, 56 * MIB / 8, "last part of the child");
        int ends[2]; // not there, or (as nearfar has it, which keeps its arena whole) there with the right content
        must(pipe(ends) == 0);
        if (write(ends[1], at + 50 * MIB, 1) == 1) verify_from(at + 48 * MIB, 8 * MIB, 1, 48 * MIB / 8, "part not for the child");
        else must(errno == EFAULT);
        _exit(0);
    }
    int status;
    must(waitpid(child, &status, 0) == child);
    must(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    verify(at, bytes, 1, "parent after the fork");
    // MAP_POPULATE of more than near, twice.
    for (int round = 0; round < 2; round++) {
        char *populated = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        must(populated != MAP_FAILED);
        verify_zero(populated, bytes, "MAP_POPULATE");
        fill(populated, bytes, 2);
        verify(populated, bytes, 2, "populated mapping");
        must(munmap(populated, bytes) == 0);
    }
    printf("OK\n");
    return 0;
}
