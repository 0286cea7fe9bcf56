// Data is written once and then only read, sweep after sweep: clean pages must not be written twice (the test looks at bytes_out).
#include "check.h"

int main(int argc, char **argv) {
    size_t bytes = size_arg(argc, argv, 1, 160 * MIB);
    int sweeps = argc > 2 ? atoi(argv[2]) : 6;
    char *at = malloc(bytes);
    fill(at, bytes, 1);
    for (int i = 0; i < sweeps; i++) verify(at, bytes, 1, "read-only sweep");
    printf("OK\n");
    return 0;
}
