// /proc/self/mem, read and written by the program itself: as debuggers do it, without waiting for pages. What is in far cannot be
// had this way (EIO), but nothing is ever wrong: no zeros are read, no write is lost that was said to be done.
#include "check.h"
#include <fcntl.h>

int main(void) {
    size_t bytes = 96 * MIB;
    char *data = map(bytes), *copy = malloc(MIB);
    fill(data, bytes, 1);
    push_out();
    int memory = open("/proc/self/mem", O_RDWR);
    must(memory >= 0);
    size_t read = 0, written = 0;
    char *put = calloc(bytes / PAGE, 1);
    for (size_t at = 0; at < bytes; at += PAGE) {
        ssize_t got = pread(memory, copy, PAGE, (off_t)(data + at));
        must(got == (ssize_t)PAGE || (got < 0 && errno == EIO));
        if (got > 0) verify_from(copy, PAGE, 1, at / 8, "read through /proc/self/mem");
        read += got > 0;
    }
    // What was touched just now is in near, and can be had.
    *(volatile char *)data;
    must(pread(memory, copy, PAGE, (off_t)data) == (ssize_t)PAGE);
    for (size_t at = 0; at < bytes; at += PAGE) {
        fill_from(copy, PAGE, 2, at / 8);
        ssize_t done = pwrite(memory, copy, PAGE, (off_t)(data + at));
        must(done == (ssize_t)PAGE || (done < 0 && errno == EIO));
        put[at / PAGE] = done > 0;
        written += done > 0;
    }
    push_out();
    for (size_t at = 0; at < bytes; at += PAGE) verify_from(data + at, PAGE, put[at / PAGE] ? 2 : 1, at / 8, "after writing through /proc/self/mem");
    fprintf(stderr, "%zu pages read, %zu written, of %zu\n", read, written, bytes / PAGE);
    puts("OK");
}
