// A program closes every descriptor but the standard ones, as daemons do, in each of the usual ways, and goes on with its data.
#include "check.h"
#include <fcntl.h>
#include <sys/resource.h>

static char *data;
static size_t bytes = 128 * MIB;

static void go_on(const char *what) {
    push_out_with(96 * MIB);
    verify(data, bytes, 1, what);
    // New descriptors work, and are the lowest free ones as always.
    int fd = open("/dev/null", O_RDWR), other = dup(fd);
    must(fd >= 0 && other >= 0 && write(other, data, MIB) == MIB);
    close(fd), close(other);
}

int main(void) {
    data = malloc(bytes);
    fill(data, bytes, 1);
    go_on("data before");
    struct rlimit limit;
    must(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    int highest = limit.rlim_cur > 70000 ? 70000 : (int)limit.rlim_cur;
    for (int fd = 3; fd < highest; fd++) close(fd);
    go_on("data after close");
    close_range(3, ~0u, 0);
    go_on("data after close_range");
    int fd = open("/dev/null", O_RDONLY);
    closefrom(3);
    must(fcntl(fd, F_GETFD) == -1 && errno == EBADF);
    go_on("data after closefrom");
    fd = open("/dev/null", O_RDWR);
    for (int to = 10; to < 300; to++) must(dup2(fd, to) == to || errno == EBADF || errno == EBUSY);
    for (int to = 10; to < 300; to++) close(to);
    go_on("data after dup2");
    int status;
    fflush(stdout);
    pid_t child = fork();
    must(child >= 0);
    if (child == 0) {
        for (fd = 3; fd < highest; fd++) close(fd);
        go_on("data in a child");
        _exit(0);
    }
    must(waitpid(child, &status, 0) == child && status == 0);
    go_on("data at the end");
    printf("OK\n");
    return 0;
}
