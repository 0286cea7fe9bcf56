// Forks while no descriptor is free, below the hard limit and at it.
#include "check.h"
#include <fcntl.h>
#include <sys/resource.h>

static void forks(char *data, uint64_t salt) {
    for (int round = 0; round < 5; round++) {
        pid_t child = fork();
        must(child >= 0);
        if (child == 0) {
            verify(data, 100 * MIB, salt, "in a child");
            fill(data, 20 * MIB, salt + 7);
            verify(data, 20 * MIB, salt + 7, "changed in a child");
            pid_t next = fork();
            must(next >= 0);
            if (next == 0) {
                verify(data, 20 * MIB, salt + 7, "in a grandchild");
                _exit(0);
            }
            int status;
            must(waitpid(next, &status, 0) == next && status == 0);
            _exit(0);
        }
        int status;
        must(waitpid(child, &status, 0) == child);
        if (status != 0) printf("child: status %x\n", status);
        must(status == 0);
        verify(data, 100 * MIB, salt, "in the parent");
    }
}

int main(void) {
    char *data = malloc(100 * MIB);
    fill(data, 100 * MIB, 3);
    struct rlimit limit;
    must(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    limit.rlim_cur = 1024 < limit.rlim_max ? 1024 : limit.rlim_max;
    must(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    while (open("/dev/null", O_RDONLY) >= 0) {}
    must(errno == EMFILE);
    forks(data, 3);
    limit.rlim_max = limit.rlim_cur;
    must(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    while (open("/dev/null", O_RDONLY) >= 0) {}
    forks(data, 3);
    puts("OK");
    return 0;
}
