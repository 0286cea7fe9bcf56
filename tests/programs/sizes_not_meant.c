// Calls with sizes that nobody means, in a forked child with little near: the kernel refuses them, and nobody waits for ever.
#include "check.h"
#include <limits.h>
#include <sys/epoll.h>

int main(void) {
    char *at = map(96 * MIB);
    fill(at, 96 * MIB, 1);
    pid_t child = fork();
    must(child >= 0);
    if (child == 0) {
        int epoll = epoll_create1(0);
        must(epoll_wait(epoll, (void *)at, -1, 10) == -1 && errno == EINVAL);
        must(epoll_wait(epoll, (void *)at, INT_MAX, 10) == -1 && errno == EINVAL);
        must(syscall(SYS_mbind, at, PAGE, 0, at + PAGE, ~0ul, 0) == -1);
        must(read(epoll, at, 90 * MIB) == -1);
        verify(at, 96 * MIB, 1, "in the child");
        _exit(0);
    }
    int status;
    must(waitpid(child, &status, 0) == child && status == 0);
    verify(at, 96 * MIB, 1, "in the parent");
    puts("OK");
    return 0;
}
