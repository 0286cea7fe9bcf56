// flags: -pthread
// O_DIRECT preadv and pwritev of paged buffers (the kernel pins their pages meanwhile) while other threads cause eviction.
#include "check.h"
#include <fcntl.h>
#include <sys/uio.h>

enum { THREADS = 2 };
static size_t part = 48 * MIB;

static void *work(void *arg) {
    long id = (long)arg;
    char path[32];
    snprintf(path, sizeof path, "direct%ld.bin", id);
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_DIRECT, 0600);
    if (file < 0) file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600); // a file system without O_DIRECT: still the same test
    must(file >= 0);
    void *at;
    must(posix_memalign(&at, PAGE, part) == 0);
    char *buffer = at;
    uint64_t state = id;
    for (int round = 0; round < 4; round++) {
        fill(buffer, part, id * 100 + round);
        for (size_t done = 0; done < part;) { // pieces of up to 8 MiB in three ragged parts
            size_t left = part - done, piece = left < 8 * MIB ? left : 8 * MIB;
            size_t a = (1 + next_random(&state) % 100) * PAGE, b = (1 + next_random(&state) % 700) * PAGE;
            if (a + b >= piece) a = b = 0;
            struct iovec parts[3] = {{buffer + done, a}, {buffer + done + a, b}, {buffer + done + a + b, piece - a - b}};
            must(pwritev(file, parts, 3, done) == (ssize_t)piece);
            done += piece;
        }
        if (round % 2) memset(buffer, 0, part);
        else must(madvise(buffer, part, MADV_DONTNEED) == 0);
        for (size_t done = 0; done < part;) {
            size_t left = part - done, piece = left < 16 * MIB ? left : 16 * MIB, half = piece / 2 / PAGE * PAGE;
            struct iovec parts[2] = {{buffer + done, half}, {buffer + done + half, piece - half}};
            ssize_t got = preadv(file, parts, 2, done);
            if (got != (ssize_t)piece) { printf("preadv gave %zd of %zu (%s)\n", got, piece, strerror(errno)); _exit(1); }
            done += piece;
        }
        verify(buffer, part, id * 100 + round, "read back by O_DIRECT");
        // Single pages at random places, written while their neighbours are used.
        for (int n = 0; n < 200; n++) {
            size_t p = next_random(&state) % (part / PAGE) * PAGE;
            must(pread(file, buffer + p, PAGE, p) == (ssize_t)PAGE);
            verify_from(buffer + p, PAGE, id * 100 + round, p / 8, "page read by O_DIRECT");
        }
    }
    verify(buffer, part, id * 100 + 3, "buffer at the end");
    close(file);
    unlink(path);
    free(buffer);
    return NULL;
}

int main(int argc, char **argv) {
    part = size_arg(argc, argv, 1, part);
    pthread_t pressure = start_pressure(128 * MIB), handles[THREADS];
    for (long i = 0; i < THREADS; i++) must(pthread_create(&handles[i], NULL, work, (void *)(i + 1)) == 0);
    for (int i = 0; i < THREADS; i++) pthread_join(handles[i], NULL);
    end_pressure(pressure);
    printf("OK\n");
    return 0;
}
