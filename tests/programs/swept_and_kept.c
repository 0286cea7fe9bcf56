// flags: -O1 -g -fno-inline
// Goes through a large array again and again until it is ended, and at each page of it through one page of a small one, which a pager
// therefore keeps near.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096 };

static char *make_swept(size_t bytes) {
    char *array = malloc(bytes);
    memset(array, 1, bytes);
    return array;
}

static char *make_kept(size_t bytes) {
    char *array = malloc(bytes);
    memset(array, 2, bytes);
    return array;
}

int main(void) {
    size_t swept_bytes = 160 << 20, kept_bytes = 4 << 20;
    char *swept = make_swept(swept_bytes), *kept = make_kept(kept_bytes);
    volatile uint64_t sum = 0;
    for (;;) {
        for (size_t at = 0; at < swept_bytes; at += PAGE) {
            swept[at]++;
            sum += kept[at % kept_bytes];
        }
    }
}
