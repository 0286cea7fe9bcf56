// Is given more than there is, which programs that touch little of it rely on, and touches it all.
#include "check.h"

int main(int argc, char **argv) {
    size_t bytes = size_arg(argc, argv, 1, 4096 * MIB);
    char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    must(at != MAP_FAILED);
    printf("reserved\n");
    fflush(stdout);
    fill(at, bytes, 7);
    printf("touched all\n");
    return 0;
}
