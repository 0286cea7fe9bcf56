// Walks through eight columns of a table side by side, in steps of some pages, each time from another start, as a permutation of records
// does. The columns together, of the size given (MiB), take nearly all of near; what else there is is not used meanwhile. Whatever is
// kept free for streams, or brought ahead in vain, is near that this program lacks. The test looks at how much was read.
#include "check.h"

enum { COLUMNS = 8, STEP = 75288, WALKS = 600 };

int main(int count, char **given) {
    must(count == 2);
    size_t bytes = strtoul(given[1], 0, 0) * MIB, column = bytes / COLUMNS;
    char *rest = malloc(40 * MIB), *at = malloc(bytes);
    must(rest && at);
    fill(rest, 40 * MIB, 2);
    fill(at, bytes, 1);
    for (size_t walk = 0; walk < WALKS; walk++)
        for (size_t place = mix(walk) % STEP; place + 8 <= column; place += STEP)
            for (size_t i = 0; i < COLUMNS; i++) {
                size_t offset = i * column + place / 8 * 8;
                verify_from(at + offset, 8, 1, offset / 8, "a record");
            }
    verify(rest, 40 * MIB, 2, "the rest");
    printf("OK\n");
    return 0;
}
