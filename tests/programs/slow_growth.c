// slow_growth BYTES: touches new memory more slowly than any disk takes it, then reads all of it twice.
#include "check.h"
int main(int argc, char **argv) {
    size_t bytes = size_arg(argc, argv, 1, 192 * MIB), step = 2 * MIB;
    char *at = malloc(bytes);
    must(at != NULL);
    for (size_t done = 0; done < bytes; done += step) {
        fill_from(at + done, step, 1, done / 8);
        usleep(30000);
    }
    for (int sweep = 0; sweep < 2; sweep++) verify(at, bytes, 1, "sweep");
    printf("OK %zu\n", bytes);
    return 0;
}
