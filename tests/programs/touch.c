// touch BYTES [SWEEPS]: fills a block and sweeps it; the plainest program there is, for budgets and for ends of every kind.
// touch BYTES ready: says "ready" when the block is full and waits to be ended.
#include "check.h"

int main(int argc, char **argv) {
    size_t bytes = size_arg(argc, argv, 1, 128 * MIB);
    char *at = malloc(bytes);
    must(at != NULL);
    fill(at, bytes, bytes);
    if (argc > 2 && !strcmp(argv[2], "ready")) {
        printf("ready\n");
        fflush(stdout);
        for (;;) verify(at, bytes, bytes, "while waiting");
    }
    if (argc > 2 && !strcmp(argv[2], "abort")) abort();
    if (argc > 2 && !strcmp(argv[2], "kill")) kill(getpid(), SIGKILL);
    if (argc > 2 && !strcmp(argv[2], "segv")) *(volatile char *)(uintptr_t)(argc - 3 + 16) = 1;
    if (argc > 2 && !strcmp(argv[2], "quick")) _exit(5);
    int sweeps = argc > 2 ? atoi(argv[2]) : 2;
    for (int i = 0; i < sweeps; i++) verify(at, bytes, bytes, "sweep");
    if (argc > 2 && !strcmp(argv[2], "exit3")) exit(3);
    printf("OK %zu\n", bytes);
    return 0;
}
