// Pages given to a pipe without a copy: what is read there later is what they held.
#include "check.h"
#include <fcntl.h>
#include <sys/uio.h>

int main(void) {
    size_t bytes = 16 * PAGE;
    char *at = map(64 * MIB), *got = malloc(bytes);
    int fds[2];
    fill(at, 64 * MIB, 1);
    must(pipe(fds) == 0 && fcntl(fds[1], F_SETPIPE_SZ, MIB) >= (int)bytes);
    for (int flags = 0; flags <= SPLICE_F_NONBLOCK; flags += SPLICE_F_NONBLOCK) {
        verify(at, 64 * MIB, 1, "before");
        size_t sent = 0;
        while (sent < bytes) {
            struct iovec two[2] = {{at + sent, 0}, {at + sent, bytes - sent}};
            ssize_t n = vmsplice(fds[1], two, 2, flags);
            must(n > 0);
            sent += n;
        }
        push_out();
        for (size_t done = 0; done < bytes;) {
            ssize_t n = read(fds[0], got + done, bytes - done);
            must(n > 0);
            done += n;
        }
        verify(got, bytes, 1, "through the pipe");
    }
    struct iovec none = {at, PAGE};
    must(vmsplice(fds[0], &none, 1, SPLICE_F_NONBLOCK) == -1 && errno == EAGAIN);
    verify(at, 64 * MIB, 1, "at the end");
    puts("OK");
    return 0;
}
