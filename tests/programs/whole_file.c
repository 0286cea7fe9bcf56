// A big file read by one read(2) into a paged buffer, compared, written back by one write(2), and by stdio; compared by what it should be.
#include "check.h"
#include <fcntl.h>

static void compare_file(const char *path, size_t bytes, uint64_t salt) {
    int file = open(path, O_RDONLY);
    must(file >= 0);
    static uint64_t piece[65536 / 8];
    for (size_t at = 0; at < bytes; at += sizeof piece) {
        must(pread(file, piece, sizeof piece, at) == (ssize_t)sizeof piece);
        verify_from(piece, sizeof piece, salt, at / 8, path);
    }
    must(lseek(file, 0, SEEK_END) == (off_t)bytes);
    close(file);
}

int main(int argc, char **argv) {
    size_t bytes = size_arg(argc, argv, 1, 512 * MIB);
    int file = open("in.bin", O_RDWR | O_CREAT | O_TRUNC, 0600);
    must(file >= 0);
    static uint64_t piece[MIB / 8];
    for (size_t at = 0; at < bytes; at += MIB) {
        fill_from(piece, MIB, 1, at / 8);
        must(write(file, piece, MIB) == (ssize_t)MIB);
    }
    uint64_t *buffer = malloc(bytes + 64);
    must(buffer != NULL);
    must(lseek(file, 0, SEEK_SET) == 0);
    ssize_t got = read(file, buffer, bytes); // one call; Linux gives it all for a regular file below 2 GiB
    if (got != (ssize_t)bytes) { printf("read gave %zd of %zu (%s)\n", got, bytes, strerror(errno)); return 1; }
    verify(buffer, bytes, 1, "buffer filled by one read(2)");
    must(ftruncate(file, 0) == 0);
    int out = open("out.bin", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    must(out >= 0);
    ssize_t put = write(out, buffer, bytes);
    if (put != (ssize_t)bytes) { printf("write took %zd of %zu (%s)\n", put, bytes, strerror(errno)); return 1; }
    close(out);
    compare_file("out.bin", bytes, 1);
    verify(buffer, bytes, 1, "buffer after one write(2)");
    // Read over content that is in far already: the old content must be gone.
    fill(buffer, bytes, 2);
    out = open("out.bin", O_RDONLY);
    must(read(out, buffer, bytes) == (ssize_t)bytes);
    close(out);
    verify(buffer, bytes, 1, "buffer read over");
    // stdio, whose system calls are made inside the C library.
    FILE *stream = fopen("out.bin", "w");
    must(stream != NULL);
    must(fwrite(buffer, 1, bytes / 4, stream) == bytes / 4 && fclose(stream) == 0);
    memset(buffer, 0, bytes / 4);
    push_out();
    stream = fopen("out.bin", "r");
    must(fread(buffer, 1, bytes / 4, stream) == bytes / 4 && fclose(stream) == 0);
    verify(buffer, bytes / 4, 1, "buffer of fread");
    must(unlink("in.bin") == 0 && unlink("out.bin") == 0);
    printf("OK %zu\n", bytes);
    return 0;
}
