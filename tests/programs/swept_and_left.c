// flags: -O1 -g -fno-inline
// Makes two arrays, and goes through the large one again and again until it is ended; the small one is never touched again.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096 };

static char *make_swept(size_t bytes) {
    char *array = malloc(bytes);
    memset(array, 1, bytes);
    return array;
}

static char *make_left(size_t bytes) {
    char *array = malloc(bytes);
    memset(array, 2, bytes);
    return array;
}

int main(void) {
    size_t bytes = 160 << 20;
    char *left = make_left(8 << 20), *swept = make_swept(bytes);
    for (;;) {
        for (size_t at = 0; at < bytes; at += PAGE) {
            swept[at]++;
        }
        if (swept[0] == 0 && left == NULL) {
            return 1;
        }
    }
}
