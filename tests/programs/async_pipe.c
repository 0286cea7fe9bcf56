// An asynchronous read of a pipe that the same thread fills afterwards; or the answer that there is no such thing.
#include "check.h"
#include <aio.h>

int main(void) {
    char *at = map(96 * MIB);
    int fds[2];
    fill(at, 96 * MIB, 1);
    must(pipe(fds) == 0);
    struct aiocb block = {.aio_fildes = fds[0], .aio_buf = at, .aio_nbytes = 5};
    const struct aiocb *list[] = {&block};
    if (aio_read(&block) == 0) {
        must(write(fds[1], "hello", 5) == 5 && aio_suspend(list, 1, NULL) == 0);
        must(aio_error(&block) == 0 && aio_return(&block) == 5 && memcmp(at, "hello", 5) == 0);
    } else
        must(errno == ENOSYS);
    verify_from(at + PAGE, 96 * MIB - PAGE, 1, PAGE / 8, "the rest");
    puts("OK");
    return 0;
}
