// far_full BYTES: touches more than the far directory can hold; must be ended with words, not by a signal nor with wrong data.
#include "check.h"
int main(int argc, char **argv) {
    size_t bytes = size_arg(argc, argv, 1, 256 * MIB);
    char *at = malloc(bytes);
    if (!at) { printf("no memory\n"); return 0; }
    fill(at, bytes, 1);
    verify(at, bytes, 1, "all of it");
    printf("OK\n");
    return 0;
}
