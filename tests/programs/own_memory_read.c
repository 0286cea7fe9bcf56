// process_vm_readv and process_vm_writev of the calling process itself: both sides are paged.
#include "check.h"
#include <sys/uio.h>

int main(void) {
    size_t bytes = 96 * MIB, piece = MIB;
    char *at = map(bytes), *copy = map(bytes);
    fill(at, bytes, 1);
    for (int writing = 0; writing < 2; writing++) {
        memset(copy, 0xff, bytes);
        for (size_t done = 0; done < bytes;) {
            struct iovec from = {at + done, piece}, to = {copy + done, piece};
            ssize_t n = writing ? process_vm_writev(getpid(), &from, 1, &to, 1, 0) : process_vm_readv(getpid(), &to, 1, &from, 1, 0);
            must(n > 0);
            done += n;
        }
        verify(copy, bytes, 1, writing ? "written" : "read");
    }
    puts("OK");
    return 0;
}
