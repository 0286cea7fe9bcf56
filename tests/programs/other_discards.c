// Content given up by process_madvise on oneself, and by guards that come and go. Where the kernel has neither: by madvise.
#include "check.h"
#include <sys/uio.h>
#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#define MADV_GUARD_REMOVE 103
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
// Not in the headers of older C libraries. The library's own one is called where there is one.
extern ssize_t process_madvise(int, const struct iovec *, size_t, int, unsigned) __attribute__((weak));

int main(void) {
    size_t bytes = 64 * MIB, half = bytes / 2;
    char *at = map(bytes);
    int self = syscall(SYS_pidfd_open, getpid(), 0);
    fill(at, bytes, 1);
    push_out();
    struct iovec two[2] = {{at, half / 2}, {at + half / 2, half / 2}};
    if (!process_madvise || self < 0 || process_madvise(self, two, 2, MADV_DONTNEED, 0) != (ssize_t)half)
        must(madvise(at, half, MADV_DONTNEED) == 0);
    verify_zero(at, half, "after process_madvise");
    verify_from(at + half, half, 1, half / 8, "the rest");
    push_out();
    if (madvise(at + half, half, MADV_GUARD_INSTALL) == 0) must(madvise(at + half, half, MADV_GUARD_REMOVE) == 0);
    else must(madvise(at + half, half, MADV_DONTNEED) == 0);
    verify_zero(at, bytes, "after the guard");
    fill(at, bytes, 2);
    verify(at, bytes, 2, "used again");
    puts("OK");
    return 0;
}
