// Streams that end leave data behind that was brought ahead and that nobody asks for; then pages are read at random; then a
// stream goes over what is left. The test looks at how much of that was brought ahead in time.
#include "check.h"

int main(void) {
    size_t bytes = 192 * MIB, half = bytes / 2, part = half / 4;
    char *at = malloc(bytes);
    must(at);
    fill(at, bytes, 1);
    for (size_t stream = 0; stream < 4; stream++) verify_from(at + stream * part, part / 2, 1, stream * part / 8, "a stream that ends");
    for (size_t i = 0; i < 2000; i++) {
        size_t page = mix(i) % 4 * (part / PAGE) + mix(i + 77) % (part / 2 / PAGE);
        verify_from(at + page * PAGE, 8, 1, page * PAGE / 8, "a page at random");
    }
    verify_from(at + half, half, 1, half / 8, "a long stream");
    printf("OK\n");
    return 0;
}
