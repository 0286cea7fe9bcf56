// Takes memory in steps of 4 MiB until it has enough or there is no more, and says how much it got. Then it waits for a line or the
// end of its input, and verifies what it has.
// arguments: most, "fork" (a child holds the memory, and its parent ends at once)
#include "check.h"

int main(int argc, char **argv) {
    size_t most = size_arg(argc, argv, 1, 1024 * MIB), step = 4 * MIB, count = 0;
    static char *piece[4096];
    while (count < 4096 && count * step < most && (piece[count] = malloc(step)) != NULL) {
        fill(piece[count], step, count);
        count++;
    }
    must(count * step >= most || errno == ENOMEM);
    if (argc > 2 && strcmp(argv[2], "fork") == 0) {
        pid_t child = fork();
        must(child >= 0);
        if (child > 0) _exit(0);
    }
    printf("got %zu\n", count * step / MIB);
    fflush(stdout);
    (void)getchar();
    for (size_t i = 0; i < count; i++) verify(piece[i], step, i, "held");
    printf("OK\n");
    return 0;
}
