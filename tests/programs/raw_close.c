// Closes every descriptor but the standard ones by raw system calls, past every hook, while most of its data is in far: it may then
// be stopped, but must not go on with wrong bytes.
#include "check.h"

int main(int argc, char **argv) {
    char *data = map(96 * MIB);
    fill(data, 96 * MIB, 1);
    push_out();
    puts("closing");
    fflush(stdout);
    if (argc > 1 && strcmp(argv[1], "range") == 0) {
        if (syscall(SYS_close_range, 3u, ~0u, 0) != 0) return 77;
    } else {
        for (int fd = 3; fd < 1 << 20; fd++) syscall(SYS_close, fd);
    }
    verify(data, 96 * MIB, 1, "after closing everything");
    push_out();
    verify(data, 96 * MIB, 1, "and once more");
    return 0;
}
