// Memory that is written with zeros, or set and zeroed again, needs no far space: the test looks at bytes_out.
#include "check.h"

int main(int argc, char **argv) {
    size_t bytes = size_arg(argc, argv, 1, 256 * MIB);
    char *at = malloc(bytes);
    memset(at, 0, bytes);
    verify_zero(at, bytes, "zeroed block");
    verify_zero(at, bytes, "zeroed block, again");
    char *fresh = calloc(1, bytes);
    verify_zero(fresh, bytes, "calloc");
    for (size_t p = 0; p < bytes; p += 64 * PAGE) fresh[p] = 1; // one page of 64
    verify_zero(at, bytes, "zeroed block, at the end");
    for (size_t p = 0; p < bytes; p += PAGE) must(fresh[p] == (p % (64 * PAGE) == 0));
    free(at);
    free(fresh);
    printf("OK\n");
    return 0;
}
